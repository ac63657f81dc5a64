"""A VCF and two BED files for each sample: losses and gains."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from multigpu.formats.names import file_name
from multigpu.formats.tables import arrow
from multigpu.workloads.cnv.output import text_files, vcf
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.result import CnvResult

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SCORE = 1000  # in BED
KINDS = {"del": -1, "dup": 1}


def write_by_sample(result: CnvResult, folder: Path, source: vcf.VcfSource | None) -> None:
    """Write NAME.vcf.gz with its index, NAME.del.bed and NAME.dup.bed of each sample to a folder.

    source  None: no VCF is wanted
    """
    names = list(map(file_name, result.samples))
    if source is not None:
        vcf.write_sample_vcfs(result, folder, names, source)
    table, cnvs = _bed(result), result.called
    signs = direction(cnvs.copy_number, result.options)
    for number, name in enumerate(names):
        for kind, sign in KINDS.items():
            rows = np.flatnonzero((cnvs.sample == number) & (signs == sign))
            with (folder / f"{name}.{kind}.bed").open("wb") as file:
                file.writelines(text_files.tsv(table.take(arrow.numbers(rows))))


def _bed(result: CnvResult) -> "pa.Table":
    """Return the CNVs as columns of BED; the fifth is a whole number, or missing."""
    cnvs = result.called
    scores = np.nan_to_num(np.rint(cnvs.quality), nan=-1).clip(max=MOST_SCORE).astype(int)
    return arrow.table(
        [
            ("#chrom", arrow.named(cnvs.chrom, result.regions.names)),
            ("start", cnvs.start),
            ("end", cnvs.end),
            ("copy_number", arrow.named(*class_labels(cnvs.shown, result.options.classes))),
            ("quality", arrow.strings([str(k) if k >= 0 else "." for k in scores.tolist()])),
            ("regions", cnvs.rows),
            ("genes", arrow.strings([",".join(names) or "." for names in result.genes(cnvs)])),
        ]
    )

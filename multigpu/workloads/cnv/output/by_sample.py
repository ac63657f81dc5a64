"""A VCF and two BED files for each sample: losses and gains."""

from pathlib import Path

import numpy as np

from multigpu.formats.names import file_name
from multigpu.workloads.cnv.output import vcf
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.result import CnvResult

BED_HEADER = "#chrom\tstart\tend\tcopy_number\tquality\tregions\tgenes\n"
MOST_SCORE = 1000  # in BED
KINDS = {"del": -1, "dup": 1}


def write_by_sample(result: CnvResult, folder: Path, source: vcf.VcfSource | None) -> None:
    """Write NAME.vcf.gz with its index, NAME.del.bed and NAME.dup.bed of each sample to a folder.

    source  None: no VCF is wanted
    """
    names = list(map(file_name, result.samples))
    if source is not None:
        vcf.write_sample_vcfs(result, folder, names, source)
    lines, sample = _bed_lines(result), result.called.sample
    signs = direction(result.called.copy_number, result.options)
    for number, name in enumerate(names):
        for kind, sign in KINDS.items():
            rows = np.flatnonzero((sample == number) & (signs == sign)).tolist()
            text = BED_HEADER + "".join(lines[row] for row in rows)
            (folder / f"{name}.{kind}.bed").write_text(text)


def _bed_lines(result: CnvResult) -> list[str]:
    """Return a line of BED for each CNV."""
    cnvs, regions = result.called, result.regions
    indices, labels = class_labels(cnvs.shown, result.options.classes)
    scores = np.nan_to_num(np.rint(cnvs.quality), nan=-1).clip(max=MOST_SCORE).astype(int).tolist()
    columns = (
        [regions.names[chrom] for chrom in cnvs.chrom.tolist()],
        cnvs.start.tolist(),
        cnvs.end.tolist(),
        [labels[index] for index in indices.tolist()],
        ["." if score < 0 else score for score in scores],
        cnvs.rows.tolist(),
        [",".join(names) or "." for names in result.genes(cnvs)],
    )
    return ["\t".join(map(str, row)) + "\n" for row in zip(*columns, strict=True)]

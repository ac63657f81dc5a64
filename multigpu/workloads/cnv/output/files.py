"""All files of a run, written into its hidden folder and published together."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from multigpu.cluster.files import failures_named
from multigpu.errors import several
from multigpu.formats.names import file_name
from multigpu.formats.sequences.indexed_fasta import IndexedFasta
from multigpu.formats.tables import arrow
from multigpu.report.page import Provenance
from multigpu.workloads.cnv.options import CnvOutput
from multigpu.workloads.cnv.output import report, text_files, vcf
from multigpu.workloads.cnv.output.folder import (
    BY_SAMPLE,
    MULTIQC,
    QC,
    REPORT,
    SESSION,
    VCF,
    publish,
)
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.samples.genomes import genome_named, genome_of_regions

MOST_SCORE = 1000  # in BED
KINDS = {"del": -1, "dup": 1}


def write_files(
    result: CnvResult,
    folder: Path,
    outputs: CnvOutput,
    request: CnvRequest,
    genome: IndexedFasta | None = None,
) -> CnvResult:
    """Write all files of a run to its hidden folder and publish them.

    genome  for the bases in the VCF

    Return the result with notes on what was there before.
    """
    with failures_named(outputs.output):
        source = vcf.VcfSource(request.command_line, genome)
        write_tables(result, folder, request.genome, source if outputs.vcf else None)
        (folder / QC).write_bytes(text_files.qc_tsv(result.qc))
        (folder / MULTIQC).write_bytes(text_files.qc_multiqc(result.qc))
        if outputs.per_sample:
            (folder / BY_SAMPLE).mkdir()
            write_by_sample(result, folder / BY_SAMPLE, source if outputs.vcf else None)
        if outputs.report:
            cases, controls = request.cases.paths, request.control_paths
            inputs = [*cases, *(f"{path} (controls)" for path in controls)]
            counting = request.counting_parameters
            made = Provenance.of_this_run()
            page = report.render(result, inputs=inputs, counting=counting, provenance=made)
            (folder / REPORT).write_bytes(page)
        old = folder.parent / "cnv_regions.tsv"
        earlier = old.read_text(errors="replace").partition("\n")[0] if old.is_file() else ""
        removed = publish(folder)
    notes = list(result.notes)
    if removed:
        notes.append(f"removed from {outputs.output}, left by an earlier run: {', '.join(removed)}")
    samples = earlier.split("\t")[3:]
    if samples and samples != list(result.samples):
        notes.append(f"replaced results of an earlier run with other samples: {several(samples)}")
    return replace(result, notes=tuple(notes))


def write_tables(
    result: CnvResult, folder: Path, genome: str | None, source: vcf.VcfSource | None
) -> None:
    """Write all files of the calls: tables, BED, SEG, VCF with its index, the IGV session.

    genome  IGV's name; None: recognized by the lengths of chromosomes
    source  of the VCF; None: it is not wanted
    """
    texts = {"segments.seg": text_files.seg(result), "cnvs.bed": text_files.bed(result)}
    for name, make in result.table_makers().items():
        texts[f"{name}.tsv"] = _table_text(make)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        written = [threads.submit(_write_text, folder / name, text) for name, text in texts.items()]
        if source is not None:
            written.append(threads.submit(vcf.write_vcf, result, folder / VCF, source))
    for done in written:
        done.result()
    tracks = [name for name in text_files.TRACKS if (folder / name).exists()]
    known = genome_named(genome) if genome else genome_of_regions(result.regions)
    session = text_files.igv_session(known.name if known else genome, tracks)
    (folder / SESSION).write_bytes(session)


def _table_text(make: Callable[[], pa.Table]) -> Iterator[bytes | text_files.Text]:
    """Yield the text of a table, which is made by the thread that takes the first line."""
    yield from text_files.tsv(make())


def _write_text(path: Path, text: Iterable[bytes | text_files.Text]) -> None:
    """Write a file and sync it, while other threads make others."""
    with path.open("wb") as file:
        file.writelines(text)
        file.flush()
        os.fsync(file.fileno())


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


def _bed(result: CnvResult) -> pa.Table:
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

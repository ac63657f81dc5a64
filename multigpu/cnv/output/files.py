"""All files of a run, written into its hidden folder and published together."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from multigpu.cluster.engine.output import failures_named
from multigpu.cnv import report
from multigpu.cnv.job import CnvJob
from multigpu.cnv.options import SHOWN_REGIONS, OutputOptions
from multigpu.cnv.output import matrices, plots, tables, vcf
from multigpu.cnv.output.colours import GAIN_RED, Palette
from multigpu.cnv.output.folder import (
    FIGURES,
    REPORT,
    SESSION,
    VCF,
    files_not_made_again,
    publish,
    store_path,
)
from multigpu.cnv.output.lines import Every, Text
from multigpu.cnv.request import Provenance
from multigpu.cnv.result import CnvResult
from multigpu.cnv.samples.genomes import genome_named, genome_of_regions

THREADS = 8  # that write: Arrow lets go of the interpreter, but more of them wait for it
AHEAD = 2  # blocks for each of them


def check_names(job: CnvJob, outputs: OutputOptions) -> None:
    """Raise UsageError for names that a file does not take."""
    if outputs.vcf:
        vcf.check_names(job.cohort.regions.names)


def run_to_folder(
    job: CnvJob, folder: Path, outputs: OutputOptions, provenance: Provenance
) -> CnvResult:
    """Run a job, write all its files and publish them; return the result."""
    store = store_path(folder) if outputs.matrices else None
    result = job.result(
        keep=matrices.names(job.options.posterior) if store else (),
        store=store,
        shown=SHOWN_REGIONS if outputs.report or outputs.plots else 0,
        scratch=folder,
    )
    palette = Palette.named(outputs.colors)
    with failures_named(outputs.output):
        write_tables(result, folder, outputs.genome, outputs.vcf, palette)
        if outputs.report:
            (folder / REPORT).write_bytes(report.render(result, provenance, palette))
        if outputs.plots:
            (folder / FIGURES).mkdir()
            plots.draw(result, folder / FIGURES, outputs.plots, palette)
        removed = files_not_made_again(folder)
        publish(folder)
    job.published = True
    if removed:
        note = f"removed from {outputs.output}, left by an earlier run: {', '.join(removed)}"
        result = replace(result, notes=(*result.notes, note))
    return result


def write_tables(
    result: CnvResult,
    folder: Path,
    genome: str | None,
    with_vcf: bool,
    palette: Palette = GAIN_RED,
) -> None:
    """Write all files of the calls: tables, BED, SEG, VCF with its index, the IGV session.

    genome  IGV's name; None: recognized by the lengths of chromosomes
    """
    with _writers() as files, _writers() as blocks, _writers() as vcf_blocks:
        every, written = partial(_map_in_order, blocks), []
        # The VCF has threads of its own: its index is made when all its text is, so no other file
        # may delay it.
        if with_vcf:
            vcf_every = partial(_map_in_order, vcf_blocks)
            written.append(files.submit(vcf.write_vcf, result, folder / VCF, vcf_every))
        texts: dict[str, Callable[[], Iterable[bytes | Text]]] = {
            "segments.seg": partial(tables.seg, result, every)
        }
        for name, make in result.table_makers().items():
            texts[f"{name}.tsv"] = partial(_tsv, make, every)
        texts["cnvs.bed"] = partial(tables.bed, result, palette, every)
        written += [files.submit(_write, folder / name, text) for name, text in texts.items()]
        try:
            for done in written:
                done.result()
        except BaseException:
            for pool in (files, blocks, vcf_blocks):
                pool.shutdown(wait=False, cancel_futures=True)
            raise
    tracks = [name for name in tables.TRACKS if (folder / name).exists()]
    known = genome_named(genome) if genome else genome_of_regions(result.regions)
    session = tables.igv_session(known.name if known else genome, tracks, palette)
    (folder / SESSION).write_bytes(session)


def _writers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(THREADS, len(os.sched_getaffinity(0))))


def _map_in_order(
    pool: ThreadPoolExecutor, function: Callable[..., Any], items: Iterable[Any]
) -> Iterator[Any]:
    """Yield `function` of each item, computed a few ahead: a slow disk must not fill the memory."""
    coming: deque[Future[Any]] = deque()
    for item in items:
        coming.append(pool.submit(function, item))
        if len(coming) > AHEAD * THREADS:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()


def _tsv(make: Callable[[], Any], every: Every) -> "Iterator[bytes | Text]":
    return tables.tsv(make(), every)


def _write(path: Path, text: "Callable[[], Iterable[bytes | Text]]") -> None:
    """Write blocks as they are made, and sync the file while others are made."""
    with path.open("wb") as file:
        file.writelines(text())
        file.flush()
        os.fsync(file.fileno())

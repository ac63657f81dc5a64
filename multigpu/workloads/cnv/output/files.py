"""All files of a run, written into its hidden folder and published together."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from multigpu.cluster.files import failures_named
from multigpu.errors import several
from multigpu.report.page import Provenance
from multigpu.workloads.cnv import report
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.normalization import cores
from multigpu.workloads.cnv.options import SHOWN_REGIONS, CnvOutput
from multigpu.workloads.cnv.output import matrices, plots, text_files, vcf
from multigpu.workloads.cnv.output.colours import GAIN_RED, Palette
from multigpu.workloads.cnv.output.folder import FIGURES, REPORT, SESSION, VCF, publish, store_path
from multigpu.workloads.cnv.output.tables import table_makers
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.result import CnvResult
from multigpu.workloads.cnv.samples.genomes import genome_named, genome_of_regions


def run_to_folder(job: CnvJob, folder: Path, outputs: CnvOutput, request: CnvRequest) -> CnvResult:
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
        write_tables(result, folder, request.genome, outputs.vcf, palette)
        if outputs.report:
            controls = request.control_samples.paths if request.control_samples else ()
            inputs = [*request.cases.paths, *(f"{path} (controls)" for path in controls)]
            counting = request.counting_parameters
            made = Provenance.of_this_run()
            page = report.render(result, palette, inputs=inputs, counting=counting, provenance=made)
            (folder / REPORT).write_bytes(page)
        if outputs.plots:
            (folder / FIGURES).mkdir()
            plots.draw(result, folder / FIGURES, outputs.plots, palette)
        old = folder.parent / "cnv_regions.tsv"
        earlier = old.read_text(errors="replace").partition("\n")[0] if old.is_file() else ""
        removed = publish(folder)
    job.published = True
    notes = list(result.notes)
    if removed:
        notes.append(f"removed from {outputs.output}, left by an earlier run: {', '.join(removed)}")
    samples = earlier.split("\t")[3:]
    if samples and samples != list(result.samples):
        notes.append(f"replaced results of an earlier run with other samples: {several(samples)}")
    return replace(result, notes=tuple(notes))


def write_tables(
    result: CnvResult, folder: Path, genome: str | None, with_vcf: bool, palette: Palette = GAIN_RED
) -> None:
    """Write all files of the calls: tables, BED, SEG, VCF with its index, the IGV session.

    genome  IGV's name; None: recognized by the lengths of chromosomes
    """
    texts = {"segments.seg": text_files.seg(result), "cnvs.bed": text_files.bed(result, palette)}
    for name, make in table_makers(result).items():
        texts[f"{name}.tsv"] = _table_text(make)
    with ThreadPoolExecutor(cores()) as threads:
        written = [threads.submit(_write_text, folder / name, text) for name, text in texts.items()]
        if with_vcf:
            written.append(threads.submit(vcf.write_vcf, result, folder / VCF))
    for done in written:
        done.result()
    tracks = [name for name in text_files.TRACKS if (folder / name).exists()]
    known = genome_named(genome) if genome else genome_of_regions(result.regions)
    session = text_files.igv_session(known.name if known else genome, tracks, palette)
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

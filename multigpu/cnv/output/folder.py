"""The folder of a run: all files of it appear together, when all are complete."""

import importlib.util
import logging
import os
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from multigpu.cluster.engine.output import (
    atomic_output,
    failures_named,
    open_locked,
    sync_directory,
    sync_folder,
)
from multigpu.cnv.output import tables
from multigpu.cnv.output.colours import GAIN_RED, Palette
from multigpu.cnv.output.lines import Every, Text
from multigpu.cnv.output.vcf import write_vcf
from multigpu.cnv.result import CnvResult
from multigpu.cnv.samples import genomes
from multigpu.cnv.samples.cohort import Given
from multigpu.errors import UsageError
from multigpu.run.job import STARTING_OVER

logger = logging.getLogger(__name__)

MATRICES = "matrices.zarr"
REPORT = "report.html"
FIGURES = "figures"
SESSION = "igv_session.xml"
VCF = "cnvs.vcf.gz"
COUNTS = "counts.parquet"
THREADS = 8  # that write: Arrow lets go of the interpreter, but more of them wait for it
AHEAD = 2  # blocks for each of them
PART, LOCK = ".part", ".lock"
JOURNAL, KEPT_COUNTS = "journal", "counts"  # in the hidden folder
PUBLISHED = "published"  # there: the names of all files, when these are complete
TABLES = (
    "cnvs", "cnv_regions", "segmentation", "cnv_regions_robust",
    "cnvs_fractional", "cnv_regions_fractional", "segmentation_fractional",
)  # fmt: skip

OURS = (  # but not the counts, which may be the input
    *(f"{name}.tsv" for name in TABLES), "cnvs.bed", "segments.seg", VCF, f"{VCF}.tbi",
    f"{VCF}.csi", SESSION, MATRICES, REPORT, FIGURES,
)  # fmt: skip

NEEDED = {
    MATRICES: ("zarr", "xarray"),
    REPORT: ("jinja2", "plotly"),
    FIGURES: ("matplotlib",),
}
OF_TABLES = ("pyarrow.compute", "pysam")
LOADED = {  # what of the others the program imports
    MATRICES: ("zarr",),
    REPORT: ("jinja2",),
    FIGURES: ("matplotlib.figure", "matplotlib.backends.backend_agg"),
}


def check_packages(wanted: tuple[str, ...]) -> None:
    """Raises UsageError where a package is missing that one of these outputs needs."""
    for output in wanted:
        for package in NEEDED[output]:
            if importlib.util.find_spec(package) is None:
                raise UsageError(f"{output} needs the package {package}: pip install {package}")


def load_packages(wanted: tuple[str, ...]) -> threading.Thread:
    """Load what these outputs need behind our back: at the end it would be waited for."""

    def load() -> None:
        for module in chain(OF_TABLES, *(LOADED[output] for output in wanted)):
            with suppress(Exception):  # it is told where it is used
                importlib.import_module(module)

    thread = threading.Thread(target=load, name="packages", daemon=True)
    thread.start()
    return thread


@contextmanager
def output_folder(path: str, resume: bool = False) -> Iterator[Path]:
    """A hidden folder inside `path`, from which `publish` moves the files up.

    What a run that was stopped has finished (its journal, and counts) stays in the hidden folder,
    for one with `resume`.

    Raises UsageError where the folder cannot be made or written, or another run is at it. After
    any exception before `publish` the files that were there before are as they were, and a folder
    made for the run is gone where nothing is left to go on with.
    """
    if not path:
        raise UsageError("the output has no name")
    folder = Path(path)
    existed = folder.is_dir()
    part, lock = folder / PART, folder / LOCK
    with failures_named(path, UsageError):
        folder.mkdir(parents=True, exist_ok=True)
    with open_locked(lock, path):
        try:
            with failures_named(path, UsageError):
                part.mkdir(exist_ok=True)
                _clear(part, resume)
            yield part
            shutil.rmtree(part, ignore_errors=True)
        except BaseException:
            if not _resumable(part):
                shutil.rmtree(part, ignore_errors=True)
            raise
        finally:
            with suppress(OSError):  # what went wrong before is what is told
                lock.unlink()
            if not existed:
                _remove_if_empty(folder)


def not_made_again(part: Path) -> list[str]:
    """The files of an earlier run, which `publish` removes, that this run has not made."""
    made = {path.name for path in part.iterdir()}
    if store_path(part).parent == part.parent:
        made.add(MATRICES)  # a run that was stopped has moved them up
    there = (name for name in OURS if os.path.lexists(part.parent / name))
    return [name for name in there if name not in made]


def publish(part: Path) -> None:
    """Move the files of a run up, over what an earlier one left, when all are on the disk.

    A run that is stopped meanwhile does it again when it is resumed: the journal stays where it
    is, and the record of names is written before the first of them is given.
    """
    folder = part.parent
    sync_folder(part)
    moved = set()
    if store_path(part).parent == folder:
        sync_folder(folder / MATRICES)  # some of its files were written again
        moved = {MATRICES}
    made = {path.name for path in part.iterdir()} - {JOURNAL, KEPT_COUNTS, PUBLISHED}
    if not (part / PUBLISHED).exists():
        with atomic_output(str(part / PUBLISHED)) as file:
            file.writelines(f"{name}\n".encode() for name in sorted(made))
    for name in sorted(made):
        _move_up(part / name, folder / name)
    for name in OURS:
        if name not in made | moved:
            _remove(folder / name)
    sync_directory(folder)  # before the journal goes


def store_path(part: Path) -> Path:
    """Path of the matrices: in the hidden folder, or above, where a stopped run has moved them.

    All other files are written again when a run is resumed.
    """
    record = part / PUBLISHED
    moved = record.exists() and MATRICES in record.read_text().splitlines()
    here = part / MATRICES
    return part.parent / MATRICES if moved and not here.exists() else here


def _move_up(made: Path, target: Path) -> None:
    """Replace the target, which takes a removal first where one of the two is a folder."""
    if made.is_dir() or target.is_dir():
        _remove(target)
    made.replace(target)


def _clear(part: Path, resume: bool) -> None:
    """Of what a run that was stopped has left, only what one with `resume` goes on with stays."""
    begun = (part / JOURNAL).exists()
    if begun and not resume:
        logger.warning(STARTING_OVER)
    kept = (JOURNAL, MATRICES, KEPT_COUNTS, PUBLISHED) if begun else (KEPT_COUNTS,)
    if not resume:
        _remove(part / JOURNAL)  # first, as it is about the others
    for left in part.iterdir():
        if not (resume and left.name in kept):
            _remove(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _resumable(part: Path) -> bool:
    """Whether a run can go on with what is there: not with counts whose calls are published."""
    if (part / JOURNAL).exists():
        return True
    counts = part / KEPT_COUNTS
    return not (part / PUBLISHED).exists() and counts.is_dir() and any(counts.iterdir())


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def write_tables(
    result: CnvResult,
    folder: Path,
    genome: str | None,
    with_vcf: bool,
    palette: Palette = GAIN_RED,
) -> None:
    """All files of the calls: tables, BED, SEG, VCF and its index, the IGV session.

    genome  IGV's name of it; None: by the lengths of its chromosomes
    """
    with _threads() as files, _threads() as blocks, _threads() as blocks_of_vcf:
        every, written = partial(_in_order, blocks), []
        if with_vcf:  # its index is made when all its text is: no other file may be in its way
            own = partial(_in_order, blocks_of_vcf)
            written.append(files.submit(write_vcf, result, folder / VCF, own))
        texts = {"segments.seg": partial(tables.seg, result, every)}
        for name, make in result.makers().items():
            texts[f"{name}.tsv"] = partial(_tsv, make, every)
        texts["cnvs.bed"] = partial(tables.bed, result, palette, every)
        written += [files.submit(_write, folder / name, text) for name, text in texts.items()]
        try:
            for done in written:
                done.result()
        except BaseException:
            for pool in (files, blocks, blocks_of_vcf):
                pool.shutdown(wait=False, cancel_futures=True)
            raise
    tracks = [name for name in tables.TRACKS if (folder / name).exists()]
    known = genomes.named(genome) if genome else genomes.of_regions(result.regions)
    session = tables.igv_session(known.name if known else genome, tracks, palette)
    (folder / SESSION).write_bytes(session)


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(THREADS, len(os.sched_getaffinity(0))))


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[..., Any], items: Iterable[Any]
) -> Iterator[Any]:
    """As `map`, a few ahead of what is taken: a slow disk must not have all in memory."""
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
    """Block after block, as they are made; and to the disk, while other files are made."""
    with path.open("wb") as file:
        file.writelines(text())
        file.flush()
        os.fsync(file.fileno())


def write_report(
    result: CnvResult, folder: Path, given: Given, palette: Palette = GAIN_RED
) -> None:
    """The page with the figures in it."""
    from multigpu.cnv.report import render

    (folder / REPORT).write_bytes(render(result, given, palette))


def write_figures(result: CnvResult, folder: Path, kind: str, palette: Palette = GAIN_RED) -> None:
    """The figures of the report as files, `kind` png or svg."""
    from multigpu.cnv.output.plots import draw

    (folder / FIGURES).mkdir()
    draw(result, folder / FIGURES, kind, palette)

"""The folder of a run: all its files appear together, when all are complete."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from multigpu.cluster.files import (
    LOCK,
    atomic_output,
    clear_folder,
    failures_named,
    hold_folder,
    remove,
    sync_directory,
    sync_folder,
    take_mode,
)
from multigpu.errors import UsageError, spelled
from multigpu.run.job import STARTING_OVER

logger = logging.getLogger(__name__)

MATRICES = "matrices.zarr"
REPORT = "report.html"
SESSION = "igv_session.xml"
VCF = "cnvs.vcf.gz"
BY_SAMPLE = "cnvs_by_sample"
QC, MULTIQC = "qc.tsv", "qc_mqc.json"
COUNTS = "counts.parquet"
PART = ".part"
JOURNAL, KEPT_COUNTS = "journal", "counts"  # in the hidden folder
PUBLISHED = "published"  # in the hidden folder: names of all files, when these are complete

# All files that a run may write, but for the counts, which may be its input.
FILES = (
    "cnvs.tsv", "cnv_regions.tsv", "segmentation.tsv", "cnv_regions_robust.tsv",
    "cnvs_fractional.tsv", "cnv_regions_fractional.tsv", "segmentation_fractional.tsv",
    "cnvs.bed", "segments.seg", VCF, f"{VCF}.tbi", f"{VCF}.csi", SESSION, MATRICES, REPORT, QC,
    MULTIQC, BY_SAMPLE,
)  # fmt: skip


@contextmanager
def output_folder(path: str, resume: bool = False) -> Iterator[Path]:
    """Yield a hidden folder inside `path`, from which `publish` moves the files up.

    What an interrupted run has finished (its journal, and counts) stays in the hidden folder for a
    run with `resume`.

    Raises UsageError where the folder cannot be made or written, or another run is writing it.
    After any exception before `publish` the files of an earlier run are as they were, new counts
    of alignments are kept, and a folder made for the run is removed if nothing is left in it.
    """
    if not path:
        raise UsageError("the output has no name")
    if path == "-":
        raise UsageError("-: results are several files: -o names a folder")
    folder = Path(path)
    existed = folder.is_dir()
    if not existed and folder.exists():
        raise UsageError(f"{path}: cannot be written: it is a file, and -o names a folder")
    part = folder / PART
    with failures_named(path, UsageError):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with hold_folder(part, path, UsageError):
            try:
                with failures_named(path, UsageError):
                    _clear(part, resume)
                yield part
            finally:
                with suppress(OSError):  # an earlier error is the one to report
                    if (part / COUNTS).exists() and not (folder / COUNTS).exists():
                        (part / COUNTS).replace(folder / COUNTS)  # counting may have taken hours
                        logger.warning("the counts are kept: %s", folder / COUNTS)
                    if not _resumable(part):
                        clear_folder(part)
    finally:
        if not existed:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def publish(part: Path) -> list[str]:
    """Move the files of a run up, over those of an earlier one, when all are on the disk.

    Return the files of an earlier run that this run has not made: they are removed.

    A run that is interrupted here does it again when it is resumed: the journal stays where it
    is, and the list of names is written before the first file is moved.
    """
    folder = part.parent
    sync_folder(part)
    moved = set()
    if store_path(part).parent == folder:
        sync_folder(folder / MATRICES)  # some of its files were written again
        moved = {MATRICES}
    made = {path.name for path in part.iterdir()} - {JOURNAL, KEPT_COUNTS, PUBLISHED, LOCK}
    if not (part / PUBLISHED).exists():
        with atomic_output(str(part / PUBLISHED)) as file:
            file.writelines(f"{name}\n".encode() for name in sorted(made))
    for name in sorted(made):
        target = folder / name
        take_mode(part / name, target)
        if (part / name).is_dir() or target.is_dir():
            remove(target)  # a folder cannot be replaced
        (part / name).replace(target)
    others = [name for name in FILES if name not in made | moved]
    removed = [name for name in others if os.path.lexists(folder / name)]
    for name in removed:
        remove(folder / name)
    sync_directory(folder)  # before the journal goes
    return removed


def store_path(part: Path) -> Path:
    """Return the path of the matrices: in the hidden folder, or above it if they were moved.

    An interrupted run may have moved them. All other files are written again by a resumed run.
    """
    record = part / PUBLISHED
    moved = record.exists() and MATRICES in record.read_text().splitlines()
    here = part / MATRICES
    return part.parent / MATRICES if moved and not here.exists() else here


def _clear(part: Path, resume: bool) -> None:
    """Remove what an interrupted run has left, except what a run with `resume` continues with."""
    has_journal = (part / JOURNAL).exists()
    if has_journal and not resume:
        logger.warning(spelled(STARTING_OVER))
    kept = (JOURNAL, MATRICES, KEPT_COUNTS, PUBLISHED) if has_journal else (KEPT_COUNTS,)
    if not resume:
        remove(part / JOURNAL)  # first, as it refers to the others
    clear_folder(part, kept if resume else ())


def _resumable(part: Path) -> bool:
    """Return whether a run can be resumed here: not with counts whose calls are published."""
    if (part / JOURNAL).exists():
        return True
    counts = part / KEPT_COUNTS
    return not (part / PUBLISHED).exists() and counts.is_dir() and any(counts.iterdir())

"""`multigpu dock`."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.files import is_replaced
from multigpu.errors import UsageError
from multigpu.formats.storage.suffixes import check_page
from multigpu.run.command import (
    Reporting,
    check_outputs,
    command_of,
    keep_inputs,
    number_of,
    print_outcome,
    say,
    start_workers,
    watch,
)
from multigpu.run.values import texts_of
from multigpu.workloads.dock.options import DockOutput
from multigpu.workloads.dock.request import DockRequest

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob
    from multigpu.workloads.dock.output.files import DockFiles

logger = logging.getLogger(__name__)
SOME_SKIPPED = 3  # exit status
REPORTED = 12  # ligands in a report


@command_of(example="multigpu dock ligands.sdf --pocket pocket.maps.fld -o poses.sdf")
def command(request: DockRequest, out: DockOutput, reporting: Reporting) -> int:
    """Find the best rotations of LIGANDS in a pocket, given as a grid of scores.

    LIGANDS are SDF, MOL2, PDB, PDBQT or XYZ files, directories, quoted patterns, URLs or - for
    standard input, plain or compressed with gzip or zstd. Every rotation is tried, so the best pose
    is the best of all. Ligands that cannot be docked are skipped: the exit status is 3 then, and
    the table OUT without its suffix and with .errors.tsv says why.
    """
    if reporting.dry_run:
        from multigpu.workloads.dock.dry_run import show_plan

        show_plan(request, reporting.json)
        return 0
    started = now()
    output = out.output
    with start_workers(request.run, reporting, request.lanes) as workers:
        from multigpu.formats.storage.sources import is_repeatable
        from multigpu.workloads.dock.job import DockJob
        from multigpu.workloads.dock.output.files import DockFiles, pose_journal, tables_beside

        files = DockFiles(poses=output, scores=out.scores, report=out.report)
        _check_files(files, request, reporting)
        is_kept = all(map(is_repeatable, request.files))
        job = DockJob(
            request,
            report=REPORTED if out.report else 0,
            coming=workers,
            journal=pose_journal(output) if is_kept else None,
        )
        if not reporting.quiet and job.covering_radius is not None:
            count = number_of(job.search.rotations.count, "rotation")
            say(f"{count}; any other is within {job.covering_radius:.3g}°")

        def progress() -> str:
            return f"{number_of(job.stats.ligands, 'ligand')} docked"

        watched = watch(job, reporting, name="dock", results=progress, rows_to=output)
        with watched, job.keep_journal():
            with files.open() as write:
                for docked in job.parts(files.format, files.score_lines):
                    begin = now()
                    write(docked)
                    job.emit(Event("written", details={"begin": begin}))
            job.published = True
            _write_facts(job, files, reporting, started)
    skipped = len(job.stats.skipped)
    if skipped and not reporting.quiet:
        verb = "was" if skipped == 1 else "were"
        what = f"{skipped:,} of {skipped + job.stats.ligands:,} ligands {verb} skipped"
        say(f"{what}: see {tables_beside(output)[1]}")
    print_outcome(reporting, _found(job), output)
    return SOME_SKIPPED if skipped else 0


def _check_files(files: "DockFiles", request: DockRequest, reporting: Reporting) -> None:
    """Raise UsageError for outputs that cannot be written, or would replace an input."""
    files.check(request.run.resume)
    _check_folders(files.poses, texts_of(request.ligands, "ligands"))
    files.check_not_in_folder(files.scores, reporting.log_json)
    keep_inputs(request.paths, *files.paths, *check_outputs(reporting))
    if files.report:
        # Where it cannot draw, that is said before hours of work.
        import multigpu.workloads.dock.report  # noqa: F401

        check_page(files.report)


def _check_folders(poses: str | None, ligands: Sequence[str]) -> None:
    """Raise UsageError for poses that are in a folder of ligands; warn where they will be."""
    if poses is None or not is_replaced(poses):
        return
    for folder in ligands:
        if Path(folder).is_dir() and Path(folder).resolve() == Path(poses).resolve().parent:
            if Path(poses).is_file():
                raise UsageError(f"{poses} is in {folder}, which is read: give another output")
            logger.warning("multigpu: %s will be in %s, and read by the next run", poses, folder)


def _write_facts(job: "DockJob", files: "DockFiles", reporting: Reporting, started: float) -> None:
    from multigpu.run.summary import summary, write_summary

    if reporting.summary:
        write_summary(reporting.summary, job, files.poses, files.format, started)
    if files.report:
        from multigpu.workloads.dock.report import write_report

        write_report(files.report, job, summary(job, files.poses, files.format, started))


def _found(job: "DockJob") -> str:
    found = f"{number_of(job.stats.ligands, 'ligand')} docked"
    best = job.stats.best_score
    return found if best is None else f"{found}, best score {best:.4g}"

"""`multigpu dock`."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.files import is_replaced
from multigpu.errors import UsageError
from multigpu.formats.storage.suffixes import check_page
from multigpu.run.command import (
    FILE,
    RUN,
    SUMMARY,
    WATCH,
    Reporting,
    check_outputs,
    keep_inputs,
    number_of,
    options,
    options_from,
    print_outcome,
    say,
    start_workers,
    watch,
)
from multigpu.run.options import RunOptions
from multigpu.workloads.dock.options import PRECISION, DockOptions

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob
    from multigpu.workloads.dock.output.files import DockFiles
    from multigpu.workloads.dock.request import DockRequest

logger = logging.getLogger(__name__)
SOME_SKIPPED = 3  # exit status
REPORTED = 12  # ligands in a report


def _numbers(form: str, example: str) -> Callable[[str], tuple[float, ...]]:
    """Return a type of options: numbers separated by commas, as many as the form has names."""

    def convert(text: str) -> tuple[float, ...]:
        try:
            numbers = tuple(float(word) for word in text.split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != len(form.split(",")):
            raise click.BadParameter(f"expected {form}, e.g. {example}; got {text!r}")
        return numbers

    return convert


DOCK = (
    click.argument("ligands", nargs=-1, required=True, type=FILE),
    click.option(
        "--pocket", type=FILE, required=True, metavar="FILE",
        help="Score grid of the pocket: AutoGrid .maps.fld, OpenDX, MRC/CCP4, NumPy .npy or .npz.",
    ),
    click.option(
        "--origin", type=_numbers("X,Y,Z", "--origin -12.5,4,30.25"), metavar="X,Y,Z",
        help="Coordinates of the first point of a NumPy grid, Å.  [default: as the file says]",
    ),
    click.option(
        "--spacing", type=float, metavar="S",
        help="Distance between points of a NumPy grid, Å.  [default: as the file says]",
    ),
    click.option(
        "--precision", type=float, metavar="P",
        help="Degrees between neighbouring angles; all three angles run through 360."
        f"  [default: {PRECISION:g}]",
    ),
    click.option(
        "--rotations", type=int, metavar="N",
        help="Number of rotations, spread evenly, instead of --precision.",
    ),
    click.option(
        "--rotation-file", type=FILE, metavar="FILE",
        help="File of quaternions w x y z, one a line, instead of --precision.",
    ),
    click.option(
        "--center", type=_numbers("X,Y,Z", "--center 15.2,53.9,16.9"), metavar="X,Y,Z",
        help="Position of every ligand's centroid, Å.  [default: where the ligand is]",
    ),
    click.option(
        "--translations", type=_numbers("R,STEP", "--translations 2,0.5"), metavar="R,STEP",
        help="Also try all shifts in steps of STEP Å, up to R Å along each axis.",
    ),
    click.option(
        "--interpolation", type=click.Choice(["linear", "nearest"]), default="linear",
        show_default=True, help="How to read the grid between its points.",
    ),
    click.option(
        "--outside", type=click.Choice(["clamp", "zero", "penalty"]),
        help="Score of atoms outside of the grid: as at its border, 0, or AutoDock's penalty."
        "  [default: penalty for AutoGrid, else clamp]",
    ),
    click.option(
        "--top", type=int, default=1, show_default=True, metavar="K",
        help="Poses to write of each ligand.",
    ),
    click.option(
        "--min-rmsd", type=float, default=DockOptions.min_rmsd, show_default=True, metavar="D",
        help="Smallest distance between two poses of a ligand, Å.",
    ),
    click.option(
        "--on-error", type=click.Choice(["skip", "stop"]), default="skip", show_default=True,
        help="What to do when a ligand cannot be docked.",
    ),
    click.option(
        "--allow-flat", is_flag=True,
        help="Dock drawings in two dimensions as they are.  [default: skip them]",
    ),
    click.option(
        "--fragments", type=click.Choice(["largest", "skip"]), default="largest",
        show_default=True, help="Salts and hydrates: dock their largest part, or skip them.",
    ),
)  # fmt: skip

OUTPUT = (
    click.option(
        "-o", "--output", type=FILE, metavar="OUT",
        help="Poses: .sdf, .mol2, .pdb, .pdbqt or .xyz, or directory/ for a file for each ligand."
        "  [default: SDF on standard output]",
    ),
    click.option(
        "--scores", type=FILE, metavar="FILE",
        help="Table of scores: .tsv or .parquet.  [default: beside the poses]",
    ),
    click.option(
        "--report", type=FILE, metavar="HTML", help="Write a report with scores and best poses."
    ),
)  # fmt: skip


def request_of(values: Mapping[str, Any]) -> "DockRequest":
    """Return the request of a command with the options DOCK and RUN."""
    from multigpu.workloads.dock.request import DockRequest

    return DockRequest(
        ligands=values["ligands"],
        pocket=values["pocket"],
        origin=values["origin"],
        spacing=values["spacing"],
        options=options_from(DockOptions, values),
        run=options_from(RunOptions, values),
    )


@click.command()
@options(DOCK, OUTPUT, RUN, SUMMARY, WATCH)
def command(output: str | None, scores: str | None, report: str | None, **values: Any) -> int:
    """Find the best rotations of LIGANDS in a pocket, given as a grid of scores.

    LIGANDS are SDF, MOL2, PDB, PDBQT or XYZ files, directories, quoted patterns, URLs or - for
    standard input, plain or compressed with gzip or zstd. Every rotation is tried, so the best pose
    is the best of all. Ligands that cannot be docked are skipped: the exit status is 3 then, and
    the table OUT without its suffix and with .errors.tsv says why.
    """
    started = now()
    request, reporting = request_of(values), options_from(Reporting, values)
    with start_workers(request.run, reporting, request.lanes) as workers:
        from multigpu.formats.storage.sources import is_repeatable
        from multigpu.workloads.dock.job import DockJob
        from multigpu.workloads.dock.output.files import DockFiles, pose_journal, tables_beside

        files = DockFiles(poses=output, scores=scores, report=report)
        _check_files(files, request, reporting, values["ligands"])
        is_kept = all(map(is_repeatable, request.ligands))
        job = DockJob(
            request,
            report=REPORTED if report else 0,
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


def _check_files(
    files: "DockFiles", request: "DockRequest", reporting: Reporting, ligands: Sequence[str]
) -> None:
    """Raise UsageError for outputs that cannot be written, or would replace an input.

    ligands: files and folders as they were given
    """
    files.check(request.run.resume)
    _check_folders(files.poses, ligands)
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

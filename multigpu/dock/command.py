"""`multigpu dock`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.engine.output import STDOUT
from multigpu.dock.options import COMPRESSION, PRECISION, DockOptions, docking_lanes
from multigpu.errors import UsageError
from multigpu.run.command import FILE, RUN, SUMMARY, WATCH, Reporting, options, options_from
from multigpu.run.options import RunOptions

SOME_SKIPPED = 3  # exit status
REPORTED = 12  # of the best ligands


def _numbers(form: str, example: str) -> Callable[[str], tuple[float, ...]]:
    """A type of options: numbers separated by commas, as many as the form has names."""

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
        help="AutoGrid's .maps.fld, OpenDX, MRC/CCP4, or .npy and .npz of NumPy.",
    ),
    click.option(
        "--origin", type=_numbers("X,Y,Z", "--origin -12.5,4,30.25"), metavar="X,Y,Z",
        help="Of a NumPy grid, Å.",
    ),
    click.option("--spacing", type=float, metavar="S", help="Of a NumPy grid, Å."),
    click.option(
        "--precision", type=float, show_default=f"{PRECISION:g}", metavar="P",
        help="Degrees from one angle to the next; all three angles run through 360.",
    ),
    click.option("--rotations", type=int, metavar="N", help="N rotations, spread evenly, instead."),
    click.option(
        "--rotation-file", type=FILE, metavar="FILE",
        help="Quaternions w x y z, one a line, instead.",
    ),
    click.option(
        "--center", type=_numbers("X,Y,Z", "--center 15.2,53.9,16.9"), metavar="X,Y,Z",
        help="Where the ligands' centroids go; else they stay where they are.",
    ),
    click.option(
        "--translations", type=_numbers("R,STEP", "--translations 2,0.5"), metavar="R,STEP",
        help="Also try all shifts by steps of STEP Å, up to R Å along each axis.",
    ),
    click.option(
        "--interpolation", type=click.Choice(["linear", "nearest"]), default="linear",
        show_default=True, help="Between the points of the grid.",
    ),
    click.option(
        "--outside", type=click.Choice(["clamp", "zero", "penalty"]),
        show_default="penalty for AutoGrid, else clamp",
        help="Atoms outside of the grid score as at its border, nothing, or AutoDock's penalty.",
    ),
    click.option("--top", type=int, default=1, show_default=True, metavar="K",
                 help="Poses of each ligand."),
    click.option(
        "--min-rmsd", type=float, default=DockOptions.min_rmsd, show_default=True, metavar="D",
        help="Å that these are apart, at least.",
    ),
    click.option(
        "--on-error", type=click.Choice(["skip", "stop"]), default="skip", show_default=True,
        help="What to do about a ligand that cannot be docked.",
    ),
    click.option(
        "--allow-flat", is_flag=True,
        help="Dock ligands drawn in two dimensions as they are; else they are skipped.",
    ),
)  # fmt: skip


def dock_options(values: dict[str, Any]) -> DockOptions:
    return DockOptions(**{field.name: values[field.name] for field in fields(DockOptions)})


@click.command()
@options(DOCK)
@click.option(
    "-o", "--output", type=FILE, metavar="OUT",
    help="Poses as .sdf, .mol2, .pdb, .pdbqt or .xyz, or a directory/ with a file for each ligand.",
)  # fmt: skip
@click.option(
    "--scores",
    type=FILE,
    metavar="FILE",
    help="Table of the poses, .tsv or .parquet; else beside the poses.",
)
@click.option(
    "--report", type=FILE, metavar="HTML", help="Write a page with scores and the best poses."
)
@options(RUN, SUMMARY, WATCH)
def command(**values: Any) -> int:
    """Find the best rotations of LIGANDS in a pocket, given as a grid of scores.

    LIGANDS are SDF, MOL2, PDB, PDBQT or XYZ files, directories, quoted patterns, URLs or - for
    standard input, plain or compressed with gzip or zstd. Every rotation is tried; the poses are
    the best of all of them. The exit status is 3 where some ligands had to be skipped; a table
    beside the poses, OUT without its suffix and .errors.tsv, says why.
    """
    started = now()
    from multigpu.dock.prepare import prepare
    from multigpu.formats.molecules.ligands import LIGANDS
    from multigpu.formats.storage.sources import plain_bytes
    from multigpu.run.command import number_of, print_outcome, start_workers, watch

    docking, running = dock_options(values), options_from(RunOptions, values)
    reporting = Reporting.of(values)
    with ExitStack() as stack:
        ready = partial(prepare, next(iter(values["ligands"]), ""), values["pocket"], docking)
        lanes = docking_lanes(docking, plain_bytes(values["ligands"], LIGANDS, COMPRESSION))
        workers = stack.enter_context(start_workers(running, reporting, lanes, prepare=ready))
        from multigpu.dock.api import DockJob
        from multigpu.formats.molecules.pose_files import pose_format, pose_journal

        _check(values)
        output, report = values["output"], values["report"]
        job = DockJob(
            list(values["ligands"]), values["pocket"], docking, running, values["origin"],
            values["spacing"], REPORTED if report else 0, lanes, devices=workers.devices,
            coming=workers.coming, journal=pose_journal(output),
        )  # fmt: skip
        if job.covering_radius is not None and not values["quiet"]:
            count, radius = job.search.rotations.count, job.covering_radius
            click.echo(
                f"multigpu: {count:,} rotations; any other is within {radius:.3g}°", err=True
            )
        docked = partial(_docked, job)
        with watch(job, reporting, name="dock", results=docked, rows_to=output), job.keep_journal():
            errors = _write(job, values)
            job.published = True
            _tell(job, values, pose_format(output), started)
    if not values["quiet"]:
        _report_skipped(job, output, PurePath(errors).name)
    found = f"{number_of(job.facts.ligands, 'ligand')} docked"
    best = max((scores.max() for scores in job.facts.scores if len(scores)), default=None)
    if best is not None:
        found += f", best score {best:.4g}"
    print_outcome(reporting, found, output)
    return SOME_SKIPPED if job.facts.skipped else 0


def _check(values: dict[str, Any]) -> None:
    """Raises UsageError for outputs that cannot be written: before hours of work."""
    from multigpu.dock.scores import check_errors_path, check_scores
    from multigpu.formats.molecules.pose_files import (
        check_poses,
        is_folder,
        pose_format,
        tables_beside,
    )
    from multigpu.run.command import check_outputs, keep_inputs

    output = values["output"]
    pose_format(output)
    check_poses(output, values["resume"])
    check_scores(values["scores"])
    written = check_outputs(Reporting.of(values), values["scores"], values["report"])
    if output is not None and is_folder(output):
        _check_beside(output, values["scores"], values["log_json"])
    else:
        scores, errors = tables_beside(output)
        written += [errors] if values["scores"] else [scores, errors]
        check_errors_path(errors)
    keep_inputs(_read(values), output, *written)
    if all(path is None or path in STDOUT for path in (output, values["scores"] or "a file")):
        raise UsageError("poses and scores would both go to standard output: name a file of one")
    if values["report"]:
        from multigpu.dock.report import check_packages
        from multigpu.formats.storage.suffixes import check_page

        check_page(values["report"])
        check_packages()


def _check_beside(folder: str, *paths: str | None) -> None:
    """Raises UsageError for what would lie in the directory of the poses before these do."""
    for path in filter(None, paths):
        if Path(folder).resolve() in Path(path).resolve().parents:
            raise UsageError(
                f"{path}: {folder} appears when all poses are there: name it elsewhere"
            )


def _read(values: dict[str, Any]) -> Iterator[str]:
    """The files that are read; there may be very many, and few ask for them."""
    from multigpu.formats.molecules.ligands import LIGANDS
    from multigpu.formats.storage.sources import expand

    yield from expand(values["ligands"], LIGANDS)
    yield from filter(None, (values["pocket"], values["rotation_file"]))


def _write(job: Any, values: dict[str, Any]) -> str:
    """The poses and their tables; the path of that of the skipped ligands."""
    from multigpu.dock.scores import score_output, write_errors
    from multigpu.formats.molecules.pose_files import pose_format, pose_output

    with pose_output(values["output"]) as poses:
        with score_output(values["scores"] or poses.scores) as table:
            for part in job.parts(pose_format(values["output"]), table.lines):
                begin = now()
                poses.write(part.names, part.layouts, part.counts, part.texts)
                table.write(part.rows, part.lines)
                job.emit(Event("written", facts={"begin": begin}))
        write_errors(poses.errors, job.facts.skipped)
        return poses.errors


def _tell(job: Any, values: dict[str, Any], fmt: str, started: float) -> None:
    """The summary and the report."""
    from multigpu.run.summary import summary, write_summary

    if values["summary"]:
        write_summary(values["summary"], job, values["output"], fmt, started)
    if values["report"]:
        from multigpu.dock.report import write_report

        write_report(values["report"], job, summary(job, values["output"], fmt, started))


def _docked(job: Any) -> str:
    """What the progress says of results."""
    return f"{job.facts.ligands:,} ligands docked"


def _report_skipped(job: Any, output: str | None, errors: str) -> None:
    """Print how many ligands were skipped, and which file says why."""
    from multigpu.formats.molecules.pose_files import is_folder

    skipped, docked = len(job.facts.skipped), job.facts.ligands
    if not skipped:
        return
    place = PurePath(output or "")
    where = place / errors if output and is_folder(output) else place.parent / errors
    what = f"{skipped:,} of {skipped + docked:,} ligands were skipped"
    click.echo(f"multigpu: {what}: see {where}", err=True)

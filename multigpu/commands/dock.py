"""`multigpu dock`."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import click

from multigpu.cluster.engine.events import Event, now
from multigpu.cluster.engine.output import STDOUT
from multigpu.commands.options import (
    DOCK,
    FILE,
    RUN,
    SUMMARY,
    WATCH,
    dock_options,
    options,
    run_options,
)
from multigpu.errors import UsageError

SOME_SKIPPED = 3  # exit status
REPORTED = 12  # of the best ligands


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
    from multigpu.commands.running import begun, conclude, number_of, watched
    from multigpu.config import COMPRESSION, docking_lanes
    from multigpu.formats.molecules.ligands import LIGANDS
    from multigpu.formats.storage.sources import plain_bytes
    from multigpu.workloads.dock_prepare import prepare

    docking, running = dock_options(values), run_options(values)
    with ExitStack() as stack:
        ready = partial(prepare, next(iter(values["ligands"]), ""), values["pocket"], docking)
        lanes = docking_lanes(docking, plain_bytes(values["ligands"], LIGANDS, COMPRESSION))
        devices, coming = begun(stack, running, values, lanes, ready)
        from multigpu.docking import DockJob
        from multigpu.formats.molecules.pose_files import pose_format, pose_journal

        _check(values)
        output, report = values["output"], values["report"]
        job = DockJob(
            list(values["ligands"]), values["pocket"], docking, running, values["origin"],
            values["spacing"], REPORTED if report else 0, lanes, devices=devices, coming=coming,
            journal=pose_journal(output),
        )  # fmt: skip
        if job.covering_radius is not None and not values["quiet"]:
            count, radius = job.search.rotations.count, job.covering_radius
            click.echo(
                f"multigpu: {count:,} rotations; any other is within {radius:.3g}°", err=True
            )
        with watched(values, job, "dock", _docked), job.kept():
            errors = _write(job, values)
            job.published = True
            _tell(job, values, pose_format(output), started)
    if not values["quiet"]:
        _report_skipped(job, output, PurePath(errors).name)
    found = f"{number_of(job.facts.ligands, 'ligand')} docked"
    best = max((scores.max() for scores in job.facts.scores if len(scores)), default=None)
    if best is not None:
        found += f", best score {best:.4g}"
    conclude(values, found, output)
    return SOME_SKIPPED if job.facts.skipped else 0


def _check(values: dict[str, Any]) -> None:
    """Raises UsageError for outputs that cannot be written: before hours of work."""
    from multigpu.commands.running import keep_inputs, outputs
    from multigpu.formats.molecules.pose_files import (
        check_poses,
        is_folder,
        pose_format,
        tables_beside,
    )
    from multigpu.formats.tables.scores import check_errors_path, check_scores

    output = values["output"]
    pose_format(output)
    check_poses(output, values["resume"])
    check_scores(values["scores"])
    written = outputs(values, values["scores"], values["report"])
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
        from multigpu.formats.storage.suffixes import check_page
        from multigpu.report import check_packages

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
    from multigpu.formats.molecules.pose_files import pose_format, pose_output
    from multigpu.formats.tables.scores import score_output, write_errors

    with pose_output(values["output"]) as poses:
        with score_output(values["scores"] or poses.scores) as table:
            for part in job.parts(pose_format(values["output"]), table.lines):
                begin = now()
                poses.write(part.names, part.layouts, part.counts, part.texts)
                table.write(part.rows, part.lines)
                job.tell(Event("written", facts={"begin": begin}))
        write_errors(poses.errors, job.facts.skipped)
        return poses.errors


def _tell(job: Any, values: dict[str, Any], fmt: str, started: float) -> None:
    """The summary and the report."""
    from multigpu.summary import summary, write_summary

    if values["summary"]:
        write_summary(values["summary"], job, values["output"], fmt, started)
    if values["report"]:
        from multigpu.report import write_report

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

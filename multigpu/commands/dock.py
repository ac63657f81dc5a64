"""`multigpu dock`."""

import time
from typing import Any

import click

from multigpu.commands.options import DOCK, REPORTING, RUN, dock_options, options, run_options
from multigpu.commands.running import begin, is_shown, keep_inputs

SOME_SKIPPED = 3  # exit status
REPORTED = 12  # of the best ligands


@click.command()
@options(DOCK)
@click.option(
    "-o", "--output", metavar="OUT",
    help="Poses as .sdf, .mol2, .pdb, .pdbqt or .xyz, or a directory/ with a file for each ligand.",
)  # fmt: skip
@click.option(
    "--scores", metavar="FILE", help="Table of the poses, .tsv or .parquet; else beside the poses."
)
@click.option("--report", metavar="HTML", help="Write a page with scores and the best poses.")
@options(RUN, REPORTING)
def command(**values: Any) -> int:
    """Find the best rotations of LIGANDS in a pocket, given as a grid of scores.

    LIGANDS are SDF, MOL2, PDB, PDBQT or XYZ files, directories, quoted patterns, URLs or - for
    standard input, plain or compressed with gzip or zstd. Every rotation is tried; the poses are
    the best of all of them. The exit status is 3 where some ligands had to be skipped; errors.tsv
    beside the poses says why.
    """
    started = time.time()
    docking, running = dock_options(values), run_options(values)
    devices = begin(values, running)
    from cluster.output import check_output
    from multigpu.docking import DockJob
    from multigpu.io.pose_files import check_poses, pose_format, pose_output
    from multigpu.io.scores import check_errors_path, score_output, write_errors
    from multigpu.progress import Progress
    from multigpu.summary import summary, write_summary

    output, report = values["output"], values["report"]
    fmt = pose_format(output)
    check_poses(output)
    for path in (values["scores"], values["summary"], report):
        check_output(path)
    inputs = [*values["ligands"], values["pocket"]]
    keep_inputs(inputs, output, values["scores"], values["summary"], report)
    if report:
        from multigpu.report import check_packages, write_report

        check_packages()
    job = DockJob(
        list(values["ligands"]), values["pocket"], docking, running, devices=devices,
        origin=values["origin"], spacing=values["spacing"], report=REPORTED if report else 0,
    )  # fmt: skip
    if job.covering_radius is not None and not values["quiet"]:
        count, radius = job.search.rotations.count, job.covering_radius
        click.echo(f"multigpu: {count:,} rotations; any other is within {radius:.3g}°", err=True)
    with pose_output(output) as poses:
        scores = values["scores"] or poses.scores
        keep_inputs(inputs, scores, poses.errors)
        check_errors_path(poses.errors)
        with score_output(scores) as table, Progress(is_shown(values), job) as progress:
            for part in job.parts(fmt):
                poses.write(part.names, part.layouts, part.texts)
                table.write(part.rows)
                progress.update()
        write_errors(poses.errors, job.facts.skipped)
    if values["summary"]:
        write_summary(values["summary"], job, output, fmt, started)
    if report:
        write_report(report, job, summary(job, output, fmt, started))
    return _status(job, values["quiet"])


def _status(job: Any, quiet: bool) -> int:
    skipped, docked = len(job.facts.skipped), job.facts.ligands
    if not skipped:
        return 0
    if not quiet:
        what = f"{skipped:,} of {skipped + docked:,} ligands were skipped: see errors.tsv"
        click.echo(f"multigpu: {what}", err=True)
    return SOME_SKIPPED

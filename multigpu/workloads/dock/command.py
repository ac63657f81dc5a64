"""`multigpu dock`."""

from typing import TYPE_CHECKING

from multigpu.cluster.engine.events import Event, now
from multigpu.formats.storage.suffixes import check_page
from multigpu.run.command import Reporting, command_of, keep_inputs, number_of, start_workers
from multigpu.run.values import texts_of
from multigpu.workloads.dock.options import DockOutput
from multigpu.workloads.dock.request import DockRequest

if TYPE_CHECKING:
    from multigpu.workloads.dock.job import DockJob

SOME_SKIPPED = 3  # exit status
MAPS = "receptor.maps"  # the folder of kept maps, beside the output
REPORTED = 12  # ligands in a report


@command_of(
    example="multigpu dock ligands.sdf --receptor receptor.pdb --autobox crystal.sdf -o poses.sdf"
)
def command(request: DockRequest, out: DockOutput, reporting: Reporting) -> int:
    """Find the best poses of rigid LIGANDS in a pocket: a receptor with a box, or a grid.

    LIGANDS are SDF, MOL2, PDB, PDBQT, DLG, XYZ or SMILES files, directories, quoted patterns, URLs
    or - for standard input, plain or compressed with gzip or zstd. In a receptor and in AutoGrid's
    or Vina's maps every pose of the whole box is weighed, and the best are refined: energies are
    kcal/mol. In other grids every rotation is tried where the ligand lies. Ligands that cannot be
    docked are skipped: the exit status is 3 then, and the table OUT without its suffix and with
    .errors.tsv says why.
    """
    output = out.output
    with start_workers(request.run, reporting, request.lanes) as workers:
        from multigpu.formats.storage.sources import is_repeatable
        from multigpu.workloads.dock.job import DockJob
        from multigpu.workloads.dock.output import DockFiles, tables_beside

        files = DockFiles(poses=output, scores=out.scores, report=out.report)
        files.check()
        given = texts_of(request.ligands, "ligands")
        written = [*files.paths, *reporting.check_outputs()]
        keep_inputs(request.paths, *written, given=given, kind=request.kind)
        if files.report:
            check_page(files.report)
        journal = files.journal  # None where nothing can be kept beside the poses
        is_kept = all(map(is_repeatable, request.files))
        job = DockJob(
            request,
            report=REPORTED if out.report else 0,
            maps=journal and journal.parent / MAPS,
            coming=workers,
            journal=journal if is_kept else None,
        )
        if job.pocket.prepared is not None:
            points, middle = " × ".join(map(str, job.pocket.shape)), job.pocket.center
            around = ",".join(f"{x:g}" for x in middle.round(3))
            reporting.say(f"maps on {points} points around {around}: {job.pocket.path}")
        if job.covering_radius is not None:
            count = number_of(job.search.rotations.count, "rotation")
            reporting.say(f"{count}; any other is within {job.covering_radius:.3g}°")

        with reporting.watch(job, "dock", lambda: _docked(job), output):
            with files.open(job.columns) as write:
                for docked in job.parts(files.format):
                    begin = now()
                    write(docked)
                    job.emit(Event("written", details={"begin": begin}))
            job.published = True
            reporting.write_summary(job, files.poses, files.format)
            if files.report:
                from multigpu.run.summary import summary
                from multigpu.workloads.dock.report import write_report

                facts = summary(job, files.poses, files.format, reporting.started)
                write_report(files.report, job, facts)
    skipped = len(job.stats.skipped)
    if skipped:
        verb = "was" if skipped == 1 else "were"
        what = f"{skipped:,} of {skipped + job.stats.ligands:,} ligands {verb} skipped"
        reporting.say(f"{what}: see {tables_beside(output)[1]}")
    best, found = job.stats.best_score, _docked(job)
    if best is not None:
        what = f"energy {-best:.4g} kcal/mol" if job.with_energies else f"score {best:.4g}"
        found += f", best {what}"
    reporting.say_outcome(found, output)
    return SOME_SKIPPED if skipped else 0


def _docked(job: "DockJob") -> str:
    return f"{number_of(job.stats.ligands, 'ligand')} docked"

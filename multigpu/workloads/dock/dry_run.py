"""`multigpu dock --dry-run`: the plan of a docking job."""

from multigpu.run.command import number_of
from multigpu.run.dry_run import describe_source, plan_job
from multigpu.workloads.dock.job import DockJob
from multigpu.workloads.dock.request import DockRequest


def show_plan(request: DockRequest, as_json: bool) -> None:
    """Print how the ligands would be cut, as JSON or as lines."""
    job = DockJob(request)
    # Workers get the text of the ligands: they need no files.
    planned = plan_job(job, [])
    plan, summary = planned.plan, job.summary_entries()
    # Entries of the summary that are known before the run.
    known = ("pocket", "sources", "rotations", "covering_radius_degrees", "shifts", "poses_tried")
    points = " × ".join(map(str, job.pocket.shape))
    planned.show(
        as_json,
        {
            "chunk_ligands": plan.chunk_ligands,
            "pose_spans": len(plan.pose_spans),
            **{name: summary[name] for name in known},
        },
        [
            f"pocket        {points} points, {number_of(len(job.field.values), 'map')}",
            f"search        {summary['rotations']:,} rotations × {summary['shifts']:,} shifts",
            f"poses tried   {summary['poses_tried']:,} of each ligand: the others repeat these",
            f"chunk         up to {plan.chunk_ligands:,} ligands, {plan.chunk_bytes:,} bytes",
            f"pose spans    {len(plan.pose_spans):,} for each of these",
            f"in progress   {plan.lanes} chunks at a time on each worker",
            planned.memory,
            planned.host_memory,
            *map(describe_source, job.sources),
        ],
    )

"""`multigpu dock --dry-run`: the plan of a docking job."""

from multigpu.run.command import number_of
from multigpu.run.plan import Shown, describe_source, memory_of, plan_job
from multigpu.workloads.dock.job import DockJob
from multigpu.workloads.dock.request import DockRequest

# Entries of the summary that are known before the run.
KNOWN = ("pocket", "sources", "rotations", "covering_radius_degrees", "shifts", "poses_tried")


def plan_of(request: DockRequest) -> Shown:
    """Return how the ligands would be cut. Workers get their text: they need no files."""
    job = DockJob(request)
    plan, (entries, places) = plan_job(job, [])
    summary, points = job.summary_entries(), " × ".join(map(str, job.pocket.shape))
    return {
        **entries,
        "chunk_ligands": plan.chunk_ligands,
        "pose_spans": len(plan.pose_spans),
        **{name: summary[name] for name in KNOWN},
    }, [
        *places,
        f"pocket        {points} points, {number_of(len(job.field.values), 'map')}",
        f"search        {summary['rotations']:,} rotations × {summary['shifts']:,} shifts",
        f"poses tried   {summary['poses_tried']:,} of each ligand: the others repeat these",
        f"chunk         up to {plan.chunk_ligands:,} ligands, {plan.chunk_bytes:,} bytes",
        f"pose spans    {len(plan.pose_spans):,} for each of these",
        f"in progress   {plan.lanes} chunks at a time on each worker",
        *memory_of(plan),
        *map(describe_source, job.sources),
    ]

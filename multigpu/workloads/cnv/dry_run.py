"""`multigpu cnv --dry-run`: how chromosomes come to devices."""

import operator
from collections.abc import Iterator, Sequence
from pathlib import Path

from multigpu.errors import spelled
from multigpu.run.command import number_of
from multigpu.run.plan import Shown, memory_of, plan_job
from multigpu.workloads.cnv.job import PlannedCnvJob
from multigpu.workloads.cnv.opening import open_plan
from multigpu.workloads.cnv.plan import CnvPlan
from multigpu.workloads.cnv.request import CnvRequest

CHROMOSOME = ("name", "regions", "columns", "pieces", "device_bytes")  # entries of each
NORMALIZED = {
    "chromosome": "every chromosome by itself",
    "genome": "the genome as a whole",
    "none": "not at all: counts are taken as they are",
}


def plan_of(request: CnvRequest) -> Shown:
    """Return how chromosomes come to devices.

    A counts table is read. Alignments are looked at, but not counted.
    """
    job = open_plan(request)
    files = list(job.uncounted)
    plan, (entries, places) = plan_job(job, [str(Path(path).absolute()) for path in files])
    normalized, shown = "chromosome", operator.attrgetter(*CHROMOSOME)
    if job.options.genome_wide or not job.options.is_normalized:
        normalized = "genome" if job.options.is_normalized else "none"
    return {
        **entries,
        "samples": plan.shape.cases,
        "controls": plan.shape.columns - plan.shape.cases,
        "regions": plan.shape.regions,
        "to_count": files,
        "normalized": normalized,
        "at_once": plan.at_once,
        "worker_processes": job.deployment.processes,
        "chromosomes": [
            dict(zip(CHROMOSOME, shown(each), strict=True)) for each in plan.chromosomes
        ],
        "notes": [spelled(note) for note in job.notes],
    }, [
        *places,
        *_cnv_lines(job, plan, files, normalized),
        *memory_of(plan, " without matrices and report"),
        *(f"note          {note}" for note in job.notes),
    ]


def _cnv_lines(
    job: PlannedCnvJob, plan: CnvPlan, files: Sequence[str], normalized: str
) -> Iterator[str]:
    """Yield lines about counts, and about chromosomes, which are the chunks of such a run."""
    where, shape, largest = job.deployment, plan.shape, plan.largest
    if len(where.devices) > 1:
        processes = f"{where.processes:,} worker processes"
        workers = processes if where.processes else "threads of one process"
        yield f"works in      {workers}, on {number_of(len(where.devices), 'GPU')}"
    if files:
        size = sum(Path(path).stat().st_size for path in files)
        found = f"{number_of(len(files), 'alignment file')}, {size:,} bytes"
        yield f"to count      {found}: this comes first"
    samples, controls = number_of(shape.cases, "sample"), shape.columns - shape.cases
    if controls:
        samples += f" and {number_of(controls, 'control')}"
    chromosomes = number_of(len(plan.chromosomes), "chromosome")
    yield f"counts        {samples} × {shape.regions:,} regions in {chromosomes}"
    yield f"normalized    {NORMALIZED[normalized]}"
    at_a_time = f"{number_of(plan.lanes, 'chromosome')} at a time on each worker"
    yield f"in progress   {at_a_time}, {plan.at_once:,} on its device"
    pieces = f"{number_of(largest.pieces, 'piece')} of {largest.device_bytes:,} bytes"
    yield f"largest       {largest.name}: {largest.regions:,} regions, in {pieces}"

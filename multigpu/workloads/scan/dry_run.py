"""`multigpu scan --dry-run`: the plan of a scan."""

from multigpu.run.plan import Shown, describe_source, memory_of, plan_job
from multigpu.workloads.scan.inputs import inputs_of
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.patterns import pattern_lengths
from multigpu.workloads.scan.request import ScanRequest


def plan_of(request: ScanRequest) -> Shown:
    """Return how the samples would be cut."""
    job = ScanJob(inputs_of(request), request.options, request.run)
    plan, (entries, places) = plan_job(job, job.worker_files)
    lines = [
        *places,
        f"signatures    {len(job.signatures):,}",
        f"index         {plan.index.entries:,} entries, {plan.index.memory:,} bytes",
    ]
    if job.options.has_bulges:
        patterns = len(pattern_lengths(job.signatures, job.options))
        lines.append(f"patterns      {patterns:,}, with bulges and on all strands")
    lines += [
        f"chunk         up to {plan.chunk_bytes:,} bytes of input",
        f"in progress   {plan.lanes} chunks at a time on each worker",
        *memory_of(plan, ", and the rows"),
    ]
    sources = []
    for source, chunks in zip(job.sources, plan.chunks, strict=True):
        cut = "a stream" if chunks is None else f"{chunks:,} chunks"
        lines.append(f"{describe_source(source)}, {cut}")
        for file in source.files:
            facts = {"path": file.path, "bytes": file.size, "compression": file.compression}
            sources.append({**facts, "layout": file.layout, "chunks": chunks})
    return {
        **entries,
        "sources": sources,
        "signatures": len(job.signatures),
        "index": {"entries": plan.index.entries, "bytes": plan.index.memory},
    }, lines

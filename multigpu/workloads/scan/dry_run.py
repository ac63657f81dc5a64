"""`multigpu scan --dry-run`: the plan of a scan."""

from multigpu.kernels.scan import Limits, Patterns
from multigpu.run.dry_run import Shown, describe_source, memory_of, plan_job
from multigpu.run.values import texts_of
from multigpu.workloads.scan.inputs import expand_inputs
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.patterns import searched_patterns
from multigpu.workloads.scan.request import ScanRequest


def plan_of(request: ScanRequest) -> Shown:
    """Return how the samples would be cut."""
    samples = texts_of(request.samples, "samples")
    signatures = texts_of(request.signatures, "signatures")
    inputs = expand_inputs(samples, signatures, request.pairs, request.sample_sheet)
    job = ScanJob(inputs, request.options, request.run)
    plan, (entries, places) = plan_job(job, job.worker_files)
    on_gpu = bool(job.devices) or any(each["gpu"] for each in entries["workers"])
    lines = [
        *places,
        f"signatures    {len(job.signatures):,}",
        f"index         {plan.index.entries:,} entries, {plan.index.memory:,} bytes",
    ]
    seconds = None
    if job.options.has_errors:
        patterns, limits = searched_patterns(job.signatures, job.options)
        seconds = _search_seconds(job, patterns, limits, on_gpu)
        if job.options.has_bulges:
            lines.append(f"patterns      {len(patterns):,}, with bulges and on all strands")
        lines.append(f"search        about {seconds:.2g} s on one {'GPU' if on_gpu else 'core'}")
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
        "search_seconds": seconds,
    }, lines


def _search_seconds(job: ScanJob, patterns: Patterns, limits: Limits, gpu: bool) -> float:
    """Return about how long the search with errors takes on one GPU, or on one core.

    Exact parts of signatures, which may make it much shorter, are left out.
    """
    from multigpu.kernels.scan.approximate import seeds
    from multigpu.kernels.scan.approximate.cpu_seed_tables import count_windows
    from multigpu.kernels.scan.cpu_patterns import pack_patterns
    from multigpu.workloads.scan.plan import expected_bases

    bases = expected_bases(job.sources)
    plan = seeds.plan_seeds(
        count_windows(pack_patterns(patterns)),
        patterns,
        limits,
        seeds.GPU if gpu else seeds.CPU,
        edits=bool(job.options.max_edits),
        strict=job.options.sample_n == "mismatch",
        bases=bases,
    )
    return plan.work * bases * (1e-12 if gpu else 1e-9)

"""`multigpu scan --dry-run`: the plan of a scan."""

from multigpu.run.dry_run import describe_source, plan_job
from multigpu.run.values import texts_of
from multigpu.workloads.scan.inputs import expand_inputs
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.request import ScanRequest


def show_plan(request: ScanRequest, as_json: bool) -> None:
    """Print how the samples would be cut, as JSON or as lines."""
    samples = texts_of(request.samples, "samples")
    inputs = expand_inputs(samples, texts_of(request.signatures, "signatures"))
    job = ScanJob(inputs, request.options, request.run)
    planned = plan_job(job, job.worker_files)
    plan, sources = planned.plan, list(zip(job.sources, planned.plan.chunks, strict=True))
    on_gpu = bool(job.devices) or any(each["gpu"] for each in planned.workers)
    seconds, search = None, []
    if job.options.most_errors:
        seconds = _search_seconds(job, on_gpu)
        search = [f"search        about {seconds:.2g} s on one {'GPU' if on_gpu else 'core'}"]
    planned.show(
        as_json,
        {
            "sources": [
                {
                    "path": source.path,
                    "bytes": source.size,
                    "compression": source.compression,
                    "layout": source.layout,
                    "chunks": chunks,
                }
                for source, chunks in sources
            ],
            "signatures": len(job.signatures),
            "index": {"entries": plan.index.entries, "bytes": plan.index.memory},
            "search_seconds": seconds,
        },
        [
            f"signatures    {len(job.signatures):,}",
            f"index         {plan.index.entries:,} entries, {plan.index.memory:,} bytes",
            *search,
            f"chunk         up to {plan.chunk_bytes:,} bytes of input",
            f"in progress   {plan.lanes} chunks at a time on each worker",
            planned.memory,
            f"{planned.host_memory}, and the rows",
            *(
                f"{describe_source(source)}, "
                + ("a stream" if chunks is None else f"{chunks:,} chunks")
                for source, chunks in sources
            ),
        ],
    )


def _search_seconds(job: ScanJob, gpu: bool) -> float:
    """Return about how long the search with errors takes on one GPU, or on one core.

    Exact parts of signatures, which may make it much shorter, are left out.
    """
    from multigpu.kernels.scan.approximate import seeds
    from multigpu.kernels.scan.approximate.cpu_seed_tables import count_windows
    from multigpu.kernels.scan.cpu_patterns import pack_patterns
    from multigpu.workloads.scan.patterns import limits_of, patterns_of
    from multigpu.workloads.scan.plan import expected_bases

    patterns, bases = patterns_of(job.signatures, job.options), expected_bases(job.sources)
    plan = seeds.plan_seeds(
        count_windows(pack_patterns(patterns)),
        patterns,
        limits_of(patterns, job.options),
        seeds.GPU if gpu else seeds.CPU,
        edits=bool(job.options.max_edits),
        strict=job.options.sample_n == "mismatch",
        bases=bases,
    )
    return plan.work * bases * (1e-12 if gpu else 1e-9)

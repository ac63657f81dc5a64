"""`multigpu count --dry-run`: what would be counted."""

from pathlib import Path

from multigpu.errors import spelled
from multigpu.run.command import number_of
from multigpu.run.plan import Shown
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.request import CountRequest


def plan_of(request: CountRequest) -> Shown:
    """Return what would be counted; no read is looked at."""
    job = CountJob(request.paths, request.options, request.run)
    files = [
        {"path": f.path, "sample": name, "bytes": Path(f.path).stat().st_size, "index": f.index}
        for f, name in zip(job.files, job.samples, strict=True)
    ]
    lines = [f"counts        {number_of(len(files), 'sample')} × {len(job.regions):,} regions"]
    for each in files:
        index = f"index {each['index']}" if each["index"] else "no index"
        lines.append(f"{each['path']}: {each['sample']}, {each['bytes']:,} bytes, {index}")
    lines += [f"note          {note}" for note in job.notes]
    notes = [spelled(note) for note in job.notes]
    return {"regions": len(job.regions), "files": files, "notes": notes}, lines

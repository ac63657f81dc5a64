"""`multigpu count --dry-run`: what would be counted."""

from pathlib import Path

from multigpu.errors import spelled
from multigpu.formats.alignments.files import files_of
from multigpu.run.command import number_of
from multigpu.run.dry_run import show
from multigpu.run.values import texts_of
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.request import CountRequest


def show_plan(request: CountRequest, as_json: bool) -> None:
    """Print what would be counted, as JSON or as lines; no read is looked at."""
    job = CountJob(files_of(texts_of(request.files, "files")), request.options, request.run)
    files = [
        {"path": f.path, "sample": name, "bytes": Path(f.path).stat().st_size, "index": f.index}
        for f, name in zip(job.files, job.samples, strict=True)
    ]
    facts = {
        "regions": len(job.regions),
        "files": files,
        "notes": [spelled(note) for note in job.notes],
    }
    lines = [f"counts        {number_of(len(files), 'sample')} × {len(job.regions):,} regions"]
    for each in files:
        index = f"index {each['index']}" if each["index"] else "no index"
        lines.append(f"{each['path']}: {each['sample']}, {each['bytes']:,} bytes, {index}")
    show(as_json, facts, [*lines, *(f"note          {note}" for note in job.notes)])

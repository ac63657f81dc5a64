"""`multigpu plan`."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import click

from multigpu.commands.answers import answer
from multigpu.commands.options import (
    DOCK,
    RUN,
    SCAN,
    dock_options,
    options,
    run_options,
    scan_options,
)

PLANNED = (  # as in the summary
    "pocket", "sources", "rotations", "covering_radius_degrees", "shifts", "poses_tried",
)  # fmt: skip


@click.group()
def command() -> None:
    """Show how a job would be cut into chunks, without running it."""


ANSWER = (
    click.option("--json", "as_json", is_flag=True, help="As JSON."),
    click.option("--debug", is_flag=True, help="Show where an error comes from."),
)


@command.command()
@options(SCAN, RUN, ANSWER)
def scan(**values: Any) -> None:
    """The chunk plan of `multigpu scan` with the same options."""
    from multigpu.api import ScanJob

    job = ScanJob(
        list(values["samples"]), list(values["signatures"]), scan_options(values),
        run_options(values),
    )  # fmt: skip
    workers: list[dict[str, Any]] = []
    plan = job.plan()
    if job.remote:
        with ExitStack() as stack:
            crew = job.crew(stack, job.inputs)
            plan = job.plan(crew)
            workers = [{"worker": name, **asdict(fit)} for name, fit in crew.fitness.items()]
    devices = [asdict(device) for device in job.devices]
    rows = [
        {
            "path": source.path, "bytes": source.size, "compression": source.compression,
            "layout": source.layout, "chunks": chunks,
        }
        for source, chunks in zip(job.sources, plan.chunks, strict=True)
    ]  # fmt: skip
    if values["as_json"]:
        facts = {
            "version": 1, "devices": devices, "chunk_bytes": plan.chunk_bytes,
            "device_bytes": plan.device_bytes, "budget_bytes": plan.budget, "lanes": plan.lanes,
            "host_bytes": plan.host_bytes, "workers": workers, "sources": rows,
            "signatures": len(job.signatures),
        }  # fmt: skip
        answer([json.dumps(facts, indent=2)])
        return
    lines = [_worker(worker) for worker in workers] or [_where(job)]
    lines += [
        f"signatures    {len(job.signatures):,}",
        f"chunk         up to {plan.chunk_bytes:,} bytes of input",
        *_taken(plan),
        f"host memory   at most {plan.host_bytes:,} bytes in a process, and the rows",
    ]
    for source, chunks in zip(job.sources, plan.chunks, strict=True):
        lines.append(f"{_source(source)}, {'a stream' if chunks is None else f'{chunks:,} chunks'}")
    answer(lines)


@command.command()
@options(DOCK, RUN, ANSWER)
def dock(**values: Any) -> None:
    """The chunk plan of `multigpu dock` with the same options."""
    from multigpu.docking import DockJob

    job = DockJob(
        list(values["ligands"]), values["pocket"], dock_options(values), run_options(values),
        origin=values["origin"], spacing=values["spacing"],
    )  # fmt: skip
    plan, told = job.plan(), job.told()
    if values["as_json"]:
        facts = {
            "version": 1, "devices": [asdict(device) for device in job.devices],
            "chunk_bytes": plan.chunk_bytes, "chunk_ligands": plan.chunk_ligands,
            "pose_spans": len(plan.pose_spans), "device_bytes": plan.device_bytes,
            "budget_bytes": plan.budget, "lanes": plan.lanes,
            **{name: told[name] for name in PLANNED},
        }  # fmt: skip
        answer([json.dumps(facts, indent=2)])
        return
    points = " × ".join(map(str, job.pocket.shape))
    answer([
        _where(job),
        f"pocket        {points} points, {len(job.field.values)} map(s)",
        f"search        {told['rotations']:,} rotations × {told['shifts']:,} shifts",
        f"poses tried   {told['poses_tried']:,} of each ligand: the others repeat these",
        f"chunk         up to {plan.chunk_ligands:,} ligands, {plan.chunk_bytes:,} bytes",
        f"pose spans    {len(plan.pose_spans):,} for each of these",
        *_taken(plan),
        *map(_source, job.sources),
    ])  # fmt: skip


def _where(job: Any) -> str:
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    return f"where         {where}"


def _worker(worker: dict[str, Any]) -> str:
    kind, free = "GPU" if worker["gpu"] else "CPU", worker["free_bytes"]
    return f"worker        {worker['worker']}: {kind}, {free:,} bytes free"


def _taken(plan: Any) -> list[str]:
    return [
        f"in hand       {plan.lanes} chunks at a time on each worker",
        f"memory there  {plan.device_bytes:,} of {plan.budget:,} bytes",
    ]


def _source(source: Any) -> str:
    size = "unknown size" if source.size is None else f"{source.size:,} bytes"
    return f"{source.path}: {source.layout or 'unreadable'}, {source.compression}, {size}"

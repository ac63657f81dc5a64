"""`multigpu plan`."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multigpu.cnv.command_options import CALLING, MODEL, NORMALIZATION, add_defaults_to_help
from multigpu.count.command import COUNT
from multigpu.dock.command import DOCK, request_of
from multigpu.run.command import RUN, options, options_from
from multigpu.run.options import RunOptions
from multigpu.scan.command import SCAN, scan_options
from multigpu.tools.answers import answer

if TYPE_CHECKING:
    from multigpu.cluster.deploy.deployment import Deployment
    from multigpu.cnv.plan import CnvPlan, PlannedChromosome
    from multigpu.run.job import Job

PLANNED = (  # as in the summary
    "pocket", "sources", "rotations", "covering_radius_degrees", "shifts", "poses_tried",
)  # fmt: skip
NORMALIZED = {
    "chromosome": "every chromosome by itself",
    "genome": "the genome as a whole",
    "none": "not at all: counts are taken as they are",
}


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
    from multigpu.scan.inputs import expand_inputs
    from multigpu.scan.job import ScanJob

    inputs = expand_inputs(values["samples"], values["signatures"])
    job = ScanJob(inputs, scan_options(values), options_from(RunOptions, values))
    plan, workers = _planned(job, job.worker_files)
    rows = [
        {
            "path": source.path, "bytes": source.size, "compression": source.compression,
            "layout": source.layout, "chunks": chunks,
        }
        for source, chunks in zip(job.sources, plan.chunks, strict=True)
    ]  # fmt: skip
    if values["as_json"]:
        index = {"entries": plan.index.entries, "bytes": plan.index.memory}
        more = {"sources": rows, "signatures": len(job.signatures), "index": index}
        _answer_json({**_facts(job, plan, workers), **more})
        return
    lines = [
        *_where(job, workers),
        f"signatures    {len(job.signatures):,}",
        f"index         {plan.index.entries:,} entries, {plan.index.memory:,} bytes",
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
    from multigpu.dock.job import DockJob

    job = DockJob(request_of(values))
    plan, workers = _planned(job, [])  # they get the text of the ligands
    told = job.summary_entries()
    if values["as_json"]:
        more = {
            "chunk_ligands": plan.chunk_ligands, "pose_spans": len(plan.pose_spans),
            **{name: told[name] for name in PLANNED},
        }  # fmt: skip
        _answer_json({**_facts(job, plan, workers), **more})
        return
    points = " × ".join(map(str, job.pocket.shape))
    answer([
        *_where(job, workers),
        f"pocket        {points} points, {len(job.field.values)} map(s)",
        f"search        {told['rotations']:,} rotations × {told['shifts']:,} shifts",
        f"poses tried   {told['poses_tried']:,} of each ligand: the others repeat these",
        f"chunk         up to {plan.chunk_ligands:,} ligands, {plan.chunk_bytes:,} bytes",
        f"pose spans    {len(plan.pose_spans):,} for each of these",
        *_taken(plan),
        f"host memory   at most {plan.host_bytes:,} bytes in a process",
        *map(_source, job.sources),
    ])  # fmt: skip


@command.command()
@click.argument("inputs", nargs=-1, metavar="INPUT...")
@options(MODEL, NORMALIZATION, CALLING, COUNT, RUN, ANSWER)
def cnv(**values: Any) -> None:
    """How the chromosomes of `multigpu cnv` with the same options come to devices.

    A counts table is read. Alignments are looked at, but not counted.
    """
    from multigpu.cnv.opening import open_plan
    from multigpu.cnv.plan import normalized_by
    from multigpu.cnv.request import request_from_command

    job = open_plan(request_from_command(values, options_from(RunOptions, values)))
    files = list(job.uncounted)
    plan, workers = _planned(job, [str(Path(path).absolute()) for path in files])
    by, where = normalized_by(job.options), job.deployment
    if values["as_json"]:
        more = {
            "samples": plan.shape.cases, "controls": plan.shape.columns - plan.shape.cases,
            "regions": plan.shape.regions, "to_count": files, "normalized": by,
            "at_once": plan.at_once, "worker_processes": where.processes,
            "chromosomes": [_chromosome(each) for each in plan.chromosomes],
            "notes": list(job.notes),
        }  # fmt: skip
        _answer_json({**_facts(job, plan, workers), **more})
        return
    answer([
        *_where(job, workers),
        *([f"works in      {_processes(where)}"] if len(job.devices) > 1 else []),
        *_uncounted(files, job.infers_sexes),
        _counts(plan),
        f"normalized    {NORMALIZED[by]}",
        *_chromosomes(plan),
        f"host memory   at most {plan.host_bytes:,} bytes in a process without matrices and report",
        *(f"note          {note}" for note in job.notes),
    ])  # fmt: skip


def _processes(where: "Deployment") -> str:
    """Return what works on several GPUs."""
    gpus = _several(len(where.devices), "GPU")
    if where.processes:
        return f"{where.processes:,} worker processes, on {gpus}"
    return f"threads of one process, on {gpus}"


def _uncounted(files: Sequence[str], infers_sexes: bool) -> list[str]:
    """What comes before all else, where that is to be done."""
    if not files:
        return []
    size = sum(Path(path).stat().st_size for path in files)
    found = f"{_several(len(files), 'alignment file')}, {size:,} bytes"
    sexes = ", and shows the sexes" if infers_sexes else ""
    return [f"to count      {found}: this comes first{sexes}"]


def _counts(plan: "CnvPlan") -> str:
    shape, chromosomes = plan.shape, _several(len(plan.chromosomes), "chromosome")
    samples, controls = _several(shape.cases, "sample"), shape.columns - shape.cases
    if controls:
        samples += f" and {_several(controls, 'control')}"
    return f"counts        {samples} × {shape.regions:,} regions in {chromosomes}"


def _chromosome(each: "PlannedChromosome") -> dict[str, Any]:
    names = ("name", "regions", "columns", "pieces", "device_bytes")
    return {name: getattr(each, name) for name in names}


def _chromosomes(plan: "CnvPlan") -> list[str]:
    """A chromosome is a chunk."""
    largest, in_hand = plan.largest, _several(plan.lanes, "chromosome")
    pieces = f"{_several(largest.pieces, 'piece')} of {largest.device_bytes:,} bytes"
    return [
        f"in hand       {in_hand} at a time on each worker, {plan.at_once:,} on its device",
        f"largest       {largest.name}: {largest.regions:,} regions, in {pieces}",
        _memory(plan),
    ]


def _several(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _planned(job: Any, inputs: Sequence[str]) -> tuple[Any, list[dict[str, Any]]]:
    """The plan, and what the workers of a cluster say; nothing is started on this machine.

    inputs: that these must see
    """
    if not job.remote:
        return job.plan(), []
    with ExitStack() as stack:
        crew = job.crew(stack, inputs)
        workers = [{"worker": name, **asdict(fit)} for name, fit in crew.fitness.items()]
        return job.plan(crew), workers


def _facts(job: "Job", plan: Any, workers: list[dict[str, Any]]) -> dict[str, Any]:
    """What every plan has."""
    return {
        "version": 1, "devices": [asdict(device) for device in job.devices],
        "chunk_bytes": plan.chunk_bytes, "device_bytes": plan.device_bytes,
        "budget_bytes": plan.budget, "lanes": plan.lanes, "host_bytes": plan.host_bytes,
        "workers": workers,
    }  # fmt: skip


def _answer_json(facts: dict[str, Any]) -> None:
    answer([json.dumps(facts, indent=2)])


def _where(job: "Job", workers: list[dict[str, Any]]) -> list[str]:
    """The workers of a cluster, or else the devices of this machine."""
    if workers:
        return [_worker(worker) for worker in workers]
    where = ", ".join(f"GPU {d.index} ({d.name})" for d in job.devices) or "CPU"
    return [f"where         {where}"]


def _worker(worker: dict[str, Any]) -> str:
    kind, free = "GPU" if worker["gpu"] else "CPU", worker["free_bytes"]
    return f"worker        {worker['worker']}: {kind}, {free:,} bytes free"


def _taken(plan: Any) -> list[str]:
    return [f"in hand       {plan.lanes} chunks at a time on each worker", _memory(plan)]


def _memory(plan: Any) -> str:
    return f"memory there  {plan.device_bytes:,} of {plan.budget:,} bytes"


def _source(source: Any) -> str:
    size = "unknown size" if source.size is None else f"{source.size:,} bytes"
    return f"{source.path}: {source.layout or 'unreadable'}, {source.compression}, {size}"


add_defaults_to_help(cnv)

"""`multigpu plan`: how a job would be cut into chunks."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from multigpu.errors import printable
from multigpu.run.command import answer, number_of, options_from
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.command import command as cnv_command
from multigpu.workloads.count.command import command as count_command
from multigpu.workloads.count.command import count_options
from multigpu.workloads.dock.command import command as dock_command
from multigpu.workloads.dock.command import request_of
from multigpu.workloads.scan.command import command as scan_command
from multigpu.workloads.scan.command import scan_options

if TYPE_CHECKING:
    from multigpu.run.job import Job
    from multigpu.workloads.cnv.plan import CnvPlan
    from multigpu.workloads.scan.job import ScanJob

NORMALIZED = {
    "chromosome": "every chromosome by itself",
    "genome": "the genome as a whole",
    "none": "not at all: counts are taken as they are",
}


@click.group()
def command() -> None:
    """Show how a job would be cut into chunks, without running it."""


AS_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
# They change no plan, but `plan` can be put into the line of any run.
OF_RUNS = frozenset({
    "output", "chosen", "ambiguous", "scores", "report", "vcf", "matrices", "plots", "colors",
    "summary", "log_json", "trace", "progress", "quiet",
})  # fmt: skip


def _options_of(planned: click.Command) -> list[click.Parameter]:
    """Return the options of a command for its plan; those of OF_RUNS are not in the help."""
    params = [copy(param) for param in planned.params if param.name != "version"]
    for param in params:
        if isinstance(param, click.Option) and param.name in OF_RUNS:
            param.hidden, param.required = True, False
    return [*params, AS_JSON]


@command.command(params=_options_of(scan_command))
def scan(**values: Any) -> None:
    """Show the chunk plan of `multigpu scan` with the same options."""
    from multigpu.workloads.scan.inputs import expand_inputs
    from multigpu.workloads.scan.job import ScanJob

    inputs = expand_inputs(values["samples"], values["signatures"])
    job = ScanJob(inputs, scan_options(values), options_from(RunOptions, values))
    planned = plan_job(job, job.worker_files)
    plan, sources = planned.plan, list(zip(job.sources, planned.plan.chunks, strict=True))
    on_gpu = bool(job.devices) or any(each["gpu"] for each in planned.workers)
    seconds, search = None, []
    if job.options.most_errors:
        seconds = _search_seconds(job, on_gpu)
        search = [f"search        about {seconds:.2g} s on one {'GPU' if on_gpu else 'core'}"]
    planned.show(
        values["as_json"],
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
                f"{_describe(source)}, {'a stream' if chunks is None else f'{chunks:,} chunks'}"
                for source, chunks in sources
            ),
        ],
    )


@command.command(params=_options_of(dock_command))
def dock(**values: Any) -> None:
    """Show the chunk plan of `multigpu dock` with the same options."""
    from multigpu.workloads.dock.job import DockJob

    job = DockJob(request_of(values))
    # Workers get the text of the ligands: they need no files.
    planned = plan_job(job, [])
    plan, summary = planned.plan, job.summary_entries()
    # Entries of the summary that are known before the run.
    known = ("pocket", "sources", "rotations", "covering_radius_degrees", "shifts", "poses_tried")
    points = " × ".join(map(str, job.pocket.shape))
    planned.show(
        values["as_json"],
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
            *map(_describe, job.sources),
        ],
    )


@command.command(params=_options_of(cnv_command))
def cnv(**values: Any) -> None:
    """Show how `multigpu cnv` with the same options brings chromosomes to devices.

    A counts table is read. Alignments are looked at, but not counted.
    """
    from multigpu.workloads.cnv.opening import open_plan
    from multigpu.workloads.cnv.plan import normalized_by
    from multigpu.workloads.cnv.request import request_from_command

    job = open_plan(request_from_command(values, options_from(RunOptions, values)))
    files = list(job.uncounted)
    planned = plan_job(job, [str(Path(path).absolute()) for path in files])
    plan, normalized = planned.plan, normalized_by(job.options)
    chromosome_entries = ("name", "regions", "columns", "pieces", "device_bytes")
    planned.show(
        values["as_json"],
        {
            "samples": plan.shape.cases,
            "controls": plan.shape.columns - plan.shape.cases,
            "regions": plan.shape.regions,
            "to_count": files,
            "normalized": normalized,
            "at_once": plan.at_once,
            "worker_processes": job.deployment.processes,
            "chromosomes": [
                {name: getattr(each, name) for name in chromosome_entries}
                for each in plan.chromosomes
            ],
            "notes": list(job.notes),
        },
        [
            *_cnv_lines(job, plan, files, normalized),
            planned.memory,
            f"{planned.host_memory} without matrices and report",
            *(f"note          {note}" for note in job.notes),
        ],
    )


@command.command(params=_options_of(count_command))
def count(**values: Any) -> None:
    """Show what `multigpu count` with the same options would count; no read is looked at."""
    from multigpu.formats.alignments.files import files_of
    from multigpu.workloads.count.job import CountJob

    run = options_from(RunOptions, values)
    job = CountJob(files_of(values["files"]), count_options(values), run)
    files = [
        {"path": f.path, "sample": name, "bytes": Path(f.path).stat().st_size, "index": f.index}
        for f, name in zip(job.files, job.samples, strict=True)
    ]
    if values["as_json"]:
        facts = {"regions": len(job.regions), "files": files, "notes": list(job.notes)}
        answer([json.dumps({"version": 1, **facts}, indent=2)])
        return
    lines = [f"counts        {number_of(len(files), 'sample')} × {len(job.regions):,} regions"]
    for each in files:
        index = f"index {each['index']}" if each["index"] else "no index"
        lines.append(f"{each['path']}: {each['sample']}, {each['bytes']:,} bytes, {index}")
    answer([*lines, *(f"note          {note}" for note in job.notes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedJob:
    """Plan of a job, and the fitness of the workers of a scheduler.

    workers  of each worker its name, problems, GPU and free bytes; empty on this machine
    """

    job: "Job"
    plan: Any
    workers: list[dict[str, Any]]

    def show(self, as_json: bool, entries: dict[str, Any], lines: Sequence[str]) -> None:
        """Print what every plan has, then entries of this kind as JSON, or else lines."""
        if not as_json:
            answer(map(printable, [*self.places(), *lines]))
            return
        plan = self.plan
        facts = {
            "version": 1,
            "devices": [asdict(device) for device in self.job.devices],
            "chunk_bytes": plan.chunk_bytes,
            "device_bytes": plan.device_bytes,
            "budget_bytes": plan.budget,
            "lanes": plan.lanes,
            "host_bytes": plan.host_bytes,
            "workers": self.workers,
        }
        answer([json.dumps({**facts, **entries}, indent=2)])

    def places(self) -> list[str]:
        """Return a line for each worker of a scheduler, else one with the devices used here."""
        if not self.workers:
            gpus = ", ".join(f"GPU {each.index} ({each.name})" for each in self.job.devices)
            return [f"where         {gpus or 'CPU'}"]
        return [
            f"worker        {each['worker']}: {'GPU' if each['gpu'] else 'CPU'},"
            f" {each['free_bytes']:,} bytes free"
            for each in self.workers
        ]

    @property
    def memory(self) -> str:
        """Return a line with the memory on the device with least, and how much may be used."""
        return f"memory        {self.plan.device_bytes:,} of {self.plan.budget:,} bytes"

    @property
    def host_memory(self) -> str:
        return f"host memory   at most {self.plan.host_bytes:,} bytes in a process"


def plan_job(job: Any, files: Sequence[str]) -> PlannedJob:
    """Plan a job and ask the workers of a scheduler; nothing is started on this machine.

    files: inputs that workers must see
    """
    if not job.remote:
        return PlannedJob(job=job, plan=job.plan(), workers=[])
    with ExitStack() as stack:
        crew = job.crew(stack, files)
        workers = [{"worker": name, **asdict(fit)} for name, fit in crew.fitness.items()]
        return PlannedJob(job=job, plan=job.plan(crew), workers=workers)


def _search_seconds(job: "ScanJob", gpu: bool) -> float:
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


def _cnv_lines(job: Any, plan: "CnvPlan", files: Sequence[str], normalized: str) -> Iterator[str]:
    """Yield lines about counts, and about chromosomes, which are the chunks of such a run."""
    where, shape, largest = job.deployment, plan.shape, plan.largest
    if len(where.devices) > 1:
        processes = f"{where.processes:,} worker processes"
        workers = processes if where.processes else "threads of one process"
        yield f"works in      {workers}, on {number_of(len(where.devices), 'GPU')}"
    if files:
        size = sum(Path(path).stat().st_size for path in files)
        found = f"{number_of(len(files), 'alignment file')}, {size:,} bytes"
        sexes = ", and shows the sexes" if job.infers_sexes else ""
        yield f"to count      {found}: this comes first{sexes}"
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


def _describe(source: Any) -> str:
    size = "unknown size" if source.size is None else f"{source.size:,} bytes"
    return f"{source.path}: {source.layout or 'unreadable'}, {source.compression}, {size}"

"""`multigpu doctor`: what a run would use on this machine, what is wrong and the cure."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from multigpu.cluster.devices.gpus import Device
from multigpu.tools.answers import answer
from multigpu.tools.examination import KernelCheck, Report, dotted, examine, gib

BROKEN = 1  # exit status when something that is here does not work


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@click.option(
    "--kernel-check/--no-kernel-check",
    default=True,
    show_default=True,
    help="Compile and run a tiny kernel on every GPU.",
)
def command(as_json: bool, kernel_check: bool) -> None:
    """Print what a run would use here, what is wrong and how to cure it.

    The exit status is 1 when something that is present does not work, and 0 otherwise, also
    where there is no GPU.
    """
    report = examine(kernel_check)
    answer([_as_json(report)] if as_json else _page(report))
    if report.broken:
        click.get_current_context().exit(BROKEN)


def _page(report: Report) -> Iterator[str]:
    for label, text in _as_lines(report):
        yield f"{label:<12} {text}"
    for finding in report.findings:
        label = click.style("problem", fg="red") if finding.broken else "note   "
        yield f"{label}      {finding.text}"
        yield f"  cure       {finding.cure}"
    yield click.style(report.verdict, bold=True)


def _as_json(report: Report) -> str:
    """Return the report as one JSON object; `format` changes when a field is renamed or removed."""
    data: dict[str, Any] = {"format": 1, **asdict(report), "broken": report.broken}
    return json.dumps(data, indent=2)


def _as_lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the report as pairs of a label and a text, findings and verdict left out."""
    yield "multigpu", report.program
    yield "Python", f"{report.python} on {report.system}"
    yield (
        "packages",
        ", ".join(
            f"{name} {version or '(missing)'}" for name, version in report.packages.versions.items()
        ),
    )
    yield "CuPy", ", ".join(f"{b.name} {b.version}" for b in report.packages.cupy) or "none"
    wheels = [f"{name} {version}" for name, version in report.packages.cuda.items()]
    yield "CUDA wheels", ", ".join(wheels) or "none"
    yield "CPU", _limited(f"{report.host.threads} threads", report.host.threads_limit)
    memory = f"{gib(report.host.memory_bytes)}, {gib(report.host.free_bytes)} free"
    yield "memory", _limited(memory, report.host.memory_limit)
    yield from _gpu_lines(report)


def _gpu_lines(report: Report) -> Iterator[tuple[str, str]]:
    found = report.survey
    cuda = f" (CUDA {dotted(found.cuda)})" if found.cuda else ""
    yield "driver", f"{found.driver or 'none'}{cuda}"
    checks = {check.uuid: check for check in report.checks}
    for device in found.devices:
        yield f"GPU {device.index}", f"{_gpu(device)}, {_checked(checks.get(device.uuid))}"
    for device in found.hidden:
        yield "hidden GPU", _gpu(device)


def _gpu(device: Device) -> str:
    capability = device.compute_capability
    parts = [
        device.name,
        f"{gib(device.total_bytes)}, {gib(device.free_bytes)} free"
        if device.total_bytes
        else "memory shared with the CPU",
        f"compute capability {dotted(capability)}" if capability else "",
        "MIG instance" if device.mig else "",
        device.uuid,
    ]
    return ", ".join(part for part in parts if part)


def _checked(check: KernelCheck | None) -> str:
    if check is None:
        return "kernel not checked"
    return "kernel failed" if check.error else f"kernel ran in {check.seconds:.1f} s"


def _limited(text: str, limit: str | None) -> str:
    return f"{text} ({limit})" if limit else text

"""`multigpu doctor`: what a run would use on this machine, what is wrong and the cure.

Nothing here starts CUDA in this process. The kernel check does so in a child process for each
GPU, so that a broken driver cannot end the doctor.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import click
import psutil

from multigpu import __version__
from multigpu.cluster.devices.gpus import VISIBLE, Device, Finding, Survey, survey
from multigpu.run.command import answer, number_of
from multigpu.run.summary import versions

OLDEST_CUDA, NEWEST_CUDA = 12, 13  # major versions for which there are extras: cu12, cu13
CHECK_SECONDS = 30.0  # a first start of CUDA on a machine of eight GPUs takes some ten
BROKEN = 1  # exit status when something that is here does not work

# CuPy compiles one kernel that doubles and one that adds, with CUDA's headers.
KERNEL_CHECK = """
import cupy
assert int((2 * cupy.arange(1000)).sum()) == 999_000, "the kernel's result is wrong"
"""

Checks = Mapping[str, str]  # the problem of a device by its UUID; empty where there was none


@click.command("doctor")
@click.option(
    "--kernel-check/--no-kernel-check",
    default=True,
    show_default=True,
    help="Compile and run a tiny kernel on every GPU.",
)
def command(kernel_check: bool) -> None:
    """Print what a run would use here, what is wrong and how to cure it.

    The exit status is 1 when something that is present does not work, and 0 otherwise, also
    where there is no GPU.
    """
    found, packages = survey(), versions()
    findings = list(diagnose(found, packages))
    usable = () if any(each.no_gpus for each in findings) else found.devices
    checks = check_kernels(usable) if kernel_check else {}
    findings += failures(usable, checks)
    answer([
        f"multigpu     {__version__}",
        f"Python       {platform.python_version()} on {platform.platform()}",
        f"packages     {', '.join(f'{name} {v}' for name, v in packages.items())}",
        *describe_host(),
        *describe_gpus(found, checks),
        *(line for each in findings for line in _lines(each)),
        click.style(verdict(usable, checks, findings), bold=True),
    ])  # fmt: skip
    if any(each.broken for each in findings):
        click.get_current_context().exit(BROKEN)


def describe_host() -> Iterator[str]:
    """Yield lines on what affinity and control groups leave to this process."""
    from distributed.system import memory_limit

    memory, limit = psutil.virtual_memory(), memory_limit()
    yield f"CPU          {_threads()} threads of {os.cpu_count()}"
    free = f"{_gib(min(memory.available, limit))} free"
    yield f"memory       {_gib(limit)} of {_gib(memory.total)}, {free}"


def _threads() -> int:
    from dask.system import cpu_count

    return int(cpu_count())


def describe_gpus(found: Survey, checks: Checks) -> Iterator[str]:
    """Yield lines on the driver and the GPUs."""
    cuda = f" (CUDA {_dotted(found.cuda)})" if found.cuda else ""
    yield f"driver       {found.driver or 'none'}{cuda}"
    for device in found.devices:
        outcome = "kernel not checked"
        if device.uuid in checks:
            outcome = "kernel failed" if checks[device.uuid] else "kernel ran"
        yield f"GPU {device.index:<8} {_gpu(device)}, {outcome}"
    yield from (f"hidden GPU   {_gpu(device)}, by {VISIBLE}" for device in found.hidden)


def check_kernels(devices: Sequence[Device], timeout: float = CHECK_SECONDS) -> Checks:
    """Compile and run a tiny kernel on every device, all at once."""

    def check(device: Device) -> str:
        """Start a Python that sees this device alone and takes no kernel from CuPy's cache."""
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", KERNEL_CHECK],
                env={**os.environ, VISIBLE: device.uuid, "CUPY_CACHE_IN_MEMORY": "1"},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", timeout=timeout, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {timeout:g} seconds"
        last = done.stdout.strip().rpartition("\n")[2][:300]
        return (last or f"the process ended with {done.returncode}") if done.returncode else ""

    with ThreadPoolExecutor(max(1, len(devices))) as pool:
        return dict(zip((each.uuid for each in devices), pool.map(check, devices), strict=True))


def diagnose(found: Survey, packages: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what bars the GPUs, most basic first; packages: installed ones with versions."""
    builds = [name for name in packages if name.startswith("cupy")]
    if found.problem:
        yield replace(found.problem, no_gpus=True)
    yield from (fault for fault in found.faults if fault != found.problem)
    if len(builds) > 1:
        text = f"{len(builds)} CuPy builds are installed and overwrite each other's files: "
        cure = f"pip uninstall {' '.join(builds)}, then install one extra: "
        cure += "pip install 'multigpu[cu13]' (or cu12)"
        yield Finding(text + " and ".join(builds), cure, broken=True)
    if not found.devices:
        return
    runs = found.cuda[0] if found.cuda else NEWEST_CUDA
    install = f"pip install 'multigpu[cu{min(runs, NEWEST_CUDA)}]'"
    if runs < OLDEST_CUDA:
        install = f"update the driver ({found.driver} is too old), then "
        install += f"pip install 'multigpu[cu{NEWEST_CUDA}]'"
    if not builds:
        yield Finding("CuPy is not installed", install, no_gpus=True)
        return
    needed = int(builds[0].removeprefix("cupy-cuda").removesuffix("x") if builds != ["cupy"] else 0)
    if len(builds) == 1 and found.cuda and runs < needed:
        text = f"the driver {found.driver} runs CUDA {_dotted(found.cuda)} at most and is too old "
        cure = "update the driver"
        if runs >= OLDEST_CUDA:
            cure += f", or pip uninstall {builds[0]} and {install}"
        yield Finding(f"{text}for {builds[0]} (CUDA {needed})", cure, broken=True, no_gpus=True)
    if len(found.devices) > 1 and "dask-cuda" not in packages:
        text = f"dask-cuda is not installed: {len(found.devices)} GPUs at the same time need it"
        yield Finding(text, install, no_gpus=True)


def failures(devices: Sequence[Device], checks: Checks) -> Iterator[Finding]:
    """Yield a finding for each device on which the kernel check failed."""
    good = ",".join(str(each.index) for each in devices if not checks.get(each.uuid))
    cure = f"leave it out with --gpus {good or 'none'}; see whether nvidia-smi works"
    for device in devices:
        if problem := checks.get(device.uuid):
            text = f"the kernel check failed on GPU {device.index}: {problem}"
            yield Finding(text, cure, broken=True)


def verdict(devices: Sequence[Device], checks: Checks, findings: Sequence[Finding]) -> str:
    """Return in one line what a scan will use."""
    if not devices:
        why = next(each.text for each in findings if each.no_gpus)
        return f"scan will use {number_of(_threads(), 'CPU thread')}: {why}"
    count, failed = number_of(len(devices), "GPU"), sum(map(bool, checks.values()))
    return f"scan will fail on {failed} of {count}" if failed else f"scan will use {count}"


def _lines(finding: Finding) -> Iterator[str]:
    label = click.style("problem", fg="red") if finding.broken else "note   "
    yield f"{label}      {finding.text}"
    yield f"  cure       {finding.cure}"


def _gpu(device: Device) -> str:
    memory, capability = "memory shared with the CPU", device.compute_capability
    if device.total_bytes:
        memory = f"{_gib(device.total_bytes)}, {_gib(device.free_bytes)} free"
    parts = (
        device.name, memory, f"compute capability {_dotted(capability)}" if capability else "",
        "MIG instance" if device.mig else "", device.uuid,
    )  # fmt: skip
    return ", ".join(filter(None, parts))


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"

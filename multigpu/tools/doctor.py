"""`multigpu doctor`: what a run would use on this machine, what is wrong and the cure.

Nothing here starts CUDA in this process. The kernel check does so in a child process for each
GPU, so that a broken driver cannot end the doctor.
"""

import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace

import click
import psutil

from multigpu import __version__
from multigpu.cluster.devices.gpus import VISIBLE, Device, Survey, select, survey
from multigpu.run.command import answer, number_of
from multigpu.run.summary import versions

OLDEST_CUDA, NEWEST_CUDA = 12, 13  # major versions for which there are extras: cu12, cu13
CHECK_SECONDS = 30.0  # a first start of CUDA on a machine of eight GPUs takes some ten
GIB = 1 << 30
BROKEN = 1  # exit status when something that is here does not work

# CuPy compiles one kernel that doubles and one that adds, with CUDA's headers.
KERNEL_CHECK = """
import cupy
assert int((2 * cupy.arange(1000)).sum()) == 999_000, "the kernel's result is wrong"
"""


@dataclass(frozen=True)
class Finding:
    """Finding about this machine, and what to do about it.

    broken   whether something that is present does not work: exit status 1
    no_gpus  whether no GPU is used because of it
    """

    text: str
    cure: str
    broken: bool = False
    no_gpus: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """Facts about this machine, and what was found about them.

    packages      versions of those that are installed; several CuPy overwrite each other's files
    threads       threads that this process may use, of `all_threads`
    memory_bytes  memory that this process may use, of `all_memory_bytes`
    checks        problem of the kernel check by the UUID of a device, None where there was none
    """

    packages: dict[str, str]
    threads: int
    all_threads: int
    memory_bytes: int
    all_memory_bytes: int
    free_bytes: int
    survey: Survey
    checks: dict[str, str | None] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def cupy(self) -> list[str]:
        """Names of the CuPy that are installed."""
        return [name for name in self.packages if name.startswith("cupy")]

    @property
    def no_gpus(self) -> Finding | None:
        """Finding that keeps all GPUs from being used."""
        return next((finding for finding in self.findings if finding.no_gpus), None)


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")
@click.option(
    "--kernel-check/--no-kernel-check",
    default=True,
    show_default=True,
    help="Compile and run a tiny kernel on every GPU.",
)
@click.option(
    "--gpus", default="auto", show_default=True, metavar="WHICH",
    help="GPUs to look at, as in multigpu scan.",
)  # fmt: skip
def command(as_json: bool, kernel_check: bool, gpus: str) -> None:
    """Print what a run would use here, what is wrong and how to cure it.

    The exit status is 1 when something that is present does not work, and 0 otherwise, also
    where there is no GPU.
    """
    report = examine(kernel_check, gpus)
    broken = any(finding.broken for finding in report.findings)
    if as_json:
        facts = {
            "format": 2,  # changes when a field is renamed or removed
            "program": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            **asdict(report),
            "verdict": verdict(report),
            "broken": broken,
        }
        answer([json.dumps(facts, indent=2)])
    else:
        answer(_page(report))
    if broken:
        click.get_current_context().exit(BROKEN)


def examine(kernel_check: bool = True, gpus: str = "auto") -> Report:
    """Return the report on this machine; kernel checks take seconds, for all GPUs at once.

    Raises UsageError for `gpus` that are not there.
    """
    here = this_machine()
    chosen = select(gpus, here.survey)
    findings = tuple(diagnose(here))
    if here.survey.devices and not chosen:
        findings += (Finding(f"--gpus {gpus}", "leave it out to use all GPUs", no_gpus=True),)
    here = replace(here, findings=findings, survey=replace(here.survey, devices=chosen))
    if not kernel_check or here.no_gpus or not here.cupy:
        return here
    here = replace(here, checks=check_kernels(chosen))
    return replace(here, findings=(*findings, *failures(here)))


# ---- what is here -----------------------------------------------------------------------------


def this_machine() -> Report:
    """Return what is installed, and what affinity and control groups leave to this process."""
    from dask.system import cpu_count
    from distributed.system import memory_limit

    memory, limit = psutil.virtual_memory(), memory_limit()
    return Report(
        packages=versions(),
        threads=cpu_count(),
        all_threads=os.cpu_count() or 1,
        memory_bytes=limit,
        all_memory_bytes=memory.total,
        free_bytes=min(memory.available, limit),
        survey=survey(),
    )


def check_kernels(
    devices: Sequence[Device], timeout: float = CHECK_SECONDS
) -> dict[str, str | None]:
    """Compile and run a tiny kernel on every device, all at once; return problems by UUID."""

    def check(device: Device) -> str | None:
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
        if not done.returncode:
            return None
        last = done.stdout.strip().rpartition("\n")[2]
        return last[:300] or f"the process ended with {done.returncode}"

    with ThreadPoolExecutor(max(1, len(devices))) as pool:
        return dict(zip((each.uuid for each in devices), pool.map(check, devices), strict=True))


# ---- what is wrong ----------------------------------------------------------------------------


def diagnose(here: Report) -> Iterator[Finding]:
    """Yield what stands between the program and the GPUs, most basic first."""
    found, builds = here.survey, here.cupy
    if found.problem:
        yield Finding(found.problem, found.cure or "", found.broken, no_gpus=True)
    for fault in found.faults:
        if fault != found.problem:
            yield Finding(fault, "see what nvidia-smi says; a restart may help", broken=True)
    if found.devices and found.hidden:
        everything = len(found.devices) + len(found.hidden)
        text = f"{VISIBLE} hides {len(found.hidden)} of {everything} GPUs"
        yield Finding(text, f"unset {VISIBLE} to use all")
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
    if len(found.devices) > 1 and "dask-cuda" not in here.packages:
        text = f"dask-cuda is not installed: {len(found.devices)} GPUs at the same time need it"
        yield Finding(text, install, no_gpus=True)


def failures(here: Report) -> Iterator[Finding]:
    """Yield a finding for each device on which the kernel check failed."""
    good = ",".join(str(each.index) for each in here.survey.devices if not here.checks[each.uuid])
    cure = f"leave it out with --gpus {good or 'none'}; see whether nvidia-smi works"
    for device in here.survey.devices:
        if problem := here.checks[device.uuid]:
            text = f"the kernel check failed on GPU {device.index}: {problem}"
            yield Finding(text, cure, broken=True)


def verdict(here: Report) -> str:
    """Return in one line what a scan will use."""
    devices, on_cpu = here.survey.devices, number_of(here.threads, "CPU thread")
    if here.no_gpus:
        return f"scan will use {on_cpu}: {here.no_gpus.text}"
    count = number_of(len(devices), "GPU")
    good = [str(each.index) for each in devices if not here.checks.get(each.uuid)]
    if len(good) < len(devices):
        others = f"--gpus {','.join(good)} uses the others"
        instead = others if good else f"--gpus none uses {on_cpu}"
        return f"scan will fail on {len(devices) - len(good)} of {count}; {instead}"
    names = Counter(device.name for device in devices)
    kinds = ", ".join(f"{n} × {name}" if n > 1 else name for name, n in names.items())
    return f"scan will use {count}: {kinds}"


# ---- the report, shown ------------------------------------------------------------------------


def _page(here: Report) -> Iterator[str]:
    """Yield the lines of the page that a user reads."""
    found = here.survey
    threads = f"{here.threads} threads"
    if here.threads < here.all_threads:
        threads += f" of {here.all_threads}"
    memory = f"{_gib(here.memory_bytes)}, {_gib(here.free_bytes)} free"
    if here.memory_bytes < here.all_memory_bytes:
        memory += f", of {_gib(here.all_memory_bytes)}"
    yield f"multigpu     {__version__}"
    yield f"Python       {platform.python_version()} on {platform.platform()}"
    yield f"packages     {', '.join(f'{name} {v}' for name, v in here.packages.items())}"
    yield f"CPU          {threads}"
    yield f"memory       {memory}"
    cuda = f" (CUDA {_dotted(found.cuda)})" if found.cuda else ""
    yield f"driver       {found.driver or 'none'}{cuda}"
    for device in found.devices:
        outcome = "kernel not checked"
        if device.uuid in here.checks:
            outcome = "kernel failed" if here.checks[device.uuid] else "kernel ran"
        yield f"GPU {device.index:<8} {_gpu(device)}, {outcome}"
    yield from (f"hidden GPU   {_gpu(device)}" for device in found.hidden)
    for finding in here.findings:
        label = click.style("problem", fg="red") if finding.broken else "note   "
        yield f"{label}      {finding.text}"
        yield f"  cure       {finding.cure}"
    yield click.style(verdict(here), bold=True)


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
    return f"{size / GIB:.1f} GiB"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"

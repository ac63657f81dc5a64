"""Examination of this machine for `multigpu doctor`: versions, processors, memory, GPUs, CuPy.

`examine` makes a report, `as_page` and `as_json` show it.

Nothing here starts CUDA in this process. The kernel check does so in a child process for each
GPU, so that a broken driver can neither hang nor end the doctor.
"""

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

import click
import psutil
from dask.system import cpu_count
from distributed.system import memory_limit

from multigpu.cluster.devices.gpus import VISIBLE, Device, Survey, select, survey
from multigpu.run.command import number_of

PACKAGES = (
    "numpy", "numba", "dask", "distributed", "pyarrow", "isal", "fsspec",
    "click", "rich", "nvidia-ml-py", "dask-cuda",
)  # fmt: skip
CUPY = re.compile(r"cupy(-cuda(\d\d)[0-9x]+|-rocm.*)?")
OLDEST_DRIVERS = {11: "450.80", 12: "525.60", 13: "580.65"}  # CUDA's major version: Linux driver
NEWEST_CUDA = 13  # the newest our extras know: cu13
OLDEST_CUDA = 12
CHECK_SECONDS = 30.0  # a first start of CUDA on a machine of eight GPUs takes some ten
GIB = 1 << 30
HEADER = Path("include") / "cuda_fp16.h"

KERNEL_CHECK = """
import json, time
begin = time.perf_counter()
import cupy, numpy
source = '''extern "C" __global__ void twice(const int* given, int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = 2 * given[i];
}'''
given = numpy.arange(1000, dtype=numpy.int32)
out = cupy.empty(given.size, cupy.int32)
cupy.RawKernel(source, "twice")((4,), (256,), (cupy.asarray(given), out, numpy.int32(given.size)))
right = bool((out.get() == 2 * given).all())
print(json.dumps({"right": right, "seconds": round(time.perf_counter() - begin, 3)}))
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


@dataclass(frozen=True)
class Build:
    """Installed CuPy; `cuda` is the major version it was built for, None if its name has none."""

    name: str
    version: str
    cuda: int | None


@dataclass(frozen=True)
class Packages:
    """Packages that are installed, by their own records; nothing is imported.

    versions  our dependencies, None where missing
    cupy      every CuPy; more than one overwrite each other's files
    cuda      NVIDIA's wheels of the compiler (nvrtc) and the headers (runtime)
    headers   whether CUDA's headers are found, as wheels or in a toolkit
    """

    versions: Mapping[str, str | None]
    cupy: tuple[Build, ...]
    cuda: Mapping[str, str]
    headers: bool


@dataclass(frozen=True)
class Host:
    """Threads and memory that this process may use, with the reason where that is not all."""

    threads: int
    threads_limit: str | None
    memory_bytes: int
    free_bytes: int
    memory_limit: str | None


@dataclass(frozen=True)
class KernelCheck:
    """Outcome of compiling and running a tiny kernel on a device; `seconds` with CUDA's start."""

    uuid: str
    seconds: float
    error: str | None


@dataclass(frozen=True)
class Report:
    """Report of the doctor; `verdict` says what a scan would use."""

    program: str
    python: str
    system: str
    packages: Packages
    host: Host
    survey: Survey
    checks: tuple[KernelCheck, ...]
    findings: tuple[Finding, ...]
    verdict: str

    @property
    def broken(self) -> bool:
        """Return whether something that is present does not work."""
        return any(finding.broken for finding in self.findings)


def examine(kernel_check: bool = True, gpus: str = "auto") -> Report:
    """Return the report on this machine; kernel checks take a second, for all GPUs at once.

    Raises UsageError for `gpus` that are not there.
    """
    here, found, host = installed(), survey(), this_host()
    chosen = select(gpus, found)
    findings = diagnose(found, here)
    if found.devices and not chosen:
        findings += (Finding(f"--gpus {gpus}", "leave it out to use all GPUs", no_gpus=True),)
    found = replace(found, devices=chosen)
    checks: tuple[KernelCheck, ...] = ()
    if kernel_check and here.cupy and not any(finding.no_gpus for finding in findings):
        checks = check_kernels(found.devices)
        findings += failures(checks, found.devices)
    return Report(
        program=_program(),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages=here,
        host=host,
        survey=found,
        checks=checks,
        findings=findings,
        verdict=verdict(found.devices, findings, checks, host.threads),
    )


# ---- what is wrong ----------------------------------------------------------------------------


def diagnose(found: Survey, here: Packages) -> tuple[Finding, ...]:
    """Return what stands between the program and the GPUs, most basic first."""
    return (*_driver_problems(found), *_cupy_problems(found, here))


def _driver_problems(found: Survey) -> Iterator[Finding]:
    if found.problem:
        yield Finding(found.problem, found.cure or "", found.broken, no_gpus=True)
    for fault in found.faults:
        if fault != found.problem:
            yield Finding(fault, "see what nvidia-smi says; a restart may help", broken=True)
    if found.devices and found.hidden:
        everything = len(found.devices) + len(found.hidden)
        text = f"{VISIBLE} hides {len(found.hidden)} of {everything} GPUs"
        yield Finding(text, f"unset {VISIBLE} to use all")


def _cupy_problems(found: Survey, here: Packages) -> Iterator[Finding]:
    """Yield problems of the installed CuPy, and between it and the GPUs."""
    names = [build.name for build in here.cupy]
    if len(names) > 1:
        yield Finding(
            f"{len(names)} CuPy builds are installed and overwrite each other's files: "
            + " and ".join(names),
            f"pip uninstall {' '.join(names)}, then install one extra: "
            "pip install 'multigpu[cu13]' (or cu12)",
            broken=True,
        )
    if not found.devices:
        return
    if not here.cupy:
        yield Finding("CuPy is not installed", _how_to_install(found), no_gpus=True)
        return
    needed = max(build.cuda or 0 for build in here.cupy)
    if len(names) == 1 and found.cuda and found.cuda[0] < needed:
        name, cuda = names[0], found.cuda[0]
        cure = f"update the driver to {OLDEST_DRIVERS.get(needed, 'a newer one')} or newer"
        if cuda >= OLDEST_CUDA:
            cure += f", or pip uninstall {name} and pip install 'multigpu[cu{cuda}]'"
        yield Finding(
            f"the driver {found.driver} runs CUDA {dotted(found.cuda)} at most and is too old for "
            f"{name} (CUDA {needed})",
            cure,
            broken=True,
            no_gpus=True,
        )
    if len(found.devices) > 1 and not here.versions.get("dask-cuda"):
        text = f"dask-cuda is not installed: {len(found.devices)} GPUs at the same time need it"
        yield Finding(text, _how_to_install(found))
    if not here.headers:
        yield Finding(
            "CUDA's headers are not installed: kernels that include them will not compile",
            f"pip install 'cuda-toolkit[cudart,nvrtc]=={needed or NEWEST_CUDA}.*'",
        )


def _how_to_install(found: Survey) -> str:
    major = min(found.cuda[0], NEWEST_CUDA) if found.cuda else NEWEST_CUDA
    if major < OLDEST_CUDA:
        return (
            f"update the driver ({found.driver} is too old) to {OLDEST_DRIVERS[NEWEST_CUDA]} or "
            f"newer, then pip install 'multigpu[cu{NEWEST_CUDA}]'"
        )
    return f"pip install 'multigpu[cu{major}]'"


def gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"


def dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def failures(checks: Sequence[KernelCheck], devices: Sequence[Device]) -> tuple[Finding, ...]:
    """Return a finding for each device on which the kernel check failed."""
    failed = {check.uuid: check.error for check in checks if check.error}
    good = [str(device.index) for device in devices if device.uuid not in failed]
    cure = f"leave it out with --gpus {','.join(good) or 'none'}; see whether nvidia-smi works"
    problems = (
        f"the kernel check failed on GPU {device.index}: {failed[device.uuid]}"
        for device in devices
        if device.uuid in failed
    )
    return tuple(Finding(problem, cure, broken=True) for problem in problems)


def verdict(
    devices: Sequence[Device],
    findings: Sequence[Finding],
    checks: Sequence[KernelCheck],
    threads: int,
) -> str:
    """Return in one line what a scan will use."""
    on_cpu = number_of(threads, "CPU thread")
    for finding in findings:
        if finding.no_gpus:
            return f"scan will use {on_cpu}: {finding.text}"
    failed = {check.uuid for check in checks if check.error}
    if failed:
        good = ",".join(str(device.index) for device in devices if device.uuid not in failed)
        instead = f"--gpus {good} uses the others" if good else f"--gpus none uses {on_cpu}"
        return f"scan will fail on {len(failed)} of {number_of(len(devices), 'GPU')}; {instead}"
    names = [device.name for device in devices]
    kinds = ", ".join(
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name
        for name in dict.fromkeys(names)
    )
    return f"scan will use {number_of(len(devices), 'GPU')}: {kinds}"


# ---- what is installed ------------------------------------------------------------------------


def installed() -> Packages:
    """Return the packages that a run depends on."""
    names = {
        re.sub(r"[-_.]+", "-", name).lower(): distribution.version
        for distribution in distributions()
        if (name := distribution.metadata["Name"])
    }
    wheel = re.compile(r"(cuda-toolkit|nvidia-cuda-(nvrtc|runtime)(-cu\d+)?)")
    cuda = {name: names[name] for name in sorted(names) if wheel.fullmatch(name)}
    return Packages(
        versions={name: names.get(name.replace(".", "-")) for name in PACKAGES},
        cupy=tuple(
            Build(name, names[name], int(match[2]) if match[2] else None)
            for name in sorted(names)
            if (match := CUPY.fullmatch(name))
        ),
        cuda=cuda,
        headers=any("runtime" in name for name in cuda) or _toolkit_has_headers(),
    )


def _toolkit_has_headers() -> bool:
    folders = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    return any((Path(folder) / HEADER).is_file() for folder in folders if folder)


def _program() -> str:
    try:
        return version("multigpu")
    except PackageNotFoundError:
        return "not installed, run from its source"


# ---- processors and memory --------------------------------------------------------------------


def this_host() -> Host:
    """Return the threads and the memory that affinity and control groups leave to this process."""
    threads, every = cpu_count(), os.cpu_count() or 1
    affinity = len(os.sched_getaffinity(0))
    reason = "affinity" if threads == affinity else "the control group"
    memory, limit = psutil.virtual_memory(), memory_limit()
    is_limited = limit < memory.total
    return Host(
        threads=threads,
        threads_limit=f"of {every}, by {reason}" if threads < every else None,
        memory_bytes=limit,
        free_bytes=min(memory.available, limit),
        memory_limit=f"of {gib(memory.total)}, by the control group" if is_limited else None,
    )


# ---- the kernel check -------------------------------------------------------------------------


def check_kernels(
    devices: Sequence[Device], timeout: float = CHECK_SECONDS
) -> tuple[KernelCheck, ...]:
    """Compile and run a tiny kernel on every device, all at once, within `timeout` seconds."""
    begin = time.monotonic()
    children = [_start_check(device) for device in devices]
    try:
        return tuple(
            _finish_check(device, child, begin, timeout)
            for device, child in zip(devices, children, strict=True)
        )
    finally:
        for child in children:
            child.kill()  # does nothing to those that have ended


def _start_check(device: Device) -> subprocess.Popen[str]:
    """Start a Python that sees this device alone and takes no kernel from CuPy's cache."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", KERNEL_CHECK],
        env={**os.environ, VISIBLE: device.uuid, "CUPY_CACHE_IN_MEMORY": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )


def _finish_check(
    device: Device, child: subprocess.Popen[str], begin: float, timeout: float
) -> KernelCheck:
    seconds, error = None, None
    try:
        stdout, stderr = child.communicate(timeout=max(0.1, begin + timeout - time.monotonic()))
        if child.returncode:
            last_line = stderr.strip().rpartition("\n")[2][:300]
            error = last_line or f"the process ended with {child.returncode}"
        else:
            result = json.loads(stdout.strip().rpartition("\n")[2])
            seconds = float(result["seconds"])
            error = None if result["right"] else "the kernel's result is wrong"
    except subprocess.TimeoutExpired:
        _abandon(child)
        error = f"no answer within {timeout:g} seconds"
    except (ValueError, LookupError, TypeError):
        error = f"the process printed {stdout[:100]!r}"
    if seconds is None:
        seconds = round(time.monotonic() - begin, 3)
    return KernelCheck(device.uuid, seconds, error)


def _abandon(child: subprocess.Popen[str]) -> None:
    """Kill a child, and wait for a second only: inside a hung driver it cannot die."""
    child.kill()
    try:
        child.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


# ---- the report, shown ------------------------------------------------------------------------


def as_page(report: Report) -> Iterator[str]:
    """Yield the lines of the page that a user reads."""
    for label, text in _as_lines(report):
        yield f"{label:<12} {text}"
    for finding in report.findings:
        label = click.style("problem", fg="red") if finding.broken else "note   "
        yield f"{label}      {finding.text}"
        yield f"  cure       {finding.cure}"
    yield click.style(report.verdict, bold=True)


def as_json(report: Report) -> str:
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

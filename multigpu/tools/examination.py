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
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, distributions, version
from itertools import repeat
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
ANSWER = re.compile(r'^{"right": (true|false), "seconds": ([0-9.]+)}$', re.MULTILINE)


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
    return tuple(_problems(found, here))


def _problems(found: Survey, here: Packages) -> Iterator[Finding]:
    if found.problem:
        yield Finding(found.problem, found.cure or "", found.broken, no_gpus=True)
    for fault in found.faults:
        if fault != found.problem:
            yield Finding(fault, "see what nvidia-smi says; a restart may help", broken=True)
    if found.devices and found.hidden:
        everything = len(found.devices) + len(found.hidden)
        text = f"{VISIBLE} hides {len(found.hidden)} of {everything} GPUs"
        yield Finding(text, f"unset {VISIBLE} to use all")
    names = [build.name for build in here.cupy]
    if len(names) > 1:
        text = f"{len(names)} CuPy builds are installed and overwrite each other's files: "
        cure = f"pip uninstall {' '.join(names)}, then install one extra: "
        cure += "pip install 'multigpu[cu13]' (or cu12)"
        yield Finding(text + " and ".join(names), cure, broken=True)
    if not found.devices:
        return
    if not here.cupy:
        yield Finding("CuPy is not installed", _how_to_install(found), no_gpus=True)
        return
    needed = max(build.cuda or 0 for build in here.cupy)
    if len(names) == 1 and found.cuda and found.cuda[0] < needed:
        name, cuda = names[0], found.cuda[0]
        text = f"the driver {found.driver} runs CUDA {dotted(found.cuda)} at most and is too old "
        cure = f"update the driver to {OLDEST_DRIVERS.get(needed, 'a newer one')} or newer"
        if cuda >= OLDEST_CUDA:
            cure += f", or pip uninstall {name} and pip install 'multigpu[cu{cuda}]'"
        yield Finding(f"{text}for {name} (CUDA {needed})", cure, broken=True, no_gpus=True)
    if len(found.devices) > 1 and not here.versions.get("dask-cuda"):
        text = f"dask-cuda is not installed: {len(found.devices)} GPUs at the same time need it"
        yield Finding(text, _how_to_install(found))
    if not here.headers:
        text = "CUDA's headers are not installed: kernels that include them will not compile"
        cure = f"pip install 'cuda-toolkit[cudart,nvrtc]=={needed or NEWEST_CUDA}.*'"
        yield Finding(text, cure)


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
    return tuple(
        Finding(f"the kernel check failed on GPU {device.index}: {error}", cure, broken=True)
        for device in devices
        if (error := failed.get(device.uuid))
    )


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
    folders = (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    headers = (Path(folder) / HEADER for folder in folders if folder)
    return Packages(
        versions={name: names.get(name.replace(".", "-")) for name in PACKAGES},
        cupy=tuple(
            Build(name, names[name], int(match[2]) if match[2] else None)
            for name in sorted(names)
            if (match := CUPY.fullmatch(name))
        ),
        cuda=cuda,
        headers=any("runtime" in name for name in cuda) or any(map(Path.is_file, headers)),
    )


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
    with ThreadPoolExecutor(max(1, len(devices))) as pool:
        return tuple(pool.map(_check_kernel, devices, repeat(timeout)))


def _check_kernel(device: Device, timeout: float) -> KernelCheck:
    """Start a Python that sees this device alone and takes no kernel from CuPy's cache."""
    begin, code = time.monotonic(), None
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", KERNEL_CHECK],
            env={**os.environ, VISIBLE: device.uuid, "CUPY_CACHE_IN_MEMORY": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        with suppress(subprocess.TimeoutExpired):
            code = child.wait(timeout)
        if code is None:
            child.kill()
            with suppress(subprocess.TimeoutExpired):
                child.wait(1)  # no longer: inside a hung driver it cannot die
        output.seek(0)
        text = output.read().decode(errors="replace")
    seconds, error = round(time.monotonic() - begin, 3), None
    if code is None:
        error = f"no answer within {timeout:g} seconds"
    elif code:
        error = text.strip().rpartition("\n")[2][:300] or f"the process ended with {code}"
    elif not (answer := ANSWER.search(text)):
        error = f"the process printed {text[:100]!r}"
    else:
        seconds = float(answer[2])
        error = None if answer[1] == "true" else "the kernel's result is wrong"
    return KernelCheck(device.uuid, seconds, error)


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
    here, host, found = report.packages, report.host, report.survey
    yield "multigpu", report.program
    yield "Python", f"{report.python} on {report.system}"
    yield "packages", ", ".join(f"{name} {v or '(missing)'}" for name, v in here.versions.items())
    yield "CuPy", ", ".join(f"{build.name} {build.version}" for build in here.cupy) or "none"
    yield "CUDA wheels", ", ".join(f"{name} {v}" for name, v in here.cuda.items()) or "none"
    yield "CPU", _limited(f"{host.threads} threads", host.threads_limit)
    memory = f"{gib(host.memory_bytes)}, {gib(host.free_bytes)} free"
    yield "memory", _limited(memory, host.memory_limit)
    cuda = f"CUDA {dotted(found.cuda)}" if found.cuda else None
    yield "driver", _limited(found.driver or "none", cuda)
    checks = {check.uuid: check for check in report.checks}
    for device in found.devices:
        outcome = "kernel not checked"
        if check := checks.get(device.uuid):
            outcome = "kernel failed" if check.error else f"kernel ran in {check.seconds:.1f} s"
        yield f"GPU {device.index}", f"{_gpu(device)}, {outcome}"
    for device in found.hidden:
        yield "hidden GPU", _gpu(device)


def _gpu(device: Device) -> str:
    memory, capability = "memory shared with the CPU", device.compute_capability
    if device.total_bytes:
        memory = f"{gib(device.total_bytes)}, {gib(device.free_bytes)} free"
    parts = (
        device.name, memory, f"compute capability {dotted(capability)}" if capability else "",
        "MIG instance" if device.mig else "", device.uuid,
    )  # fmt: skip
    return ", ".join(part for part in parts if part)


def _limited(text: str, limit: str | None) -> str:
    return f"{text} ({limit})" if limit else text

"""Every diagnosis of the doctor, on machines that are made up; and the checks it runs here."""

import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from multigpu.cluster.devices import gpus as devices
from multigpu.cluster.devices.gpus import Device, Finding, Survey
from multigpu.tools import doctor

GIB = 1 << 30
CU12, CU13 = "cupy-cuda12x", "cupy-cuda13x"


def gpus(count: int, name: str = "NVIDIA H200") -> tuple[Device, ...]:
    about = (name, 140 * GIB, 139 * GIB, (9, 0))
    return tuple(Device(k, f"GPU-{k}", *about, mig=False) for k in range(count))


def machine(count: int, cuda: tuple[int, int] = (13, 0), **more: Any) -> Survey:
    return Survey(devices=gpus(count), driver="580.95.05", cuda=cuda, **more)


NO_DRIVER = Survey(problem=devices.NO_DRIVER)
HIDDEN = Survey(
    driver="580.95.05",
    cuda=(13, 0),
    hidden=gpus(2),
    problem=Finding(
        "all 2 GPUs are hidden by CUDA_VISIBLE_DEVICES=''", "unset CUDA_VISIBLE_DEVICES"
    ),
)

NO_GPU_DIAGNOSES = [
    (NO_DRIVER, [], "no NVIDIA driver (NVML library not found)",
     "install the NVIDIA driver", False),
    (Survey(problem=devices.NOT_LOADED), [CU13],
     "the NVIDIA driver is installed but not loaded", "load it", True),
    (HIDDEN, [CU13], "all 2 GPUs are hidden by CUDA_VISIBLE_DEVICES=''",
     "unset CUDA_VISIBLE_DEVICES", False),
    (machine(1), [], "CuPy is not installed", "pip install 'multigpu[cu13]'", False),
    (machine(1, (12, 4)), [], "CuPy is not installed", "pip install 'multigpu[cu12]'", False),
    (machine(1, (14, 1)), [], "CuPy is not installed", "pip install 'multigpu[cu13]'", False),
    (machine(1, (11, 4)), [], "CuPy is not installed",
     "update the driver (580.95.05 is too old), then pip install 'multigpu[cu13]'", False),
    (machine(1, (12, 4)), [CU13],
     "the driver 580.95.05 runs CUDA 12.4 at most and is too old for cupy-cuda13x (CUDA 13)",
     "update the driver, or pip uninstall cupy-cuda13x and pip install 'multigpu[cu12]'", True),
    (machine(1, (11, 8)), [CU12], "is too old for cupy-cuda12x (CUDA 12)", "update the driver",
     True),
    (machine(2), [CU13], "dask-cuda is not installed: 2 GPUs", "'multigpu[cu13]'", False),
]  # fmt: skip


LOST = Finding("GPU 1 is there but does not answer", "see", broken=True)
BUILDS = (
    "2 CuPy builds are installed and overwrite each other's files: cupy-cuda12x and cupy-cuda13x"
)
OTHER_DIAGNOSES = [
    (machine(1), [CU13], "", ""),
    (machine(4), [CU12, "dask-cuda"], "", ""),
    (machine(1, (12, 0)), [CU12], "", ""),
    (machine(1), ["cupy"], "", ""),
    (machine(1, faults=(LOST,)), [CU13], LOST.text, "see"),
    (machine(1, (12, 4)), [CU12, CU13], BUILDS, f"pip uninstall {CU12} {CU13}, then install one"),
    (NO_DRIVER, [CU12, CU13], BUILDS, f"pip uninstall {CU12} {CU13}, then install one"),
]


def diagnosed(found: Survey, *packages: str) -> list[Finding]:
    return list(doctor.diagnose(found, dict.fromkeys(packages, "14.2.0")))


@pytest.mark.parametrize(("found", "installed", "text", "cure", "broken"), NO_GPU_DIAGNOSES)
def test_diagnose__why_no_gpu_is_used(
    found: Survey, installed: list[str], text: str, cure: str, broken: bool
) -> None:
    (finding,) = diagnosed(found, *installed)
    assert text in finding.text
    assert cure in finding.cure
    assert (finding.broken, finding.no_gpus) == (broken, True)


@pytest.mark.parametrize(("found", "installed", "text", "cure"), OTHER_DIAGNOSES)
def test_diagnose__the_rest(found: Survey, installed: list[str], text: str, cure: str) -> None:
    problems = [each for each in diagnosed(found, *installed) if not each.no_gpus]
    assert [(each.text, each.broken) for each in problems] == ([(text, True)] if text else [])
    assert not text or problems[0].cure.startswith(cure)


def run(
    monkeypatch: pytest.MonkeyPatch, found: Survey, *packages: str, failed: tuple[int, ...] = (),
    options: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """`doctor` on a machine of that kind with 4 of 8 threads; the check fails on some GPUs."""

    def check(devices: tuple[Device, ...]) -> dict[str, str]:
        return {each.uuid: "boom" if each.index in failed else "" for each in devices}

    memory = SimpleNamespace(total=64 * GIB, available=60 * GIB)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    monkeypatch.setattr("dask.system.cpu_count", lambda: 4)
    monkeypatch.setattr("distributed.system.memory_limit", lambda: 16 * GIB)
    monkeypatch.setattr(doctor, "survey", lambda: found)
    monkeypatch.setattr(doctor, "versions", lambda: dict.fromkeys(packages, "14.2.0"))
    monkeypatch.setattr(doctor, "check_kernels", check)
    return CliRunner().invoke(doctor.command, options)


GPU = "NVIDIA H200, 140.0 GiB, 139.0 GiB free, compute capability 9.0"
MIG = Device(0, "MIG-0", "NVIDIA H200 MIG 1g.18gb", 0, 0, None, mig=True)
SHOWN: list[tuple[Survey, list[str], tuple[int, ...], list[str]]] = [
    (machine(2), [CU13, "dask-cuda"], (), [
        "packages     cupy-cuda13x 14.2.0, dask-cuda 14.2.0",
        "CPU          4 threads of 8", "memory       16.0 GiB of 64.0 GiB, 16.0 GiB free",
        "driver       580.95.05 (CUDA 13.0)", f"GPU 1        {GPU}, GPU-1, kernel ran",
        "scan will use 2 GPUs"]),
    (NO_DRIVER, [], (), [
        "driver       none", "note         no NVIDIA driver (NVML library not found)",
        f"  cure       {devices.NO_DRIVER.cure}",
        "scan will use 4 CPU threads: no NVIDIA driver (NVML library not found)"]),
    (HIDDEN, [CU13], (), ["hidden GPU   NVIDIA H200", "unset CUDA_VISIBLE_DEVICES"]),
    (Survey(devices=(MIG,)), [CU13], (), [
        "memory shared with the CPU, MIG instance, MIG-0, kernel ran", "will use 1 GPU"]),
    (machine(3), [CU13, "dask-cuda"], (1,), [
        "kernel failed", "problem      the kernel check failed on GPU 1: boom",
        "leave it out with --gpus 0,2;", "scan will fail on 1 of 3 GPUs"]),
    (machine(1), [CU13], (0,), ["leave it out with --gpus none;", "will fail on 1 of 1 GPU"]),
    (machine(1), [CU12, CU13], (), ["pip uninstall", "scan will use 1 GPU"]),
    (machine(1), [], (0,), ["kernel not checked", "4 CPU threads: CuPy is not installed"]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "packages", "failed", "lines"), SHOWN)
def test_command__shows(
    monkeypatch: pytest.MonkeyPatch, found: Survey, packages: list[str], failed: tuple[int, ...],
    lines: list[str],
) -> None:  # fmt: skip
    result = run(monkeypatch, found, *packages, failed=failed)
    assert [line for line in lines if line not in result.output] == []
    assert result.exit_code == int("problem " in result.output)


def test_command__checks_no_kernel_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(1), CU13, failed=(0,), options=("--no-kernel-check",))
    assert "kernel not checked" in result.output
    assert result.exit_code == 0


@pytest.mark.parametrize(("code", "error"), [
    (f"print('a warning'){doctor.KERNEL_CHECK.replace('import', 'import numpy as')}", ""),
    ("raise RuntimeError('driver too odd')", "RuntimeError: driver too odd"),
    ("raise SystemExit(7)", "the process ended with 7"),
    ("import os; os.abort()", "the process ended with -6"),
])  # fmt: skip
def test_check_kernels__of_a_child(monkeypatch: pytest.MonkeyPatch, code: str, error: str) -> None:
    monkeypatch.setattr(doctor, "KERNEL_CHECK", code)
    assert doctor.check_kernels(gpus(2)) == {"GPU-0": error, "GPU-1": error}


def test_check_kernels__every_child_sees_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; sys.exit(os.environ['CUDA_VISIBLE_DEVICES'])"
    monkeypatch.setattr(doctor, "KERNEL_CHECK", code)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert doctor.check_kernels(gpus(2)) == {"GPU-0": "GPU-0", "GPU-1": "GPU-1"}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,0"


def test_check_kernels__a_child_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "KERNEL_CHECK", "import time; time.sleep(60)")
    begun = time.monotonic()
    checks = doctor.check_kernels(gpus(3), timeout=0.5)
    assert list(checks.values()) == ["no answer within 0.5 seconds"] * 3
    assert time.monotonic() - begun < 10


@pytest.mark.gpu
def test_check_kernels__on_the_gpus_of_this_machine() -> None:
    found = devices.survey().devices
    assert found
    assert set(doctor.check_kernels(found).values()) == {""}


@pytest.mark.process
def test_doctor__starts_no_cuda_and_compiles_nothing() -> None:
    code = """
import sys
from multigpu.tools.doctor import command
command(["--no-kernel-check"], standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert not loaded & {"cupy", "numba", "pyarrow"}

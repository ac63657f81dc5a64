"""Every diagnosis of the doctor, on machines that are made up; and the checks it runs here."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from multigpu.cluster.devices import gpus as devices
from multigpu.cluster.devices.gpus import Device, Survey
from multigpu.errors import UsageError
from multigpu.tools import doctor
from multigpu.tools.doctor import Report

GIB = 1 << 30
CU12, CU13 = "cupy-cuda12x", "cupy-cuda13x"


def gpus(count: int, name: str = "NVIDIA H200") -> tuple[Device, ...]:
    return tuple(
        Device(number, f"GPU-{number}", name, 140 * GIB, 139 * GIB, (9, 0), mig=False)
        for number in range(count)
    )


def machine(count: int, cuda: tuple[int, int] = (13, 0), **more: Any) -> Survey:
    return Survey(devices=gpus(count), driver="580.95.05", cuda=cuda, **more)


def report(found: Survey, *packages: str, limit: int = 1) -> Report:
    """The report on a machine, without findings; `limit`: the share that a run may use."""
    memory, threads = 64 * GIB, 16
    return Report(
        packages=dict.fromkeys(packages, "14.2.0"), survey=found, free_bytes=60 * GIB,
        threads=threads // limit, all_threads=threads,
        memory_bytes=memory // limit, all_memory_bytes=memory,
    )  # fmt: skip


HIDDEN = Survey(
    driver="580.95.05",
    cuda=(13, 0),
    hidden=gpus(2),
    problem="all 2 GPUs are hidden by CUDA_VISIBLE_DEVICES=''",
    cure="unset CUDA_VISIBLE_DEVICES",
)

NO_GPU_DIAGNOSES = [
    (devices.NO_DRIVER, [], "no NVIDIA driver (NVML library not found)",
     "install the NVIDIA driver", False),
    (devices.NO_DRIVER, [CU13], "no NVIDIA driver (NVML library not found)",
     "install the NVIDIA driver", False),
    (devices.NOT_LOADED, [CU13], "the NVIDIA driver is installed but not loaded", "load it", True),
    (devices.MISMATCH, [CU13], "the NVIDIA driver and its library do not match",
     "restart the machine", True),
    (devices.NO_PERMISSION, [CU13], "no permission to use the NVIDIA driver", "/dev/nvidia*", True),
    (devices.NO_GPU, [CU13], "the NVIDIA driver sees no GPU", "nvidia-smi", False),
    (devices.NO_INSTANCE, [CU13], "the GPU is in MIG mode and has no MIG instance",
     "nvidia-smi mig", False),
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


@pytest.mark.parametrize(("found", "installed", "text", "cure", "broken"), NO_GPU_DIAGNOSES)
def test_diagnose__why_no_gpu_is_used(
    found: Survey, installed: list[str], text: str, cure: str, broken: bool
) -> None:
    here = report(found, *installed)
    (finding,) = doctor.diagnose(here)
    assert text in finding.text
    assert cure in finding.cure
    assert (finding.broken, finding.no_gpus) == (broken, True)
    assert doctor.verdict(replace(here, findings=(finding,))) == (
        f"scan will use 16 CPU threads: {finding.text}"
    )


@pytest.mark.parametrize(
    ("found", "installed"),
    [
        (machine(1), [CU13]),
        (machine(4), [CU13, "dask-cuda"]),
        (machine(4), [CU12, "dask-cuda"]),
        (machine(1, (12, 0)), [CU12]),
        (machine(1), ["cupy"]),
    ],
)
def test_diagnose__nothing_is_wrong(found: Survey, installed: list[str]) -> None:
    assert list(doctor.diagnose(report(found, *installed))) == []


@pytest.mark.parametrize("found", [machine(1), machine(1, (12, 4)), devices.NO_DRIVER])
def test_diagnose__two_cupy_builds_are_a_problem_with_and_without_a_gpu(found: Survey) -> None:
    *_, finding = doctor.diagnose(report(found, CU12, CU13))
    assert finding.text == (
        "2 CuPy builds are installed and overwrite each other's files: "
        "cupy-cuda12x and cupy-cuda13x"
    )
    assert finding.cure.startswith("pip uninstall cupy-cuda12x cupy-cuda13x, then install one")
    assert finding.broken


@pytest.mark.parametrize(
    ("found", "text", "broken"),
    [
        (machine(1, hidden=gpus(3)), "CUDA_VISIBLE_DEVICES hides 3 of 4 GPUs", False),
        (machine(1, faults=("GPU 1 is there but does not answer: lost",)),
         "GPU 1 is there but does not answer: lost", True),
    ],
)  # fmt: skip
def test_diagnose__what_does_not_stop_the_gpus(found: Survey, text: str, broken: bool) -> None:
    (finding,) = doctor.diagnose(report(found, CU13))
    assert finding.text.startswith(text)
    assert finding.cure
    assert (finding.broken, finding.no_gpus) == (broken, False)


@pytest.mark.parametrize(
    ("found", "failed", "wanted"),
    [
        (gpus(1), [], "scan will use 1 GPU: NVIDIA H200"),
        (gpus(2), [], "scan will use 2 GPUs: 2 × NVIDIA H200"),
        (gpus(2) + gpus(1, "Tesla T4"), [], "scan will use 3 GPUs: 2 × NVIDIA H200, Tesla T4"),
        (gpus(3), [1], "scan will fail on 1 of 3 GPUs; --gpus 0,2 uses the others"),
        (gpus(1), [0], "scan will fail on 1 of 1 GPU; --gpus none uses 16 CPU threads"),
    ],
)
def test_verdict__with_gpus(found: tuple[Device, ...], failed: list[int], wanted: str) -> None:
    checks = {each.uuid: "boom" if each.index in failed else None for each in found}
    here = replace(report(Survey(devices=found)), checks=checks)
    findings = list(doctor.failures(here))
    assert doctor.verdict(here) == wanted
    assert [finding.broken for finding in findings] == [True] * len(failed)
    assert all("boom" in finding.text for finding in findings)


# ---- the command ------------------------------------------------------------------------------


def run(
    monkeypatch: pytest.MonkeyPatch, found: Survey, *packages: str, options: tuple[str, ...] = (),
    error: str | None = None, limit: int = 1,
) -> Any:  # fmt: skip
    """`doctor` on a machine of that kind; `error` is what each kernel check says."""

    def check(devices: tuple[Device, ...]) -> dict[str, str | None]:
        return dict.fromkeys((each.uuid for each in devices), error)

    monkeypatch.setattr(doctor, "this_machine", lambda: report(found, *packages, limit=limit))
    monkeypatch.setattr(doctor, "check_kernels", check)
    return CliRunner().invoke(doctor.command, options)


def test_command__with_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(2), CU13, "dask-cuda")
    assert result.exit_code == 0
    gpu = "NVIDIA H200, 140.0 GiB, 139.0 GiB free, compute capability 9.0"
    assert result.output.splitlines()[-7:] == [
        "packages     cupy-cuda13x 14.2.0, dask-cuda 14.2.0",
        "CPU          16 threads",
        "memory       64.0 GiB, 60.0 GiB free",
        "driver       580.95.05 (CUDA 13.0)",
        f"GPU 0        {gpu}, GPU-0, kernel ran",
        f"GPU 1        {gpu}, GPU-1, kernel ran",
        "scan will use 2 GPUs: 2 × NVIDIA H200",
    ]


def test_command__without_a_driver_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, devices.NO_DRIVER, limit=4)
    assert result.exit_code == 0
    assert result.output.splitlines()[-6:] == [
        "CPU          4 threads of 16",
        "memory       16.0 GiB, 60.0 GiB free, of 64.0 GiB",
        "driver       none",
        "note         no NVIDIA driver (NVML library not found)",
        (
            "  cure       install the NVIDIA driver; into a container, pass the GPUs (docker run "
            "--gpus all)"
        ),
        "scan will use 4 CPU threads: no NVIDIA driver (NVML library not found)",
    ]


MIG = Device(0, "MIG-0", "NVIDIA H200 MIG 1g.18gb", 0, 0, None, mig=True)


SHOWN: list[tuple[Survey, str, str | None, list[str]]] = [
    (HIDDEN, "", None, ["hidden GPU   NVIDIA H200", "unset CUDA_VISIBLE_DEVICES"]),
    (Survey(devices=(MIG,)), "", None,
     ["memory shared with the CPU, MIG instance, MIG-0, kernel ran"]),
    (machine(2), "--gpus 1", None, ["will use 1 GPU: "]),
    (machine(2), "--gpus none", None, ["scan will use 16 CPU threads: --gpus none"]),
    (machine(1), "--no-kernel-check", "boom", ["kernel not checked"]),
    (machine(1), "", "cudaErrorUnknown", [
        "kernel failed", "problem      the kernel check failed on GPU 0: cudaErrorUnknown",
        "--gpus none uses 16 CPU threads\n"]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "options", "error", "lines"), SHOWN)
def test_command__shows(
    monkeypatch: pytest.MonkeyPatch, found: Survey, options: str, error: str | None,
    lines: list[str],
) -> None:  # fmt: skip
    words = tuple(options.split())
    result = run(monkeypatch, found, CU13, "dask-cuda", options=words, error=error)
    assert [line for line in lines if line not in result.output] == []
    assert result.exit_code == int(error == "cudaErrorUnknown")


def test_command__refuses_gpus_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run(monkeypatch, machine(2), CU13, options=("--gpus", "7"))
    assert isinstance(ended.exception, UsageError)


@pytest.mark.parametrize(
    ("found", "packages"),
    [(machine(1), []), (machine(1, (12, 4)), [CU13]), (HIDDEN, [CU13])],
)
def test_command__checks_no_kernel_where_no_gpu_is_used(
    monkeypatch: pytest.MonkeyPatch, found: Survey, packages: list[str]
) -> None:
    result = run(monkeypatch, found, *packages, options=("--json",), error="boom")
    assert json.loads(result.output)["checks"] == {}


def test_command__json_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(1), CU12, CU13, options=("--json",))
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert found["format"] == 2
    assert found["broken"] is True
    assert found["survey"]["devices"][0]["uuid"] == "GPU-0"
    assert found["survey"]["cuda"] == [13, 0]
    assert found["packages"] == {CU12: "14.2.0", CU13: "14.2.0"}
    assert found["checks"] == {"GPU-0": None}
    assert found["findings"][0]["cure"].startswith("pip uninstall")
    assert found["verdict"] == "scan will use 1 GPU: NVIDIA H200"


# ---- the kernel check -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (f"print('a warning'){doctor.KERNEL_CHECK.replace('import', 'import numpy as')}", None),
        ("raise RuntimeError('driver too odd')", "RuntimeError: driver too odd"),
        ("raise SystemExit(7)", "the process ended with 7"),
        ("import os; os.abort()", "the process ended with -6"),
    ],
)
def test_check_kernels__what_the_child_may_do(
    monkeypatch: pytest.MonkeyPatch, code: str, error: str | None
) -> None:
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
    assert set(doctor.check_kernels(found).values()) == {None}


# ---- this machine -----------------------------------------------------------------------------


def test_this_machine__obeys_affinity_and_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask reads the limits; these are its answers on some machine."""
    memory = SimpleNamespace(total=16 * GIB, available=8 * GIB)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr("psutil.virtual_memory", lambda: memory)
    monkeypatch.setattr("dask.system.cpu_count", lambda: 2)
    monkeypatch.setattr("distributed.system.memory_limit", lambda: 4 * GIB)
    here = doctor.this_machine()
    assert (here.threads, here.all_threads) == (2, 8)
    assert (here.memory_bytes, here.all_memory_bytes) == (4 * GIB, 16 * GIB)
    assert here.free_bytes == 4 * GIB
    assert {"numpy", "dask", "rdkit"} <= set(here.packages)


@pytest.mark.process
def test_doctor__starts_no_cuda_and_compiles_nothing() -> None:
    code = (
        "import sys, multigpu.tools.doctor as d; d.examine(kernel_check=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"cupy", "numba", "pyarrow"}

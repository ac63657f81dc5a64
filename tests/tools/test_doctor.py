"""Every diagnosis of the doctor, on machines that are made up; and the checks it runs here."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from multigpu.cluster.devices import gpus as devices
from multigpu.cluster.devices.gpus import Device, Survey
from multigpu.errors import UsageError
from multigpu.tools import examination as doctor
from multigpu.tools.doctor import command
from multigpu.tools.examination import Build, Host, KernelCheck, Packages

GIB = 1 << 30
CU12 = Build("cupy-cuda12x", "14.2.0", 12)
CU13 = Build("cupy-cuda13x", "14.2.0", 13)
HOST = Host(16, None, 64 * GIB, 60 * GIB, None)


def gpus(count: int, name: str = "NVIDIA H200") -> tuple[Device, ...]:
    return tuple(
        Device(number, f"GPU-{number}", name, 140 * GIB, 139 * GIB, (9, 0), mig=False)
        for number in range(count)
    )


def machine(count: int, cuda: tuple[int, int] = (13, 0), **more: Any) -> Survey:
    return Survey(devices=gpus(count), driver="580.95.05", cuda=cuda, **more)


def packages(*cupy: Build, headers: bool = True, dask_cuda: str | None = "26.10.0") -> Packages:
    versions = {"numpy": "2.4.6", "pyarrow": None, "dask-cuda": dask_cuda}
    return Packages(versions, cupy, {"nvidia-cuda-nvrtc": "13.4.92"}, headers)


HIDDEN = Survey(
    driver="580.95.05",
    cuda=(13, 0),
    hidden=gpus(2),
    problem="all 2 GPUs are hidden by CUDA_VISIBLE_DEVICES=''",
    cure="unset CUDA_VISIBLE_DEVICES",
)

NO_GPU_DIAGNOSES = [
    (devices.NO_DRIVER, packages(), "no NVIDIA driver (NVML library not found)",
     "install the NVIDIA driver", False),
    (devices.NO_DRIVER, packages(CU13), "no NVIDIA driver (NVML library not found)",
     "install the NVIDIA driver", False),
    (devices.NOT_LOADED, packages(CU13), "the NVIDIA driver is installed but not loaded",
     "load it", True),
    (devices.MISMATCH, packages(CU13), "the NVIDIA driver and its library do not match",
     "restart the machine", True),
    (devices.NO_PERMISSION, packages(CU13), "no permission to use the NVIDIA driver",
     "/dev/nvidia*", True),
    (devices.NO_GPU, packages(CU13), "the NVIDIA driver sees no GPU", "nvidia-smi", False),
    (devices.NO_INSTANCE, packages(CU13), "the GPU is in MIG mode and has no MIG instance",
     "nvidia-smi mig", False),
    (HIDDEN, packages(CU13), "all 2 GPUs are hidden by CUDA_VISIBLE_DEVICES=''",
     "unset CUDA_VISIBLE_DEVICES", False),
    (machine(1), packages(), "CuPy is not installed", "pip install 'multigpu[cu13]'", False),
    (machine(1, (12, 4)), packages(), "CuPy is not installed", "pip install 'multigpu[cu12]'",
     False),
    (machine(1, (14, 1)), packages(), "CuPy is not installed", "pip install 'multigpu[cu13]'",
     False),
    (machine(1, (11, 4)), packages(), "CuPy is not installed",
     "update the driver (580.95.05 is too old) to 580.65 or newer", False),
    (machine(1, (12, 4)), packages(CU13),
     "the driver 580.95.05 runs CUDA 12.4 at most and is too old for cupy-cuda13x (CUDA 13)",
     ("update the driver to 580.65 or newer, or pip uninstall cupy-cuda13x and pip install "
     "'multigpu[cu12]'"), True),
    (machine(1, (11, 8)), packages(CU12), "is too old for cupy-cuda12x (CUDA 12)",
     "update the driver to 525.60 or newer", True),
]  # fmt: skip


@pytest.mark.parametrize(("found", "here", "text", "cure", "broken"), NO_GPU_DIAGNOSES)
def test_diagnose__why_no_gpu_is_used(
    found: Survey, here: Packages, text: str, cure: str, broken: bool
) -> None:
    (finding,) = doctor.diagnose(found, here)
    assert text in finding.text
    assert cure in finding.cure
    assert (finding.broken, finding.no_gpus) == (broken, True)
    assert doctor.verdict(found.devices, [finding], (), 16) == (
        f"scan will use 16 CPU threads: {finding.text}"
    )


@pytest.mark.parametrize(
    ("found", "here"),
    [
        (machine(1), packages(CU13)),
        (machine(4), packages(CU13)),
        (machine(4), packages(CU12)),
        (machine(1, (12, 0)), packages(CU12)),
        (machine(1), packages(CU13, dask_cuda=None)),
        (machine(1), packages(Build("cupy", "14.2.0", None))),
    ],
)
def test_diagnose__nothing_is_wrong(found: Survey, here: Packages) -> None:
    assert doctor.diagnose(found, here) == ()


@pytest.mark.parametrize("found", [machine(1), machine(1, (12, 4)), devices.NO_DRIVER])
def test_diagnose__two_cupy_builds_are_a_problem_with_and_without_a_gpu(found: Survey) -> None:
    *_, finding = doctor.diagnose(found, packages(CU12, CU13))
    assert finding.text == (
        "2 CuPy builds are installed and overwrite each other's files: "
        "cupy-cuda12x and cupy-cuda13x"
    )
    assert finding.cure.startswith("pip uninstall cupy-cuda12x cupy-cuda13x, then install one")
    assert finding.broken


@pytest.mark.parametrize(
    ("found", "here", "text", "broken"),
    [
        (machine(1, hidden=gpus(3)), packages(CU13), "CUDA_VISIBLE_DEVICES hides 3 of 4 GPUs",
         False),
        (machine(1, faults=("GPU 1 is there but does not answer: lost",)), packages(CU13),
         "GPU 1 is there but does not answer: lost", True),
        (machine(1), packages(CU13, headers=False), "CUDA's headers are not installed", False),
        (machine(2), packages(CU13, dask_cuda=None), "dask-cuda is not installed: 2 GPUs", False),
    ],
)  # fmt: skip
def test_diagnose__what_does_not_stop_the_gpus(
    found: Survey, here: Packages, text: str, broken: bool
) -> None:
    (finding,) = doctor.diagnose(found, here)
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
def test_verdict__with_gpus(found: Sequence[Device], failed: list[int], wanted: str) -> None:
    checks = [
        KernelCheck(device.uuid, 0.5, "boom" if device.index in failed else None)
        for device in found
    ]
    findings = doctor.failures(checks, found)
    assert doctor.verdict(found, findings, checks, 16) == wanted
    assert [finding.broken for finding in findings] == [True] * len(failed)
    assert all("boom" in finding.text for finding in findings)


# ---- the command ------------------------------------------------------------------------------


def run(
    monkeypatch: pytest.MonkeyPatch, found: Survey, here: Packages, *options: str,
    error: str | None = None,
) -> Any:  # fmt: skip
    """`doctor` on a machine of that kind; `error` is what each kernel check says."""

    def check(devices: Sequence[Device]) -> tuple[KernelCheck, ...]:
        return tuple(KernelCheck(device.uuid, 0.4, error) for device in devices)

    monkeypatch.setattr(doctor, "survey", lambda: found)
    monkeypatch.setattr(doctor, "installed", lambda: here)
    monkeypatch.setattr(doctor, "this_host", lambda: HOST)
    monkeypatch.setattr(doctor, "check_kernels", check)
    return CliRunner().invoke(command, options)


def test_command__with_two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(2), packages(CU13))
    assert result.exit_code == 0
    assert result.output.splitlines()[-7:] == [
        "CUDA wheels  nvidia-cuda-nvrtc 13.4.92",
        "CPU          16 threads",
        "memory       64.0 GiB, 60.0 GiB free",
        "driver       580.95.05 (CUDA 13.0)",
        (
            "GPU 0        NVIDIA H200, 140.0 GiB, 139.0 GiB free, compute capability 9.0, GPU-0, "
            "kernel ran in 0.4 s"
        ),
        (
            "GPU 1        NVIDIA H200, 140.0 GiB, 139.0 GiB free, compute capability 9.0, GPU-1, "
            "kernel ran in 0.4 s"
        ),
        "scan will use 2 GPUs: 2 × NVIDIA H200",
    ]


def test_command__without_a_driver_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, devices.NO_DRIVER, packages())
    assert result.exit_code == 0
    assert result.output.splitlines()[-4:] == [
        "driver       none",
        "note         no NVIDIA driver (NVML library not found)",
        (
            "  cure       install the NVIDIA driver; into a container, pass the GPUs (docker run "
            "--gpus all)"
        ),
        "scan will use 16 CPU threads: no NVIDIA driver (NVML library not found)",
    ]


def test_command__what_is_broken_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(1), packages(CU13), error="cudaErrorUnknown")
    assert result.exit_code == 1
    assert "kernel failed" in result.output
    assert "problem      the kernel check failed on GPU 0: cudaErrorUnknown" in result.output
    assert result.output.endswith("--gpus none uses 16 CPU threads\n")


def test_command__hidden_gpus_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, HIDDEN, packages(CU13))
    assert result.exit_code == 0
    assert result.output.count("hidden GPU   NVIDIA H200") == 2
    assert "unset CUDA_VISIBLE_DEVICES" in result.output


def test_command__mig_instance_and_memory_shared_with_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instance = Device(0, "MIG-0", "NVIDIA H200 MIG 1g.18gb", 0, 0, None, mig=True)
    result = run(monkeypatch, Survey(devices=(instance,)), packages(CU13))
    line = "NVIDIA H200 MIG 1g.18gb, memory shared with the CPU, MIG instance, MIG-0, kernel ran"
    assert line in result.output


def test_command__looks_at_the_gpus_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here = packages(CU13)
    assert "will use 1 GPU: " in run(monkeypatch, machine(2), here, "--gpus", "1").output
    without = run(monkeypatch, machine(2), here, "--gpus", "none")
    assert "scan will use 16 CPU threads: --gpus none" in without.output
    assert isinstance(run(monkeypatch, machine(2), here, "--gpus", "7").exception, UsageError)


def test_command__without_the_kernel_check(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(1), packages(CU13), "--no-kernel-check", error="boom")
    assert result.exit_code == 0
    assert "kernel not checked" in result.output


@pytest.mark.parametrize(
    ("found", "here"),
    [(machine(1), packages()), (machine(1, (12, 4)), packages(CU13)), (HIDDEN, packages(CU13))],
)
def test_command__checks_no_kernel_where_no_gpu_is_used(
    monkeypatch: pytest.MonkeyPatch, found: Survey, here: Packages
) -> None:
    result = run(monkeypatch, found, here, "--json", error="boom")
    assert json.loads(result.output)["checks"] == []


def test_command__json_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, machine(1), packages(CU12, CU13), "--json")
    assert result.exit_code == 1
    report = json.loads(result.output)
    assert report["format"] == 1
    assert report["broken"] is True
    assert report["survey"]["devices"][0]["uuid"] == "GPU-0"
    assert report["survey"]["cuda"] == [13, 0]
    assert report["packages"]["cupy"][0] == {
        "name": "cupy-cuda12x", "version": "14.2.0", "cuda": 12,
    }  # fmt: skip
    assert report["checks"] == [{"uuid": "GPU-0", "seconds": 0.4, "error": None}]
    assert report["findings"][0]["cure"].startswith("pip uninstall")
    assert report["verdict"] == "scan will use 1 GPU: NVIDIA H200"


# ---- the kernel check -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print('a warning'); print('{\"right\": true, \"seconds\": 0.25}')", None),
        ('print(\'{"right": false, "seconds": 0.25}\')', "the kernel's result is wrong"),
        ("raise RuntimeError('driver too odd')", "RuntimeError: driver too odd"),
        ("raise SystemExit(7)", "the process ended with 7"),
        ("import os; os.abort()", "the process ended with -6"),
        ("pass", "the process printed ''"),
        ("print(1)", "the process printed '1\\n'"),
    ],
)
def test_check_kernels__what_the_child_may_do(
    monkeypatch: pytest.MonkeyPatch, code: str, error: str | None
) -> None:
    monkeypatch.setattr(doctor, "KERNEL_CHECK", code)
    checks = doctor.check_kernels(gpus(2))
    assert [check.uuid for check in checks] == ["GPU-0", "GPU-1"]
    assert [check.error for check in checks] == [error, error]
    assert error is not None or checks[0].seconds == 0.25


def test_check_kernels__every_child_sees_its_own_device(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; sys.exit(os.environ['CUDA_VISIBLE_DEVICES'])"
    monkeypatch.setattr(doctor, "KERNEL_CHECK", code)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert [check.error for check in doctor.check_kernels(gpus(2))] == ["GPU-0", "GPU-1"]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,0"


def test_check_kernels__a_hung_driver_does_not_hang_the_doctor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "KERNEL_CHECK", "import time; time.sleep(60)")
    begun = time.monotonic()
    checks = doctor.check_kernels(gpus(3), timeout=0.5)
    assert [check.error for check in checks] == ["no answer within 0.5 seconds"] * 3
    assert time.monotonic() - begun < 10


@pytest.mark.gpu
def test_check_kernels__on_the_gpus_of_this_machine() -> None:
    found = devices.survey()
    assert found.devices
    assert [check.error for check in doctor.check_kernels(found.devices)] == [None] * len(
        found.devices
    )


# ---- what is installed, processors, memory ----------------------------------------------------


def test_installed__finds_builds_wheels_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {
        "NumPy": "2.4.6", "nvidia.ml_py": "13.6", "cupy_cuda13x": "14.2.0",
        "cupy-cuda12x": "14.1.0", "cupy-xarray": "1", "nvidia-cuda-nvrtc-cu12": "12.9.86",
        "nvidia-cuda-runtime": "13.4.92", "nvidia-cuda-cupti": "13.0", "cuda-toolkit": "13.4.3",
    }  # fmt: skip
    found = [SimpleNamespace(metadata={"Name": n}, version=v) for n, v in there.items()]
    found.append(SimpleNamespace(metadata={"Name": None}, version=None))  # a damaged record
    monkeypatch.setattr(doctor, "distributions", lambda: found)
    here = doctor.installed()
    assert here.cupy == (Build("cupy-cuda12x", "14.1.0", 12), CU13)
    assert here.cuda == {
        "cuda-toolkit": "13.4.3",
        "nvidia-cuda-nvrtc-cu12": "12.9.86",
        "nvidia-cuda-runtime": "13.4.92",
    }
    assert here.headers
    assert here.versions["numpy"] == "2.4.6"
    assert here.versions["nvidia-ml-py"] == "13.6"
    assert here.versions["dask"] is None


def test_this_host__obeys_affinity_and_control_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask reads the limits; these are its answers on some machines."""
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(4)))
    monkeypatch.setattr(
        "psutil.virtual_memory", lambda: SimpleNamespace(total=16 * GIB, available=8 * GIB)
    )
    monkeypatch.setattr(doctor, "cpu_count", lambda: 4)
    monkeypatch.setattr(doctor, "memory_limit", lambda: 16 * GIB)
    assert doctor.this_host() == Host(4, "of 8, by affinity", 16 * GIB, 8 * GIB, None)
    monkeypatch.setattr(doctor, "cpu_count", lambda: 2)
    monkeypatch.setattr(doctor, "memory_limit", lambda: 4 * GIB)
    assert doctor.this_host() == Host(
        2, "of 8, by the control group", 4 * GIB, 4 * GIB, "of 16.0 GiB, by the control group"
    )


def test_this_host__is_this_one() -> None:
    host = doctor.this_host()
    assert host.threads >= 1
    assert 0 < host.free_bytes <= host.memory_bytes


@pytest.mark.process
def test_doctor__starts_no_cuda_and_compiles_nothing() -> None:
    code = (
        "import sys, multigpu.tools.examination as d; d.as_json(d.examine(kernel_check=False)); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"cupy", "numba", "pyarrow"}


def test_kernel_check__is_python() -> None:
    compile(doctor.KERNEL_CHECK, "kernel check", "exec")

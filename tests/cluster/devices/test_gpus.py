"""Which GPUs there are, told by a fake NVML; and what `--gpus` makes of them."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from pynvml import NVMLError

from multigpu.cluster.devices.gpus import Device, Finding, Survey, select, survey
from multigpu.cluster.errors import UsageError

GIB = 1 << 30
LOST = str(NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST))
FOUR = ["GPU-aaaa", "GPU-aabb", "GPU-bbbb", "GPU-cccc"]
THERE = "this machine has 0: NVIDIA H200 GPU-aaaa, 1: NVIDIA H200 GPU-aabb, 2: NVIDIA H200 GPU-bb"


@dataclass
class Gpu:
    """One GPU of the fake machine; `instances` of None: not in MIG mode."""

    uuid: str
    name: str = "NVIDIA H200"
    capability: tuple[int, int] = (9, 0)
    instances: list["Gpu | None"] | None = None
    lost: bool = False
    shared_memory: bool = False
    knows_mig: bool = True


@dataclass
class Machine:
    gpus: list[Gpu] = field(default_factory=list)
    error: Exception | None = None
    driver: str = "580.95.05"
    shutdowns: int = 0


def fake_nvml(machine: Machine) -> dict[str, Callable[..., Any]]:
    """Return functions by the names of NVML's, which answer as on that machine."""

    def unless(problem: str, happens: bool, answer: Any) -> Any:
        if happens:
            raise NVMLError(getattr(pynvml, f"NVML_ERROR_{problem}"))
        return answer

    def initialise() -> None:
        if machine.error:
            raise machine.error

    def handle(index: int) -> Gpu:
        gpu: Gpu = unless("GPU_IS_LOST", machine.gpus[index].lost, machine.gpus[index])
        return gpu

    def mig_mode(gpu: Gpu) -> Any:
        return unless("NOT_SUPPORTED", not gpu.knows_mig, [int(gpu.instances is not None), 0])

    def instance(gpu: Gpu, number: int) -> Any:
        found = (gpu.instances or [])[number]
        return unless("NOT_FOUND", found is None, found)

    def memory(gpu: Gpu) -> Any:
        sizes = SimpleNamespace(total=140 * GIB, free=139 * GIB)
        return unless("NOT_SUPPORTED", gpu.shared_memory, sizes)

    def shut_down() -> None:
        machine.shutdowns += 1

    return {
        "nvmlInit": initialise, "nvmlShutdown": shut_down,
        "nvmlSystemGetDriverVersion": lambda: machine.driver,
        "nvmlSystemGetCudaDriverVersion": lambda: 13010,
        "nvmlDeviceGetCount": lambda: len(machine.gpus), "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetMigMode": mig_mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda gpu: len(gpu.instances),
        "nvmlDeviceGetMigDeviceHandleByIndex": instance,
        "nvmlDeviceGetUUID": lambda gpu: gpu.uuid, "nvmlDeviceGetName": lambda gpu: gpu.name,
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetCudaComputeCapability": lambda gpu: gpu.capability,
    }  # fmt: skip


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine without GPUs and without CUDA_VISIBLE_DEVICES; tests change it."""
    built = Machine()
    for name, function in fake_nvml(built).items():
        monkeypatch.setattr(pynvml, name, function)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return built


@pytest.fixture
def four(machine: Machine) -> Machine:
    machine.gpus = [Gpu(uuid) for uuid in FOUR]
    return machine


def visible(found: Survey) -> list[str]:
    return [device.uuid for device in found.devices]


def test_survey__tells_all_about_a_gpu(machine: Machine) -> None:
    machine.gpus = [Gpu("GPU-1"), Gpu("GPU-2", knows_mig=False, shared_memory=True)]
    first = Device(0, "GPU-1", "NVIDIA H200", 140 * GIB, 139 * GIB, (9, 0), mig=False)
    second = Device(1, "GPU-2", "NVIDIA H200", 0, 0, (9, 0), mig=False)
    assert survey() == Survey(devices=(first, second), driver="580.95.05", cuda=(13, 1))
    assert machine.shutdowns == 1


@pytest.mark.parametrize(("error", "problem", "broken"), [
    ("LIBRARY_NOT_FOUND", r"no NVIDIA driver \(NVML library not found\)", False),
    ("DRIVER_NOT_LOADED", "installed but not loaded", True),
    ("LIB_RM_VERSION_MISMATCH", "driver and its library do not match", True),
    ("NO_PERMISSION", "no permission to use the NVIDIA driver", True),
    ("UNKNOWN", "NVML failed: Unknown Error", True),
    (OSError("libnvidia-ml.so.1: wrong ELF class"), "NVML failed: .* wrong ELF class", True),
    (AttributeError("nvmlInit"), "NVML failed: nvmlInit", True),
])  # fmt: skip
def test_survey__never_raises_and_says_what_is_wrong(
    machine: Machine, error: str | Exception, problem: str, broken: bool
) -> None:
    named = isinstance(error, str)
    machine.error = NVMLError(getattr(pynvml, f"NVML_ERROR_{error}")) if named else error
    found = survey()
    assert found.devices == ()
    assert found.problem
    assert found.problem.broken == broken
    assert found.problem.cure
    with pytest.raises(UsageError, match=f"there is no GPU: .*{problem}.*; cure: "):
        select("all", found)


@pytest.mark.parametrize(("gpus", "problem", "broken"), [
    ([], "the NVIDIA driver sees no GPU", False),
    ([Gpu("GPU-0", lost=True)], f"GPU 0 is there but does not answer: {LOST}", True),
    ([Gpu("GPU-0", instances=[None] * 7)],
     "the GPU is in MIG mode and has no MIG instance", False),
])  # fmt: skip
def test_survey__of_no_gpus(machine: Machine, gpus: list[Gpu], problem: str, broken: bool) -> None:
    machine.gpus = gpus
    found = survey()
    assert found.problem
    assert (found.problem.text, found.problem.broken) == (problem, broken)
    assert found.driver == "580.95.05"


def test_survey__shows_mig_instances(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    small = [Gpu("MIG-1", name="NVIDIA H200 MIG 1g.18gb"), None, Gpu("MIG-2")]
    machine.gpus = [Gpu("GPU-0"), Gpu("GPU-1", instances=small), Gpu("GPU-2")]
    found = survey()
    assert visible(found) == ["GPU-0", "MIG-1", "MIG-2", "GPU-2"]
    assert [device.index for device in found.devices] == [0, 1, 2, 3]
    assert [device.mig for device in found.devices] == [False, True, True, False]
    assert found.devices[1].compute_capability == (9, 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-2")
    found = survey()
    assert [(device.uuid, device.index) for device in found.devices] == [("MIG-2", 0)]
    assert [device.uuid for device in found.hidden] == ["GPU-0", "MIG-1", "GPU-2"]


def test_survey__a_lost_gpu_does_not_hide_the_others(four: Machine) -> None:
    four.gpus[1].lost = True
    found = survey()
    assert visible(found) == ["GPU-aaaa", "GPU-bbbb", "GPU-cccc"]
    (fault,) = found.faults
    assert (fault.text, fault.broken) == (f"GPU 1 is there but does not answer: {LOST}", True)
    assert found.problem is None


@pytest.mark.parametrize(("setting", "wanted"), [
    ("0", [0]),
    ("2,0", [2, 0]),
    (" 1 , 3 ", [1, 3]),
    ("GPU-cccc,GPU-aaaa", [3, 0]),
    ("GPU-c", [3]),
    ("gpu-B", [2]),
    ("", []),
    ("-1", []),
    ("NoDevFiles", []),
    ("0,2,-1,1", [0, 2]),  # CUDA's own example: nothing counts after a wrong entry
    ("1,9,2", [1]),
    ("0,99999999999999999999", [0]),
    ("GPU-aa", []),  # of two GPUs
    ("3,,1", [3]),
    ("0,1,0", []),  # CUDA shows none
    ("0,GPU-aaaa", []),
])  # fmt: skip
def test_survey__obeys_cuda_visible_devices_as_cuda_does(
    four: Machine, monkeypatch: pytest.MonkeyPatch, setting: str, wanted: list[int]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    found = survey()
    assert visible(found) == [FOUR[number] for number in wanted]
    assert [device.index for device in found.devices] == list(range(len(wanted)))
    assert [device.index for device in found.hidden] == sorted(set(range(4)) - set(wanted))
    if not wanted:
        text = f"all 4 GPUs are hidden by CUDA_VISIBLE_DEVICES={setting!r}"
        assert found.problem == Finding(text, "unset CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(("request_", "wanted"), [
    ("auto", [0, 1, 2, 3]), ("ALL", [0, 1, 2, 3]), ("none", []), ("0", [0]), ("3,1", [3, 1]),
    ("0-3", [0, 1, 2, 3]), ("1-1", [1]), ("3,0-1", [3, 0, 1]), (" 0 , 2 ", [0, 2]),
    ("GPU-cccc", [3]), ("GPU-b,0", [2, 0]), ("gpu-AABB", [1]),
])  # fmt: skip
def test_select__finds_what_is_asked_for(four: Machine, request_: str, wanted: list[int]) -> None:
    assert [device.index for device in select(request_, survey())] == wanted


@pytest.mark.parametrize(("request_", "message"), [
    ("9", f"^there is no GPU 9: {THERE}"),
    ("2-4", f"^there is no GPU 4: {THERE}"),
    ("0-999999999", "there is no GPU 999999999"),
    ("1,1", r"gpus 1,1 names GPU 1 \(GPU-aabb\) twice"),
    ("0-2,GPU-bbbb", r"names GPU 2 \(GPU-bbbb\) twice"),
    ("3-1", "gpus 3-1: the range runs backwards"),
    *((each, f"does not understand '{each}'")
      for each in ("", "-1", "1-", "²", "٣", "0-1-2", "cuda:0")),
    ("0,", "does not understand '': give auto, all, none, or a list such as 0,2-3"),
    ("0,all", "does not understand 'all'"),
    ("GPU-aa", "GPU-aa is the beginning of 2 UUIDs: GPU-aaaa, GPU-aabb"),
    ("GPU-dd", f"there is no GPU-dd: {THERE}"),
    ("MIG-1", "there is no MIG-1: this machine has 0: "),
])  # fmt: skip
def test_select__refuses_what_is_not_there(four: Machine, request_: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        select(request_, survey())
    assert "\n" not in str(caught.value)


def test_select__counts_the_visible_ones(four: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    found = survey()
    assert [device.uuid for device in select("0", found)] == ["GPU-cccc"]
    for request in ("2", "GPU-bb"):
        hidden = f"there is no .*{request}: .*; CUDA_VISIBLE_DEVICES hides GPU-aaaa, GPU-bbbb$"
        with pytest.raises(UsageError, match=hidden):
            select(request, found)


def test_select__without_a_gpu(machine: Machine) -> None:
    machine.error = NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    found = survey()
    assert select("auto", found) == select("none", found) == ()
    for request in ("0", "0-3", "GPU-1", "all"):
        message = r"there is no GPU.*: no NVIDIA driver .*; cure: install .*; or go without: gpus"
        with pytest.raises(UsageError, match=message):
            select(request, found)


@pytest.mark.process
def test_devices__imports_no_cuda() -> None:
    code = "import sys, multigpu.cluster.devices.gpus as d; d.survey(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded: set[Any] = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"cupy", "numba", "dask", "distributed", "dask_cuda", "numpy"}

"""The GPUs of this machine, by NVML alone: nothing here starts CUDA.

NVML counts the GPUs in PCI order, as nvidia-smi does. CUDA counts them so with
CUDA_DEVICE_ORDER=PCI_BUS_ID and otherwise puts faster ones first: give a process its GPU by UUID.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pynvml

from multigpu.cluster.errors import UsageError, option

VISIBLE = "CUDA_VISIBLE_DEVICES"
NUMBER = re.compile(r"[0-9]{1,9}")
NUMBERS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")  # 3 or 0-3


@dataclass(frozen=True)
class Device:
    """A GPU, or a MIG instance of one.

    index               number among the visible ones, as `--gpus` counts; for a hidden one its
                        number among all
    uuid                GPU-… or MIG-…
    total_bytes         device memory; 0 where the driver does not say (memory shared with the CPU)
    free_bytes          what no process holds at the time of the survey
    compute_capability  of the GPU; None where unknown
    mig                 whether it is a MIG instance
    """

    index: int
    uuid: str
    name: str
    total_bytes: int
    free_bytes: int
    compute_capability: tuple[int, int] | None
    mig: bool


@dataclass(frozen=True)
class Finding:
    """Finding about this machine, and what to do about it.

    broken   whether something present does not work (a loose driver, a lost GPU), rather than
             being absent or hidden
    no_gpus  whether no GPU is used because of it
    """

    text: str
    cure: str
    broken: bool = False
    no_gpus: bool = False


@dataclass(frozen=True)
class Survey:
    """GPUs as NVML and CUDA_VISIBLE_DEVICES describe them.

    devices  the visible ones, in the order of CUDA_VISIBLE_DEVICES where that is set
    driver   the driver's version, "580.95.05"; None where there is none
    cuda     the newest CUDA version the driver runs, (13, 0); None where unknown
    hidden   GPUs that CUDA_VISIBLE_DEVICES leaves out
    problem  why `devices` is empty; None where it is not
    faults   GPUs that are there but cannot be asked
    """

    devices: tuple[Device, ...] = ()
    driver: str | None = None
    cuda: tuple[int, int] | None = None
    hidden: tuple[Device, ...] = ()
    problem: Finding | None = None
    faults: tuple[Finding, ...] = ()


NO_DRIVER = Finding(
    "no NVIDIA driver (NVML library not found)",
    "install the NVIDIA driver; into a container, pass the GPUs (docker run --gpus all)",
)
NOT_LOADED = Finding(
    "the NVIDIA driver is installed but not loaded",
    "load it (modprobe nvidia) or restart the machine",
    broken=True,
)
MISMATCH = Finding(
    "the NVIDIA driver and its library do not match (updated while in use)",
    "restart the machine",
    broken=True,
)
NO_PERMISSION = Finding(
    "no permission to use the NVIDIA driver",
    "let this user read and write /dev/nvidia*",
    broken=True,
)
NO_GPU = Finding(
    "the NVIDIA driver sees no GPU",
    "see whether nvidia-smi shows one; into a container, pass them (docker run --gpus all)",
)
NO_INSTANCE = Finding(
    "the GPU is in MIG mode and has no MIG instance",
    "create instances (nvidia-smi mig -cgi … -C) or leave MIG mode",
)
BY_ERROR = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: NO_DRIVER,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: MISMATCH,
    pynvml.NVML_ERROR_NO_PERMISSION: NO_PERMISSION,
}


def survey() -> Survey:
    """Ask NVML, then CUDA_VISIBLE_DEVICES. Never raises: what goes wrong is the `problem`."""
    try:
        return _ask()
    except Exception as problem:  # noqa: BLE001 - a driver of another version may raise anything
        unknown = Finding(f"NVML failed: {problem}", "see whether nvidia-smi works", broken=True)
        return Survey(problem=BY_ERROR.get(getattr(problem, "value", None), unknown))


def select(request: str, survey: Survey) -> tuple[Device, ...]:
    """Return the devices that `--gpus REQUEST` means, in the order asked for.

    request  auto (all visible ones, or none), all, none, or a list of numbers, ranges and UUIDs
             (the beginning is enough): 0,2-3,GPU-5a1f…
    raises   UsageError for a device that is not there, or is named twice; the text says which are
             there
    """
    word = request.strip().lower()
    if word == "none":
        return ()
    if word == "auto" or (word == "all" and survey.devices):
        return survey.devices
    if word == "all":
        raise UsageError(f"there is no GPU: {_what_is_there(survey)}")
    chosen = [device for item in request.split(",") for device in _find(item.strip(), survey)]
    for place, device in enumerate(chosen):
        if device in chosen[:place]:
            raise UsageError(
                f"{option('gpus')} {request} names GPU {device.index} ({device.uuid}) twice"
            )
    return tuple(chosen)


def _find(item: str, survey: Survey) -> Sequence[Device]:
    """Return the devices that one item of a list means: a number, a range or a UUID."""
    if item[:4].upper() in ("GPU-", "MIG-"):
        found = _with_prefix(item, survey.devices)
        if len(found) == 1:
            return found
        if found:
            uuids = ", ".join(device.uuid for device in found)
            raise UsageError(f"{item} is the beginning of {len(found)} UUIDs: {uuids}")
        raise UsageError(f"there is no {item}: {_what_is_there(survey)}")
    if not (match := NUMBERS.fullmatch(item)):
        forms = "auto, all, none, or a list such as 0,2-3 or GPU-UUID"
        raise UsageError(f"{option('gpus')} does not understand {item!r}: give {forms}")
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high:
        raise UsageError(f"{option('gpus')} {item}: the range runs backwards")
    if high >= len(survey.devices):
        raise UsageError(f"there is no GPU {high}: {_what_is_there(survey)}")
    return survey.devices[low : high + 1]


def _with_prefix(start: str, devices: Sequence[Device]) -> list[Device]:
    return [device for device in devices if device.uuid.lower().startswith(start.lower())]


def _what_is_there(survey: Survey) -> str:
    """Return the visible devices in words, or why there is none."""
    if (why := survey.problem) is not None:
        return f"{why.text}; cure: {why.cure}; or go without: {option('gpus')} none"
    there = ", ".join(f"{each.index}: {each.name} {each.uuid}" for each in survey.devices)
    hidden = ", ".join(each.uuid for each in survey.hidden)
    return f"this machine has {there}" + f"; {VISIBLE} hides {hidden}" * bool(hidden)


def _ask() -> Survey:
    pynvml.nvmlInit()
    try:
        count = pynvml.nvmlDeviceGetCount()
        found, faults = _all_devices(count)
        driver = pynvml.nvmlSystemGetDriverVersion()
        cuda = _answer(pynvml.nvmlSystemGetCudaDriverVersion)
    finally:
        pynvml.nvmlShutdown()
    devices, hidden = _split(found)
    return Survey(
        devices=tuple(replace(device, index=place) for place, device in enumerate(devices)),
        hidden=tuple(hidden),
        driver=driver,
        cuda=None if cuda is None else (cuda // 1000, cuda % 1000 // 10),
        problem=None if devices else _why_none(hidden, faults, count),
        faults=tuple(faults),
    )


def _why_none(hidden: list[Device], faults: list[Finding], gpus: int) -> Finding:
    """Return why no device is visible although NVML answers."""
    if hidden:
        number = "the only GPU is" if len(hidden) == 1 else f"all {len(hidden)} GPUs are"
        setting = f"{VISIBLE}={os.environ.get(VISIBLE)!r}"
        return Finding(f"{number} hidden by {setting}", f"unset {VISIBLE}")
    if faults:
        return faults[0]
    return NO_INSTANCE if gpus else NO_GPU


def _all_devices(gpus: int) -> tuple[list[Device], list[Finding]]:
    """Return the devices (none or several of a GPU in MIG mode), and what cannot be asked."""
    found: list[Device] = []
    faults: list[Finding] = []
    for index in range(gpus):
        try:
            found += list(_devices_of_gpu(index))
        except pynvml.NVMLError as problem:
            text = f"GPU {index} is there but does not answer: {problem}"
            cure = "see what nvidia-smi says; a restart may help"
            faults.append(Finding(text, cure, broken=True))
    return found, faults


def _devices_of_gpu(index: int) -> Iterator[Device]:
    """Yield the GPU of this number, or its instances where it is in MIG mode."""
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    mode = _answer(pynvml.nvmlDeviceGetMigMode, gpu)  # the current one, and the pending one
    if not mode or mode[0] != pynvml.NVML_DEVICE_MIG_ENABLE:
        yield _device(gpu, gpu, index)
        return
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        instance = _answer(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, number)
        if instance is not None:  # else an empty slot
            yield _device(instance, gpu, index)


def _device(handle: Any, gpu: Any, index: int) -> Device:
    memory = _answer(pynvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _answer(pynvml.nvmlDeviceGetCudaComputeCapability, gpu)
    return Device(
        index=index,
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        name=pynvml.nvmlDeviceGetName(handle),
        total_bytes=memory.total if memory else 0,
        free_bytes=memory.free if memory else 0,
        compute_capability=tuple(capability) if capability else None,
        mig=handle is not gpu,
    )


def _answer(question: Callable[..., Any], *about: Any) -> Any:
    """Return what an NVML function answers; None where the driver or the device does not know."""
    try:
        return question(*about)
    except pynvml.NVMLError:
        return None


def _split(everything: list[Device]) -> tuple[list[Device], list[Device]]:
    """Return the devices that CUDA_VISIBLE_DEVICES leaves, and those that it hides."""
    setting = os.environ.get(VISIBLE)
    if setting is None:
        return everything, []
    devices = list(_listed(setting, everything))
    if len({device.uuid for device in devices}) < len(devices):  # CUDA then sees none at all
        devices = []
    return devices, [device for device in everything if device not in devices]


def _listed(setting: str, everything: list[Device]) -> Iterator[Device]:
    """Yield the devices that a list names, up to its first entry that names none, as CUDA does."""
    for entry in map(str.strip, setting.split(",")):
        if NUMBER.fullmatch(entry):
            named = [device for device in everything if device.index == int(entry)]
        else:
            named = _with_prefix(entry, everything) if entry else []
            named = named if len(named) == 1 else []
        if not named:
            return
        yield from named

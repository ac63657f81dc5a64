"""A `cuda.py` of `kernels` and its kernels on a machine without a GPU.

    gpu, cuda = load("scan")    # a GPU of emulation/device.py, and multigpu.kernels.scan.cuda on it
    cuda.ExactScanner(patterns, rules).scan(chunk)

The kernels are compiled with g++ and `cuda_emulator.hpp`, once for each choice of macros, and kept
(`built.py`). EMULATION_FLAGS in the environment is given to g++, too: "--coverage" says what was
run.
"""

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from emulation.device import Gpu, Kernel, Library, fake_cupy
from support.built import built

from multigpu.kernels.device import launch

HEADER = Path(__file__).with_name("cuda_emulator.hpp")
COMPILER = "g++"
# Imported by a `cuda.py`; they may be there with the real CuPy.
WITH_CUPY = ("device.pinned", "device.upload", "scan.cuda_sweep")
JITS = ("numba", "llvmlite")  # modules that register themselves, which works once only
FLAGS = (
    *("-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE"),
    "-ffp-contract=off",  # as --fmad=false
    *("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
)
SHARED = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")  # its size is the launch's
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(')

_launching = threading.Lock()  # two GPUs have locks of their own, but the stacks are the process's
_made_stacks: list[int] = []


class EmulationError(RuntimeError):
    """A kernel did what it must not do on a GPU."""


class _Argument(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_void_p), ("size", ctypes.c_uint), ("is_pointer", ctypes.c_uint))


def load(
    kernel: str, gpu: Gpu | None = None, emulated: dict[str, ModuleType] | None = None
) -> tuple[Gpu, Any]:
    """A GPU, and the module `cuda` of a folder of `kernels` on it; the real one is not touched.

    gpu: one that another kernel is on already, so that they share arrays
    emulated: modules that it imports, which are on the GPU already
    """
    gpu = gpu or Gpu(compiled)
    cupy = fake_cupy(gpu)
    parts = (cupy, cupy.cuda, cupy.cuda.runtime)
    path = Path(launch.__file__).parents[1] / kernel / "cuda.py"
    name = f"emulation.{kernel.replace('/', '_')}_cuda"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    with patch.dict(sys.modules, {part.__name__: part for part in parts} | (emulated or {})):
        for each in WITH_CUPY:
            sys.modules.pop(f"multigpu.kernels.{each}", None)
        spec.loader.exec_module(module)
        loaded = {name: each for name, each in sys.modules.items() if name.startswith(JITS)}
    sys.modules.update(loaded)
    return gpu, module


def why_not() -> str:
    """Why nothing can be emulated here; empty where it can."""
    if not sys.platform.startswith("linux"):
        return "the emulator of CUDA kernels is for Linux"
    return "" if shutil.which(COMPILER) else f"no {COMPILER} to compile the kernels with"


def compiled(code: str, options: Sequence[str]) -> Library:
    """The kernels of a source, compiled for this machine; `options` as for NVRTC."""
    names = KERNEL.findall(code)
    code = SHARED.sub(r"static \1*& \2 = reinterpret_cast<\1*&>(emulator::dynamic_shared);", code)
    entries = "".join(f"EMULATED_KERNEL({name})\n" for name in names)
    text = f'#include "{HEADER}"\n#line 1 "kernels"\n{code}\n{entries}'
    defines = [option for option in options if option.startswith("-D")]
    flags = [*FLAGS, *defines, *os.environ.get("EMULATION_FLAGS", "").split()]

    def make(library: Path) -> None:
        command = [COMPILER, *flags, "-x", "c++", "-", "-o", str(library)]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EmulationError(f"{' '.join(command)}\n{done.stderr}")

    library = built("emulated", ".so", [text, HEADER.read_text(), _compiler(), *flags], make)
    loaded = ctypes.CDLL(str(library))
    return lambda name: _kernel(loaded[f"launch_{name}"], _stacks(loaded))


@cache
def _compiler() -> str:
    """Return the compiler's version and the machine it compiles for."""
    command = [COMPILER, "-v"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def _stacks(loaded: ctypes.CDLL) -> int:
    """Return the address of the stacks of fibers, which one launch at a time has."""
    if not _made_stacks:
        make = loaded.emulated_stacks
        make.restype = ctypes.c_void_p
        made = make()
        if made is None:
            raise EmulationError("no memory for the stacks of threads")
        _made_stacks.append(made)
    return _made_stacks[0]


def _kernel(entry: Any, stacks: int) -> Kernel:
    entry.restype = ctypes.c_char_p
    counts, given = (ctypes.c_uint,) * 3, (ctypes.POINTER(_Argument), ctypes.c_uint)
    entry.argtypes = (*counts, *given, ctypes.c_ulonglong, ctypes.c_void_p)

    def launch(
        blocks: int, threads: int, shared: int, arguments: Sequence[tuple[bytes, bool]], seed: int
    ) -> None:
        buffers = [(ctypes.c_ulonglong * (-(-len(raw) // 8)))() for raw, _ in arguments]
        given = (_Argument * len(arguments))()
        for argument, buffer, (raw, is_pointer) in zip(given, buffers, arguments, strict=True):
            ctypes.memmove(buffer, raw, len(raw))
            argument.bytes = ctypes.addressof(buffer)
            argument.size, argument.is_pointer = len(raw), is_pointer
        with _launching:
            error = entry(blocks, threads, shared, given, len(arguments), seed, stacks)
        if error is not None:
            raise EmulationError(error.decode())

    return launch

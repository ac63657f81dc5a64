"""CUDA C++ compiled by NVRTC without a GPU, for every architecture.

The compiler is that of the wheel `nvidia-cuda-nvrtc-cu12`, called through ctypes, and the headers
those of `nvidia-cuda-runtime-cu12`: never the machine's toolkit, which would hide a missing header.

    cubin = compile_cubin(source, "sm_90", {"SAMPLES": 50})

What those wheels do not hold is not found, `<cuda/std/...>` and `<cooperative_groups.h>` above all.
A template is compiled only where the source instantiates it.
"""

import ctypes
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import files, version
from pathlib import Path
from typing import Any

import pytest

from support.built import built

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
WHEELS = ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12")  # compiler and headers


class CompileError(Exception):
    """NVRTC refused the source; the text is the compiler's log."""


def compile_cubin(source: str, arch: str, defines: Mapping[str, object] | None = None) -> bytes:
    """Compile a source for `arch` ("sm_90"); each of `defines` is a macro (-Dname=value).

    What was compiled before, of the same text by the same compiler, is kept (`built.py`).
    """
    options = [f"--gpu-architecture={arch}", "--std=c++17", f"--include-path={_headers()}"]
    options += [f"--define-macro={name}={value}" for name, value in (defines or {}).items()]

    def make(path: Path) -> None:
        path.write_bytes(_compile(source, options))

    return built("cubins", ".cubin", [source, *options, *map(version, WHEELS)], make).read_bytes()


def _compile(source: str, options: list[str]) -> bytes:
    arguments = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    nvrtc, program = _library(), ctypes.c_void_p()
    handle = ctypes.byref(program)
    _check(nvrtc.nvrtcCreateProgram(handle, source.encode(), b"kernel.cu", 0, None, None))
    try:
        status = nvrtc.nvrtcCompileProgram(program, len(options), arguments)
        if status:
            log = _bytes(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            problem = log.rstrip(b"\0\n").decode() or _name(status)
            raise CompileError(f"{' '.join(options)}\n{problem}")
        return _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
    finally:
        nvrtc.nvrtcDestroyProgram(handle)


def _bytes(size_of: Any, get: Any, program: ctypes.c_void_p) -> bytes:
    """Return bytes by two calls of NVRTC: one for their number, one for themselves."""
    size = ctypes.c_size_t()
    _check(size_of(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(get(program, buffer))
    return buffer.raw


def _check(status: int) -> None:
    if status:
        raise RuntimeError(_name(status))


def _name(status: int) -> str:
    return str(_library().nvrtcGetErrorString(status).decode())


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(_of_wheel(WHEELS[0], "libnvrtc.so.*")))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


@cache
def _headers() -> Path:
    return _of_wheel(WHEELS[1], "cuda_fp16.h").parent


def _of_wheel(distribution: str, pattern: str) -> Path:
    """Return the first file of an installed wheel whose name matches."""
    if sys.platform != "linux":
        pytest.skip("the wheels of NVIDIA's compiler in the dev extra are for Linux only")
    for file in files(distribution) or ():
        if file.match(pattern):
            return Path(str(file.locate()))
    raise FileNotFoundError(f"{distribution} has no {pattern}")

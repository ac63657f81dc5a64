"""Sources, launches and struct arguments of kernels, for every `cuda.py`; CuPy is not imported."""

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled import caches

POINTER = "<u8"
KERNELS = Path(__file__).resolve().parents[1]
INCLUDE = re.compile(r'#include "(.+)"\n')

caches.secure_cupy()  # before any kernel is compiled, or loaded as it was


def source(kernel: str, name: str) -> str:
    """Return a file of a kernel's folder with its includes put in place, each once.

    Includes are relative to the file that has them, as in C.
    """
    seen: set[Path] = set()

    def expanded(path: Path) -> str:
        if path in seen:
            return ""
        seen.add(path)
        return INCLUDE.sub(
            lambda include: expanded((path.parent / include[1]).resolve()), path.read_text()
        )

    return expanded(KERNELS / kernel / name)


def launch(
    module: Any, name: str, threads: int, block: int, *arguments: Any, shared: int = 0
) -> None:
    """Queue a kernel on the current stream, with at least this many threads, `block` a block."""
    launch_blocks(module, name, -(-threads // block), block, *arguments, shared=shared)


def launch_blocks(
    module: Any, name: str, blocks: int, block: int, *arguments: Any, shared: int = 0
) -> None:
    """Queue a kernel with this many blocks, each with `shared` bytes; nothing is done for none."""
    if blocks:
        function = module.get_function(name)
        if shared:  # beyond 48 KiB it must be announced
            function.max_dynamic_shared_size_bytes = shared
        function((blocks,), (block,), arguments, shared_mem=shared)


def struct(dtype: np.dtype[Any], **fields: Any) -> NDArray[Any]:
    """Return a kernel's struct: device arrays become their addresses, None a null pointer."""
    out = np.zeros((), dtype)
    for name, value in fields.items():
        if value is not None:
            # Asked of its type: of an array it would be made.
            on_device = hasattr(type(value), "__cuda_array_interface__")
            out[name] = value.data.ptr if on_device else value
    return out


def usable(counts: Any) -> Any:
    """Return the device array. Raises TypeError where a kernel cannot read it as it lies there."""
    if counts.dtype not in (np.int32, np.float64) or not counts.flags.c_contiguous:
        raise TypeError("counts on a device must be int32 or float64 and C-contiguous")
    return counts

"""AutoGrid 4's maps on the current GPU: `maps.cu` through CuPy; the bytes are those of `cpu.py`."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, launch, source, struct
from multigpu.kernels.maps.autogrid import DEFINES, MapInputs, prepare
from multigpu.kernels.maps.types import GridBox, Maps, Receptor

THREADS = 256
COUNTS = ("n_atoms", "n_donors", "n_probes", "nx", "ny", "nz")
INPUTS = np.dtype(
    [(name, POINTER) for name in MapInputs._fields] + [(name, "<i4") for name in COUNTS]
)


@cache
def _module() -> Any:
    defines = [f"-D{name}={value}" for name, value in DEFINES.items()]
    code = source("maps", "maps.cu")
    return cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false", *defines))


def compute_maps(receptor: Receptor, box: GridBox, types: Sequence[str]) -> Maps:
    """Return what `multigpu.kernels.maps.compute_maps` does."""
    inputs = prepare(receptor, box, types)
    counts = (len(receptor), len(inputs.donors), len(types), *box.shape)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        arrays = inputs._replace(atoms=inputs.atoms.view(np.uint8))._asdict()
        held = {name: cupy.asarray(array) for name, array in arrays.items()}
        on_device = struct(INPUTS, **held, **dict(zip(COUNTS, counts, strict=True)))
        maps = cupy.empty((len(types) + 2, *box.shape), np.float32)
        threads = prod(box.shape) * (len(types) + 1)
        launch(_module(), "compute_maps", threads, THREADS, on_device, maps)
        values = maps.get(stream)
    return dict(zip([*types, "e", "d"], values, strict=True))

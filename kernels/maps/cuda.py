"""AutoGrid 4's maps on the current GPU: `maps.cu` through CuPy; the bytes are those of `cpu.py`."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, launch_blocks, struct
from multigpu.kernels.device.sources import source
from multigpu.kernels.maps.autogrid import ENTRIES, prepare
from multigpu.kernels.maps.blocks import DEFINES, NODES, SIDE, blocks_of, lattice_of
from multigpu.kernels.maps.types import GridBox, Maps, Receptor

_POINTERS = (
    *("places", "charges", "axes", "normals", "volumes", "solvations", "kinds", "roles", "powers"),
    *("pairs", "screening", "water", "far", "ramp", "bonds"),
    *("probe_volumes", "probe_solvations", "nodes", "weights"),
)
_SCENE = np.dtype(
    [(name, POINTER) for name in _POINTERS]
    + [("halves", "<f8", 3), ("spacing", "<f8"), ("reach", "<f8")]
    + [(name, "<i4") for name in ("atoms", "probes", "entries", "n_kinds")]
    + [("points", "<i4", 3), ("blocks", "<i4", 3)]
)


@cache
def _module() -> Any:
    defines = [f"-D{name}={value}" for name, value in DEFINES.items()]
    code = source("maps", "maps.cu")
    return cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false", *defines))


def compute_maps(receptor: Receptor, box: GridBox, types: Sequence[str]) -> Maps:
    """Return what `multigpu.kernels.maps.compute_maps` does."""
    atoms, tables = prepare(receptor, box, types)
    lattice, blocks = lattice_of(box), blocks_of(box)
    arrays = (
        atoms._asdict() | tables._asdict() | {"nodes": lattice.nodes, "weights": lattice.weights}
    )
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        held = {name: cupy.asarray(array) for name, array in arrays.items()}
        numbers = {"halves": lattice.halves, "spacing": lattice.spacing, "reach": lattice.reach}
        numbers |= {"atoms": len(receptor), "probes": len(types), "entries": ENTRIES}
        numbers |= {"n_kinds": len(tables.bonds), "points": box.shape, "blocks": blocks}
        scene = struct(_SCENE, **held, **numbers)
        nodes = len(NODES) ** 3
        fields = cupy.empty((prod(blocks), nodes))
        launch_blocks(_module(), "far_fields", prod(blocks), nodes, scene, fields)
        maps = cupy.empty((len(types) + 2, *box.shape), np.float32)
        count = prod(blocks) * (len(types) + 1)
        launch_blocks(_module(), "compute_maps", count, SIDE**3, scene, fields, maps)
        values = maps.get(stream)
    return dict(zip([*types, "e", "d"], values, strict=True))

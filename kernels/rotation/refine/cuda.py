"""The pattern search on a GPU: `refine.cu` through CuPy. All placements share a launch."""

from dataclasses import replace

import cupy
import numpy as np

from multigpu.kernels.device.launch import POINTER, struct
from multigpu.kernels.rotation.cuda import (
    LIGANDS,
    DeviceField,
    copy_together,
    kernel,
    variant_options,
)
from multigpu.kernels.rotation.refine import pattern
from multigpu.kernels.rotation.types import Field, Ligands, Placements

_PLACED = ("bodies", "matrices", "centroids", "origin", "directions")
_START = np.dtype([*LIGANDS.descr, *((name, POINTER) for name in _PLACED)])


class Refiner:
    """Moves placements of bodies uphill in one field, on the current device.

    Safe to use from several threads at once: each has a stream of its own.
    """

    def __init__(self, field: Field) -> None:
        self.field, self._there = field, DeviceField.of(field)
        self._options = {
            n: variant_options(field, n, None, **pattern.constants()) for n in (1, 2, 3)
        }
        with self._there.stream() as stream:
            self._directions = cupy.asarray(pattern.directions())
            stream.synchronize()

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        if not len(found):
            return found
        climb = kernel("refine/refine.cu", "climb", self._options[bodies.channels.shape[1]])
        with self._there.device, self._there.stream() as stream:
            copied, addresses = copy_together(
                offsets=bodies.offsets,
                places=bodies.relative,
                weights=bodies.weights,
                bodies=found.ligand,
                matrices=found.matrix,
                centroids=found.place,
                origin=self.field.origin,
                channels=bodies.channels,  # the narrower type comes last, so that all are aligned
            )
            start = struct(_START, **addresses, directions=self._directions)
            ends = cupy.empty((len(found), 13), np.float64)
            climb((len(found),), (pattern.TRIALS,), (self._there.grid, start, ends))
            columns = np.split(cupy.asnumpy(ends, stream=stream), [1, 10], axis=1)
            del copied  # its addresses were in use until here
        score, matrix, place = map(np.ascontiguousarray, columns)
        return replace(found, score=score[:, 0], matrix=matrix.reshape(-1, 3, 3), place=place)

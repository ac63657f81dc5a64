"""The pattern search on a GPU: `refine.cu` through CuPy. All placements share a launch."""

from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation.cuda import DeviceField, kernel, variant_options
from multigpu.kernels.rotation.refine import pattern
from multigpu.kernels.rotation.types import Field, Ligands, Placements, check


class Refiner:
    """Moves placements of bodies uphill in one field, on the current device.

    Safe to use from several threads at once: each has a stream of its own.
    """

    def __init__(self, field: Field) -> None:
        self.field, self._there = field, DeviceField(field)
        self._options = {
            n: variant_options(field, n, None, **pattern.constants()) for n in (1, 2, 3)
        }
        with self._there.stream() as stream:
            self._fixed = cupy.asarray(field.origin), cupy.asarray(pattern.directions())
            stream.synchronize()

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        """Return what `reference.Refiner.refine` does."""
        check(self.field, bodies)
        if not len(found):
            return found
        climb = kernel("refine/refine.cu", "climb", self._options[bodies.channels.shape[1]])
        about = (bodies.offsets, bodies.relative, bodies.channels, bodies.weights)
        with self._there.device, self._there.stream() as stream:
            there = [_copied(array) for array in about]
            moved = [_copied(array) for array in (found.matrix, found.place, found.score)]
            arguments = (self._there.grid, *there, *self._fixed, _copied(found.ligand), *moved)
            climb((len(found),), (pattern.TRIALS,), arguments)
            matrix, place, score = (cupy.asnumpy(array, stream=stream) for array in moved)
        return replace(found, score=score, matrix=matrix, place=place)


def _copied(array: NDArray[Any]) -> Any:
    return cupy.asarray(np.ascontiguousarray(array))

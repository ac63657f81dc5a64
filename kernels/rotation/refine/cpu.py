"""The pattern search on a CPU: that of `reference.py`, whose trials are scored in Numba."""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.cpu import Body, buffers, field_arrays, score_poses
from multigpu.kernels.rotation.refine import reference
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import Field, Ligands


class Refiner(reference.Refiner):
    """Moves placements of bodies uphill in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field) -> None:
        super().__init__(field)
        self.grid = field_arrays(field)

    def scores(self, bodies: Ligands, body: Indices, matrices: Floats, places: Floats) -> Floats:
        """Return the scores of trials, as those of the reference."""
        scores, shifts = np.empty(places.shape[:2]), places - self.field.origin
        atoms = Body(np.zeros(3), bodies.relative, bodies.channels, bodies.weights)
        trials = (matrices, shifts, scores, buffers())
        _score(self.grid, atoms, bodies.offsets, body, *trials)
        return scores


@jit_no_alloc
def _score(
    grid: Any, atoms: Any, offsets: Any, numbers: Any, matrices: Any, shifts: Any, scores: Any,
    room: Any,
) -> Any:  # fmt: skip
    """Set the scores of the trials of each placement. atoms: those of all bodies, as one body."""
    for k in range(len(numbers)):
        begin, end = offsets[numbers[k]], offsets[numbers[k] + 1]
        places, channels = atoms.places[begin:end], atoms.channels[begin:end]
        body = Body(atoms.start, places, channels, atoms.weights[begin:end])
        score_poses(grid, body, matrices[k], shifts[k], scores[k], room)

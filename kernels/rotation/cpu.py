"""The search on a CPU: in Numba, one thread a call, without the GIL; every pose in float64.

The operations are those of `reference.py`, in their order.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.thinning import Shortlist
from multigpu.kernels.rotation.types import PENALTY, Field, Ligands, Poses, PoseSearch, split

AT_ONCE = 1 << 14  # poses that are scored before the best are listed
BLOCK = 256  # poses that are scored together; what they need stays in the nearest cache


class FieldArrays(NamedTuple):
    """The field. values: float32[channels, nodes]; per_unit: 1 / spacing.

    ends: whether an atom outside does not score as at the border; penalty: what it scores instead
    """

    values: NDArray[np.float32]
    shape: NDArray[np.int64]
    per_unit: Floats
    linear: bool
    ends: bool
    penalty: bool
    middle: Floats
    spacing: Floats


def field_arrays(field: Field) -> FieldArrays:
    """Return a field as the functions here take it."""
    return FieldArrays(
        values=field.values.reshape(len(field.values), -1),
        shape=np.array(field.shape),
        per_unit=1 / field.spacing,
        linear=field.interpolation == "linear",
        ends=field.outside != "clamp",
        penalty=field.outside == "penalty",
        middle=field.middle,
        spacing=field.spacing,
    )


class Body(NamedTuple):
    """A ligand. start: the target from the origin, in units of the spacing; places: its atoms'."""

    start: Floats
    places: Floats
    channels: NDArray[np.int32]
    weights: Floats

    @classmethod
    def of(cls, ligands: Ligands, number: int, start: Floats) -> "Body":
        atoms = slice(*ligands.offsets[number : number + 2])
        return cls(start, ligands.relative[atoms], ligands.channels[atoms], ligands.weights[atoms])


class PoseBuffers(NamedTuple):
    """Memory for a block of poses; float64 but for the cells."""

    turns: Floats  # [12, BLOCK] matrices and shifts, from places of atoms to those in the grid
    at: Floats  # [3, BLOCK] places of an atom in the grid, then in their cells
    cells: NDArray[np.uint32]  # [BLOCK] lowest nodes of cells, or nearest nodes
    inside: Floats  # [BLOCK] 1 inside of the grid, else 0
    beyond: Floats  # [BLOCK] what is scored outside
    sums: Floats  # [BLOCK] scores of an atom


class PoseSearcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: PoseSearch) -> None:
        self.field, self.search = field, search
        self.grid = field_arrays(field)

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        span = range(self.search.stop) if span is None else span
        room = buffers()
        starts = (self.search.targets(ligands) - self.field.origin) * self.grid.per_unit
        # Distances are the kernels' to the last bit, whatever the target is.
        found, search = [], replace(self.search, center=(0.0, 0.0, 0.0))
        for number, start in enumerate(starts):
            list_into = partial(self._list_into, Body.of(ligands, number, start), span, room)
            listed = Shortlist(ligands[number : number + 1], search)
            found.append(listed.best(list_into).moved(number))
        return Poses.joined(found)

    def _list_into(self, body: Body, span: range, room: PoseBuffers, listed: Shortlist) -> None:
        """List the poses in ascending order, so that later ones with equal scores are worse."""
        for part in split(span, AT_ONCE):
            poses, scores = self.score(body, part, room)
            better = np.flatnonzero(scores > listed.band[1])
            found = Poses(np.zeros(len(better), np.int64), poses[better], scores[better])
            listed.add(listed.free(found))

    def score(self, body: Body, part: range, room: PoseBuffers) -> tuple[Indices, Floats]:
        """Return int64[k], those of a part that repeat no others, and float64[k], their scores."""
        poses = np.arange(part.start, part.stop)
        poses = poses[self.search.rotations.is_first(poses // self.search.shifts.count)]
        scores = np.empty(len(poses))
        score_poses(self.grid, body, *self.search.placements(poses), scores, room)
        return poses, scores


def buffers() -> PoseBuffers:
    turns, at, cells = np.empty((12, BLOCK)), np.empty((3, BLOCK)), np.empty(BLOCK, np.uint32)
    return PoseBuffers(turns, at, cells, *np.empty((3, BLOCK)))


# A block of poses at a time, one atom after the other. The loops over the block are simple ones,
# which LLVM makes vectors of.


@jit_no_alloc
def score_poses(grid: Any, body: Any, matrices: Any, shifts: Any, scores: Any, room: Any) -> Any:
    """Set the scores of poses, float64[poses], from their matrices and shifts."""
    for first in range(0, scores.shape[0], BLOCK):
        block = scores[first : first + BLOCK]
        for j in range(block.shape[0]):
            block[j] = 0.0
            for axis in range(3):
                per_unit, shift = grid.per_unit[axis], shifts[first + j, axis]
                for k in range(3):
                    room.turns[3 * axis + k, j] = matrices[first + j, axis, k] * per_unit
                room.turns[9 + axis, j] = body.start[axis] + shift * per_unit
        for atom in range(body.places.shape[0]):
            _add_atom(grid, body, atom, block, room)


@jit_no_alloc
def _add_atom(grid: Any, body: Any, atom: Any, scores: Any, room: Any) -> Any:
    size = scores.shape[0]
    _locate(grid, body.places[atom], size, room)
    for j in range(size):
        room.sums[j] = 0.0
    for term in range(body.weights.shape[1]):
        values, weight = grid.values[body.channels[atom, term]], body.weights[atom, term]
        if grid.linear:
            _add_between(grid.shape, values, weight, size, room)
        else:
            for j in range(size):
                value = values[room.cells[j]] if room.inside[j] > 0.0 else room.beyond[j]
                room.sums[j] += value * weight
        for j in range(size):
            room.beyond[j] = 0.0  # only an atom's first term has the penalty
    for j in range(size):
        scores[j] += room.sums[j]


@jit_no_alloc
def _locate(grid: Any, place: Any, size: Any, room: Any) -> Any:
    """Set the places of an atom in the grid, and what it scores where it is outside."""
    x, y, z = place[0], place[1], place[2]
    turns, inside, beyond, cells = room.turns, room.inside, room.beyond, room.cells
    for j in range(size):
        inside[j], beyond[j], cells[j] = 1.0, 0.0, np.uint32(0)
    for axis in range(3):
        nodes, row = grid.shape[axis], room.at[axis]
        last, middle, spacing = np.float64(nodes - 1), grid.middle[axis], grid.spacing[axis]
        a, b, c = turns[3 * axis], turns[3 * axis + 1], turns[3 * axis + 2]
        start = turns[9 + axis]
        for j in range(size):
            row[j] = (a[j] * x + b[j] * y) + (c[j] * z + start[j])
        if grid.ends:
            for j in range(size):
                away = (row[j] - middle) * spacing
                beyond[j] += away * away
                if row[j] < 0.0 or row[j] > last:
                    inside[j] = 0.0
        # In a cell the last node counts as its far end; else the nearest node is taken.
        half, highest = (0.0, np.int32(nodes - 2)) if grid.linear else (0.5, np.int32(nodes - 1))
        for j in range(size):
            within = min(max(row[j], 0.0), last)
            cell = min(np.int32(within + half), highest)
            row[j] = within - cell
            cells[j] = cells[j] * np.uint32(nodes) + np.uint32(cell)
    factor = -PENALTY if grid.penalty else 0.0
    for j in range(size):
        beyond[j] *= factor


@jit_no_alloc
def _add_between(shape: Any, values: Any, weight: Any, size: Any, room: Any) -> Any:
    """Add one term of an atom, by trilinear interpolation."""
    row, plane = np.uint32(shape[2]), np.uint32(shape[1] * shape[2])
    for j in range(size):
        i, x, y, z = room.cells[j], room.at[0, j], room.at[1, j], room.at[2, j]
        low = between(along(values, i, z), along(values, i + row, z), y)
        i += plane
        high = between(along(values, i, z), along(values, i + row, z), y)
        value = between(low, high, x) if room.inside[j] > 0.0 else room.beyond[j]
        room.sums[j] += value * weight


@jit_no_alloc
def along(values: Any, i: Any, fraction: Any) -> Any:
    low, high = np.float64(values[i]), np.float64(values[i + np.uint32(1)])
    return between(low, high, fraction)


@jit_no_alloc
def between(low: Any, high: Any, fraction: Any) -> Any:
    return low + fraction * (high - low)

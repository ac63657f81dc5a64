"""The pattern search on a CPU: in Numba, one thread a call, without the GIL."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation import cpu_poses
from multigpu.kernels.rotation.cpu_poses import Body, field_arrays
from multigpu.kernels.rotation.refine import pattern
from multigpu.kernels.rotation.refine.pattern import GROUPS, TRIALS, directions
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import Field, Ligands, Placements, check

SHARE = TRIALS // GROUPS  # trials of a group


class Refiner:
    """Moves placements of bodies uphill in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field) -> None:
        self.field, self.grid = field, field_arrays(field)

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        """Return what `reference.Refiner.refine` does."""
        check(self.field, bodies)
        score, matrix, place = found.score.copy(), found.matrix.copy(), found.place.copy()
        buffers, room = _buffers(), cpu_poses.room()
        for k, number in enumerate(found.ligand):
            body = Body.of(bodies, int(number), np.zeros(3))
            fixed = (self.grid, body, self.field.origin, directions())
            score[k] = climb(*fixed, matrix[k], place[k], buffers, room)
        return replace(found, score=score, matrix=matrix, place=place)


class ClimbBuffers(NamedTuple):
    """Memory for a batch of trials, float64 but for the winners."""

    matrices: Floats  # [TRIALS, 3, 3]
    places: Floats  # [TRIALS, 3] Å
    shifts: Floats  # [TRIALS, 3] from the origin of the field
    scores: Floats  # [TRIALS]
    winners: Indices  # [GROUPS] the best trial of each group
    metric: Floats  # [6, 6]
    change: Floats  # [6, 6]
    move: Floats  # [6]


def _buffers() -> ClimbBuffers:
    trials = (np.empty((TRIALS, 3, 3)), np.empty((TRIALS, 3)), np.empty((TRIALS, 3)))
    squares = (np.empty((6, 6)), np.empty((6, 6)), np.empty(6))
    return ClimbBuffers(*trials, np.empty(TRIALS), np.empty(GROUPS, np.int64), *squares)


@jit_no_alloc
def climb(
    grid: Any, body: Any, origin: Any, tables: Any, matrix: Any, place: Any, buffers: Any, room: Any
) -> Any:
    """Move a placement uphill, in its arrays, and return its score."""
    scores = buffers.scores
    _copy(matrix, place, buffers.matrices[0], buffers.places[0])
    _score(grid, body, origin, 1, buffers, room)
    score, step, before = scores[0], pattern.FIRST, -np.inf
    _forget(buffers.metric)
    for batch in range(pattern.MOST_BATCHES):
        if step < pattern.FINEST:
            if score - before < pattern.GAIN:
                break
            _forget(buffers.metric)
            step, before = pattern.AGAIN, score
        table = tables[batch % pattern.TABLES]
        for i in range(TRIALS):
            _set_move(buffers.metric, table[i], step, buffers.move)
            _move(matrix, place, buffers.move, buffers.matrices[i], buffers.places[i])
        _score(grid, body, origin, TRIALS, buffers, room)
        best = _choose(scores, buffers.winners)
        gain = scores[best] - score
        if gain > 0:
            score = scores[best]
            _copy(buffers.matrices[best], buffers.places[best], matrix, place)
        if gain > pattern.LEAST:
            step = min(pattern.GROWTH * step, pattern.FIRST)
        else:
            step *= pattern.SHRINKAGE
        _stretch(buffers.metric, table, buffers.winners, buffers.change, buffers.move)
    return score


@jit_no_alloc
def _copy(matrix: Any, place: Any, to_matrix: Any, to_place: Any) -> Any:
    for i in range(3):
        for j in range(3):
            to_matrix[i, j] = matrix[i, j]
        to_place[i] = place[i]


@jit_no_alloc
def _forget(metric: Any) -> Any:
    for i in range(6):
        for j in range(6):
            metric[i, j] = 1.0 if i == j else 0.0


@jit_no_alloc
def _set_move(metric: Any, direction: Any, step: Any, move: Any) -> Any:
    for i in range(6):
        total = metric[i, 0] * direction[0]
        for j in range(1, 6):
            total += metric[i, j] * direction[j]
        move[i] = step * total


@jit_no_alloc
def _move(matrix: Any, place: Any, move: Any, moved_matrix: Any, moved_place: Any) -> Any:
    """Set the placement that a move leads to, as `reference._moved` does."""
    half = 0.5 / pattern.ARM
    a, b, c = move[3] * half, move[4] * half, move[5] * half
    scale = 2 / (1 + ((a * a + b * b) + c * c))
    turn = (
        (1 - scale * (b * b + c * c), scale * (a * b - c), scale * (a * c + b)),
        (scale * (a * b + c), 1 - scale * (a * a + c * c), scale * (b * c - a)),
        (scale * (a * c - b), scale * (b * c + a), 1 - scale * (a * a + b * b)),
    )
    for i in range(3):
        x, y, z = turn[i]
        for j in range(3):
            moved_matrix[i, j] = (x * matrix[0, j] + y * matrix[1, j]) + z * matrix[2, j]
        moved_place[i] = place[i] + move[i]


@jit_no_alloc
def _score(grid: Any, body: Any, origin: Any, count: Any, buffers: Any, room: Any) -> Any:
    """Set the scores of the first trials."""
    for i in range(count):
        for axis in range(3):
            buffers.shifts[i, axis] = buffers.places[i, axis] - origin[axis]
    scores = buffers.scores[:count]
    cpu_poses.score(grid, body, buffers.matrices, buffers.shifts, scores, room)


@jit_no_alloc
def _choose(scores: Any, winners: Any) -> Any:
    """Set the best trial of each group, the first of equals, and return the best of all."""
    best = 0
    for group in range(GROUPS):
        winner = SHARE * group
        for i in range(winner + 1, SHARE * (group + 1)):
            if scores[i] > scores[winner]:
                winner = i
        winners[group] = winner
        if scores[winner] > scores[best]:
            best = winner
    return best


@jit_no_alloc
def _stretch(metric: Any, table: Any, winners: Any, change: Any, row: Any) -> Any:
    """Adapt the metric to the winners, as `reference._stretched` does."""
    for i in range(6):
        for j in range(6):
            total = table[winners[0], i] * table[winners[0], j]
            for group in range(1, GROUPS):
                total += table[winners[group], i] * table[winners[group], j]
            change[i, j] = pattern.RATE * (total * (6 / GROUPS) - (1.0 if i == j else 0.0))
    for i in range(6):
        for j in range(6):
            row[j] = metric[i, j]
        for j in range(6):
            total = row[0] * change[0, j]
            for k in range(1, 6):
                total += row[k] * change[k, j]
            metric[i, j] += total

"""Places and scores of the poses of one ligand, in single and in double precision."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.rotation.rotations import Floats
from multigpu.kernels.rotation.types import PENALTY

BLOCK = 256  # poses that are scored together; what they need stays in the nearest cache

F32 = np.float32
NONE, UNDECIDED = F32(-np.inf), F32(np.inf)
ROOT = math.sqrt(PENALTY)


class Space(NamedTuple):
    """The poses: Euler angles where n > 0, else quaternions; and a cube of shifts.

    n, locked, wrap: as EulerRotations has them
    """

    n: int
    locked: tuple[int, int]
    wrap: int
    table: Floats
    quaternions: Floats
    side: int
    step: float


class Grid(NamedTuple):
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


class Body(NamedTuple):
    """A ligand. start: the target from the origin, in units of the spacing; places: its atoms'."""

    start: Floats
    places: Floats
    channels: NDArray[np.int32]
    weights: Floats
    moments: Floats
    doubt: np.float32  # a place nearer to a jump of the field than this is undecided


@lean
def place(space: Any, pose: Any, out: Any) -> Any:
    """Whether no lower index is the same pose; its matrix and shift. out: float64[12]."""
    rotation, shift = divmod(pose, space.side * space.side * space.side)
    rest, z = divmod(shift, space.side)
    x, y = divmod(rest, space.side)
    most = space.side // 2
    out[9], out[10], out[11] = (
        (x - most) * space.step, (y - most) * space.step, (z - most) * space.step
    )  # fmt: skip
    if space.n:
        return _turn_by_angles(space, rotation, out)
    _turn_by_quaternion(space.quaternions[rotation], out)
    return True


@lean
def _turn_by_angles(space: Any, rotation: Any, out: Any) -> Any:
    rest, gamma = divmod(rotation, space.n)
    alpha, beta = divmod(rest, space.n)
    ca, sa = space.table[alpha, 0], space.table[alpha, 1]
    cb, sb = space.table[beta, 0], space.table[beta, 1]
    cc, sc = space.table[gamma, 0], space.table[gamma, 1]
    out[0], out[1], out[2] = cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc
    out[3], out[4], out[5] = cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc
    out[6], out[7], out[8] = -sb, sa * cb, ca * cb
    locked = beta == space.locked[0] or beta == space.locked[1]
    return not (locked and alpha and gamma < space.wrap)


@lean
def _turn_by_quaternion(quaternion: Any, out: Any) -> Any:
    w, x, y, z = quaternion[0], quaternion[1], quaternion[2], quaternion[3]
    out[0], out[1], out[2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    out[3], out[4], out[5] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    out[6], out[7], out[8] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)


@lean
def _to_grid(grid: Any, body: Any, turned: Any) -> Any:
    """A placement in Å becomes one in units of the spacing, from the origin."""
    for axis in range(3):
        for k in range(3):
            turned[3 * axis + k] *= grid.per_unit[axis]
        turned[9 + axis] = body.start[axis] + turned[9 + axis] * grid.per_unit[axis]


# In single precision: a block of poses at a time, one atom after the other. The loops over the
# block are simple ones, which LLVM makes vectors of.


@lean
def score(
    grid: Any, space: Any, body: Any, begin: Any, scores: Any, turned: Any, rows: Any, cells: Any
) -> Any:
    """The scores of the poses from `begin` on, float32[poses].

    turned: float64[12], rows: float32[18, BLOCK], cells: uint32[BLOCK]; anything.
    """
    turns, margin, inside, beyond, at = rows[:12], rows[12], rows[13], rows[14], rows[15:]
    for first in range(0, scores.shape[0], BLOCK):
        sums = scores[first : first + BLOCK]
        size = sums.shape[0]
        for j in range(size):
            sums[j] = F32(0)
            margin[j] = UNDECIDED
            place(space, begin + first + j, turned)
            _to_grid(grid, body, turned)
            for k in range(12):
                turns[k, j] = turned[k]
        for atom in range(body.places.shape[0]):
            _locate(grid, turns, body.places[atom], at, inside, beyond, margin, size)
            if grid.linear:
                _cells(grid, at, cells, size)
            else:
                _nodes(grid, at, cells, margin, size)
            for term in range(body.weights.shape[1]):
                values = grid.values[body.channels[atom, term]]
                weight = F32(body.weights[atom, term])
                if grid.linear:
                    _add_between(grid, values, weight, at, cells, inside, sums)
                else:
                    _add_nodes(values, weight, cells, inside, sums)
            if grid.penalty:
                _add_penalty(F32(body.weights[atom, 0]), beyond, inside, sums)
        for j in range(size):
            if margin[j] <= body.doubt:
                sums[j] = UNDECIDED
            if not place(space, begin + first + j, turned):
                sums[j] = NONE


@lean
def _locate(
    grid: Any, turns: Any, place: Any, at: Any, inside: Any, beyond: Any, margin: Any, size: Any
) -> Any:
    """An atom's places in the grid; how far they are from where the field has a border.

    beyond: with a penalty, that of the places, should they be outside
    """
    x, y, z = F32(place[0]), F32(place[1]), F32(place[2])
    for j in range(size):
        inside[j], beyond[j] = F32(1), F32(0)
    for axis in range(3):
        last = F32(grid.shape[axis] - 1)
        a, b, c = turns[3 * axis], turns[3 * axis + 1], turns[3 * axis + 2]
        start, row = turns[9 + axis], at[axis]
        for j in range(size):
            row[j] = (a[j] * x + b[j] * y) + (c[j] * z + start[j])
        if grid.penalty:
            middle, scale = F32(grid.middle[axis]), F32(ROOT * grid.spacing[axis])
            for j in range(size):
                away = (row[j] - middle) * scale
                beyond[j] += away * away
        if grid.ends:
            for j in range(size):
                margin[j] = min(margin[j], min(abs(row[j]), abs(last - row[j])))
                if row[j] < F32(0) or row[j] > last:
                    inside[j] = F32(0)
        for j in range(size):
            row[j] = min(max(row[j], F32(0)), last)


@lean
def _cells(grid: Any, at: Any, cells: Any, size: Any) -> Any:
    """The cells of places, by their lowest node; the places become those in the cell."""
    for j in range(size):
        cells[j] = np.uint32(0)
    for axis in range(3):
        row, highest, many = at[axis], np.int32(grid.shape[axis] - 2), np.uint32(grid.shape[axis])
        for j in range(size):
            cell = min(np.int32(row[j]), highest)
            row[j] -= F32(cell)
            cells[j] = cells[j] * many + np.uint32(cell)


@lean
def _nodes(grid: Any, at: Any, cells: Any, margin: Any, size: Any) -> Any:
    """The nodes nearest to places, and how far those are from where another node is nearest."""
    for j in range(size):
        cells[j] = np.uint32(0)
    for axis in range(3):
        row, many = at[axis], np.uint32(grid.shape[axis])
        for j in range(size):
            node = np.int32(row[j] + F32(0.5))
            margin[j] = min(margin[j], abs(F32(0.5) - abs(row[j] - F32(node))))
            cells[j] = cells[j] * many + np.uint32(node)


@lean
def _add_between(
    grid: Any, values: Any, weight: Any, at: Any, cells: Any, inside: Any, sums: Any
) -> Any:
    one, row = np.uint32(1), np.uint32(grid.shape[2])
    plane = np.uint32(grid.shape[1] * grid.shape[2])
    for j in range(sums.shape[0]):
        i, x, y, z = cells[j], at[0, j], at[1, j], at[2, j]
        low = _between(values[i], values[i + one], z)
        low = _between(low, _between(values[i + row], values[i + row + one], z), y)
        i += plane
        high = _between(values[i], values[i + one], z)
        high = _between(high, _between(values[i + row], values[i + row + one], z), y)
        sums[j] += weight * inside[j] * _between(low, high, x)


@lean
def _add_nodes(values: Any, weight: Any, cells: Any, inside: Any, sums: Any) -> Any:
    for j in range(sums.shape[0]):
        sums[j] += weight * inside[j] * values[cells[j]]


@lean
def _add_penalty(weight: Any, beyond: Any, inside: Any, sums: Any) -> Any:
    for j in range(sums.shape[0]):
        sums[j] -= weight * ((F32(1) - inside[j]) * beyond[j])


@lean
def _between(low: Any, high: Any, fraction: Any) -> Any:
    return low + fraction * (high - low)


@lean
def greatest(scores: Any) -> Any:
    """The highest score of a decided pose; -inf: there is none."""
    highest = NONE
    for score in scores:
        if score > highest and score < UNDECIDED:
            highest = score
    return highest


# In double precision: the operations of `reference`, in their order.


@lean
def settle(
    grid: Any, space: Any, body: Any, begin: Any, scores: Any, threshold: Any, turned: Any
) -> Any:
    """The best pose among those not below the threshold, and its score; -1: there is none."""
    best, highest = np.int64(-1), -np.inf
    for j in range(scores.shape[0]):
        if scores[j] > NONE and scores[j] >= threshold:
            place(space, begin + j, turned)
            _to_grid(grid, body, turned)
            score = _exact(grid, body, turned)
            if best < 0 or score > highest:
                best, highest = np.int64(begin + j), score
    return best, highest


@lean
def better(
    grid: Any, space: Any, body: Any, begin: Any, scores: Any, threshold: Any, floor: Any,
    turned: Any, poses: Any, exact: Any,
) -> Any:  # fmt: skip
    """Return the number of poses not below the threshold whose exact scores are above the floor.

    poses, exact: int64[scores], float64[scores]; these poses, in their order, and their scores
    """
    count = 0
    for j in range(scores.shape[0]):
        if scores[j] > NONE and scores[j] >= threshold:
            place(space, begin + j, turned)
            _to_grid(grid, body, turned)
            score = _exact(grid, body, turned)
            if score > floor:
                poses[count], exact[count] = begin + j, score
                count += 1
    return count


@lean
def _exact(grid: Any, body: Any, turned: Any) -> Any:
    total = 0.0
    for atom in range(body.places.shape[0]):
        x, y, z = body.places[atom, 0], body.places[atom, 1], body.places[atom, 2]
        gx = (turned[0] * x + turned[1] * y) + (turned[2] * z + turned[9])
        gy = (turned[3] * x + turned[4] * y) + (turned[5] * z + turned[10])
        gz = (turned[6] * x + turned[7] * y) + (turned[8] * z + turned[11])
        scored = 0.0
        for term in range(body.weights.shape[1]):
            values = grid.values[body.channels[atom, term]]
            scored += _value(grid, values, gx, gy, gz, term == 0) * body.weights[atom, term]
        total += scored
    return total


@lean
def _value(grid: Any, values: Any, gx: Any, gy: Any, gz: Any, first: Any) -> Any:
    nx, ny, nz = grid.shape[0], grid.shape[1], grid.shape[2]
    x, y, z = _clip(gx, nx), _clip(gy, ny), _clip(gz, nz)
    if grid.ends and (x != gx or y != gy or z != gz):
        return _penalty(grid, gx, gy, gz) if grid.penalty and first else 0.0
    if not grid.linear:
        node = (np.int64(x + 0.5) * ny + np.int64(y + 0.5)) * nz + np.int64(z + 0.5)
        return np.float64(values[node])
    ix, iy, iz = min(np.int64(x), nx - 2), min(np.int64(y), ny - 2), min(np.int64(z), nz - 2)
    fx, fy, fz = x - ix, y - iy, z - iz
    i = (ix * ny + iy) * nz + iz
    low = _exact_plane(values, i, nz, fy, fz)
    high = _exact_plane(values, i + ny * nz, nz, fy, fz)
    return _between(low, high, fx)


@lean
def _penalty(grid: Any, gx: Any, gy: Any, gz: Any) -> Any:
    x = (gx - grid.middle[0]) * grid.spacing[0]
    y = (gy - grid.middle[1]) * grid.spacing[1]
    z = (gz - grid.middle[2]) * grid.spacing[2]
    return -PENALTY * ((x * x + y * y) + z * z)


@lean
def _exact_plane(values: Any, i: Any, row: Any, fy: Any, fz: Any) -> Any:
    low = _between(np.float64(values[i]), np.float64(values[i + 1]), fz)
    i += row
    return _between(low, _between(np.float64(values[i]), np.float64(values[i + 1]), fz), fy)


@lean
def _clip(place: Any, nodes: Any) -> Any:
    return min(max(place, 0.0), np.float64(nodes - 1))


@lean
def strike(
    space: Any, moments: Any, begin: Any, scores: Any, taken: Any, min_squared: Any, placed: Any
) -> Any:
    """Strikes out a pose and those nearer to it. placed: float64[2, 12], anything."""
    one, other = placed[0], placed[1]
    place(space, taken, one)
    for j in range(scores.shape[0]):
        if scores[j] > NONE:
            place(space, begin + j, other)
            near = _squared_distance(moments, one, other) < min_squared
            if near or begin + j == taken:
                scores[j] = NONE


@lean
def _squared_distance(moments: Any, one: Any, other: Any) -> Any:
    overlap = 0.0
    for i in range(3):
        for j in range(3):
            turned = 0.0
            for k in range(3):
                turned += one[3 * i + k] * moments[j, k]
            overlap += turned * other[3 * i + j]
    apart = 0.0
    for axis in range(9, 12):
        apart += (other[axis] - one[axis]) * (other[axis] - one[axis])
    trace = moments[0, 0] + moments[1, 1] + moments[2, 2]
    return 2 * (trace - overlap) + apart

"""Bounds of blocks of poses, and exact scores of single ones, on a CPU."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.cpu_poses import along, between
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import PENALTY


class BlockTables(NamedTuple):
    """What bounds blocks of one body. Atoms stand in the order in which they are looked up.

    values     float32[...]              `BoundMaps.values`
    per_value  float64[levels, 3]        1 / strides
    lows       float64[levels, atoms, 3]
    rows       int64[levels, atoms, 4]   where the map begins; values from one plane, row, value to
                                        the next
    sides      int64[levels, 3]
    counts     int64[3]                  shifts
    start      float64[3]                place of the first shift, in units of the spacing
    per_shift  float64[3]                units of the spacing
    tops       float64[atoms]
    above, relative                      (above − T) · relative is the limit of shortfalls
    """

    values: NDArray[np.float32]
    per_value: Floats
    lows: Floats
    rows: Indices
    sides: Indices
    counts: Indices
    start: Floats
    per_shift: Floats
    tops: Floats
    above: float
    relative: float


class ExactBody(NamedTuple):
    """What scores poses of one body exactly.

    start    float64[3]             the target from the origin, in units of the spacing
    places   float64[atoms, 3]      Å, from the centroid
    order    int64[atoms]           in which they are looked up
    step     of the shifts, Å
    """

    start: Floats
    places: Floats
    channels: NDArray[np.int32]
    weights: Floats
    order: Indices
    step: float


@jit_no_alloc
def shortfall(
    tables: Any, level: Any, turned: Any, x: Any, y: Any, z: Any, limit: Any, rest: Any, own: Any
) -> Any:
    """Return at least how far the poses of a block fall short, or something above `limit`.

    x, y, z: place of the block's first shift; rest: float64[atoms + 1], what the atoms from each on fall
    short at least; own: float64[atoms], set to what each atom does until it is above the limit
    """
    total, atoms = 0.0, turned.shape[0]
    for u in range(atoms):
        i = np.int64((turned[u, 0] + x) * tables.per_value[level, 0] - tables.lows[level, u, 0])
        j = np.int64((turned[u, 1] + y) * tables.per_value[level, 1] - tables.lows[level, u, 1])
        k = np.int64((turned[u, 2] + z) * tables.per_value[level, 2] - tables.lows[level, u, 2])
        at = tables.rows[level, u, 0] + i * tables.rows[level, u, 1] + j * tables.rows[level, u, 2] + k
        own[u] = tables.values[at]
        total += own[u]
        if total + rest[u + 1] > limit:
            return total + rest[u + 1]
    return total


@jit_no_alloc
def list_blocks(
    tables: Any, turned: Any, band: Any, turns: Any, shifts: Any, least: Any, room: Any
) -> Any:
    """Set rotation, first shift and bound of the largest blocks in question; return how many."""
    level, count = tables.sides.shape[0] - 1, 0
    limit = (tables.above - band[1]) * tables.relative
    rest, own = room[level + 2], room[level + 1]
    for i in range(0, tables.counts[0], tables.sides[level, 0]):
        for j in range(0, tables.counts[1], tables.sides[level, 1]):
            for k in range(0, tables.counts[2], tables.sides[level, 2]):
                x = tables.start[0] + i * tables.per_shift[0]
                y = tables.start[1] + j * tables.per_shift[1]
                z = tables.start[2] + k * tables.per_shift[2]
                for turn in range(turned.shape[0]):
                    bound = shortfall(
                        tables, level, turned[turn], x, y, z, limit, rest, own
                    )
                    if bound <= limit:
                        turns[count], least[count] = turn, bound
                        shifts[count] = (i * tables.counts[1] + j) * tables.counts[2] + k
                        count += 1
    return count


@jit_no_alloc
def search(
    grid: Any, tables: Any, body: Any, turned: Any, scaled: Any, firsts: Any,
    turns: Any, shifts: Any, least: Any, begin: Any,
    width: Any, band: Any, poses: Any, scores: Any, room: Any, stack: Any,
) -> Any:  # fmt: skip
    """Set poses in the band and their scores; return the next block, and how many were found."""
    top, count, atoms = tables.sides.shape[0] - 1, 0, turned.shape[1]
    largest = tables.sides[top, 0] * tables.sides[top, 1] * tables.sides[top, 2]
    limit = (tables.above - band[1]) * tables.relative
    for block in range(begin, turns.shape[0]):
        if count + largest > poses.shape[0]:
            return block, count
        if least[block] > limit:
            continue
        turn, shift = turns[block], shifts[block]
        row = shift // tables.counts[2]
        place = (row // tables.counts[1], row % tables.counts[1], shift % tables.counts[2])
        stack[0, 0], depth = top, 1
        for axis in range(3):
            stack[0, 1 + axis] = place[axis]
            stack[0, 4 + axis] = min(place[axis] + tables.sides[top, axis], tables.counts[axis])
        while depth > 0:
            depth -= 1
            level, i, j, k = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
            x = tables.start[0] + i * tables.per_shift[0]
            y = tables.start[1] + j * tables.per_shift[1]
            z = tables.start[2] + k * tables.per_shift[2]
            rest, own = room[level + 2], room[level + 1]
            if shortfall(tables, level, turned[turn], x, y, z, limit, rest, own) > limit:
                continue
            for u in range(atoms - 1, -1, -1):  # of each atom, with those after it
                own[u] += own[u + 1]
            if level > 0:
                depth = _push_parts(tables.sides, stack, depth)
                continue
            score = exact_score(grid, tables, body, scaled[turn], i, j, k, limit, room)
            if score >= band[1] and score > -np.inf:
                shift = (i * tables.counts[1] + j) * tables.counts[2] + k
                poses[count], scores[count] = firsts[turn] + shift, score
                count += 1
                if score > band[0]:
                    band[0], band[1] = score, max(band[1], score - width)
                    limit = (tables.above - band[1]) * tables.relative
    return turns.shape[0], count


@jit_no_alloc
def _push_parts(sides: Any, stack: Any, depth: Any) -> Any:
    """Replace the block at `depth` of the stack by its parts; return the new depth.

    A block: its level, its first shift along each axis, and the one after its last.
    """
    level = stack[depth, 0] - 1
    i, j, k = stack[depth, 1], stack[depth, 2], stack[depth, 3]
    ends = (stack[depth, 4], stack[depth, 5], stack[depth, 6])
    for a in range(i, ends[0], sides[level, 0]):
        for b in range(j, ends[1], sides[level, 1]):
            for c in range(k, ends[2], sides[level, 2]):
                stack[depth, 0] = level
                stack[depth, 1], stack[depth, 4] = a, min(a + sides[level, 0], ends[0])
                stack[depth, 2], stack[depth, 5] = b, min(b + sides[level, 1], ends[1])
                stack[depth, 3], stack[depth, 6] = c, min(c + sides[level, 2], ends[2])
                depth += 1
    return depth


@jit_no_alloc
def exact_score(
    grid: Any, tables: Any, body: Any, scaled: Any, i: Any, j: Any, k: Any, limit: Any, room: Any
) -> Any:
    """Return the score of a pose, or -inf as soon as it is known to fall short by more.

    room[1]: what the atoms from each on fall short at least
    """
    values, rest, atoms = room[0], room[1], body.order.shape[0]
    x = body.start[0] + np.float64(i - tables.counts[0] // 2) * body.step * grid.per_unit[0]
    y = body.start[1] + np.float64(j - tables.counts[1] // 2) * body.step * grid.per_unit[1]
    z = body.start[2] + np.float64(k - tables.counts[2] // 2) * body.step * grid.per_unit[2]
    total = 0.0
    for u in range(atoms):
        atom = body.order[u]
        value = atom_score(grid, body, atom, scaled, x, y, z)
        values[atom] = value
        total += tables.tops[u] - value
        if total + rest[u + 1] > limit:
            return -np.inf
    total = 0.0
    for atom in range(atoms):
        total += values[atom]
    return total


@jit_no_alloc
def atom_score(grid: Any, body: Any, atom: Any, scaled: Any, sx: Any, sy: Any, sz: Any) -> Any:
    """Return what an atom scores, by the operations of `reference`."""
    px, py, pz = body.places[atom, 0], body.places[atom, 1], body.places[atom, 2]
    x = (scaled[0, 0] * px + scaled[0, 1] * py) + (scaled[0, 2] * pz + sx)
    y = (scaled[1, 0] * px + scaled[1, 1] * py) + (scaled[1, 2] * pz + sy)
    z = (scaled[2, 0] * px + scaled[2, 1] * py) + (scaled[2, 2] * pz + sz)
    nx, ny, nz = grid.shape[0], grid.shape[1], grid.shape[2]
    is_inside = True
    beyond = 0.0
    if grid.ends:
        is_inside = 0.0 <= x <= nx - 1 and 0.0 <= y <= ny - 1 and 0.0 <= z <= nz - 1
        if not is_inside and grid.penalty:
            ax = (x - grid.middle[0]) * grid.spacing[0]
            ay = (y - grid.middle[1]) * grid.spacing[1]
            az = (z - grid.middle[2]) * grid.spacing[2]
            beyond = -PENALTY * ((ax * ax + ay * ay) + az * az)
    if not is_inside:
        return beyond * body.weights[atom, 0]
    i, x = _cell(x, nx, grid.linear)
    j, y = _cell(y, ny, grid.linear)
    k, z = _cell(z, nz, grid.linear)
    node, plane = (i * ny + j) * nz + k, ny * nz
    total = 0.0
    for term in range(body.weights.shape[1]):
        values, weight = grid.values[body.channels[atom, term]], body.weights[atom, term]
        if grid.linear:
            low = between(along(values, node, z), along(values, node + nz, z), y)
            high = between(along(values, node + plane, z), along(values, node + plane + nz, z), y)
            total += between(low, high, x) * weight
        else:
            total += values[node] * weight
    return total


@jit_no_alloc
def _cell(place: Any, nodes: Any, linear: Any) -> Any:
    """Return the lower node of a place's cell and the place in it; or the nearest node."""
    within = min(max(place, 0.0), np.float64(nodes - 1))
    half, highest = (0.0, nodes - 2) if linear else (0.5, nodes - 1)
    cell = min(np.int64(within + half), highest)
    return cell, within - cell

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
    rows       int64[levels, atoms, 3]   where the map begins; values of a plane and of a row
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


class BlockLists(NamedTuple):
    """The rotations that are left in a block of each level, while its parts are looked at.

    counts  int64[levels]
    turns   int64[levels, most]             numbers of rotations
    rest    float32[levels, most, atoms + 1]  what the atoms from each on fall short at least
    spans   int64[levels, 7]                the block: its first shift along each axis, the one
                                            after its last, and its next part
    """

    counts: Indices
    turns: Indices
    rest: NDArray[np.float32]
    spans: Indices


@jit_no_alloc
def list_blocks(
    tables: Any, turned: Any, band: Any, lists: Any, turns: Any, least: Any, shifts: Any, ends: Any
) -> Any:
    """Set the rotations that may matter in each of the largest blocks, and their bounds.

    shifts, ends: int64[blocks], the first shift, and where the block's rotations end in `turns`
    """
    top, count, block = tables.sides.shape[0] - 1, 0, 0
    limit = (tables.above - band[1]) * tables.relative
    for turn in range(turned.shape[0]):
        for u in range(turned.shape[1] + 1):
            lists.rest[top + 1, turn, u] = 0.0
        lists.turns[top + 1, turn] = turn
    lists.counts[top + 1] = turned.shape[0]
    for i in range(0, tables.counts[0], tables.sides[top, 0]):
        for j in range(0, tables.counts[1], tables.sides[top, 1]):
            for k in range(0, tables.counts[2], tables.sides[top, 2]):
                _keep_turns(tables, turned, top, i, j, k, limit, lists)
                for n in range(lists.counts[top]):
                    turns[count], least[count] = lists.turns[top, n], lists.rest[top, n, 0]
                    count += 1
                shifts[block] = (i * tables.counts[1] + j) * tables.counts[2] + k
                ends[block] = count
                block += 1
    return count


@jit_no_alloc
def _keep_turns(
    tables: Any, turned: Any, level: Any, i: Any, j: Any, k: Any, limit: Any, lists: Any
) -> Any:
    """List the rotations of the level above whose poses in a block may be above the limit."""
    count, atoms = 0, turned.shape[1]
    x = tables.start[0] + i * tables.per_shift[0]
    y = tables.start[1] + j * tables.per_shift[1]
    z = tables.start[2] + k * tables.per_shift[2]
    px, py, pz = (
        tables.per_value[level, 0],
        tables.per_value[level, 1],
        tables.per_value[level, 2],
    )
    lows, rows, own, rest = (
        tables.lows[level],
        tables.rows[level],
        lists.rest[level],
        lists.rest[level + 1],
    )
    for n in range(lists.counts[level + 1]):
        turn, total, u = lists.turns[level + 1, n], 0.0, 0
        while u < atoms and total + rest[n, u] <= limit:
            a = np.int64((turned[turn, u, 0] + x) * px - lows[u, 0])
            b = np.int64((turned[turn, u, 1] + y) * py - lows[u, 1])
            c = np.int64((turned[turn, u, 2] + z) * pz - lows[u, 2])
            own[count, u] = tables.values[rows[u, 0] + a * rows[u, 1] + b * rows[u, 2] + c]
            total += own[count, u]
            u += 1
        if total + rest[n, u] <= limit:
            own[count, atoms] = 0.0
            for v in range(atoms - 1, -1, -1):
                own[count, v] += own[count, v + 1]
            lists.turns[level, count] = turn
            count += 1
    lists.counts[level] = count


@jit_no_alloc
def search(
    grid: Any, tables: Any, body: Any, turned: Any, scaled: Any, firsts: Any, lists: Any,
    turns: Any, least: Any, shifts: Any, ends: Any, block: Any,
    width: Any, band: Any, poses: Any, scores: Any, values: Any,
) -> Any:  # fmt: skip
    """Set poses in the band and their scores; return the next block, and how many were found.

    firsts: int64[rotations], the first pose of each; band: float64[2], the best score so far and
    the least that is wanted; values: room for float64[atoms]
    """
    top, count = tables.sides.shape[0] - 1, 0
    largest = tables.sides[top, 0] * tables.sides[top, 1] * tables.sides[top, 2]
    while block < shifts.shape[0]:
        begin = ends[block - 1] if block > 0 else 0
        if count + largest * (ends[block] - begin) > poses.shape[0]:
            break
        limit = (tables.above - band[1]) * tables.relative
        _begin_block(
            tables,
            turns[begin : ends[block]],
            least[begin : ends[block]],
            shifts[block],
            limit,
            lists,
        )
        level = top + 1
        while level <= top + 1:
            if lists.spans[level, 6] == 8 or lists.counts[level] == 0:
                level += 1
                continue
            if not _next_part(tables.sides, level, lists.spans):
                continue
            level -= 1
            i, j, k = lists.spans[level, 0], lists.spans[level, 1], lists.spans[level, 2]
            limit = (tables.above - band[1]) * tables.relative
            _keep_turns(tables, turned, level, i, j, k, limit, lists)
            if level > 0:
                continue
            for n in range(lists.counts[0]):
                limit = (tables.above - band[1]) * tables.relative
                turn, rest = lists.turns[0, n], lists.rest[0, n]
                score = exact_score(grid, tables, body, scaled[turn], i, j, k, limit, rest, values)
                if score >= band[1] and score > -np.inf:
                    shift = (i * tables.counts[1] + j) * tables.counts[2] + k
                    poses[count], scores[count] = firsts[turn] + shift, score
                    count += 1
                    if score > band[0]:
                        band[0], band[1] = score, max(band[1], score - width)
            level = 1
        block += 1
    return block, count


@jit_no_alloc
def _begin_block(tables: Any, turns: Any, least: Any, shift: Any, limit: Any, lists: Any) -> Any:
    """Make one of the largest blocks the only part of a level above it."""
    top, count, row = tables.sides.shape[0], 0, shift // tables.counts[2]
    place = (row // tables.counts[1], row % tables.counts[1], shift % tables.counts[2])
    for axis in range(3):
        lists.spans[top, axis] = place[axis]
        lists.spans[top, 3 + axis] = min(
            place[axis] + tables.sides[top - 1, axis], tables.counts[axis]
        )
    lists.spans[top, 6] = 0
    for n in range(turns.shape[0]):
        if least[n] <= limit:
            lists.turns[top, count] = turns[n]
            count += 1
    lists.counts[top] = count


@jit_no_alloc
def _next_part(sides: Any, level: Any, spans: Any) -> Any:
    """Set the block of the level below to the next part of a block; return whether there is one."""
    part = spans[level, 6]
    spans[level, 6] += 1
    for axis in range(3):
        begin = spans[level, axis] + (part >> axis & 1) * sides[level - 1, axis]
        if begin >= spans[level, 3 + axis]:
            return False
        spans[level - 1, axis] = begin
        spans[level - 1, 3 + axis] = min(begin + sides[level - 1, axis], spans[level, 3 + axis])
    spans[level - 1, 6] = 0
    return True


@jit_no_alloc
def exact_score(
    grid: Any, tables: Any, body: Any, scaled: Any, i: Any, j: Any, k: Any, limit: Any,
    rest: Any, values: Any,
) -> Any:  # fmt: skip
    """Return the score of a pose, or -inf as soon as it is known to fall short by more.

    rest: float32[atoms + 1], what the atoms from each on fall short at least
    """
    atoms = body.order.shape[0]
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

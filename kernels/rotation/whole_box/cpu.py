"""Band search on a CPU, in Numba: one thread a call, without the GIL.

A ligand's blocks of poses are looked at from the largest to single poses, each left where its
bound is below the band; what is left is scored exactly. The band rises with the best pose so far.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.rotation.cpu import Body, buffers, field_arrays, score_poses
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.thinning import MOST_LISTED, Shortlist
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch
from multigpu.kernels.rotation.whole_box import bounds

MOST_TURNS = 1 << 11  # rotations at a time: what is known of them stays in a near cache
FIRST = 1, 8, 64, 512  # rotations that are looked at first, to find good poses
MOST_BYTES = 3 << 28  # of the maps of a ligand
COMMON = 0.3  # of the largest blocks have less than an atom's usual shortfall


class BlockTables(NamedTuple):
    """Tables that bound blocks of one body; atoms stand in the order of their look-ups."""

    values: NDArray[np.float32]  # float32[...]: `BoundMaps.values`
    per_value: Floats  # float64[levels, 3]: 1 / strides
    lows: Floats  # float64[levels, atoms, 3]
    rows: Indices  # int64[levels, atoms, 3]: where the map begins; values of a plane and of a row
    sides: Indices  # int64[levels, 3]
    counts: Indices  # int64[3]: shifts
    start: Floats  # float64[3]: place of the first shift, in units of the spacing
    per_shift: Floats  # float64[3]: units of the spacing
    above: float  # (above − T) · relative is the limit of shortfalls
    relative: float
    step: float  # of the shifts, Å


class BlockLists(NamedTuple):
    """The rotations that are left in a block of each level, while its parts are looked at.

    The last level is above the largest blocks and has all rotations.
    """

    counts: Indices  # int64[levels]
    turns: Indices  # int64[levels, most]: numbers of rotations
    rest: NDArray[np.float32]  # float32[levels, most, atoms + 1]: least shortfall from an atom on
    # int64[levels, 7]: the block's first shift along each axis, those after its last, its next part
    spans: Indices
    matrices: Floats  # room for placements of the poses at one shift
    shifts: Floats  # likewise


class BandSearcher:
    """Searches the poses of ligands in one field. Safe to use from several threads at once."""

    def __init__(self, field: Field, search: PoseSearch, width: float) -> None:
        self.field, self.search, self.width = field, search, width
        self.grid = field_arrays(field)
        self.rotations = list(in_order(search))

    def best(self, bodies: Ligands, ligand_of: Indices) -> Poses:
        """Return the poses of each ligand, as `BandFinder.best` says."""
        borders = np.flatnonzero(np.diff(ligand_of, prepend=-1, append=-2))
        found = [
            LigandBlocks(self, bodies[begin:end]).best().moved(begin)
            for begin, end in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)
        ]
        return Poses.chained([Poses.none(), *found])


def in_order(search: PoseSearch) -> Iterator[Indices]:
    """Yield the indices of all rotations; first some that are far apart."""
    rest = np.arange(search.rotations.stop)
    rest = rest[search.rotations.is_first(rest)]
    for count in FIRST:
        is_next = np.zeros(len(rest), bool)
        is_next[:: max(1, len(rest) // count)] = True
        yield rest[is_next]
        rest = rest[~is_next]
    for begin in range(0, len(rest), MOST_TURNS):
        yield rest[begin : begin + MOST_TURNS]


class LigandBlocks:
    """The search of one ligand: of all its bodies, with one band."""

    def __init__(self, searcher: BandSearcher, bodies: Ligands) -> None:
        self.searcher, self.search, self.bodies = searcher, searcher.search, bodies
        field, search = searcher.field, searcher.search
        self._kinds = bounds.kinds_of(field, search, bodies)
        self.levels = bounds.levels_within(field, search, self._kinds, MOST_BYTES)
        self._maps = bounds.bound_maps(field, self._kinds, self.levels)
        self._margins = bounds.margins(field, search, bodies, self._kinds, self._maps.tops)
        rank = _pruning_order(self._maps)[self._kinds.kind]
        self.tables = [self._tables(number, rank) for number in range(len(bodies))]

    def _tables(self, number: int, rank: Indices) -> tuple[BlockTables, Body, Floats]:
        """Return what one body is searched with; places of atoms by their rank, int64[atoms]."""
        field, search, bodies, maps = self.searcher.field, self.search, self.bodies, self._maps
        atoms = slice(*bodies.offsets[number : number + 2])
        order = np.argsort(rank[atoms], kind="stable")
        kind = self._kinds.kind[atoms][order]
        absolute, relative = (float(each[number]) for each in self._margins)
        per_unit = 1 / field.spacing
        start = (search.targets(bodies)[number] - field.origin) * per_unit
        shapes = maps.shapes[:, kind]
        planes, rows = shapes[..., 1] * shapes[..., 2], shapes[..., 2]
        tables = BlockTables(
            values=maps.values,
            per_value=np.array([1 / level.strides for level in self.levels]),
            lows=np.ascontiguousarray(maps.lows[:, kind], np.float64),
            rows=np.ascontiguousarray(np.stack([maps.begins[:, kind], planes, rows], axis=-1)),
            sides=np.array([level.sides for level in self.levels]),
            counts=np.array(search.shifts.sides),
            start=start + search.shifts.vectors(np.array([0]))[0] * per_unit,
            per_shift=search.shifts.step * per_unit,
            above=float(maps.tops[kind].sum()) + absolute,
            relative=relative,
            step=float(search.shifts.step),
        )
        body = Body.of(bodies, number, start)
        return tables, body, body.places[order]

    def best(self) -> Poses:
        return Shortlist(self.bodies, self.search, self.searcher.width).best(self._list_into)

    def _list_into(self, listed: Shortlist) -> None:
        for rotations in self.searcher.rotations:
            for number in range(len(self.bodies)):
                self._list_rotations(listed, number, rotations)

    def _list_rotations(self, listed: Shortlist, number: int, rotations: Indices) -> None:
        tables, body, places = self.tables[number]
        matrices = self.search.rotations.matrices(rotations)
        scaled = matrices * (1 / self.searcher.field.spacing)[:, None]
        turned = np.ascontiguousarray(places @ scaled.transpose(0, 2, 1))
        lists = self._lists(len(rotations), len(places))
        most = MOST_LISTED + len(rotations) * int(tables.sides[-1].prod())  # and those of a block
        poses, scores, room = np.empty(most, np.int64), np.empty(most), buffers()
        firsts, block = rotations * self.search.shifts.count, 0
        blocks = int((-(-tables.counts // tables.sides[-1])).prod())
        while block < blocks:
            block, count = _search(
                self.searcher.grid, tables, body, turned, matrices, firsts, lists,
                block, blocks, listed.width, listed.band, poses, scores, room,
            )  # fmt: skip
            found = Poses(np.full(count, number), poses[:count].copy(), scores[:count].copy())
            listed.add(listed.free(found))

    def _lists(self, most: int, atoms: int) -> BlockLists:
        levels = len(self.levels) + 1
        return BlockLists(
            counts=np.full(levels, most),
            turns=np.tile(np.arange(most), (levels, 1)),
            rest=np.zeros((levels, most, atoms + 1), np.float32),
            spans=np.empty((levels, 7), np.int64),
            matrices=np.empty((most, 3, 3)),
            shifts=np.empty((most, 3)),
        )


def _pruning_order(maps: bounds.BoundMaps) -> Indices:
    """Return int64[kinds]: the place of each in an order in which blocks are soon left."""
    ends = maps.begins[-1] + maps.shapes[-1].prod(axis=1)
    maps_of = [maps.values[a:b] for a, b in zip(maps.begins[-1], ends, strict=True)]
    usual = np.array([np.quantile(values, COMMON) for values in maps_of])
    return np.argsort(np.argsort(-usual, kind="stable"))


@jit_no_alloc
def _search(
    grid: Any, tables: Any, body: Any, turned: Any, matrices: Any, firsts: Any, lists: Any,
    block: Any, blocks: Any, width: Any, band: Any, poses: Any, scores: Any, room: Any,
) -> Any:  # fmt: skip
    """Set poses in the band and their scores; return the next block, and how many were found.

    turned: float64[rotations, atoms, 3], places of atoms from the centroid, in units of the spacing
    matrices, firsts: rotations, and the first pose of each
    block, blocks: the first of the largest blocks to look at, and how many there are
    band: float64[2], the best score so far, and the least that is wanted
    room: `PoseBuffers`
    """
    top, count = tables.sides.shape[0] - 1, 0
    largest = tables.sides[top, 0] * tables.sides[top, 1] * tables.sides[top, 2]
    while block < blocks and count + largest * matrices.shape[0] <= poses.shape[0]:
        _begin_block(tables, block, lists.spans[top])
        _keep_turns(tables, turned, top, band, lists)
        level = top
        while level <= top:
            if level == 0:
                _score(grid, tables, body, matrices, lists, scores[count:], room)
                count = _keep_scores(tables, lists, firsts, width, band, poses, scores, count)
                level = 1
            elif lists.spans[level, 6] == 8 or lists.counts[level] == 0:
                level += 1
            elif _next_part(tables.sides, level, lists.spans):
                level -= 1
                _keep_turns(tables, turned, level, band, lists)
        block += 1
    return block, count


@jit_no_alloc
def _begin_block(tables: Any, block: Any, span: Any) -> Any:
    """Set the span of one of the largest blocks by its number."""
    sides = tables.sides[tables.sides.shape[0] - 1]
    for axis in range(2, -1, -1):
        along = (tables.counts[axis] + sides[axis] - 1) // sides[axis]
        span[axis] = block % along * sides[axis]
        span[3 + axis] = min(span[axis] + sides[axis], tables.counts[axis])
        block //= along
    span[6] = 0


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
def _keep_turns(tables: Any, turned: Any, level: Any, band: Any, lists: Any) -> Any:
    """List the rotations of the level above whose poses in the block may be in the band."""
    count, atoms = 0, turned.shape[1]
    limit = (tables.above - band[1]) * tables.relative
    x = tables.start[0] + lists.spans[level, 0] * tables.per_shift[0]
    y = tables.start[1] + lists.spans[level, 1] * tables.per_shift[1]
    z = tables.start[2] + lists.spans[level, 2] * tables.per_shift[2]
    per, lows, rows = tables.per_value[level], tables.lows[level], tables.rows[level]
    px, py, pz = per[0], per[1], per[2]
    own, rest = lists.rest[level], lists.rest[level + 1]
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
def _score(
    grid: Any, tables: Any, body: Any, matrices: Any, lists: Any, scores: Any, room: Any
) -> Any:
    """Set the exact scores of the listed rotations at the shift of level 0."""
    for n in range(lists.counts[0]):
        for axis in range(3):
            step = lists.spans[0, axis] - tables.counts[axis] // 2
            lists.shifts[n, axis] = np.float64(step) * tables.step
            for k in range(3):
                lists.matrices[n, axis, k] = matrices[lists.turns[0, n], axis, k]
    n = lists.counts[0]
    score_poses(grid, body, lists.matrices[:n], lists.shifts[:n], scores[:n], room)


@jit_no_alloc
def _keep_scores(
    tables: Any, lists: Any, firsts: Any, width: Any, band: Any, poses: Any, scores: Any, count: Any
) -> Any:
    """Keep those of the last scores that are in the band, which they may raise."""
    span, kept = lists.spans[0], count
    shift = (span[0] * tables.counts[1] + span[1]) * tables.counts[2] + span[2]
    for n in range(lists.counts[0]):
        score = scores[count + n]
        if score >= band[1]:
            poses[kept], scores[kept] = firsts[lists.turns[0, n]] + shift, score
            kept += 1
            if score > band[0]:
                band[0], band[1] = score, max(band[1], score - width)
    return kept

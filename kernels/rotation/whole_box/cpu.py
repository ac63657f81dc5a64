"""Band search on a CPU, in Numba: one thread a call, without the GIL.

A ligand's blocks of poses are looked at from the largest to single poses, each left where its
bound is below the band; what is left is scored exactly. The band rises with the best pose so far.
"""

from collections.abc import Iterator

import numpy as np

from multigpu.kernels.rotation import cpu_poses
from multigpu.kernels.rotation.cpu_poses import Body, field_arrays
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.thinning import MOST_LISTED, Shortlist
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch
from multigpu.kernels.rotation.whole_box import bounds, cpu_blocks
from multigpu.kernels.rotation.whole_box.cpu_blocks import BlockLists, BlockTables

MOST_TURNS = 1 << 11  # rotations at a time: what is known of them stays in a near cache
FIRST = 1, 8, 64, 512  # rotations that are looked at first, to find good poses
MOST_BYTES = 3 << 28  # of the maps of a ligand
COMMON = 0.3  # of the largest blocks have less than an atom's usual shortfall


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
        """Return the best poses that are apart, of all bodies."""
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
        poses, scores, room = np.empty(most, np.int64), np.empty(most), cpu_poses.room()
        firsts, block = rotations * self.search.shifts.count, 0
        blocks = int((-(-tables.counts // tables.sides[-1])).prod())
        while block < blocks:
            block, count = cpu_blocks.search(
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

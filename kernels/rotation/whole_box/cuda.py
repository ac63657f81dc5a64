"""Band search on a GPU: `search.cu` through CuPy. All bodies of a ligand share its launches.

docs/dock.md ("Why no pose is missed") has the proof, and the margins of this backend. A warp takes
a body in a rotation, 32 blocks at a time, and adds up the shortfalls of its atoms. Blocks whose sum
is not more than the band allows wait in a queue for each level until their parts are 32; the single
poses that are left wait, too, and are scored in double precision. Only the poses that are found are
listed: should the list be too short, the search is done again by halves. All warps know the best
score so far. Greedy ones, which follow the best four of 32 blocks only, come first, so that it is a
good one from the beginning.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, struct
from multigpu.kernels.rotation.bounds import place_errors
from multigpu.kernels.rotation.cuda import (
    DeviceField,
    copy_ligands,
    copy_together,
    kernel,
    space_of,
    variant_options,
)
from multigpu.kernels.rotation.memory import (
    BLOCKS,
    LISTED_BYTES,
    MOST_FOUND,
    TOLERANCE,
    map_sides,
    windows_of,
)
from multigpu.kernels.rotation.rotations import Indices
from multigpu.kernels.rotation.thinning import cross_moments, thinned
from multigpu.kernels.rotation.types import PENALTY, Field, Ligands, Poses, PoseSearch
from multigpu.kernels.rotation.whole_box.bounds import AtomKinds, kinds_of, rounding

THREADS = 64
SEARCH_BLOCKS = 132 * 256  # so many that none of a large device is the last for long
BOUNDED = 64  # atoms of a body that have bounds of their own; the others count as at their best
FARTHEST_OFF = 0.01  # units of the spacing: windows are wider if places may be farther off
LANES = 32
GREEDY = 1 << 14  # items
MOST_ITEMS = 1 << 30  # of a launch
MOST_VALUES = (1 << 32) - 1  # of all kinds' maps of a level
ROUND_BLOCKS = 256
MOST_ROUNDS = 256  # poses of a ligand that are chosen on the device
QUEUED = 16  # ligands

_POOL = np.dtype(
    [("values", POINTER), ("share", "<f8", 3), ("window", "<u4", 3), ("side", "<u4", 3)]
    + [(name, "<u4") for name in ("size", "_")]
)
_BOUNDS = np.dtype([("pools", _POOL, len(BLOCKS)), ("low", "<f8"), ("factor", "<f8")])
_ORDER = np.dtype(
    [(name, POINTER) for name in ("begins", "atoms", "kinds", "most", "tops")]
    + [(name, "<u4") for name in ("mapped", "_")]
)
_KINDS = np.dtype(
    [(name, POINTER) for name in ("weights", "channels", "tops")]
    + [("beyond", "<f8"), ("count", "<u4"), ("_", "<u4")]
)
_WALK = np.dtype(
    [(name, "<u8") for name in ("begin", "end", "rotations", "stride")]
    + [("bodies", "<u4"), ("greedy", "<u4"), ("blocks", "<u4", 3), ("chunks", "<u4")]
)
_BAND = np.dtype(
    [(name, POINTER) for name in ("best", "count", "listed")] + [("most", "<u8"), ("width", "<f8")]
)
_BODIES = np.dtype([("moments", POINTER), ("targets", POINTER), ("count", "<u4"), ("_", "<u4")])
_LISTED = np.dtype([("pose", "<i8"), ("score", "<f8"), ("body", "<u4"), ("_", "<u4")])
_FOUND = np.dtype([("best", "<u8"), ("count", "<u8")])


class BandSearcher:
    """Finds the poses of ligands within a band below the best, on the current device.

    Safe to use from several threads at once: each has a stream of its own.

    width: of the band, in units of the score
    found: most poses listed at a time; an item of `BodySearch` must have fewer, as 16,384 are
    """

    def __init__(
        self, field: Field, search: PoseSearch, width: float, found: int = MOST_FOUND
    ) -> None:
        self.field, self.search, self.width, self.found = field, search, width, found
        sizes = {"THREADS": THREADS, "BOUNDED": BOUNDED}
        self._options = {n: variant_options(field, n, search, **sizes) for n in (1, 2, 3)}
        self.there = DeviceField.of(field)
        with self.there.stream() as stream:
            self._turns, self.space = space_of(search)
            stream.synchronize()

    def launch(self, name: str, terms: int, blocks: int, *arguments: Any) -> None:
        """Queue a kernel for bodies of this many terms on the current stream."""
        kernel("whole_box/search.cu", name, self._options[terms])((blocks,), (THREADS,), arguments)

    def best(self, bodies: Ligands, ligand_of: Indices) -> Poses:
        borders = [*np.flatnonzero(np.diff(ligand_of, prepend=-1)).tolist(), len(bodies)]
        found = [Poses.none()]
        with self.there.device, self.there.stream():
            for begin in range(0, len(borders) - 1, QUEUED):
                spans = list(pairwise(borders))[begin : begin + QUEUED]
                queued = [(LigandSearch(self, bodies[first:end]), first) for first, end in spans]
                found += [each.poses().moved(first) for each, first in queued]
        return Poses.chained(found)


class LigandSearch:
    """The search of one ligand's poses, queued on the current stream; `poses` waits for it."""

    def __init__(self, searcher: BandSearcher, bodies: Ligands) -> None:
        self._of, self._bodies = searcher, bodies
        self._kinds = kinds_of(searcher.field, searcher.search, bodies)
        top = searcher.search.top
        self._rounds = top if top <= MOST_ROUNDS else 0  # else the host chooses
        # The best score and the number of poses found, and those that are chosen.
        self._state = cupy.zeros(_FOUND.itemsize + self._rounds * LISTED_BYTES, np.uint8)
        if self._rounds:
            self._search().choose(self._rounds)

    def _search(self) -> "BodySearch":
        return BodySearch(self._of, self._bodies, self._kinds, self._state)

    def poses(self) -> Poses:
        """Return the poses; of bodies numbered from 0."""
        state = cupy.asnumpy(self._state, stream=cupy.cuda.get_current_stream())
        if self._rounds and state[: _FOUND.itemsize].view(_FOUND)["count"][0] <= self._of.found:
            taken = state[_FOUND.itemsize :].view(_LISTED)
            return _as_poses(taken[: np.flatnonzero(np.r_[taken["pose"], -1] < 0)[0]])
        search = self._search()
        found = np.concatenate([*search.listed(0, search.items)])
        found = found[found["score"] >= found["score"].max(initial=-np.inf) - self._of.width]
        ordered = _as_poses(found[np.lexsort((found["pose"], found["body"], -found["score"]))])
        return thinned(self._bodies, self._of.search, ordered, self._of.search.top)


def _as_poses(found: NDArray[Any]) -> Poses:
    return Poses(found["body"].astype(np.int64), found["pose"].copy(), found["score"].copy())


@dataclass(frozen=True)
class Pool:
    """Maps of kinds on the device, the least shortfalls in windows of nodes: `Pool` of maps.cuh."""

    values: Any
    window: Indices
    side: Indices

    @classmethod
    def of(cls, field: Field, kinds: int, window: Indices) -> "Pool":
        side = map_sides(field.shape, window)
        if not kinds:
            raise ValueError(f"a map of {side.prod()} windows; fewer than 2^32 are possible")
        return cls(cupy.zeros(kinds * int(side.prod()) + 1, np.uint16), window, side)

    @property
    def size(self) -> int:
        """Windows of a kind."""
        return int(self.side.prod())

    def struct(self) -> NDArray[Any]:
        return struct(_POOL, **vars(self), size=self.size, share=1 / (self.side - 1))


class BodySearch:
    """The search of the bodies of one ligand, and what it has on the device.

    items: blocks of shifts in rotations, 32 of a body and a rotation together
    """

    def __init__(
        self, searcher: BandSearcher, bodies: Ligands, kinds: AtomKinds, state: Any
    ) -> None:
        self._of, self._bodies, self._terms = searcher, bodies, bodies.channels.shape[1]
        field, search = searcher.field, searcher.search
        sides, rotations = np.array(search.shifts.sides), search.rotations.stop
        blocks = -(-sides // BLOCKS[0])
        chunks = -(-int(blocks.prod()) // LANES)
        self.items = rotations * len(bodies) * chunks
        self._walk: dict[str, Any] = {"rotations": rotations, "stride": _stride(rotations)}
        self._walk |= {"bodies": len(bodies), "blocks": blocks, "chunks": chunks}
        self._copied, self._ligands = copy_ligands(bodies, field, search)
        delta = float(place_errors(field, bodies, search).max())
        self._low, self._factor = delta * (delta > FARTHEST_OFF), 1 + 8 * (delta + TOLERANCE)
        self._windows = windows_of(field, search, 2 * self._low)
        most = MOST_VALUES // int(map_sides(field.shape, self._windows[0]).prod())
        mapped = min(len(kinds.weights), most)
        self._pools = self._make_maps(kinds, mapped)
        self._order_bodies(bodies, kinds, mapped)
        self._found = cupy.empty(searcher.found * LISTED_BYTES, np.uint8)
        self._state = state
        self._band = struct(
            _BAND,
            best=state.data.ptr,
            count=state.data.ptr + 8,
            listed=self._found,
            most=searcher.found,
            width=searcher.width,
        )
        self._look(0, min(self.items, GREEDY), greedy=1)

    def _make_maps(self, kinds: AtomKinds, many: int) -> list[Pool]:
        """Queue the making of the maps of the first kinds; return them, the widest first."""
        field, there = self._of.field, self._of.there
        self._tops = cupy.zeros(many, np.uint32)
        self._copied_kinds, places = copy_together(
            weights=kinds.weights[:many], channels=kinds.channels[:many]
        )
        least = PENALTY * ((field.spacing * field.middle) ** 2).min()
        beyond = -least if field.outside == "penalty" else 0.0
        about = struct(_KINDS, **places, tops=self._tops, beyond=beyond, count=many)
        have = Pool.of(field, many, np.ones(3, np.int64))
        for name in ("find_tops", "fuse"):
            blocks = many * -(-have.size // THREADS)
            self._launch(name, blocks, there.grid, there.nodes, about, have.struct())
        pools: list[Pool] = []
        for window in reversed(self._windows):
            while (have.window < window).any():
                wider = Pool.of(field, many, np.minimum(2 * have.window, window))
                arguments = (have.struct(), np.uint32(many), wider.struct())
                self._launch("widen", many * -(-wider.size // THREADS), *arguments)
                have = wider
            pools.insert(0, have)
        return pools

    def _order_bodies(self, bodies: Ligands, kinds: AtomKinds, mapped: int) -> None:
        """Copy which atoms are looked up, in which order, and what the others score at most."""
        of, body = self._of, np.repeat(np.arange(len(bodies)), bodies.sizes)
        order = np.lexsort((-(bodies.relative**2).sum(axis=1), body))
        # Hydrogens that are merged into their carbons score nothing, and are the farthest out.
        counts = bodies.weights.max(axis=1) > 0
        order = order[(kinds.kind[order] < mapped) & counts[order]]
        place = np.arange(len(order)) - np.searchsorted(body[order], body[order])
        order = order[place < BOUNDED]
        others = np.ones(len(body), bool)
        others[order] = False
        most = (bodies.weights * of.field.highest[bodies.channels]).sum(axis=1)
        spare = np.add.reduceat(np.where(others, most, 0), bodies.offsets[:-1])
        spare += rounding(of.field, of.search, bodies)
        self._ordered, places = copy_together(
            most=spare,
            begins=np.searchsorted(body[order], np.arange(len(bodies) + 1)).astype(np.int32),
            atoms=order.astype(np.int32),
            kinds=kinds.kind[order].astype(np.int32),
        )
        self._order = struct(_ORDER, **places, tops=self._tops, mapped=mapped)
        blocks = -(-len(bodies) // THREADS)
        self._launch("add_tops", blocks, self._order, np.uint32(len(bodies)))

    def look(self, begin: int, end: int) -> None:
        """List the poses of the band so far in these items, alone in the list."""
        self._state[8:16].data.memset_async(0, 8)
        for first in range(begin, end, MOST_ITEMS):
            self._look(first, min(first + MOST_ITEMS, end), greedy=0)

    def _look(self, begin: int, end: int, greedy: int) -> None:
        walk = struct(_WALK, begin=begin, end=end, greedy=greedy, **self._walk)
        bounds = np.zeros((), _BOUNDS)
        bounds["pools"] = [pool.struct() for pool in self._pools]
        bounds["low"], bounds["factor"] = self._low, self._factor
        there = (self._of.space, self._of.there.grid, self._ligands, self._order, bounds)
        chunks = self._walk["chunks"]
        turns = -(-end // chunks) - begin // chunks
        blocks = min(-(-turns * LANES // THREADS), SEARCH_BLOCKS)
        self._launch("search", blocks, *there, walk, self._band)

    def choose(self, rounds: int) -> None:
        """List all poses of the band, and choose the best of them that are apart."""
        self.look(0, self.items)
        bodies, search = self._bodies, self._of.search
        self._moments, places = copy_together(
            moments=cross_moments(bodies, np.arange(len(bodies))), targets=search.targets(bodies)
        )
        about = (self._of.space, struct(_BODIES, count=len(bodies), **places), self._band)
        bests = cupy.empty(2 * ROUND_BLOCKS * LISTED_BYTES, np.uint8)
        least, taken = np.float64(search.min_squared), self._state[_FOUND.itemsize :]
        for number in range(rounds + 1):
            about_round = (least, np.uint32(number), bests, taken)
            self._launch("take_best", ROUND_BLOCKS, *about, *about_round)

    def listed(self, begin: int, end: int) -> Iterator[NDArray[Any]]:
        """Yield the poses found in these items, and some below the band."""
        self.look(begin, end)
        stream = cupy.cuda.get_current_stream()
        many = int(cupy.asnumpy(self._state[8:16], stream=stream).view(np.uint64)[0])
        if many <= self._of.found:
            yield cupy.asnumpy(self._found[: many * LISTED_BYTES], stream=stream).view(_LISTED)
        else:
            middle = (begin + end) // 2
            yield from self.listed(begin, middle)
            yield from self.listed(middle, end)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        self._of.launch(name, self._terms, blocks, *arguments)


def _stride(rotations: int) -> int:
    """Return a step by which all rotations are reached, those near to each other far apart."""
    golden = max(1, int(rotations * (math.sqrt(5) - 1) / 2)) if rotations < 1 << 32 else 1
    return next(step for step in count(golden) if math.gcd(step, rotations) == 1)

"""The search on a GPU: `search.cu` through CuPy. Many ligands share a launch."""

import math
import threading
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, source, struct
from multigpu.kernels.rotation.bounds import (
    KAPPAS,
    LEAST,
    SHORTFALLS,
    SLACK,
    FieldBounds,
    doubts,
    place_errors,
)
from multigpu.kernels.rotation.memory import MOST_LIGANDS, MOST_SCORES
from multigpu.kernels.rotation.rotations import EulerRotations, ListedRotations
from multigpu.kernels.rotation.types import PENALTY, Field, Ligands, Poses, PoseSearch, split

THREADS = 256
WARPS = THREADS // 32
TILE_A, TILE_B, TILE_C = 2, 4, 4  # rotations that a warp takes together
SHARE = 2048  # scores that a block settles
MOST_ATOMS = 1 << 22
PACK_BLOCKS = 1 << 12

_INTEGERS = [("n", "<u4"), ("locked", "<u4", 2), ("wrap", "<u4"), ("sides", "<u4", 3), ("_", "<u4")]
_SPACE = np.dtype([("table", POINTER), ("quaternions", POINTER), ("step", "<f8"), *_INTEGERS])
_FIELD = np.dtype(
    [("values", POINTER), ("per_unit", "<f8", 3), ("share", "<f8", 3)]
    + [(name, "<u4") for name in ("nx", "ny", "nz", "_")]
    + [("spacing", "<f8", 3), ("reach", "<f4", 3), ("_2", "<u4")]
)
_PART = np.dtype(
    [("begin", "<i8"), ("poses", "<i8")]
    + [(name, "<u4") for name in ("plane", "tiles_b", "tiles_c", "_")]
)
_STEEPNESS = np.dtype([(name, POINTER) for name in ("values", "kappas", "tops")])
_ARRAYS = ("offsets", "places", "weights", "starts", "deltas", "channels", "doubt")
LIGANDS = np.dtype([(name, POINTER) for name in _ARRAYS] + [("count", "<u4"), ("_", "<u4")])
_TAKEN = np.dtype(
    [("moments", POINTER), ("poses", POINTER), ("min_squared", "<f8")]
    + [(name, "<u4") for name in ("ranks", "_")]
)
_WINNER = np.dtype([("pose", "<i8"), ("score", "<f8")])

Kernel = Callable[[tuple[int], tuple[int], Sequence[Any]], None]


def variant_options(
    field: Field, terms: int, search: PoseSearch | None = None, /, **defines: float
) -> tuple[str, ...]:
    """Return NVRTC's options for kernels that read a field, or poses in it."""
    euler, outside = search and isinstance(search.rotations, EulerRotations), field.outside
    defines = {"TERMS": terms, "THREADS": THREADS, **defines}
    defines |= {"EULER": int(bool(euler)), "LINEAR": int(field.interpolation == "linear")}
    defines |= {"ENDS": int(outside != "clamp"), "PENALTY": PENALTY * (outside == "penalty")}
    fixed = ("--std=c++17", "--fmad=false")
    return (*fixed, *(f"-D{name}={value}" for name, value in defines.items()))


@cache
def kernel(file: str, name: str, options: tuple[str, ...]) -> Kernel:
    """Return a kernel; CuPy takes longer to look one up in a module than to launch it."""
    found: Kernel = _module(file, options).get_function(name)
    return found


@cache
def _module(file: str, options: tuple[str, ...]) -> Any:
    return cupy.RawModule(code=source("rotation", file), options=options)


class DeviceField:
    """A field on a device, which all share that use it there, and a stream for each thread.

    grid   `Field` of field.cuh
    nodes  float32[channels, nx, ny, nz]
    """

    _shared: ClassVar[WeakValueDictionary[tuple[int, int], "DeviceField"]] = WeakValueDictionary()

    @classmethod
    def of(cls, field: Field) -> "DeviceField":
        key = id(field), cupy.cuda.Device().id
        there = cls._shared.get(key)
        if there is None:
            there = cls._shared[key] = cls(field)
        return there

    def __init__(self, field: Field) -> None:
        self.field, self.device = field, cupy.cuda.Device()
        self._own = threading.local()
        with self.stream():
            self.nodes = self._values = cupy.asarray(field.values)
            self.grid = self._grid()
        self.stream().synchronize()

    def stream(self) -> Any:
        if not hasattr(self._own, "stream"):
            self._own.stream = cupy.cuda.Stream(non_blocking=True)
        return self._own.stream

    def _grid(self) -> NDArray[Any]:
        channels, nx, ny, nz = self.field.values.shape
        shape: dict[str, Any] = {"per_unit": 1 / self.field.spacing, "nx": nx, "ny": ny, "nz": nz}
        last = np.array(self.field.shape) - 1
        shape |= {"share": 1 / last, "spacing": self.field.spacing}
        shape["reach"] = math.sqrt(PENALTY) * self.field.spacing * last
        if self.field.interpolation == "linear":
            self._values = cupy.empty((channels, nx + 1, ny, nz, 4), np.float32)
            packed = (struct(_FIELD, **shape), self.nodes, np.uint32(channels), self._values)
            pack = kernel("cells.cu", "pack_cells", variant_options(self.field, 1))
            pack((PACK_BLOCKS,), (THREADS,), packed)
        return struct(_FIELD, **shape, values=self._values)


def space_of(search: PoseSearch) -> tuple[Any, NDArray[Any]]:
    """Copy a set of poses to the device; return the copy and `Space` of place.cuh."""
    rotations, shifts = search.rotations, search.shifts
    box = {"sides": shifts.sides, "step": shifts.step}
    if isinstance(rotations, EulerRotations):
        turns = cupy.asarray(rotations.table)
        n, locked, wrap = rotations.n, rotations.locked, rotations.wrap
        return turns, struct(_SPACE, **box, table=turns, n=n, locked=locked, wrap=wrap)
    assert isinstance(rotations, ListedRotations)
    turns = cupy.asarray(rotations.quaternions)
    return turns, struct(_SPACE, **box, quaternions=turns)


class PoseSearcher:
    """Searches the poses of ligands in one field, on the current device.

    Safe to use from several threads at once: each has a stream of its own.
    """

    def __init__(self, field: Field, search: PoseSearch) -> None:
        self.field, self.search = field, search
        self.bounds = FieldBounds(field)
        sizes: dict[str, float] = {
            "SHARE": SHARE,
            "TILE_A": TILE_A,
            "TILE_B": TILE_B,
            "TILE_C": TILE_C,
        }
        sizes |= {"LEAST": LEAST, "POWERS": len(SHORTFALLS), "KAPPAS": len(KAPPAS), "SLACK": SLACK}
        self._options = {n: variant_options(field, n, search, **sizes) for n in (1, 2, 3)}
        self._there = DeviceField.of(field)
        self.grid = self._there.grid
        with self._there.stream() as stream:
            self._turns, self.space = space_of(search)
            self.steepness = self._steepness()
            stream.synchronize()

    def launch(self, name: str, terms: int, blocks: int, *arguments: Any) -> None:
        """Queue a kernel for ligands of this many terms on the current stream."""
        kernel("search.cu", name, self._options[terms])((blocks,), (THREADS,), arguments)

    def _steepness(self) -> NDArray[Any]:
        """Return a table with the powers of each κ together, as a block's threads read them."""
        by_kappa = np.ascontiguousarray(np.moveaxis(self.bounds.steepness, 2, 1))
        self._table = {
            "values": cupy.asarray(by_kappa),
            "kappas": cupy.asarray(KAPPAS),
            "tops": cupy.asarray(self.bounds.tops),
        }
        return struct(_STEEPNESS, **self._table)

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        span = range(self.search.stop) if span is None else span
        found = [Poses.none()]
        if not len(span) or not len(ligands):
            return found[0]
        many, most = (
            min(MOST_LIGANDS, max(1, MOST_SCORES // len(span))),
            min(len(span), MOST_SCORES),
        )
        with self._there.device, self._there.stream():
            for begin, end in pairwise(_batches(ligands, many)):
                scores = Scores(self, ligands[begin:end], span, most)
                found.append(scores.best().moved(begin))
        return Poses.joined(found)


def _batches(ligands: Ligands, most: int) -> list[int]:
    """Return the starts of batches of consecutive ligands, and the end of the last."""
    borders = [0]
    while borders[-1] < len(ligands):
        begin = borders[-1]
        atoms = ligands.offsets[begin] + MOST_ATOMS
        fit = int(np.searchsorted(ligands.offsets, atoms, side="right")) - 1
        borders.append(max(begin + 1, min(fit, begin + most)))
    return borders


class Scores:
    """The scores in single precision of a batch of ligands in a span of poses.

    `most` poses of each ligand are scored and held at a time. +inf: undecided (see `bounds`); -inf:
    repeats another pose, or was struck out. All work is queued on the current stream; only
    `winners` waits for it.
    """

    def __init__(self, searcher: PoseSearcher, ligands: Ligands, span: range, most: int) -> None:
        self._of, self._bodies, self._span, self._most = searcher, ligands, span, most
        self._many, self._terms = len(ligands), ligands.channels.shape[1]
        self._copied, self._ligands = copy_ligands(ligands, searcher.field, searcher.search)
        self.held = cupy.empty(self._many * most, np.float32)
        # What `bound` and `threshold` of bounds.cuh find.
        self.errors = cupy.empty((self._many, len(SHORTFALLS)), np.float64)
        self.tops = cupy.empty(self._many, np.float64)
        self.greatest = cupy.empty(self._many, np.uint32)
        self._highest = cupy.empty(self._many, np.uint32)
        self.thresholds = cupy.empty(self._many, np.float32)
        self._winners = cupy.empty(self._many * _ceil(most, SHARE) * _WINNER.itemsize, np.uint8)
        self._best = cupy.empty(self._many * _WINNER.itemsize, np.uint8)
        self._launch("bound", 1, searcher.steepness, self._ligands, self.errors, self.tops)
        self.begin()

    def best(self) -> Poses:
        """Return the best poses of each ligand: a round finds the best of those that are left.

        Where not all scores can be held each round computes them again.
        """
        found, is_held = [Poses.none()], len(self._span) <= self._most
        for number in range(self._of.search.top):
            self.begin()
            for part in split(self._span, self._most):
                if not (number and is_held):
                    self.score(part)
                if number:
                    self.strike(found[-1] if is_held else Poses.joined(found))
                self.settle()
            found.append(self.winners())
            if not len(found[-1]):
                break
        return Poses.joined(found)

    def begin(self) -> None:
        """Begin a round: what was settled before counts no more, but the scores stay."""
        self._first = True

    def score(self, part: range) -> None:
        self._poses = len(part)
        plane, tiles = _tiles(self._of.search, part)
        blocks = _ceil(math.prod(tiles), WARPS) if tiles else _ceil(len(part), THREADS)
        _, tiles_b, tiles_c = tiles or (0, 0, 0)
        self._part = struct(
            _PART, begin=part.start, poses=len(part), plane=plane, tiles_b=tiles_b, tiles_c=tiles_c
        )
        self._scored = (self._of.space, self._of.grid, self._ligands, self._part)
        self._forget_greatest()
        self._launch("score", blocks, *self._scored, self.held, self.greatest)

    def strike(self, taken: Poses) -> None:
        """Strike out these poses, and those closer to one of them than the search allows."""
        ranked = _by_rank(taken, self._many)
        poses, min_squared = cupy.asarray(ranked), self._of.search.min_squared
        struck = struct(
            _TAKEN, moments=self._moments, poses=poses, min_squared=min_squared, ranks=len(ranked)
        )
        self._forget_greatest()
        # `struck` has only the address of `poses`, which must live until the kernel is queued.
        searched = (self._of.space, self._ligands, self._part)
        blocks = _ceil(self._poses, THREADS)
        self._launch("strike", blocks, *searched, struck, self.held, self.greatest)

    @cached_property
    def _moments(self) -> Any:
        """float64[n, 3, 3], there when something is first struck out: most searches do not."""
        return cupy.asarray(self._bodies.moments)

    def settle(self) -> None:
        """Score in double precision what could be the best of the round so far.

        Those are the poses of the part that are not below the threshold of `bounds`, which is that
        of the highest score of a decided pose in the round.
        """
        blocks, first = _ceil(self._poses, SHARE), np.uint32(self._first)
        bounds = (self.errors, self.tops, self.greatest)
        self._launch("threshold", 1, *bounds, first, self._highest, self.thresholds)
        self._launch("settle", blocks, *self._scored, self.thresholds, self.held, self._winners)
        self._launch("choose", 1, self._winners, np.int64(blocks), first, self._best)
        self._first = False

    def winners(self) -> Poses:
        """Return the best pose of each ligand that was settled in the round."""
        best = cupy.asnumpy(self._best, stream=cupy.cuda.get_current_stream()).view(_WINNER)
        ligand = np.flatnonzero(best["pose"] >= 0)
        return Poses(ligand, best["pose"][ligand], best["score"][ligand])

    def _forget_greatest(self) -> None:
        self.greatest.data.memset_async(0, self.greatest.nbytes)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        self._of.launch(name, self._terms, self._many * blocks, *arguments)


def copy_ligands(ligands: Ligands, field: Field, search: PoseSearch) -> tuple[Any, NDArray[Any]]:
    """Copy what kernels read of ligands to the device; return it and `Ligands` of ligands.cuh."""
    deltas = place_errors(field, ligands, search)
    starts = search.targets(ligands) - field.origin
    there, places = copy_together(
        offsets=ligands.offsets,
        places=ligands.relative,
        weights=ligands.weights,
        starts=starts * (1 / field.spacing),
        deltas=deltas,
        channels=ligands.channels,  # the narrower types come last, so that all are aligned
        doubt=doubts(deltas),
    )
    return there, struct(LIGANDS, count=len(ligands), **places)


def copy_together(**arrays: NDArray[Any]) -> tuple[Any, dict[str, int]]:
    """Copy arrays to the device at once; return the copy and their addresses in it."""
    contents = [np.ascontiguousarray(array).data for array in arrays.values()]
    there = cupy.asarray(np.frombuffer(b"".join(contents), np.uint8))
    places = accumulate((content.nbytes for content in contents), initial=there.data.ptr)
    return there, dict(zip(arrays, places, strict=False))


def _tiles(search: PoseSearch, part: range) -> tuple[int, Sequence[int]]:
    """Return the first α, and how many tiles of rotations there are along α, β, γ.

    There are no tiles where consecutive poses do as well: where most of some planes of one α is
    not in the part, or a pose is not a triple of angles.
    """
    if not isinstance(search.rotations, EulerRotations) or search.shifts.count > 1:
        return 0, ()
    n = search.rotations.n
    first, last = part.start // n**2, (part.stop - 1) // n**2
    planes = last - first + 1
    if 2 * len(part) < planes * n**2:
        return 0, ()
    return first, (_ceil(planes, TILE_A), _ceil(n, TILE_B), _ceil(n, TILE_C))


def _by_rank(taken: Poses, many: int) -> NDArray[np.int64]:
    """Return int64[ranks, many]: the first pose of every ligand, the second, …; -1 for none."""
    rank = np.arange(len(taken)) - np.searchsorted(taken.ligand, taken.ligand)
    poses = np.full((int(rank.max(initial=-1)) + 1, many), -1, np.int64)
    poses[rank, taken.ligand] = taken.pose
    return poses


def _ceil(count: int, size: int) -> int:
    return -(-count // size)

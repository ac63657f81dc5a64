"""The search on a GPU: `search.cu` through CuPy. Many ligands share a launch."""

import math
import threading
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from kernels.launch import POINTER, launch_blocks, struct
from kernels.rotation.bounds import FieldBounds, LigandBounds
from kernels.rotation.memory import MOST_SCORES
from kernels.rotation.rotations import EulerRotations, ListedRotations
from kernels.rotation.rounds import best, check, span_of
from kernels.rotation.types import Field, Ligands, Poses, Search
from kernels.sources import source

THREADS = 256
WARPS = THREADS // 32
TILE_A, TILE_B, TILE_C = 2, 4, 4  # rotations that a warp takes together
SHARE = 2048  # scores that a block settles
MOST_ATOMS = 1 << 22
PACK_BLOCKS = 1 << 12
ALIGNED = 16  # bytes

_SPACE = np.dtype(
    [("table", POINTER), ("quaternions", POINTER), ("step", "<f8")]
    + [(name, "<u4") for name in ("n", "quarter", "side", "_")]
)
_FIELD = np.dtype(
    [("values", POINTER), ("per_unit", "<f8", 3), ("share", "<f8", 3)]
    + [(name, "<u4") for name in ("nx", "ny", "nz", "_")]
)
_PART = np.dtype(
    [("begin", "<i8"), ("poses", "<i8")]
    + [(name, "<u4") for name in ("blocks", "plane", "tiles_b", "tiles_c")]
)
_LIGANDS = np.dtype(
    [
        (name, POINTER)
        for name in ("offsets", "places", "channels", "weights", "starts", "moments", "doubt")
    ]
)
_WINNER = np.dtype([("pose", "<i8"), ("score", "<f8")])


@cache
def _module(euler: bool, linear: bool, zero: bool, terms: int) -> Any:
    defines = {"EULER": int(euler), "LINEAR": int(linear), "ZERO": int(zero), "TERMS": terms}
    defines |= {"THREADS": THREADS, "SHARE": SHARE}
    defines |= {"TILE_A": TILE_A, "TILE_B": TILE_B, "TILE_C": TILE_C}
    options = ["--std=c++17", "--fmad=false"]
    options += [f"-D{name}={value}" for name, value in defines.items()]
    return cupy.RawModule(code=source("rotation", "search.cu"), options=tuple(options))


class Searcher:
    """Searches the poses of ligands in one field, on the current device.

    Safe to use from several threads at once: each has a stream of its own.
    """

    def __init__(self, field: Field, search: Search) -> None:
        self.field, self.search = field, search
        self.bounds = FieldBounds(field)
        self.device = cupy.cuda.Device()
        self._own = threading.local()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            self.space = self._space()
            self.grid = self._grid()
        stream.synchronize()

    def module(self, terms: int) -> Any:
        euler = isinstance(self.search.rotations, EulerRotations)
        linear, zero = self.field.interpolation == "linear", self.field.outside == "zero"
        return _module(euler, linear, zero, terms)

    def _space(self) -> NDArray[Any]:
        rotations, shifts = self.search.rotations, self.search.shifts
        fields: dict[str, Any] = {"side": shifts.side, "step": shifts.step}
        if isinstance(rotations, EulerRotations):
            self._turns = cupy.asarray(rotations.table)
            fields |= {"table": self._turns, "n": rotations.n, "quarter": rotations.quarter}
        else:
            assert isinstance(rotations, ListedRotations)
            self._turns = cupy.asarray(rotations.quaternions)
            fields["quaternions"] = self._turns
        return struct(_SPACE, **fields)

    def _grid(self) -> NDArray[Any]:
        channels, nx, ny, nz = self.field.values.shape
        shape = {"per_unit": 1 / self.field.spacing, "nx": nx, "ny": ny, "nz": nz}
        shape["share"] = 1 / (np.array(self.field.shape) - 1)
        self._values = nodes = cupy.asarray(self.field.values)
        if self.field.interpolation == "linear":
            self._values = cupy.empty((channels, nx + 1, ny, nz, 4), np.float32)
            launch_blocks(
                self.module(1), "pack_cells", PACK_BLOCKS, THREADS, struct(_FIELD, **shape), nodes,
                np.uint32(channels), self._values,
            )  # fmt: skip
        return struct(_FIELD, **shape, values=self._values)

    def best(
        self, ligands: Ligands, span: range | None = None, apart_from: Poses | None = None
    ) -> Poses:
        """As `reference.Searcher.best`.

        Where the scores do not fit into device memory, fewer are held at a time; the answer does
        not change.
        """
        check(self.field, ligands)
        span, taken = span_of(self.search, span), apart_from or Poses.none()
        if not len(span) or not len(ligands):
            return Poses.none()
        with self.device, self._stream():
            return self._best(ligands, span, taken, MOST_SCORES)

    def _stream(self) -> Any:
        if not hasattr(self._own, "stream"):
            self._own.stream = cupy.cuda.Stream(non_blocking=True)
        return self._own.stream

    def _best(self, ligands: Ligands, span: range, taken: Poses, most: int) -> Poses:
        found = []
        for begin, end in pairwise(_batches(ligands, max(1, most // len(span)))):
            batch, inside = ligands[begin:end], (taken.ligand >= begin) & (taken.ligand < end)
            struck = Poses(taken.ligand[inside] - begin, taken.pose[inside], taken.score[inside])
            poses = self._batch(batch, span, struck, most)
            if poses is None:
                held = min(most, len(batch) * len(span))
                poses = self._best(batch, span, struck, max(THREADS, held // 2))
            found.append(poses.moved(begin))
        return Poses.joined(found)

    def _batch(self, ligands: Ligands, span: range, taken: Poses, most: int) -> Poses | None:
        """None where there is too little device memory for what could be less."""
        bounds = LigandBounds(self.bounds, ligands, self.search)
        try:
            scores = Scores(self, ligands, bounds, min(len(span), most))
            return best(scores, bounds, span, most, taken)
        except cupy.cuda.memory.OutOfMemoryError:
            if most <= THREADS:
                raise
        cupy.get_default_memory_pool().free_all_blocks()
        return None


def _batches(ligands: Ligands, most: int) -> list[int]:
    """Where batches of consecutive ligands begin, and the end of the last."""
    borders = [0]
    while borders[-1] < len(ligands):
        begin = borders[-1]
        atoms = ligands.offsets[begin] + MOST_ATOMS
        fit = int(np.searchsorted(ligands.offsets, atoms, side="right")) - 1
        borders.append(max(begin + 1, min(fit, begin + most)))
    return borders


class Scores:
    """The scores of a batch of ligands: `rounds.Scores`. Works on the current stream."""

    def __init__(
        self, searcher: Searcher, ligands: Ligands, bounds: LigandBounds, most: int
    ) -> None:
        self._of, self._many = searcher, len(ligands)
        self._module = searcher.module(ligands.channels.shape[1])
        starts = searcher.search.targets(ligands) - searcher.field.origin
        arrays: dict[str, NDArray[Any]] = {
            "offsets": ligands.offsets,
            "places": ligands.relative,
            "channels": ligands.channels,
            "weights": ligands.weights,
            "starts": starts * (1 / searcher.field.spacing),
            "moments": ligands.moments,
            "doubt": bounds.doubt,
        }
        self._copied, places = _copied(arrays)
        self._ligands = struct(_LIGANDS, **places)
        self.held = cupy.empty(self._many * most, np.float32)
        self._greatest = cupy.empty(self._many, np.uint32)
        blocks = self._many * _ceil(most, SHARE)
        self._winners = cupy.empty(blocks * _WINNER.itemsize, np.uint8)
        self._best = cupy.empty(self._many * _WINNER.itemsize, np.uint8)

    def score(self, part: range) -> None:
        self._part = part
        plane, tiles = _tiles(self._of.search, part)
        blocks = _ceil(math.prod(tiles), WARPS) if tiles else _ceil(len(part), THREADS)
        self._forget_greatest()
        self._launch(
            "score", blocks, self._of.space, self._of.grid, self._ligands,
            self._argument(blocks, plane, tiles), self.held, self._greatest,
        )  # fmt: skip

    def strike(self, taken: Poses) -> None:
        for poses in _by_rank(taken, self._many):
            struck, blocks = cupy.asarray(poses), _ceil(len(self._part), THREADS)
            self._forget_greatest()
            self._launch(
                "strike", blocks, self._of.space, self._ligands, self._argument(blocks), struck,
                np.float64(self._of.search.min_rmsd**2), self.held, self._greatest,
            )  # fmt: skip

    def greatest(self) -> NDArray[np.float32]:
        return _scores_of(cupy.asnumpy(self._greatest, stream=cupy.cuda.get_current_stream()))

    def settle(self, thresholds: NDArray[np.float32]) -> Poses:
        blocks = _ceil(len(self._part), SHARE)
        self._launch(
            "settle", blocks, self._of.space, self._of.grid, self._ligands,
            self._argument(blocks), cupy.asarray(thresholds), self.held, self._winners,
        )  # fmt: skip
        self._launch("choose", 1, self._winners, np.int64(blocks), self._best)
        best = cupy.asnumpy(self._best, stream=cupy.cuda.get_current_stream()).view(_WINNER)
        ligand = np.flatnonzero(best["pose"] >= 0)
        return Poses(ligand, best["pose"][ligand], best["score"][ligand])

    def _argument(self, blocks: int, plane: int = 0, tiles: Sequence[int] = ()) -> NDArray[Any]:
        _, tiles_b, tiles_c = tiles or (0, 0, 0)
        return struct(
            _PART, begin=self._part.start, poses=len(self._part), blocks=blocks, plane=plane,
            tiles_b=tiles_b, tiles_c=tiles_c,
        )  # fmt: skip

    def _forget_greatest(self) -> None:
        self._greatest.data.memset_async(0, self._greatest.nbytes)

    def _launch(self, name: str, blocks: int, *arguments: Any) -> None:
        launch_blocks(self._module, name, self._many * blocks, THREADS, *arguments)


def _copied(arrays: dict[str, NDArray[Any]]) -> tuple[Any, dict[str, int]]:
    """All of them on the device by one copy, and the address of each."""
    contents = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays.values()]
    sizes = (ALIGNED * _ceil(len(content), ALIGNED) for content in contents)
    *begins, size = accumulate(sizes, initial=0)
    packed = np.empty(size, np.uint8)
    for begin, content in zip(begins, contents, strict=True):
        packed[begin : begin + len(content)] = content
    there = cupy.asarray(packed)
    return there, {name: there.data.ptr + at for name, at in zip(arrays, begins, strict=True)}


def _tiles(search: Search, part: range) -> tuple[int, Sequence[int]]:
    """The first α, and how many tiles of rotations there are along α, β, γ.

    None where consecutive poses do as well: where most of some planes of one α is not in the part,
    or a pose is not a triple of angles.
    """
    if not isinstance(search.rotations, EulerRotations) or search.shifts.count > 1:
        return 0, ()
    n = search.rotations.n
    first, last = part.start // n**2, (part.stop - 1) // n**2
    planes = last - first + 1
    if 2 * len(part) < planes * n**2:
        return 0, ()
    return first, (_ceil(planes, TILE_A), _ceil(n, TILE_B), _ceil(n, TILE_C))


def _by_rank(taken: Poses, many: int) -> list[NDArray[np.int64]]:
    """int64[many] each: the first pose of every ligand, the second, …; -1: there is none."""
    starts = np.searchsorted(taken.ligand, np.arange(many))
    rank = np.arange(len(taken)) - starts[taken.ligand]
    out = [np.full(many, -1, np.int64) for _ in range(int(rank.max(initial=-1)) + 1)]
    for ligand, pose, place in zip(taken.ligand, taken.pose, rank, strict=True):
        out[place][ligand] = pose
    return out


def _scores_of(keys: NDArray[np.uint32]) -> NDArray[np.float32]:
    """From the order of unsigned integers that the kernels use; 0 is no score."""
    positive = keys >> 31 == 1
    scores = np.where(positive, keys & 0x7FFFFFFF, ~keys).astype(np.uint32).view(np.float32)
    return np.where(keys == 0, np.float32(-np.inf), scores)


def _ceil(count: int, size: int) -> int:
    return -(-count // size)

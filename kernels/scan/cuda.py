"""The exact scan on a GPU: `pack.cu`, `search.cu` and `sweep.cu` through CuPy.

A scanner holds the patterns and their index on one device. A `ScanLane` is a stream with buffers of
its own: what is submitted to one lane is copied while the kernels of another run.
"""

import threading
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch, launch_blocks, struct
from multigpu.kernels.device.pinned import pinned
from multigpu.kernels.scan.cuda_sweep import CROWDED, CountedQueries, compiled, queries_of
from multigpu.kernels.scan.seeds import (
    EXPECTED_BASES,
    EXPECTED_N,
    GPU,
    LONGEST_RUN,
    SeedPlan,
    bits_of,
    plan_seeds,
)
from multigpu.kernels.scan.types import (
    BadBaseError,
    Chunk,
    Hits,
    Limits,
    Patterns,
    ScanRules,
    TooManyHitsError,
)

THREADS = 256
BLOCKS_PER_SM = 8  # of THREADS each: all that fit
TILE = 1024  # positions that a warp looks at together, as in scan.cuh
EMPTY_TABLE = 1 << 18  # pairs that the first table has room for, twice over
MOST_BLOCKS = 1 << 20
FETCH_BLOCKS = 64  # enough for the bus
THREADS_OF_FEW = 32  # where there is one thread for each pattern
MOST_HITS = 1 << 26  # of one submission; beyond it the chunk is split
EAGER_HITS = 1024  # copied back together with their count
MAX_BASES = 1 << 31  # positions are 32 bits wide
DEVICE_STEPS = ("copy in", "kernels", "copy out")  # of a scan on the device
HIT = np.dtype([("record", "<i4"), ("pattern", "<i4"), ("start", "<i4"), ("errors", "<i4")])
HEADER = np.dtype(
    [("count", "<u8")]
    + [(name, "<u4") for name in ("full", "illegal", "collected", "crowded")]
    + [("_", "<u4", 2)]
)
HEADER_PLACES = {name: int(field[1]) for name, field in (HEADER.fields or {}).items()}

PATTERNS = np.dtype(
    [(name, POINTER) for name in ("planes", "words", "lengths", "anchors", "anchor")]
    + [("n", "<u4"), ("strands", "<u4")]
)
_SAMPLES = np.dtype(
    [("planes", POINTER), ("offsets", POINTER)] + [(name, "<u4") for name in ("records", "bases")]
)
_INDEX = np.dtype(
    [(name, POINTER) for name in ("clean", "blank", "heads", "entries", "masks", "seeded")]
    + [(f"{name}_shift", "<u4") for name in ("clean", "blank", "bucket")]
    + [(name, "<u4") for name in ("n_masks", "n_seeded", "k", "blanks", "_")]
)
_HITS = np.dtype(
    [(name, POINTER) for name in ("list", "keys", "values", "found", "greatest", "count", "full")]
    + [("capacity", "<u4"), ("_", "<u4")]
)


def _filled(size: int, byte: int, dtype: Any) -> Any:
    """Return a device array with every byte set, without a kernel of CuPy's."""
    array = cupy.empty(size, dtype)
    array.data.memset_async(byte, array.nbytes)
    return array


def pattern_arrays(patterns: Patterns, on_device: Callable[[NDArray[Any]], Any]) -> dict[str, Any]:
    """Return the fields of PATTERNS without anchors. on_device: copies an array there."""
    # A word of padding comes after each.
    words = np.r_[0, np.cumsum((patterns.lengths + 31) // 32 + 1)]
    arrays = {
        "words": on_device(words),
        "lengths": on_device(patterns.lengths.astype(np.int32)),
        "planes": _filled(4 * (int(words[-1]) + 2), 0xFF, np.uint32),
        "anchors": cupy.empty(len(patterns), np.int32),
        # In fours; what comes after them matches nothing.
        "anchor": _filled(-(-len(patterns) // 4) * 16, 0, np.uint32),
    }
    n, sets, offsets = len(patterns), on_device(patterns.sets), on_device(patterns.offsets)
    arguments = (sets, offsets, arrays["words"], np.uint32(n), arrays["planes"])
    launch_blocks(compiled("pack.cu"), "pack_patterns", min(n, MOST_BLOCKS), THREADS, *arguments)
    return arrays


class DeviceScanner:
    """Patterns on the current device, and a lane for each thread that searches for them."""

    module: Any  # has the kernel that collects first hits

    def __init__(self, patterns: Patterns, rules: ScanRules) -> None:
        self.patterns, self.rules = patterns, rules
        self.device = cupy.cuda.Device()
        self._own = threading.local()

    def search(
        self, samples: NDArray[Any], hits: NDArray[Any], crowded: NDArray[Any], bases: int
    ) -> None:
        """Queue the search on the current stream; all but `bases` are arguments of the kernels.

        crowded  takes the tiles that are left to `search_crowded`
        """
        raise NotImplementedError

    def search_crowded(
        self, samples: NDArray[Any], hits: NDArray[Any], crowded: NDArray[Any], bases: int
    ) -> None:
        """Queue the search in crowded tiles; it may find what was found before."""

    def find(self, chunk: Chunk) -> NDArray[Any]:
        """Return what `ScanLane.find` does."""
        with self.device:
            if not hasattr(self._own, "lane"):
                self._own.lane = ScanLane()
            lane: ScanLane = self._own.lane
            return lane.find(self, chunk)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of `DEVICE_STEPS`; see `ChunkScanner`."""
        lane: ScanLane = self._own.lane
        return lane.seconds()

    def close(self) -> None:
        """Give the lanes up: they know this scanner, so that without it both would stay."""
        self._own = threading.local()


class ExactScanner(DeviceScanner):
    """Searches chunks for the same patterns on the current device.

    bases: about how many are going to be searched; nothing but speed depends on it. `scan` may be
    called from several threads at once: each gets a lane of its own.
    """

    def __init__(self, patterns: Patterns, rules: ScanRules, bases: float = EXPECTED_BASES) -> None:
        super().__init__(patterns, rules)
        self._bases = bases
        self._blocks = int(self.device.attributes["MultiProcessorCount"]) * BLOCKS_PER_SM
        self.longest = int(patterns.lengths.max())
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._fetched: list[NDArray[Any]] = []  # page-locked, until the device has read them
        with self._stream:
            self._make()
        self._stream.synchronize()
        self._fetched.clear()

    def _make(self) -> None:
        """Make planes of patterns, the plan of seeds, anchors and the index; all on the device."""
        n = len(self.patterns)
        self._arrays = pattern_arrays(self.patterns, self._on_device)
        self.arguments = struct(PATTERNS, **self._arrays, n=n, strands=self.patterns.strands)
        runs, arrays = cupy.empty(n, np.int32), self._arrays
        counted = (arrays["planes"], arrays["words"], np.uint32(n), np.uint32(LONGEST_RUN), runs)
        launch(compiled("pack.cu"), "longest_runs", n, THREADS_OF_FEW, *counted)
        found = runs.get()
        share = 0.0 if self.rules.strict else EXPECTED_N  # strict: the index answers for no others
        self.plan: SeedPlan = plan_seeds(found, GPU, self._bases, share)
        self._kept = {"FIRST": int(self.rules.first), "BEST": 0}
        self.module = compiled(
            "search.cu", **self._kept, STRICT=int(self.rules.strict), STRIDE=self.plan.stride
        )
        placed = (np.uint32(self.plan.run), arrays["anchors"], arrays["anchor"])
        launch(self.module, "place_anchors", n, THREADS_OF_FEW, self.arguments, *placed)
        has_seed = found >= self.plan.run
        self._with_seed = np.flatnonzero(has_seed)
        self.seeded = self._on_device(self._with_seed.astype(np.int32))
        self._unseeded_queries = self._queries_of(np.flatnonzero(~has_seed))
        self._fill_index()

    def _on_device(self, values: NDArray[Any]) -> Any:
        """Return a copy brought over by a kernel: the copy engine may be busy with letters."""
        copy = pinned(values.nbytes).view(values.dtype)
        copy[:] = values
        self._fetched.append(copy)
        out = cupy.empty(len(values), values.dtype)
        where, size = np.uint64(copy.ctypes.data), np.int64(values.nbytes)
        blocks = min(1 + values.nbytes // (16 * THREADS), FETCH_BLOCKS)
        launch_blocks(compiled("pack.cu"), "fetch", blocks, THREADS, where, size, out)
        return out

    def _fill_index(self) -> None:
        plan, masks = self.plan, self.plan.masks()
        seeds = len(self.seeded) * plan.stride
        entries = seeds * len(masks)
        clean_bits = min(27, bits_of(64 * seeds))
        blank_bits = min(27, bits_of(16 * (entries - seeds)))
        bucket_bits = min(28, bits_of(entries))
        self._index_arrays = {
            "clean": _filled(1 << (clean_bits - 5), 0, np.uint32),
            "blank": _filled(1 << (blank_bits - 5), 0, np.uint32),
            "heads": _filled(1 << bucket_bits, 0xFF, np.int32),
            "entries": cupy.empty((entries, 2), np.int32),
            "masks": self._on_device(masks),
            "seeded": self.seeded,
        }
        self.index = struct(
            _INDEX,
            **self._index_arrays,
            clean_shift=32 - clean_bits,
            blank_shift=32 - blank_bits,
            bucket_shift=32 - bucket_bits,
            n_masks=len(masks),
            n_seeded=len(self.seeded),
            k=plan.k,
            blanks=plan.blanks,
        )
        if entries:
            blocks = min(-(-entries // THREADS), MOST_BLOCKS)
            launch_blocks(self.module, "fill_index", blocks, THREADS, self.arguments, self.index)

    def _queries_of(self, chosen: NDArray[np.int64]) -> list[CountedQueries]:
        limits = Limits.of(self.patterns, 0)
        return queries_of(self.patterns, limits, chosen, self.rules.strict, self._kept)

    @cached_property
    def _seeded_queries(self) -> list[CountedQueries]:
        return self._queries_of(self._with_seed)

    def search(
        self, samples: NDArray[Any], hits: NDArray[Any], crowded: NDArray[Any], bases: int
    ) -> None:
        if not bases:
            return
        if len(self.seeded):
            probed = (samples, self.arguments, self.index, hits)
            launch(self.module, "probe", -(-bases // 32), THREADS, *probed)
            if not self.rules.strict:  # else no window with an ambiguous base has a seed
                sizes = map(np.uint32, (self.plan.k, self.plan.blanks, self.longest))
                compared = (samples, self.arguments, hits, *sizes, crowded)
                launch_blocks(self.module, "direct", self._blocks, THREADS, *compared)
        for queries in self._unseeded_queries:
            queries.search(samples, self.arguments, hits, bases)

    def search_crowded(
        self, samples: NDArray[Any], hits: NDArray[Any], crowded: NDArray[Any], bases: int
    ) -> None:
        for queries in self._seeded_queries:
            queries.search(samples, self.arguments, hits, bases, crowded)

    def scan(self, chunk: Chunk) -> Hits:
        found = to_hits(self.find(chunk), self.patterns)
        return found.chosen(self.rules.wanted, self.patterns.strands, by_end=False)


class ScanLane:
    """A stream of the current device; `find` takes a chunk through, and frees the memory."""

    _letters: Any
    _offsets: Any
    _planes: Any
    _tiles: Any
    _out: Any
    _table: Any
    _found: Any

    def __init__(self) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.capacity = EMPTY_TABLE
        self._eager = pinned(HEADER.itemsize + EAGER_HITS * HIT.itemsize)
        self._marks = [cupy.cuda.Event() for _ in range(len(DEVICE_STEPS) + 1)]
        self._release()

    def _release(self) -> None:
        self._letters = self._offsets = self._planes = self._tiles = None
        self._out = self._table = self._found = None

    def find(self, scanner: DeviceScanner, chunk: Chunk) -> NDArray[Any]:
        """Return `result`. Raises BadBaseError, and MemoryError: search in pieces."""
        try:
            self.upload(chunk)
            self.search(scanner)
            return self.result()
        finally:
            self.stream.synchronize()  # what is queued uses the buffers
            self._release()

    def upload(self, chunk: Chunk) -> None:
        """Start copying; the chunk, in pinned memory, must not change before `result` returned."""
        self._bases, self._records = len(chunk.letters), len(chunk.offsets) - 1
        if self._bases >= MAX_BASES:
            raise MemoryError(f"{self._bases} bases at once; fewer than {MAX_BASES} are possible")
        self._marks[0].record(self.stream)
        with self.stream:
            self._letters = cupy.empty(max(1, self._bases), np.uint8)
            self._offsets = cupy.empty(self._records + 1, np.int64)
            self._copy_in(self._letters, chunk.letters)
            self._copy_in(self._offsets, chunk.offsets)
        self._marks[1].record(self.stream)

    def _copy_in(self, target: Any, values: NDArray[Any]) -> None:
        origin, kind = values.ctypes.data, runtime.memcpyHostToDevice
        runtime.memcpyAsync(target.data.ptr, origin, values.nbytes, kind, self.stream.ptr)

    def search(self, scanner: DeviceScanner) -> None:
        """Queue the search in the uploaded chunk and the way back of the hits."""
        self._scanner = scanner
        words, tiles = -(-self._bases // 32) + 3, -(-self._bases // TILE)
        with self.stream:
            self._planes = cupy.empty(4 * words, np.uint32)
            self._tiles = cupy.empty(max(1, tiles), np.uint8)
            self._tiles.data.memset_async(0, max(1, tiles))
            hits = self._empty_results()
            packed = (np.uint32(self._bases), np.uint32(words), self._planes)
            illegal = self._header("illegal")
            launch(compiled("pack.cu"), "pack", words, THREADS, self._letters, *packed, illegal)
            samples = struct(
                _SAMPLES, planes=self._planes, offsets=self._offsets, records=self._records,
                bases=self._bases,
            )  # fmt: skip
            crowded = struct(
                CROWDED, tiles=self._tiles, any=self._header("crowded"), n=tiles,
                reach=1 + int(scanner.patterns.lengths.max()) // TILE,
            )  # fmt: skip
            self._arguments = (samples, hits, crowded, self._bases)
            scanner.search(*self._arguments)
            self._collect(hits)

    def _search_crowded(self) -> None:
        """Queue the search of the tiles that were left over, and the way back of all hits."""
        with self.stream:
            for name in ("crowded", "collected"):
                self._header(name).data.memset_async(0, 4)
            self._scanner.search_crowded(*self._arguments)
            self._collect(self._arguments[1])

    def _collect(self, hits: NDArray[Any]) -> None:
        scanner = self._scanner
        if scanner.rules.first:
            strands, counted = np.uint32(scanner.patterns.strands), self._header("collected")
            threads = -(-self.capacity // 4)
            launch(scanner.module, "collect", threads, THREADS, hits, strands, counted)
        self._marks[2].record(self.stream)
        eager, kind = self._eager, runtime.memcpyDeviceToHost
        runtime.memcpyAsync(
            eager.ctypes.data, self._out.data.ptr, eager.nbytes, kind, self.stream.ptr
        )
        self._marks[3].record(self.stream)

    def _empty_results(self) -> NDArray[Any]:
        first = self._scanner.rules.first
        listed = max(EAGER_HITS, self.capacity // 2 if first else self.capacity)
        self._out = cupy.empty(HEADER.itemsize + listed * HIT.itemsize, np.uint8)
        self._out.data.memset_async(0, self._eager.nbytes)  # all that is copied back unasked
        extra: dict[str, Any] = {}
        if first:
            self._table = cupy.empty(2 * self.capacity, np.uint64)
            self._found = cupy.empty(2 * self._records, np.uint32)
            self._table.data.memset_async(0xFF, 16 * self.capacity)
            self._found.data.memset_async(0, 8 * self._records)
            extra = {
                "keys": self._table,
                "values": self._table[self.capacity :],
                "found": self._found,
                "greatest": self._found[self._records :],
            }
        return struct(
            _HITS, list=self._out[HEADER.itemsize :], count=self._header("count"),
            full=self._header("full"), capacity=self.capacity, **extra,
        )  # fmt: skip

    def _header(self, name: str) -> Any:
        """Return the place of a field of the results' header."""
        return self._out[HEADER_PLACES[name] :]

    def result(self) -> NDArray[Any]:
        """Return the hits until the next `search`, HIT[n], in no order, some twice."""
        while True:
            self.stream.synchronize()
            header = self._eager[: HEADER.itemsize].view(HEADER)[0]
            if header["illegal"]:
                raise BadBaseError(int(~header["illegal"]))
            if header["full"]:
                self._grow(int(header["count"]))
                self.search(self._scanner)
            elif header["crowded"]:
                self._search_crowded()
            else:
                first = self._scanner.rules.first
                return self._hits(int(header["collected" if first else "count"]))

    def seconds(self) -> dict[str, float]:
        """Return the seconds of the last chunk."""
        marks = pairwise(self._marks)
        spent = [cupy.cuda.get_elapsed_time(begin, end) / 1e3 for begin, end in marks]
        return dict(zip(DEVICE_STEPS, spent, strict=True))

    def _grow(self, count: int) -> None:
        """Make room for more hits. A table is only full; a list says how long it should be."""
        first = self._scanner.rules.first
        wanted = 8 * self.capacity if first else max(2 * self.capacity, 1 << count.bit_length())
        if self.capacity >= MOST_HITS or wanted > 8 * MOST_HITS:
            raise TooManyHitsError(f"more than {MOST_HITS} hits at once")
        self.capacity = min(MOST_HITS, wanted)

    def _hits(self, count: int) -> NDArray[Any]:
        span = slice(HEADER.itemsize, HEADER.itemsize + count * HIT.itemsize)
        if count <= EAGER_HITS:
            raw = self._eager[span]
        else:
            raw = cupy.asnumpy(self._out[span], stream=self.stream)
        return raw.view(HIT)


def to_hits(found: NDArray[Any], patterns: Patterns) -> Hits:
    """Return what a lane found as hits that are as long as their patterns."""
    record, pattern, start, errors = found.view(np.int32).reshape(-1, 4).T.copy()
    return Hits.at_places(record, pattern, start, errors, patterns.lengths)

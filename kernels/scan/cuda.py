"""The scan on a GPU: `pack.cu` and `search.cu` through CuPy.

A `Scanner` holds the patterns and their index on one device. A `Lane` is a stream with buffers of
its own: what is submitted to one lane is copied while the kernels of another run.
"""

import threading
from functools import cache
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from kernels.scan.seeds import LONGEST_RUN, Costs, SeedPlan, plan_seeds
from kernels.scan.types import BadBaseError, Chunk, Hits, Patterns, Rules, split

COSTS = Costs(probe=30.0, candidate=200.0, direct=8.0, entry=300.0, max_entries=1 << 27)
THREADS = 256
BLOCKS_PER_SM = 8  # of THREADS each: all that fit
EMPTY_TABLE = 1 << 18  # pairs that the first table has room for, twice over
MOST_HITS = 1 << 26  # of one submission; beyond it the chunk is split
EAGER_HITS = 1024  # copied back together with their count
MAX_BASES = 1 << 31  # positions are 32 bits wide
HIT = np.dtype([("record", "<i4"), ("pattern", "<i4"), ("start", "<i4"), ("_", "<i4")])
HEADER = np.dtype([("count", "<u4"), ("full", "<u4"), ("illegal", "<u4"), ("collected", "<u4")])

_POINTER = "<u8"
_PATTERNS = np.dtype(
    [(name, _POINTER) for name in ("planes", "words", "lengths", "anchors", "anchor")]
    + [("n", "<u4"), ("strands", "<u4")]
)
_SAMPLES = np.dtype(
    [("planes", _POINTER), ("offsets", _POINTER)]
    + [(name, "<u4") for name in ("records", "bases", "limit", "_")]
)
_INDEX = np.dtype(
    [(name, _POINTER) for name in ("clean", "blank", "heads", "entries", "masks", "seeded")]
    + [(f"{name}_shift", "<u4") for name in ("clean", "blank", "bucket")]
    + [(name, "<u4") for name in ("n_masks", "n_seeded", "k", "blanks", "_")]
)
_HITS = np.dtype(
    [(name, _POINTER) for name in ("list", "keys", "values", "found", "greatest", "count")]
    + [("capacity", "<u4"), ("_", "<u4")]
)


def source(name: str) -> str:
    """A .cu file with its include put in place, so that CuPy's cache sees every change."""
    folder = Path(__file__).parent
    header = (folder / "planes.cuh").read_text()
    return (folder / name).read_text().replace('#include "planes.cuh"', header)


@cache
def _pack_module() -> Any:
    return cupy.RawModule(code=source("pack.cu"), options=("--std=c++17",))


@cache
def _search_module(stride: int, first: bool, strict: bool) -> Any:
    defines = {"STRIDE": stride, "FIRST": int(first), "STRICT": int(strict)}
    options = ("--std=c++17", *(f"-D{name}={value}" for name, value in defines.items()))
    return cupy.RawModule(code=source("search.cu"), options=options)


def _struct(dtype: np.dtype[Any], **fields: Any) -> NDArray[Any]:
    """A kernel's struct argument: device arrays become their addresses."""
    out = np.zeros((), dtype)
    for name, value in fields.items():
        out[name] = value.data.ptr if isinstance(value, cupy.ndarray) else value
    return out


def _filled(size: int, byte: int, dtype: Any) -> Any:
    """A device array with every byte set, without a kernel of CuPy's."""
    array = cupy.empty(size, dtype)
    array.data.memset_async(byte, array.nbytes)
    return array


def _bits(count: int) -> int:
    return max(6, count.bit_length())


class Scanner:
    """Searches chunks for the same patterns on the current device.

    `scan` may be called from several threads at once: each gets a lane of its own.
    """

    def __init__(self, patterns: Patterns, rules: Rules) -> None:
        self.patterns, self.rules = patterns, rules
        self.device = cupy.cuda.Device()
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self._own = threading.local()
        with self.stream:
            self._arrays = self._pattern_arrays()
            runs = cupy.empty(len(patterns), np.int32)
            self.arguments = self._pattern_struct()
            longest = np.uint32(LONGEST_RUN)
            n = np.uint32(len(patterns))
            self._launch_each(
                _pack_module(), "longest_runs",
                (self._arrays["planes"], self._arrays["words"], n, longest, runs),
            )  # fmt: skip
            self._plan(runs.get())
        self.stream.synchronize()

    def _pattern_arrays(self) -> dict[str, Any]:
        patterns = self.patterns
        words = np.zeros(len(patterns) + 1, np.int64)
        np.cumsum((patterns.lengths + 31) // 32 + 1, out=words[1:])  # a word of padding behind each
        arrays = {
            "words": cupy.asarray(words),
            "lengths": cupy.asarray(patterns.lengths.astype(np.int32)),
            "planes": _filled(4 * (int(words[-1]) + 2), 0xFF, np.uint32),
            "anchors": cupy.empty(len(patterns), np.int32),
            "anchor": cupy.empty((len(patterns), 4), np.uint32),
        }
        offsets, sets = cupy.asarray(patterns.offsets), cupy.empty(len(patterns.sets), np.uint8)
        sets.set(patterns.sets, self.stream)
        _pack_module().get_function("pack_patterns")(
            (min(len(patterns), 1 << 20),), (THREADS,),
            (sets, offsets, arrays["words"], np.uint32(len(patterns)), arrays["planes"]),
        )  # fmt: skip
        return arrays

    def _pattern_struct(self) -> NDArray[Any]:
        size = {"n": len(self.patterns), "strands": self.patterns.strands}
        return _struct(_PATTERNS, **self._arrays, **size)

    def _launch_each(self, module: Any, name: str, arguments: tuple[Any, ...]) -> None:
        """One thread a pattern."""
        blocks = (len(self.patterns) + 31) // 32
        module.get_function(name)((blocks,), (32,), arguments)

    def _plan(self, runs: NDArray[np.int32]) -> None:
        """Chooses the seeds, places the anchors and fills the index."""
        self.plan: SeedPlan = plan_seeds(runs, COSTS)
        self.module = _search_module(self.plan.stride, self.rules.first, self.rules.strict)
        arrays = self._arrays
        self._launch_each(
            self.module, "place_anchors",
            (self.arguments, np.uint32(self.plan.run), arrays["anchors"], arrays["anchor"]),
        )  # fmt: skip
        has_seed = runs >= self.plan.run
        self.seeded = self._group(np.flatnonzero(has_seed).astype(np.int32))
        self.unseeded = self._group(np.flatnonzero(~has_seed).astype(np.int32))
        self._fill_index()
        self.max_anchor = int(self.patterns.lengths.max())

    def _group(self, chosen: NDArray[np.int32]) -> tuple[Any, Any, int]:
        """(patterns, their anchor windows, how many of those with padding)."""
        padded = -(-len(chosen) // 4) * 4
        ids, anchor = cupy.asarray(chosen), cupy.empty((padded, 4), np.uint32)
        if padded:
            self.module.get_function("gather_anchors")(
                (-(-padded // THREADS),), (THREADS,),
                (self.arguments, ids, np.uint32(len(chosen)), np.uint32(padded), anchor),
            )  # fmt: skip
        return ids, anchor, padded

    def _fill_index(self) -> None:
        plan, masks = self.plan, self.plan.masks()
        seeds = len(self.seeded[0]) * plan.stride
        entries = seeds * len(masks)
        clean_bits, blank_bits = _bits(64 * seeds), min(27, _bits(16 * (entries - seeds)))
        bucket_bits = min(28, _bits(entries))
        self._index_arrays = {
            "clean": _filled(1 << (clean_bits - 5), 0, np.uint32),
            "blank": _filled(1 << (blank_bits - 5), 0, np.uint32),
            "heads": _filled(1 << bucket_bits, 0xFF, np.int32),
            "entries": cupy.empty((entries, 2), np.int32),
            "masks": cupy.asarray(masks),
            "seeded": self.seeded[0],
        }
        self.index = _struct(
            _INDEX,
            **self._index_arrays,
            clean_shift=32 - clean_bits,
            blank_shift=32 - blank_bits,
            bucket_shift=32 - bucket_bits,
            n_masks=len(masks),
            n_seeded=len(self.seeded[0]),
            k=plan.k,
            blanks=plan.blanks,
        )
        if entries:
            blocks = min(-(-entries // THREADS), 1 << 20)
            self.module.get_function("fill_index")(
                (blocks,), (THREADS,), (self.arguments, self.index)
            )

    def lane(self) -> "Lane":
        """A new lane. Keep it: its buffers cost more than its work."""
        with self.device:
            return Lane(self)

    def scan(self, chunk: Chunk) -> Hits:
        """All hits of the chunk. Raises BadBaseError at the first illegal letter.

        A chunk that needs more device memory than there is, or has more hits than a submission
        may have, is cut in two; the result does not change.
        """
        if not hasattr(self._own, "lane"):
            self._own.lane = self.lane()
        lane: Lane = self._own.lane
        with self.device:
            return self._scan(lane, chunk, len(chunk.letters)).ordered(
                self.patterns.strands, self.rules.first
            )

    def _scan(self, lane: "Lane", chunk: Chunk, limit: int) -> Hits:
        try:
            if len(chunk.letters) < MAX_BASES:
                lane.submit(chunk, limit)
                hits = lane.result()
                if hits is not None:
                    return hits
        except cupy.cuda.memory.OutOfMemoryError:
            lane.release()
            cupy.get_default_memory_pool().free_all_blocks()
            if limit <= 1:
                raise
        parts = split(chunk, limit, int(self.patterns.lengths.max()))
        return Hits.joined([part.moved(self._scan(lane, part.chunk, part.limit)) for part in parts])


class Lane:
    """A stream, its buffers, and the chunk that is on its way through them."""

    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.capacity = EMPTY_TABLE
        self._eager = pinned(HEADER.itemsize + EAGER_HITS * HIT.itemsize)
        self.release()

    def release(self) -> None:
        """Gives the device memory back; the next submission takes what it needs."""
        self._letters = self._planes = self._offsets = self._found = None
        self._out = self._table = None

    def _room(self, held: Any, size: int, dtype: Any) -> Any:
        """`held` if it is large enough, else a new array with a little more than `size`."""
        if held is not None and held.size >= size:
            return held
        return cupy.empty(size + size // 8, dtype)

    def submit(self, chunk: Chunk, limit: int | None = None) -> None:
        """Starts the search; returns at once when the letters lie in pinned memory.

        Hits that begin at `limit` or later are left out. The chunk must not change before
        `result` has returned.
        """
        n, records = len(chunk.letters), len(chunk.offsets) - 1
        if n >= MAX_BASES:
            raise ValueError(f"{n} bases in one submission; fewer than {MAX_BASES} are possible")
        self._chunk, self._limit = chunk, n if limit is None else limit
        words = -(-n // 32) + 3
        with self.stream:
            self._letters = self._room(self._letters, n + 32, np.uint8)
            self._planes = self._room(self._planes, 4 * words, np.uint32)
            self._offsets = self._room(self._offsets, records + 1, np.int64)
            self._copy_in(self._letters, chunk.letters)
            self._copy_in(self._offsets, chunk.offsets)
            self._search(n, records, words)

    def _copy_in(self, target: Any, values: NDArray[Any]) -> None:
        runtime.memcpyAsync(
            target.data.ptr, values.ctypes.data, values.nbytes,
            runtime.memcpyHostToDevice, self.stream.ptr,
        )  # fmt: skip

    def _search(self, n: int, records: int, words: int) -> None:
        """Everything behind the copy of the letters."""
        scanner = self.scanner
        self._bases, self._records = n, records
        hits = self._empty_results(records)
        illegal = self._out[8:12]
        _pack_module().get_function("pack")(
            (-(-words // THREADS),), (THREADS,),
            (self._letters, np.uint32(n), np.uint32(words), self._planes, illegal),
        )  # fmt: skip
        samples = _struct(
            _SAMPLES, planes=self._planes, offsets=self._offsets, records=records, bases=n,
            limit=self._limit,
        )  # fmt: skip
        if n and records:
            self._find(samples, hits, words)
        self._copy_out()

    def _empty_results(self, records: int) -> NDArray[Any]:
        first = self.scanner.rules.first
        listed = self.capacity // 2 if first else self.capacity
        self._out = self._room(self._out, HEADER.itemsize + listed * HIT.itemsize, np.uint8)
        self._out.data.memset_async(0, HEADER.itemsize)
        extra: dict[str, Any] = {}
        if first:
            self._table = self._room(self._table, 2 * self.capacity, np.uint64)
            self._found = self._room(self._found, 2 * records, np.uint32)
            self._table[: 2 * self.capacity].data.memset_async(0xFF, 16 * self.capacity)
            self._found.data.memset_async(0, 8 * records)
            extra = {
                "keys": self._table,
                "values": self._table[self.capacity :],
                "found": self._found,
                "greatest": self._found[records:],
            }
        out = self._out
        return _struct(
            _HITS, list=out[HEADER.itemsize :], count=out, capacity=self.capacity, **extra
        )

    def _find(self, samples: NDArray[Any], hits: NDArray[Any], words: int) -> None:
        scanner, plan, module = self.scanner, self.scanner.plan, self.scanner.module
        patterns = scanner.arguments
        many = _multiprocessors(scanner.device.id) * BLOCKS_PER_SM
        if scanner.seeded[2]:
            module.get_function("probe")(
                (-(-words // THREADS),), (THREADS,), (samples, patterns, scanner.index, hits)
            )
        for group, every in ((scanner.unseeded, 1), (scanner.seeded, 0)):
            chosen, anchor, padded = group
            if padded and (every or not scanner.rules.strict):
                module.get_function("direct")(
                    (many,), (THREADS,),
                    (
                        samples, patterns, hits, chosen, anchor, np.uint32(padded),
                        np.uint32(plan.k), np.uint32(plan.blanks), np.uint32(every),
                        np.uint32(scanner.max_anchor),
                    ),
                )  # fmt: skip
        if scanner.rules.first:
            strands = np.uint32(scanner.patterns.strands)
            module.get_function("collect")((many,), (THREADS,), (hits, strands, self._out[12:16]))

    def _copy_out(self) -> None:
        size = min(self._eager.nbytes, self._out.nbytes)
        runtime.memcpyAsync(
            self._eager.ctypes.data, self._out.data.ptr, size,
            runtime.memcpyDeviceToHost, self.stream.ptr,
        )  # fmt: skip

    def result(self) -> Hits | None:
        """The hits of the submitted chunk, in no order; None where a submission has no room.

        Raises BadBaseError at the first illegal letter.
        """
        while True:
            self.stream.synchronize()
            header = self._eager[: HEADER.itemsize].view(HEADER)[0]
            if header["illegal"]:
                raise BadBaseError(int(~header["illegal"]))
            if not header["full"]:
                return self._hits(int(header["collected" if self.scanner.rules.first else "count"]))
            if not self._grow(int(header["count"])):
                return None
            with self.stream:
                self._search(self._bases, self._records, -(-self._bases // 32) + 3)

    def _grow(self, count: int) -> bool:
        """More room for hits. A table says only that it is full, a list how long it should be."""
        wanted = 8 * self.capacity if self.scanner.rules.first else 1 << count.bit_length()
        if self.capacity == MOST_HITS or wanted > 8 * MOST_HITS:
            return False
        self.capacity = min(MOST_HITS, wanted)
        return True

    def _hits(self, count: int) -> Hits:
        if count <= EAGER_HITS:
            raw = self._eager[HEADER.itemsize : HEADER.itemsize + count * HIT.itemsize]
        else:
            raw = cupy.asnumpy(
                self._out[HEADER.itemsize : HEADER.itemsize + count * HIT.itemsize],
                stream=self.stream,
            )
        hits = raw.view(HIT)
        return Hits(
            hits["record"].copy(), hits["pattern"].copy(), hits["start"].astype(np.int64)
        )


@cache
def _multiprocessors(device: int) -> int:
    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])


def pinned(size: int) -> NDArray[np.uint8]:
    """uint8[size] in page-locked memory, which the device copies from and to by itself."""
    return np.frombuffer(cupy.cuda.alloc_pinned_memory(max(1, size)), np.uint8, size)


def pinned_like(values: NDArray[Any]) -> NDArray[Any]:
    """A copy of an array in page-locked memory."""
    out = pinned(values.nbytes).view(values.dtype)
    out[:] = values
    return out

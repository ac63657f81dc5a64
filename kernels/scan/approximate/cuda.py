"""The search with errors on a GPU: `seed_tables.cu`, `seeds.cu`, `mismatches.cu` and `edits.cu`."""

from dataclasses import replace
from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch, launch_blocks, struct
from multigpu.kernels.device.sources import source
from multigpu.kernels.scan.approximate.edit_queries import Candidates, EditQueries
from multigpu.kernels.scan.approximate.mismatch_queries import (
    MOST_SELECTED,
    STEPS,
    Sweep,
    plan_sweeps,
)
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece
from multigpu.kernels.scan.approximate.seeds import (
    GPU,
    LONGEST,
    SHORTEST,
    TablePlan,
    plan_seeds,
    select,
)
from multigpu.kernels.scan.approximate.verification import find_hits
from multigpu.kernels.scan.cuda import PATTERNS, Searcher, pattern_arrays
from multigpu.kernels.scan.seeds import EXPECTED_BASES
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns, Rules, Wanted

COSTS = GPU
SEED_THREADS = 256
THREADS_OF_FEW = 32  # where there is one thread for each pattern
WORDS_OF_WARP = 8  # words of the samples whose windows a warp looks up
SLICE = 1 << 14  # entries that a warp compares with a window
SEEDED = 1  # the mark of ends found by seeds
COUNT_THREADS = 64  # as in mismatches.cu
SELECT_THREADS = 256
# As in edits.cu: threads of a block, words of each, queries of a block.
THREADS, STRETCH, GROUP = 128, 64, 4

QUERIES = np.dtype(
    [(name, POINTER) for name in ("queries", "counted", "exact", "sets", "limits")]
    + [(name, "<u4") for name in ("n", "counted_room", "exact_room", "n_sets", "most", "_")]
)
SELECTED = np.dtype([("positions", POINTER), ("count", POINTER), ("room", "<u4"), ("_", "<u4")])
SEEDED_PATTERNS = np.dtype(
    [(name, POINTER) for name in ("planes", "words", "lengths")] + [("n", "<u4"), ("_", "<u4")]
)
PIECES = np.dtype(
    [(name, POINTER) for name in ("windows", "first", "pattern", "begin", "choices")]
    + [("n", "<u4"), ("k", "<u4")]
)
TABLE = np.dtype(
    [(name, POINTER) for name in ("known", "heads", "entries", "pattern", "begin", "first")]
    + [(name, "<u4") for name in ("k", "most", "n", "widest")]
)


@cache
def _module(name: str, **defines: int) -> Any:
    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in defines.items()))
    return cupy.RawModule(code=source("scan", f"approximate/{name}.cu"), options=options)


class SeededPatterns:
    """Patterns on the current device of which tables of seeds are made.

    arrays   as `pattern_arrays` returns them
    limits   int32[patterns, 4] on the device, as in `seeds.cu`
    windows  int32[LONGEST + 1, patterns, 2], see `plan_seeds`
    """

    def __init__(self, arrays: dict[str, Any], limits: Any) -> None:
        self._limits = limits
        self._module = _module("seed_tables")
        self._count = len(limits)
        fields = {name: arrays[name] for name in ("planes", "words", "lengths")}
        self._patterns = struct(SEEDED_PATTERNS, **fields, n=self._count)
        self._windows = cupy.zeros((LONGEST + 1, self._count, 2), np.int32)
        threads = (LONGEST + 1 - SHORTEST) * self._count
        lengths = np.uint32(SHORTEST), np.uint32(LONGEST)
        self._launch("count_windows", threads, *lengths, self._windows)
        self.windows = self._windows.get()

    def make_table(self, plan: TablePlan) -> tuple[NDArray[Any], dict[str, Any]]:
        """Return the table as an argument of kernels, and its arrays."""
        count, keys = int(plan.first[-1]), 4**plan.k
        arrays = {name: cupy.empty(count, np.int32) for name in ("pattern", "begin", "choices")}
        arrays["first"] = cupy.asarray(plan.first)
        pieces = struct(PIECES, **arrays, windows=self._windows[plan.k], n=count, k=plan.k)
        widest = cupy.zeros(1, np.int32)
        self._launch("place_seeds", self._count, pieces, self._limits, widest)
        arrays["known"] = cupy.zeros(keys // 32, np.uint32)
        heads = cupy.zeros(keys + 1, np.int32)
        self._launch("count_entries", count, pieces, arrays["known"], heads)
        arrays["heads"] = cupy.cumsum(heads, dtype=np.int32)
        n = int(arrays["heads"][-1:].get()[0])
        arrays["entries"] = cupy.empty((n, 4), np.uint32)
        self._launch("fill_entries", count, pieces, arrays["heads"].copy(), arrays["entries"])
        del arrays["choices"]
        sizes = {"k": plan.k, "most": plan.most, "n": n, "widest": int(widest.get()[0])}
        return struct(TABLE, **arrays, **sizes), arrays

    def _launch(self, kernel: str, threads: int, *arguments: Any) -> None:
        launch(self._module, kernel, threads, THREADS_OF_FEW, self._patterns, *arguments)


class CountedQueries:
    """A sweep of `mismatches.cu` on the current device.

    limits  int32[patterns, 4] on the device, as in `mismatches.cu`
    kept    FIRST and BEST of `hits.cuh`
    """

    def __init__(self, sweep: Sweep, limits: Any, strict: bool, kept: dict[str, int]) -> None:
        # An array of no elements has no address.
        padded = [np.append(each, np.uint16(0)) for each in (sweep.sets, sweep.selected)]
        queries, counted, exact, sets, self._selected = self._arrays = [
            cupy.asarray(each)
            for each in (sweep.queries.view(np.uint8), sweep.counted, sweep.exact, *padded)
        ]
        self._n_selected = len(sweep.selected)
        self._queries = struct(
            QUERIES, queries=queries, counted=counted, exact=exact, sets=sets, limits=limits,
            n=len(sweep.queries), counted_room=sweep.counted.shape[1] // STEPS,
            exact_room=sweep.exact.shape[1] // STEPS, n_sets=len(sweep.sets), most=sweep.most,
        )  # fmt: skip
        self._module = _module(
            "mismatches", **kept, STRICT=int(strict), PLACES=sweep.places, ROWS=sweep.rows,
            COUNTERS=sweep.counters, LOOK=sweep.look,
        )  # fmt: skip

    def search(
        self, samples: NDArray[Any], patterns: NDArray[Any], hits: NDArray[Any], bases: int
    ) -> None:
        """Queue the search on the current stream; all but `bases` are arguments of the kernels."""
        words = -(-bases // 32)
        selected = np.zeros((), SELECTED)
        if self._n_selected:
            room = int(2 * MOST_SELECTED * bases) + 1
            positions, count = cupy.empty(room, np.uint32), cupy.empty(1, np.uint32)
            count.data.memset_async(0, count.nbytes)
            selected = struct(SELECTED, positions=positions, count=count, room=room)
            chosen = (samples, self._selected, np.uint32(self._n_selected), selected)
            launch(self._module, "select_positions", words, SELECT_THREADS, *chosen)
            common = (samples, patterns, hits, self._queries, selected)
            launch(self._module, "count_selected", -(-room // 32), COUNT_THREADS, *common)
        common = (samples, patterns, hits, self._queries, selected)
        launch(self._module, "count_everywhere", words, COUNT_THREADS, *common)


class ErrorScanner(Searcher):
    """Searches chunks for the same patterns on the current device.

    `scan` may be called from several threads at once: each gets a lane of its own.

    bases  about how many are going to be searched; nothing but speed depends on it
    """

    def __init__(
        self,
        patterns: Patterns,
        limits: Limits,
        *,
        edits: bool,
        strict: bool,
        wanted: Wanted,
        bases: float = EXPECTED_BASES,
    ) -> None:
        # Those with edits are chosen when all their ends are known.
        one_each = wanted != "all" and not edits
        super().__init__(patterns, Rules(first=one_each, strict=strict))
        self.limits, self.edits = limits, edits
        kept = {"FIRST": int(one_each), "BEST": int(one_each and wanted == "best")}
        self._wanted: Wanted = wanted
        self.module = _module("collect", STRICT=0, **kept) if one_each else None
        self._arrays = pattern_arrays(patterns, cupy.asarray)
        n = len(patterns)
        self._patterns = struct(PATTERNS, **self._arrays, n=n, strands=patterns.strands)
        # More exact bases than a pattern has make no difference.
        exact = np.minimum([limits.prefix, limits.suffix], patterns.lengths)
        four = [limits.most, *exact, np.zeros_like(limits.most)]
        self._limits = cupy.asarray(np.stack(four, axis=1).astype(np.int32))
        seeded = SeededPatterns(self._arrays, self._limits)
        plan = plan_seeds(
            seeded.windows, patterns, limits, COSTS, edits=edits, strict=strict, bases=bases
        )
        self._seeds_module = _module("seeds", **kept, STRICT=int(strict), EDITS=int(edits))
        # With their arrays, of which a table has the addresses alone.
        self._tables = [seeded.make_table(each) for each in plan.tables]
        swept = select(patterns, limits, plan.swept)
        if edits:
            ends = EditQueries.of(*swept, strict)
            self._ends = replace(ends, pattern=plan.swept[ends.pattern])
            self._queries = cupy.asarray(ends.queries.view(np.uint8))
        else:
            sweeps = plan_sweeps(*swept) if len(plan.swept) else []
            for sweep in sweeps:
                sweep.queries["pattern"] = plan.swept[sweep.queries["pattern"]]
            self._sweeps = [CountedQueries(each, self._limits, strict, kept) for each in sweeps]
        cupy.cuda.get_current_stream().synchronize()

    def search(self, samples: NDArray[Any], hits: NDArray[Any], bases: int) -> None:
        if not bases:
            return
        for table, _ in self._tables:
            common = (samples, self._patterns, table, hits, self._limits)
            threads = -(-bases // WORDS_OF_WARP)
            launch(self._seeds_module, "find_seeds", threads, SEED_THREADS, *common)
            slices = -(-int(table["n"]) // SLICE)
            blocks = -(-bases // (32 * SEED_THREADS)) * slices
            crowded = (*common, np.uint32(slices))
            launch_blocks(self._seeds_module, "find_crowded", blocks, SEED_THREADS, *crowded)
        if self.edits:
            blocks = -(-bases // (32 * STRETCH * THREADS))
            count = len(self._ends.queries)
            # The queries say what matches; STRICT makes no difference.
            module = _module("edits", FIRST=0, STRICT=0)
            queries = (self._queries, np.uint32(count), np.uint32(blocks))
            groups = -(-count // GROUP)
            launch_blocks(module, "find_ends", blocks * groups, THREADS, samples, *queries, hits)
            return
        for sweep in self._sweeps:
            sweep.search(samples, self._patterns, hits, bases)

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> Hits:
        """Return the hits of a chunk; those with edits have no starts yet, see `align`.

        Raises BadBaseError at the first illegal letter, and MemoryError (TooManyHitsError among
        them) for a chunk that is to be searched in pieces.
        """
        found = self.find(chunk)
        if self.edits:
            hits = self._ends_to_hits(chunk, found, piece)
        else:
            record, pattern, start = found["record"], found["pattern"], found["start"]
            lengths = self.patterns.lengths
            hits = Hits.at_places(record, pattern, start, found["errors"], lengths)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def _ends_to_hits(self, chunk: Chunk, found: NDArray[Any], piece: Piece) -> Hits:
        is_seeded = found["errors"] == SEEDED
        seeded = found[is_seeded]
        pattern, end = seeded["pattern"], seeded["start"].astype(np.int64)
        most = self.limits.most[pattern]
        candidates = Candidates.joined(
            [
                Candidates(seeded["record"], pattern, end - most, end + most),
                self._ends.candidates(found[~is_seeded], chunk.offsets),
            ]
        )
        strict = self.rules.strict
        return find_hits(
            chunk.offsets, chunk.letters, self.patterns, self.limits, candidates, strict, piece
        )

"""The search with errors on a GPU: tables of seeds, `sweep.cu` and `edits.cu`."""

from dataclasses import replace
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch, launch_blocks, struct
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece
from multigpu.kernels.scan.approximate.seeds import GPU, LONGEST, SHORTEST, TablePlan, plan_seeds
from multigpu.kernels.scan.approximate.verification import Candidates, EditQueries, find_hits
from multigpu.kernels.scan.cuda import PATTERNS, DeviceScanner, pattern_arrays, to_hits
from multigpu.kernels.scan.cuda_sweep import compiled, limits_on_device, queries_of
from multigpu.kernels.scan.seeds import EXPECTED_BASES
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns, ScanRules, Wanted

COSTS = GPU
SEED_THREADS = 256
THREADS_OF_FEW = 32  # where there is one thread for each pattern
WORDS_OF_WARP = 8  # words of the samples whose windows a warp looks up
SLICE = 1 << 14  # entries that a warp compares with a window
SEEDED = 1  # the mark of ends found by seeds
# As in edits.cu: threads of a block, words of each, queries of a block.
THREADS, STRETCH, GROUP = 128, 64, 4

PIECES = np.dtype(
    [(name, POINTER) for name in ("windows", "first", "pattern", "begin", "choices")]
    + [("n", "<u4"), ("k", "<u4")]
)
TABLE = np.dtype(
    [(name, POINTER) for name in ("known", "heads", "entries", "pattern", "begin", "first")]
    + [(name, "<u4") for name in ("k", "most", "n", "widest")]
)


class SeededPatterns:
    """Patterns on the current device of which tables of seeds are made.

    patterns  the struct of them
    limits   int32[patterns, 4] on the device, as in `seeds.cu`
    windows  int32[LONGEST + 1, patterns, 2], see `plan_seeds`
    """

    def __init__(self, patterns: NDArray[Any], limits: Any) -> None:
        self._patterns, self._limits, self._count = patterns, limits, len(limits)
        self._module = compiled("approximate/seed_tables.cu", FIRST=0, BEST=0, STRICT=0)
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


class ErrorScanner(DeviceScanner):
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
        super().__init__(patterns, ScanRules(first=one_each, strict=strict))
        self.limits, self.edits = limits, edits
        kept = {"FIRST": int(one_each), "BEST": int(one_each and wanted == "best")}
        self._wanted: Wanted = wanted
        self.module = compiled("approximate/seeds.cu", **kept, STRICT=int(strict), EDITS=int(edits))
        self._arrays = pattern_arrays(patterns, cupy.asarray)
        n = len(patterns)
        self._patterns = struct(PATTERNS, **self._arrays, n=n, strands=patterns.strands)
        self._limits = limits_on_device(patterns, limits)
        seeded = SeededPatterns(self._patterns, self._limits)
        plan = plan_seeds(
            seeded.windows, patterns, limits, COSTS, edits=edits, strict=strict, bases=bases
        )
        # With their arrays, of which a table has the addresses alone.
        self._tables = [seeded.make_table(each) for each in plan.tables]
        swept, self._sweeps = plan.swept, []
        if edits:
            ends = EditQueries.of(patterns.take(swept), limits.take(swept), strict)
            self._ends = replace(ends, pattern=swept[ends.pattern])
            self._queries = cupy.asarray(ends.queries.view(np.uint8))
        else:
            self._sweeps = queries_of(patterns, limits, swept, strict, kept)
        cupy.cuda.get_current_stream().synchronize()

    def search(
        self, samples: NDArray[Any], hits: NDArray[Any], crowded: NDArray[Any], bases: int
    ) -> None:
        if not bases:
            return
        for table, _ in self._tables:
            common = (samples, self._patterns, table, hits, self._limits)
            threads = -(-bases // WORDS_OF_WARP)
            launch(self.module, "find_seeds", threads, SEED_THREADS, *common)
            slices = -(-int(table["n"]) // SLICE)
            blocks = -(-bases // (32 * SEED_THREADS)) * slices
            sliced = (*common, np.uint32(slices))
            launch_blocks(self.module, "find_crowded", blocks, SEED_THREADS, *sliced)
        if self.edits:
            blocks = -(-bases // (32 * STRETCH * THREADS))
            count = len(self._ends.queries)
            # The queries say what matches; STRICT makes no difference.
            module = compiled("approximate/edits.cu", FIRST=0, BEST=0, STRICT=0)
            queries = (self._queries, np.uint32(count), np.uint32(blocks))
            groups = -(-count // GROUP)
            launch_blocks(module, "find_ends", blocks * groups, THREADS, samples, *queries, hits)
            return
        for sweep in self._sweeps:
            sweep.search(samples, self._patterns, hits, bases)

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> Hits:
        found = self.find(chunk)
        if self.edits:
            hits = self._ends_to_hits(chunk, found, piece)
        else:
            hits = to_hits(found, self.patterns)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def _ends_to_hits(self, chunk: Chunk, found: NDArray[Any], piece: Piece) -> Hits:
        is_seeded = found["errors"] == SEEDED
        seeded, swept = found[is_seeded], found[~is_seeded]
        ends = seeded["start"].astype(np.int64)
        candidates = [
            Candidates.around(seeded["record"], seeded["pattern"], ends, self.limits),
            self._ends.candidates(swept["record"], swept["pattern"], swept["start"], chunk.offsets),
        ]
        strict = self.rules.strict
        return find_hits(chunk, self.patterns, self.limits, candidates, strict, piece)

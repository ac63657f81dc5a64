"""The search with errors on a GPU: `mismatches.cu` and `edits.cu` through CuPy."""

import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch_blocks, struct
from multigpu.kernels.device.sources import source
from multigpu.kernels.scan.approximate.cpu_edits import Candidates
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece, flag_borders
from multigpu.kernels.scan.approximate.seeds import GPU, Plan, plan_seeds
from multigpu.kernels.scan.approximate.types import ErrorHits, Limits, Wanted
from multigpu.kernels.scan.approximate.verification import find_hits
from multigpu.kernels.scan.cuda import PATTERNS, Lane, pattern_arrays
from multigpu.kernels.scan.seeds import EXPECTED_BASES
from multigpu.kernels.scan.types import Chunk, Patterns, Rules

WORD = 32  # bases of a piece
LONGEST_WHOLE = 48  # bases of a pattern that is searched as a whole for mismatches
SHARED_BYTES = 48 << 10  # of a block
BLOCKS_OF_THREADS = (128, 64, 32)
EMPTY_STEPS = 12  # steps of the queries are padded to a multiple of it
THREADS = 128
STRETCH = 64  # words, as in edits.cu
PAIR = 2
ANY_BASE = 15
COSTS = GPU
WARP = 32
SEED_THREADS = 256
WORDS_OF_WARP = 8  # words of the samples whose windows a warp looks up
SEEDED = 1  # the mark of ends found by seeds

MISMATCH_QUERY = np.dtype(
    [(name, "<u4") for name in ("pattern", "piece", "pieces", "exact", "triples", "ambiguous")]
    + [("is_exact", "<u4"), ("most", "<u4")]
)
EDIT_QUERY = np.dtype(
    [("equal", "<u4", 4), ("rows", "<u4"), ("length", "<u4"), ("most", "<u4"), ("_", "<u4")]
)
TABLE = np.dtype(
    [(name, POINTER) for name in ("known", "heads", "entries", "pattern", "begin", "first")]
    + [(name, "<u4") for name in ("k", "most", "n", "_")]
)


@cache
def _module(name: str, **defines: int) -> Any:
    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in defines.items()))
    return cupy.RawModule(code=source("scan", f"approximate/{name}.cu"), options=options)


@dataclass(frozen=True, eq=False)
class MismatchQueries:
    """Queries of `mismatches.cu` that are searched together.

    queries  MISMATCH_QUERY[n]
    steps    uint16[n, room]
    places   bases of the longest
    """

    queries: NDArray[Any]
    steps: NDArray[np.uint16]
    places: int

    @classmethod
    def of(
        cls, patterns: Patterns, limits: Limits, pieces: list[tuple[int, int, int, int, int]]
    ) -> "MismatchQueries":
        """Return the queries for pieces: pattern, number, pieces, bases, most mismatches."""
        places = max(length for *_, length, _ in pieces)
        queries, steps = np.zeros(len(pieces), MISMATCH_QUERY), []
        for query, (p, piece, count, length, most) in zip(queries, pieces, strict=True):
            begin = int(patterns.offsets[p]) + piece * WORD
            sets = patterns.sets[begin : begin + length]
            place = np.arange(length)
            is_exact = np.zeros(length, bool)
            if not count:
                whole = int(patterns.lengths[p])
                is_exact = (place < limits.prefix[p]) | (place >= whole - limits.suffix[p])
            single = (sets & (sets - 1)) == 0
            ambiguous = (sets != ANY_BASE) & ~single
            coded = 4 * place + np.log2(np.maximum(sets, 1)).astype(int)
            exact, counted = coded[single & is_exact], coded[single & ~is_exact]
            triples = -(-len(counted) // 3)
            empty = np.full(3 * triples - len(counted), 4 * places)
            coded = 16 * place + sets
            rest = [*coded[ambiguous & is_exact], *coded[ambiguous & ~is_exact]]
            query["pattern"], query["piece"], query["pieces"] = p, piece, count
            query["exact"], query["triples"] = len(exact), triples
            query["ambiguous"], query["is_exact"] = len(rest), (ambiguous & is_exact).sum()
            query["most"] = most
            steps.append(np.concatenate([exact, counted, empty, rest]).astype(np.uint16))
        room = max(1, *map(len, steps))
        table = np.zeros((len(steps), room), np.uint16)
        for row, each in zip(table, steps, strict=True):
            row[: len(each)] = each
        return cls(queries, table, places)


def mismatch_queries(
    patterns: Patterns, limits: Limits, chosen: NDArray[np.int64]
) -> list[MismatchQueries]:
    """Return whole patterns, and pieces of long ones of which one has its share of mismatches."""
    whole, pieces = [], []
    for p in chosen.tolist():
        length, most = int(patterns.lengths[p]), int(limits.most[p])
        if length <= LONGEST_WHOLE:
            whole.append((p, 0, 0, length, most))
        else:
            count = min(length // WORD, most + 1)
            pieces += [(p, piece, count, WORD, most // count) for piece in range(count)]
    return [MismatchQueries.of(patterns, limits, each) for each in (whole, pieces) if each]


@dataclass(frozen=True, eq=False)
class EditQueries:
    """Queries of `edits.cu`, and what they are pieces of.

    queries  EDIT_QUERY[n]
    pattern  int64[n]
    after    int64[n]  bases of the pattern after the piece
    slack    int64[n]  by how much the bases after it may be more or fewer in a sample
    """

    queries: NDArray[Any]
    pattern: NDArray[np.int64]
    after: NDArray[np.int64]
    slack: NDArray[np.int64]

    @classmethod
    def of(cls, patterns: Patterns, limits: Limits, chosen: NDArray[np.int64]) -> "EditQueries":
        """Return the pieces of patterns, one of which has no more than its share of edits."""
        rows = []
        for p in chosen.tolist():
            length, most = int(patterns.lengths[p]), int(limits.most[p])
            count = -(-length // WORD)
            for i in range(count):
                begin, end = length * i // count, length * (i + 1) // count
                slack = most if end < length else 0
                rows.append((p, begin, end, most // count, length - end, slack))
        queries = np.zeros(len(rows), EDIT_QUERY)
        for query, (p, begin, end, most, _, _) in zip(queries, rows, strict=True):
            length, first = end - begin, int(patterns.offsets[p])
            sets = patterns.sets[first + begin : first + end].astype(np.int64)
            place = np.arange(WORD - length, WORD)
            inside = int((1 << place).sum())
            for base in range(4):
                matching = int(((sets >> base & 1) << place).sum())
                query["equal"][base] = matching | (~inside & 0xFFFFFFFF)
            query["rows"], query["length"], query["most"] = inside, length, most
        columns = np.array(rows, np.int64).reshape(-1, 6).T
        return cls(queries, columns[0].copy(), columns[4].copy(), columns[5].copy())

    def candidates(self, found: NDArray[Any], offsets: NDArray[np.int64]) -> Candidates:
        """Return candidates in records for runs of ends in a chunk, which may lie in several."""
        query = found["record"]
        first = found["pattern"] + self.after[query] - self.slack[query]
        last = found["start"] + self.after[query] + self.slack[query]
        lowest = np.searchsorted(offsets[1:], first, "left")
        highest = np.searchsorted(offsets[:-1], last, "right") - 1
        count = np.maximum(highest - lowest + 1, 0)
        row = np.repeat(np.arange(len(found)), count)
        record = np.arange(len(row)) - np.repeat(np.cumsum(count) - count - lowest, count)
        return Candidates(
            record=record.astype(np.int32),
            pattern=self.pattern[query][row].astype(np.int32),
            first=first[row] - offsets[record],
            last=last[row] - offsets[record],
        )


class Seeding:
    """Search by tables of seeds on the current device, by `seeds.cu`."""

    def __init__(self, plan: Plan, limits: Any, *, edits: bool, strict: bool) -> None:
        self._limits = limits
        self._module = _module("seeds", FIRST=0, STRICT=int(strict), EDITS=int(edits))
        self._arrays, self._tables = [], []
        for table in plan.tables:
            fields = table._asdict()
            arrays = {
                name: cupy.asarray(value)
                for name, value in fields.items()
                if isinstance(value, np.ndarray)
            }
            self._arrays.append(arrays)
            n = len(table.entries)
            self._tables.append(struct(TABLE, **arrays, k=table.k, most=table.most, n=n))

    def search(
        self, samples: NDArray[Any], patterns: NDArray[Any], hits: NDArray[Any], bases: int
    ) -> None:
        """Queue the search on the current stream; the three are arguments of the kernel."""
        blocks = -(-bases // (WORD * WORDS_OF_WARP * SEED_THREADS // WARP))
        for table in self._tables:
            launch_blocks(
                self._module, "find_seeds", blocks, SEED_THREADS, samples, patterns, table, hits,
                self._limits,
            )  # fmt: skip


class Scanner:
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
        self.patterns, self.limits, self.edits = patterns, limits, edits
        self.rules = Rules(first=False, strict=strict)
        self.device = cupy.cuda.Device()
        self._wanted: Wanted = wanted
        self.module = None  # first hits are chosen among all
        self._own = threading.local()
        self._arrays = pattern_arrays(patterns, cupy.asarray)
        n = len(patterns)
        self._patterns = struct(PATTERNS, **self._arrays, n=n, strands=patterns.strands)
        # More exact bases than a pattern has make no difference.
        exact = np.minimum([limits.prefix, limits.suffix], patterns.lengths)
        four = [limits.most, *exact, np.zeros_like(limits.most)]
        self._limits = cupy.asarray(np.stack(four, axis=1).astype(np.int32))
        plan = plan_seeds(patterns, limits, COSTS, edits=edits, strict=strict, bases=bases)
        self._seeding = Seeding(plan, self._limits, edits=edits, strict=strict)
        if edits:
            self._ends = EditQueries.of(patterns, limits, plan.swept)
            self._queries = cupy.asarray(self._ends.queries.view(np.uint8))
        else:
            self._sweeps = [
                (each, cupy.asarray(each.queries.view(np.uint8)), cupy.asarray(each.steps))
                for each in mismatch_queries(patterns, limits, plan.swept)
            ]
        cupy.cuda.get_current_stream().synchronize()

    def search(self, samples: NDArray[Any], hits: NDArray[Any], bases: int) -> None:
        """Queue the search on the current stream; `samples` and `hits` are kernel arguments."""
        if not bases:
            return
        words, strict = -(-bases // 32), int(self.rules.strict)
        self._seeding.search(samples, self._patterns, hits, bases)
        if self.edits:
            stretches = -(-words // STRETCH)
            threads = stretches * -(-len(self._ends.queries) // PAIR)
            launch_blocks(
                _module("edits", FIRST=0, STRICT=strict), "find_ends", -(-threads // THREADS),
                THREADS, samples, self._queries, np.uint32(len(self._ends.queries)),
                np.uint32(stretches), hits,
            )  # fmt: skip
            return
        for sweep, queries, steps in self._sweeps:
            block = next(
                each
                for each in BLOCKS_OF_THREADS
                if (4 * sweep.places + 1) * 4 * each <= SHARED_BYTES
            )
            counters = max(2, int(sweep.queries["most"].max()).bit_length())
            module = _module(
                "mismatches", FIRST=0, STRICT=strict, PLACES=sweep.places, THREADS=block,
                COUNTERS=counters,
            )  # fmt: skip
            launch_blocks(
                module, "count_mismatches", -(-words // block), block, samples, self._patterns,
                hits, self._limits, queries, np.uint32(len(sweep.queries)), steps,
                np.uint32(sweep.steps.shape[1]),
            )  # fmt: skip

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> ErrorHits:
        """Return the hits of a chunk; those with edits have no starts yet, see `align`.

        Raises BadBaseError at the first illegal letter, and MemoryError (TooManyHitsError among
        them) for a chunk that is to be searched in pieces.
        """
        with self.device:
            if not hasattr(self._own, "lane"):
                self._own.lane = Lane()
            lane: Lane = self._own.lane
            found = lane.find(self, chunk)
        if self.edits:
            hits = self._ends_to_hits(chunk, found, piece)
        else:
            hits = self._to_hits(found)
            hits = flag_borders(hits, hits.end, chunk.offsets, piece)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def _to_hits(self, found: NDArray[Any]) -> ErrorHits:
        start = found["start"].astype(np.int64)
        return ErrorHits(
            record=found["record"].copy(),
            pattern=found["pattern"].copy(),
            start=start,
            end=start + self.patterns.lengths[found["pattern"]],
            errors=found["errors"].copy(),
            edge=np.zeros(len(found), np.uint8),
        )

    def _ends_to_hits(self, chunk: Chunk, found: NDArray[Any], piece: Piece) -> ErrorHits:
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

    def seconds(self) -> dict[str, float]:
        """Return how long the parts of this thread's last scan took on the device."""
        lane: Lane = self._own.lane
        return lane.seconds()

    def close(self) -> None:
        """Give the lanes up: they know this scanner, so that without it both would stay."""
        self._own = threading.local()

"""The search with errors on a CPU, one thread a call, without the interpreter's lock.

Of edits a column of the table of distances is kept as its differences from row to row, a bit each
(Myers 1999, in the form of Hyyrö 2003), of as many patterns at a time as fit into the loop. A
pattern of more than 64 bases is looked for by its pieces, one of which has no more than its share.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.approximate import cpu_seeds, seeds
from multigpu.kernels.scan.approximate.cpu_seeds import count_windows, make_table
from multigpu.kernels.scan.approximate.pieces import WHOLE, EditScanner, Piece
from multigpu.kernels.scan.approximate.verification import Candidates, EditQueries, find_hits
from multigpu.kernels.scan.cpu_planes import ONE, Samples, find_rows, pack, pack_patterns
from multigpu.kernels.scan.cpu_sweep import sweep
from multigpu.kernels.scan.seeds import EXPECTED_BASES
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns, Wanted

COSTS = seeds.CPU
PIECE = 64  # bases of a pattern that are looked for together
LANES = 64  # pieces of a group


class PieceGroup(NamedTuple):
    """Pieces of patterns that are looked for together, one a lane; see `EditQueries`.

    Bit 63 stands for a piece's last base; every base matches the bits before its first one.
    """

    first: int  # number of the first piece
    equal: NDArray[np.uint64]  # [16, LANES] bases of the piece that match a set of bases
    longest: NDArray[np.uint64]  # [LANES] one bit for every base
    length: NDArray[np.uint64]  # [LANES], 0 without a piece
    most: NDArray[np.uint64]  # [LANES] edits


def groups_of(pieces: EditQueries) -> list[PieceGroup]:
    """Return pieces of up to 64 bases in groups."""
    missing = -len(pieces.queries) % LANES
    queries = np.concatenate([pieces.queries, np.zeros(missing, pieces.queries.dtype)])
    return [
        PieceGroup(
            first=at,
            equal=np.ascontiguousarray(queries["equal"][at : at + LANES].T),
            longest=queries["rows"][at : at + LANES].copy(),
            length=queries["length"][at : at + LANES].copy(),
            most=queries["most"][at : at + LANES].copy(),
        )
        for at in range(0, len(queries), LANES)
    ]


def find_edits(chunk: Chunk, group: PieceGroup) -> NDArray[np.int64]:
    """Return stretches of ends with few enough edits of a piece, int64[n, 4]; letters are bases.

    The columns are the piece, the first and the last end in the chunk, and 0.
    """
    scratch, runs = np.empty((4, LANES), np.uint64), np.empty(LANES, np.int64)
    search = partial(_search, chunk.letters, chunk.offsets, group, scratch, runs)
    return find_rows(search)


@jit_no_alloc
def _search(letters: Any, offsets: Any, group: Any, scratch: Any, runs: Any, found: Any) -> Any:
    """Find stretches; return how many there are, even if there is no room for all."""
    count = 0
    plus, minus, errors, is_low = scratch[0], scratch[1], scratch[2], scratch[3]
    for record in range(offsets.shape[0] - 1):
        for lane in range(LANES):
            plus[lane], minus[lane] = group.longest[lane], 0
            errors[lane] = group.length[lane]
            runs[lane] = -1
        # The empty piece before the first base is an end, too.
        any_low = _mark_low(errors, group.most, group.length, is_low)
        if any_low:
            count = _follow_runs(is_low, offsets[record], group.first, runs, found, count)
        for at in range(offsets[record], offsets[record + 1]):
            _next_column(group.equal[LETTER_SETS[letters[at]]], plus, minus, errors)
            was_low = any_low
            any_low = _mark_low(errors, group.most, group.length, is_low)
            if any_low or was_low:
                count = _follow_runs(is_low, at + 1, group.first, runs, found, count)
        if any_low:
            for lane in range(LANES):
                is_low[lane] = 0
            count = _follow_runs(is_low, offsets[record + 1] + 1, group.first, runs, found, count)
    return count


@jit_no_alloc
def _next_column(equal: Any, plus: Any, minus: Any, errors: Any) -> None:
    """Go on by a base of the sample; `equal` is what matches it."""
    top = np.uint64(63)
    for lane in range(LANES):
        e, p, m = equal[lane], plus[lane], minus[lane]
        vertical = e | m
        horizontal = (((e & p) + p) ^ p) | e
        up = m | ~(horizontal | p)
        down = p & horizontal
        errors[lane] += (up >> top) - (down >> top)
        up, down = up << ONE, down << ONE
        plus[lane] = down | ~(vertical | up)
        minus[lane] = up & vertical


@jit_no_alloc
def _mark_low(errors: Any, most: Any, length: Any, is_low: Any) -> Any:
    """Mark the lanes with no more edits than they may have; return whether there are any."""
    count = np.uint64(0)
    for lane in range(LANES):
        low = np.uint64(errors[lane] <= most[lane]) & np.uint64(length[lane] > 0)
        is_low[lane] = low
        count |= low
    return count != 0


@jit_no_alloc
def _follow_runs(is_low: Any, end: Any, first: Any, runs: Any, found: Any, count: Any) -> Any:
    """Begin and end stretches of ends at which a lane has few enough edits; return their number."""
    for lane in range(LANES):
        if is_low[lane]:
            if runs[lane] < 0:
                runs[lane] = end
        elif runs[lane] >= 0:
            if count < found.shape[0]:
                found[count, 0], found[count, 1] = first + lane, runs[lane]
                found[count, 2], found[count, 3] = end - 1, 0
            count += 1
            runs[lane] = -1
    return count


class ErrorScanner(EditScanner):
    """Searches chunks for the same patterns. Safe to use from several threads at once.

    edits   whether insertions and deletions count, too, and not mismatches alone
    strict  whether a base of a sample must be a subset of the pattern's
    bases   about how many are going to be searched; nothing but speed depends on it
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
        self._strict, self._wanted = strict, wanted
        self._packed = packed = pack_patterns(patterns)
        self._plan = seeds.plan_seeds(
            count_windows(packed), patterns, limits, COSTS, edits=edits, strict=strict, bases=bases
        )
        self._tables = [make_table(packed, limits, table) for table in self._plan.tables]
        if edits:
            swept = self._plan.swept
            pieces = EditQueries.of(patterns.take(swept), limits.take(swept), strict, PIECE)
            self._pieces = replace(pieces, pattern=swept[pieces.pattern])
            self._groups = groups_of(pieces)

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> Hits:
        hits = self._find_edits(chunk, piece) if self.edits else self._find_mismatches(chunk)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def _pack(self, chunk: Chunk) -> Samples:
        planes = np.empty((len(chunk.letters) // 64 + 3, 4), np.uint64)
        pack(chunk.letters, planes)
        return Samples(planes, chunk.offsets, chunk.letters)

    def _find_seeds(self, samples: Samples) -> NDArray[np.int64]:
        parts = [
            cpu_seeds.search(
                samples, self._packed, self.limits, table,
                edits=self.edits, strict=self._strict, wanted=self._wanted,
            )
            for table in self._tables
        ]  # fmt: skip
        return np.concatenate([np.empty((0, 4), np.int64), *parts])

    def _find_mismatches(self, chunk: Chunk) -> Hits:
        samples = self._pack(chunk)
        swept = sweep(
            samples, self._packed, self.limits, self._plan.swept,
            strict=self._strict, wanted=self._wanted,
        )  # fmt: skip
        rows = np.concatenate([self._find_seeds(samples), swept])
        record, pattern, start, errors = rows.T
        return Hits.at_places(record, pattern, start, errors, self.patterns.lengths)

    def _find_edits(self, chunk: Chunk, piece: Piece) -> Hits:
        record, pattern, end, _ = self._find_seeds(self._pack(chunk)).T
        seeded = Candidates.around(record, pattern, end, self.limits)
        parts = [find_edits(chunk, each) for each in self._groups]
        query, first, last, _ = np.concatenate([np.empty((0, 4), np.int64), *parts]).T
        swept = self._pieces.candidates(query, first, last, chunk.offsets)
        return find_hits(chunk, self.patterns, self.limits, [seeded, swept], self._strict, piece)

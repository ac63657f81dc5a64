"""Searches of records in memory, on the CPU and on a GPU, and checks of what they find."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import require
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.scan import Chunk, Hits, Patterns, ScanRules

# Bases that a thread searches at a time, where there are as many for all.
LEAST_PIECE = 4 << 20
FIRST = ScanRules(first=True, strict=False)
ANYTHING = 15  # the set of all bases


@dataclass(frozen=True, eq=False)
class Letters:
    """Consecutive records in memory: `letters` uint8[n_bases], `offsets` int64[n_records + 1]."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def record(self, number: int) -> NDArray[np.uint8]:
        return self.letters[self.offsets[number] : self.offsets[number + 1]]


@dataclass(frozen=True, eq=False)
class Piece:
    """A chunk of some of the records; the first of them is record `first`."""

    first: int
    chunk: Chunk

    def moved(self, hits: Hits) -> Hits:
        return hits.moved(self.first, 0)


def cut(data: Letters, pieces: int) -> list[Piece]:
    """Cut at record borders into about `pieces` pieces of about as many bases."""
    wanted = np.arange(1, pieces) * int(data.offsets[-1]) // pieces
    inner = np.searchsorted(data.offsets, wanted)
    borders = np.unique(np.r_[0, inner, len(data)])
    out = []
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offsets = data.offsets[first : last + 1] - data.offsets[first]
        span = slice(int(data.offsets[first]), int(data.offsets[last]))
        out.append(Piece(first, Chunk(data.letters[span], offsets)))
    return out


def joined(pieces: Sequence[Piece], each: Iterable[Hits]) -> Hits:
    return Hits.joined([piece.moved(hits) for piece, hits in zip(pieces, each, strict=True)])


# ---- searches ---------------------------------------------------------------------------------


def cpu_search(data: Letters, patterns: Patterns, threads: int, rules: ScanRules = FIRST) -> Hits:
    """Index and search on CPU threads."""
    from multigpu.kernels.scan import cpu

    scanner = cpu.ExactScanner(patterns, rules, len(data.letters))
    largest = max(threads, len(data.letters) // LEAST_PIECE)
    pieces = cut(data, min(4 * threads, largest))
    with ThreadPoolExecutor(threads) as pool:
        return joined(pieces, list(pool.map(lambda piece: scanner.scan(piece.chunk), pieces)))


class GpuSearch:
    """A search on a GPU: a lane for each piece; letters and offsets in pinned memory."""

    def __init__(self, data: Letters, pieces: int) -> None:
        from multigpu.kernels.scan import cuda

        self._cuda = cuda
        self.pieces = [
            Piece(p.first, Chunk(p.chunk.letters, cuda.pinned_like(p.chunk.offsets)))
            for p in cut(data, pieces)
        ]
        self.lanes = [cuda.ScanLane() for _ in self.pieces]

    def run(self, patterns: Patterns, rules: ScanRules = FIRST) -> Hits:
        """Copy in, index, search, hits back; the index is made while the first pieces come."""
        self.upload()
        bases = sum(len(piece.chunk.letters) for piece in self.pieces)
        return self.search(self._cuda.ExactScanner(patterns, rules, bases))

    def upload(self) -> None:
        """Begin to copy everything in."""
        for lane, piece in zip(self.lanes, self.pieces, strict=True):
            lane.upload(piece.chunk)

    def search(self, scanner: Any) -> Hits:
        """Search what was uploaded, hits back, in order."""
        for lane in self.lanes:
            lane.search(scanner)
        each = [self._hits(scanner, i) for i in range(len(self.lanes))]
        return joined(self.pieces, each)

    def _hits(self, scanner: Any, i: int) -> Hits:
        hits: Hits = self._cuda.to_hits(self.lanes[i].result(), scanner.patterns)
        return hits.chosen(scanner.rules.wanted, scanner.patterns.strands, by_end=False)


# ---- checks -----------------------------------------------------------------------------------


def places(hits: Hits, before: int = 1 << 62) -> list[tuple[int, ...]]:
    """Return record, pattern, end and errors of hits that end before a base, in order."""
    columns = (hits.record, hits.pattern, hits.end, hits.errors)
    rows = zip(*(column[hits.end < before].tolist() for column in columns), strict=True)
    return sorted(rows)


def same_hits(a: Hits, b: Hits) -> bool:
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("record", "pattern", "start"))


def pattern_sets(patterns: Patterns, number: int) -> NDArray[np.uint8]:
    return patterns.sets[patterns.offsets[number] : patterns.offsets[number + 1]]


def first_start(sample: NDArray[np.uint8], pattern: NDArray[np.uint8]) -> int:
    """Return the first occurrence by plain narrowing, or -1; both are sets of bases.

    As `multigpu.kernels.scan.reference`, whose every comparison is made, but fast enough for long
    records: starts that differ drop out.
    """
    begin, size, positions = 0, 1024, len(sample) - len(pattern) + 1
    fixed = np.flatnonzero(pattern != ANYTHING).tolist()
    while begin < positions:
        starts = np.arange(begin, min(begin + size, positions))
        for offset in fixed:
            starts = starts[(sample[starts + offset] & pattern[offset]) != 0]
            if not len(starts):
                break
        else:
            return int(starts[0])
        begin, size = begin + size, min(4 * size, 1 << 16)
    return -1


def check_hits_are_real(data: Letters, patterns: Patterns, hits: Hits, most: int = 300) -> None:
    """Compare up to `most` of the hits base by base: mismatches are as many as they say."""
    for i in np.linspace(0, len(hits) - 1, min(most, len(hits))).astype(int).tolist():
        pattern = pattern_sets(patterns, int(hits.pattern[i]))
        start = int(hits.start[i])
        under = bases.encode(data.record(int(hits.record[i])))[start : start + len(pattern)]
        errors = int(hits.errors[i])
        real = len(under) == len(pattern) and int(((under & pattern) == 0).sum()) == errors
        require(real, f"hit {i} is no match")


def check_against_plain(
    data: Letters, patterns: Patterns, hits: Hits, records: Iterable[int], chosen: Iterable[int]
) -> None:
    """Require that the hits of some records and patterns are those of a plain search."""
    starts = {
        (record, pattern): start
        for record, pattern, start in zip(
            hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist(), strict=True
        )
    }
    patterns_to_see = list(chosen)
    for record in records:
        sample = bases.encode(data.record(record))
        for p in patterns_to_see:
            found = first_start(sample, pattern_sets(patterns, p))
            claimed = starts.get((record, p), -1)
            require(found == claimed, f"record {record}, pattern {p}: {claimed} is not {found}")

"""The search with errors on a CPU, one thread a call, without the interpreter's lock."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.approximate import cpu_edits, cpu_seeds, seeds
from multigpu.kernels.scan.approximate.cpu_seed_tables import count_windows, make_table
from multigpu.kernels.scan.approximate.edit_queries import Candidates, EditQueries
from multigpu.kernels.scan.approximate.pieces import WHOLE, EditScanner, Piece
from multigpu.kernels.scan.approximate.verification import find_hits
from multigpu.kernels.scan.cpu_hits import Samples
from multigpu.kernels.scan.cpu_patterns import pack, pack_patterns
from multigpu.kernels.scan.cpu_sweep import sweep
from multigpu.kernels.scan.seeds import EXPECTED_BASES
from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns, Wanted

COSTS = seeds.CPU
PIECE = 64  # bases of a pattern that `cpu_edits.py` looks for together


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
            self._groups = cpu_edits.groups_of(pieces)

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> Hits:
        """Return the hits of a chunk; those with edits have no starts yet, see `align`.

        Raises BadBaseError at the first illegal letter.
        """
        hits = self._find_edits(chunk, piece) if self.edits else self._find_mismatches(chunk)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def _pack(self, chunk: Chunk) -> Samples:
        planes = np.empty((len(chunk.letters) // 64 + 3, 4), np.uint64)
        pack(chunk.letters, planes)
        return Samples(planes, chunk.offsets, chunk.letters)

    def _find_seeds(self, samples: Samples) -> NDArray[np.int64]:
        """Return what is found by seeds, see `cpu_seeds.Search`."""
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
        parts = [cpu_edits.find(chunk, each) for each in self._groups]
        query, first, last, _ = np.concatenate([np.empty((0, 4), np.int64), *parts]).T
        swept = self._pieces.candidates(query, first, last, chunk.offsets)
        return find_hits(chunk, self.patterns, self.limits, [seeded, swept], self._strict, piece)

"""The search with errors on a CPU, one thread a call, without the interpreter's lock."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.scan.approximate import cpu_edits, cpu_mismatches
from multigpu.kernels.scan.approximate.pieces import WHOLE, Piece
from multigpu.kernels.scan.approximate.types import ErrorHits, Limits, Wanted
from multigpu.kernels.scan.approximate.verification import find_hits
from multigpu.kernels.scan.cpu_patterns import pack
from multigpu.kernels.scan.types import BadBaseError, Chunk, Patterns

FIRST_ROOM = 1 << 14  # candidates


class Scanner:
    """Searches chunks for the same patterns. Safe to use from several threads at once.

    edits   whether insertions and deletions count, too, and not mismatches alone
    strict  whether a base of a sample must be a subset of the pattern's
    """

    def __init__(
        self, patterns: Patterns, limits: Limits, *, edits: bool, strict: bool, wanted: Wanted
    ) -> None:
        self.patterns, self.limits, self.edits = patterns, limits, edits
        self._strict, self._wanted = strict, wanted
        if edits:
            self._groups = cpu_edits.make_groups(patterns, limits, strict)
        else:
            self._target = cpu_mismatches.make_target(patterns, limits)

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> ErrorHits:
        """Return the hits of a chunk; those with edits have no starts yet, see `align`.

        Raises BadBaseError at the first illegal letter.
        """
        hits = self._find_edits(chunk, piece) if self.edits else self._find_mismatches(chunk)
        return hits.chosen(self._wanted, self.patterns.strands, by_end=self.edits)

    def seconds(self) -> dict[str, float]:
        """Return nothing: a scan on a CPU has no steps that are timed."""
        return {}

    def close(self) -> None:
        """Do nothing: no memory is kept."""

    def _find_mismatches(self, chunk: Chunk) -> ErrorHits:
        planes = np.empty((len(chunk.letters) // 64 + 3, 4), np.uint64)
        illegal, _ = pack(chunk.letters, planes)
        if illegal >= 0:
            raise BadBaseError(illegal)
        found = cpu_mismatches.find(planes, chunk.offsets, self._target, self._strict, self._wanted)
        return ErrorHits(
            record=found.record,
            pattern=found.pattern,
            start=found.start,
            end=found.start + self.patterns.lengths[found.pattern],
            errors=found.errors,
            edge=np.zeros(len(found.record), np.uint8),
        )

    def _find_edits(self, chunk: Chunk, piece: Piece) -> ErrorHits:
        sets = bases.encode(chunk.letters)
        if not sets.all():
            raise BadBaseError(int(np.argmin(sets != 0)))
        parts = [self._candidates(sets, chunk.offsets, group) for group in self._groups]
        joined = cpu_edits.Candidates.joined(parts)
        return find_hits(
            chunk.offsets, chunk.letters, self.patterns, self.limits, joined, self._strict, piece
        )

    def _candidates(
        self, sets: NDArray[np.uint8], offsets: NDArray[np.int64], group: cpu_edits.Group
    ) -> cpu_edits.Candidates:
        size = FIRST_ROOM
        while True:
            room = cpu_edits.make_candidates(size)
            count = cpu_edits.search(sets, offsets, group, room)
            if count <= size:
                return room.cut(count)
            size = count

"""The scan on a CPU: the scheme of this package in Numba, one thread a call, without the GIL."""

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan.cpu_compare import Search, Sink, append, find_rows
from multigpu.kernels.scan.cpu_direct import compare_wanted, sweep, want_all
from multigpu.kernels.scan.cpu_index import Index, make_index
from multigpu.kernels.scan.cpu_patterns import (
    HELD,
    TILE,
    Packed,
    Target,
    make_target,
    pack,
    pack_patterns,
)
from multigpu.kernels.scan.cpu_probe import pass_over, probe
from multigpu.kernels.scan.seeds import CPU, EXPECTED_BASES, SeedPlan, plan_seeds
from multigpu.kernels.scan.types import Chunk, Hits, Patterns, Rules, TooManyPatternsError

SHARES = (0.0, 0.0005, 0.002, 0.008, 0.032, 0.128, 0.256, 0.512, 1.0)  # of ambiguous bases
FIRST_ROOM = 1 << 20  # hits: memory that is not used costs nothing


@dataclass(frozen=True, eq=False)
class Way:
    """The patterns made ready for samples with about as many ambiguous bases."""

    target: Target
    plan: SeedPlan
    index: Index


class Scanner:
    """Searches chunks for the same patterns. Safe to use from several threads at once.

    bases: about how many are going to be searched; nothing but speed depends on it.
    """

    def __init__(self, patterns: Patterns, rules: Rules, bases: float = EXPECTED_BASES) -> None:
        self.patterns, self.rules, self._bases = patterns, rules, bases
        self._ways: dict[SeedPlan, Way] = {}
        self._lock = Lock()
        self._buffers = Buffers(lambda size: np.empty(size, np.uint8))

    @cached_property
    def _packed(self) -> Packed:
        return pack_patterns(self.patterns)

    def way(self, ambiguous: float) -> Way:
        """Return the way for chunks with this share of ambiguous bases; made when one needs it.

        Raises TooManyPatternsError.
        """
        share = 0.0 if self.rules.strict else SHARES[bisect_left(SHARES, ambiguous)]
        with self._lock:
            try:
                plan = plan_seeds(self._packed.runs, CPU, self._bases, share)
                if plan not in self._ways:
                    target = make_target(self._packed, plan)
                    self._ways[plan] = Way(target, plan, make_index(target, plan))
                return self._ways[plan]
            except MemoryError as error:
                raise TooManyPatternsError(str(error) or "no memory") from error

    def scan(self, chunk: Chunk, limit: int | None = None) -> Hits:
        """Return all hits that begin before `limit`, a position in the chunk.

        Raises BadBaseError at the first illegal letter.
        """
        words = len(chunk.letters) // 64 + 3
        planes = self._buffers.take(4 * 8 * words).view(np.uint64).reshape(words, 4)
        try:
            return self._scan(chunk, planes, limit)
        finally:
            self._buffers.give(planes)

    def _scan(self, chunk: Chunk, planes: NDArray[np.uint64], limit: int | None) -> Hits:
        ambiguous = pack(chunk.letters, planes)
        way = self.way(ambiguous / max(1, len(chunk.letters)))

        def search(found: NDArray[np.int64]) -> Any:
            return _search(self._make_search(planes, way, found), chunk.offsets)

        record, pattern, start = find_rows(search, FIRST_ROOM, columns=3).T
        hits = Hits(record.astype(np.int32), pattern.astype(np.int32), start)
        if limit is not None:
            hits = hits.take(chunk.offsets[hits.record] + hits.start < limit)
        return hits.ordered(self.patterns.strands, self.rules.first)

    def seconds(self) -> dict[str, float]:
        """Return nothing: a scan on a CPU has no steps that are timed."""
        return {}

    def close(self) -> None:
        self._buffers.clear()

    def _make_search(
        self, planes: NDArray[np.uint64], way: Way, found: NDArray[np.int64]
    ) -> Search:
        return Search(
            planes=planes,
            target=way.target,
            seeds=way.index,
            sink=Sink(
                hits=found,
                counts=np.zeros(2, np.int64),
                best=np.full(len(self.patterns), -1, np.int64),
                found=np.empty(len(self.patterns), np.int32),
            ),
            is_first=self.rules.first,
            is_strict=self.rules.strict,
            held=np.empty((4, HELD), np.uint64),
            wanted=np.empty(TILE, np.uint64),
            alive=np.empty(TILE, np.uint64),
        )


@jit_no_alloc
def _search(search: Any, offsets: Any) -> Any:
    """Search all records; return how many hits there are, even if there is no room for all."""
    sink, passed = search.sink, 0
    for record in range(offsets.shape[0] - 1):
        passed = _search_record(search, offsets, record, passed)
        for i in range(sink.counts[1]):
            p = sink.found[i]
            append(sink, record, p, sink.best[p])
            sink.best[p] = -1
    return sink.counts[0]


@jit_no_alloc
def _search_record(search: Any, offsets: Any, record: Any, passed: Any) -> Any:
    """Search a record; return the word before which no seed stands from here on.

    passed: the same of what was searched before
    """
    target, sink = search.target, search.sink
    reach = (record, offsets[record], offsets[record + 1])
    words = (offsets[-1] + 63) // 64
    tile, stop = reach[1] // 64, (reach[2] + 63) // 64
    sink.counts[1] = 0
    while tile < stop:
        if search.is_first and sink.counts[1] == target.anchors.shape[0]:
            break
        if target.unseeded.shape[0]:
            want_all(search.wanted, tile, reach)
            sweep(search, tile, reach, target.unseeded)
        else:
            if passed <= tile:
                passed = pass_over(search.planes, tile, words, search.seeds)
            tile = max(tile, passed)
            if tile >= stop:
                break
        if target.seeded.shape[0]:
            search.wanted[:] = 0
            probe(search, tile, reach)
            compare_wanted(search, tile, reach)
        tile += TILE
    return passed

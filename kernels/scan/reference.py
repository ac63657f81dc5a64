"""The plain search: every pattern against every position, base by base. The tests' oracle."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Chunk, Hits, Patterns, ScanRules


def occurrences(
    sample: NDArray[np.uint8], pattern: NDArray[np.uint8], strict: bool
) -> NDArray[np.int64]:
    """Return all starts of `pattern` in `sample` (sets, uint8), ascending."""
    positions = len(sample) - len(pattern) + 1
    if positions < 1:
        return np.empty(0, np.int64)
    same = np.ones(positions, bool)
    for offset, base in enumerate(pattern):
        under = sample[offset : offset + positions]
        same &= (under & ~base) == 0 if strict else (under & base) != 0
        if not same.any():
            break
    return np.flatnonzero(same)


def scan(chunk: Chunk, patterns: Patterns, rules: ScanRules) -> Hits:
    """Return all hits of the chunk. Raises BadBaseError at the first illegal letter."""
    sets = chunk.sets()
    found = [
        (record, pattern, start, 0)
        for record in range(len(chunk.offsets) - 1)
        for pattern in range(len(patterns))
        for start in occurrences(
            sets[chunk.offsets[record] : chunk.offsets[record + 1]],
            patterns.sets[patterns.offsets[pattern] : patterns.offsets[pattern + 1]],
            rules.strict,
        )
    ]
    record, pattern, start, errors = np.array(found, np.int64).reshape(-1, 4).T
    hits = Hits.at_places(record, pattern, start, errors, patterns.lengths)
    return hits.chosen(rules.wanted, patterns.strands, by_end=False)

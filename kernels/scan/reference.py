"""The plain search: every pattern against every position, base by base. The tests' oracle."""

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Chunk, Hits, Patterns, Rules


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


def scan(chunk: Chunk, patterns: Patterns, rules: Rules) -> Hits:
    """Return all hits of the chunk. Raises BadBaseError at the first illegal letter."""
    sets = chunk.sets()
    rows = [
        (record, pattern, start)
        for record in range(len(chunk.offsets) - 1)
        for pattern in range(len(patterns))
        for start in occurrences(
            sets[chunk.offsets[record] : chunk.offsets[record + 1]],
            patterns.sets[patterns.offsets[pattern] : patterns.offsets[pattern + 1]],
            rules.strict,
        )
    ]
    table = np.array(rows, np.int64).reshape(-1, 3)
    hits = Hits(table[:, 0].astype(np.int32), table[:, 1].astype(np.int32), table[:, 2])
    return hits.ordered(patterns.strands, rules.first)

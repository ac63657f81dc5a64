"""The complete comparison on a CPU, and where hits go."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.scan.cpu_patterns import window


class Sink(NamedTuple):
    """Where hits go, and what is known of the record under way."""

    record: NDArray[np.int32]
    pattern: NDArray[np.int32]
    start: NDArray[np.int64]
    counts: NDArray[np.int64]  # [0] hits, more than there is room for: full; [1] length of `found`
    best: NDArray[np.int64]  # [patterns] the record's first start of each, -1: none
    found: NDArray[np.int32]  # [patterns] those that have one


@lean
def append(sink: Any, record: Any, p: Any, start: Any) -> None:
    """Keeps a hit, or counts that there is no room."""
    count = sink.counts[0]
    if count < sink.record.shape[0]:
        sink.record[count], sink.pattern[count], sink.start[count] = record, p, start
        count += 1
    else:
        count = sink.record.shape[0] + 1
    sink.counts[0] = count


@lean
def differing(s: Any, g: Any, strict: Any) -> Any:
    """Which of 64 bases of the sample `s` do not match the pattern `g` (four planes each)."""
    if strict:
        return (s[0] & ~g[0]) | (s[1] & ~g[1]) | (s[2] & ~g[2]) | (s[3] & ~g[3])
    return ~((s[0] & g[0]) | (s[1] & g[1]) | (s[2] & g[2]) | (s[3] & g[3]))


@lean
def occurs(planes: Any, position: Any, target: Any, p: Any, strict: Any) -> Any:
    """The complete comparison: does pattern p stand at `position`?"""
    word = target.words[p]
    for i in range(0, target.lengths[p], 64):
        w = word + (i >> 6)
        g = (target.planes[w, 0], target.planes[w, 1], target.planes[w, 2], target.planes[w, 3])
        differ = differing(window(planes, 0, position + i), g, strict)
        left = target.lengths[p] - i
        if left < 64:
            differ &= (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        if differ:
            return False
    return True


@lean
def check(
    planes: Any, start: Any, p: Any, target: Any, reach: Any, sink: Any, first: Any, strict: Any
) -> None:
    """Compares pattern p at the position `start` of the chunk and keeps the hit."""
    record, begin, end = reach
    if start < begin or start + target.lengths[p] > end:
        return
    if first and sink.best[p] >= 0 and sink.best[p] <= start - begin:
        return
    if not occurs(planes, start, target, p, strict):
        return
    if not first:
        append(sink, record, p, start - begin)
        return
    if sink.best[p] < 0:
        sink.found[sink.counts[1]] = p
        sink.counts[1] += 1
    sink.best[p] = start - begin

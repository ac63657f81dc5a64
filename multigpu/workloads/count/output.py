"""Parts of a count to the columns of its table. `write_counts` of the formats writes the table."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.count.work import CountPart


def fill_columns(
    parts: Iterable[CountPart], numbers: Sequence[int], values: NDArray[np.int32]
) -> Iterator[int]:
    """Add the parts to the columns of their files; yield the number of each complete column.

    parts    in the order of the files
    numbers  of the files that are counted, ascending
    values   int32[regions, files]
    """
    waiting = deque(numbers)
    for part in parts:
        while waiting[0] < part.file:
            yield waiting.popleft()
        values[part.rows, part.file] += part.counts
    yield from waiting

"""Parts of a count to the columns of its table. `write_counts` of the formats writes the table."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.count.work import CountPart
from multigpu.formats.alignments.files import Alignments


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


def notes_of_empty_samples(
    files: Sequence[Alignments], samples: Sequence[str], values: NDArray[np.int32]
) -> Iterator[str]:
    """Yield a note for each sample without a count."""
    for number in np.flatnonzero(~values.any(axis=0)).tolist():
        yield f"{files[number].path}: no read counts: {samples[number]} is all zero"

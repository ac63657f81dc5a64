"""The sample of each read by its barcodes, of which there are one or two: mismatches are counted.

A barcode is looked for in a window of letters, at its beginning or at every place, where it is
whole in there. The mismatches of all barcodes at a place are summed position by position, from a
table, so that many go through a register at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.compiled.jit import jit_no_alloc

LONGEST = 255  # bases of a barcode
READ, SAMPLE, START, ERRORS, OTHER_START, OTHER_ERRORS, SHARED = range(7)  # columns of rows


@dataclass(frozen=True, eq=False)
class Barcodes:
    """Barcodes of the samples, each distinct one once.

    which       int64[samples]: the barcode of each sample
    lengths     int64[n]
    mismatches  uint8[longest, 16, n]: 1 where the barcode does not match this set of bases at this
                position
    most        int64[samples]: mismatches that a read of the sample may have
    """

    which: NDArray[np.int64]
    lengths: NDArray[np.int64]
    mismatches: NDArray[np.uint8]
    most: NDArray[np.int64]

    @classmethod
    def of(cls, given: Sequence[bytes], most: NDArray[np.int64], strict: bool) -> "Barcodes":
        """Return the barcodes of samples, letters of at most `LONGEST` bases.

        strict  whether a letter of a read must be a subset of the barcode's, not only share a base
        """
        distinct = sorted(set(given))
        number = {barcode: i for i, barcode in enumerate(distinct)}
        lengths = np.array([len(barcode) for barcode in distinct], np.int64)
        found = np.arange(16)
        mismatches = np.zeros((int(lengths.max()), 16, len(distinct)), np.uint8)
        for i, barcode in enumerate(distinct):
            sets = bases.encode(np.frombuffer(barcode, np.uint8))[:, None]
            differs = (found & ~sets) != 0 if strict else (found & sets) == 0
            mismatches[: len(barcode), :, i] = differs | (found == 0)
        which = np.array([number[barcode] for barcode in given], np.int64)
        return cls(which, lengths, mismatches, most)


class BarcodeWindows(NamedTuple):
    """BarcodeWindows of letters.

    letters       uint8[...]
    begins, ends  int64[reads]
    places        most places where a barcode may begin in a window
    """

    letters: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: int = 1


def assign(
    windows: tuple[BarcodeWindows, BarcodeWindows], barcodes: tuple[Barcodes, Barcodes], delta: int
) -> NDArray[np.int64]:
    """Return the samples that reads may be of, int64[k, 7], in their order.

    Samples have the sum of the errors of both barcodes. A row has a sample with fewer than the
    fewest and `delta`, and of each barcode at most as many as are allowed; SHARED counts the
    samples with so few, whatever is allowed. A barcode that is nowhere whole in its window has as
    many errors as bases.
    """
    sizes = [len(each.lengths) for each in barcodes]
    count = len(windows[0].begins) + 64
    rows = np.empty((0, 7), np.int64)
    while count > len(rows):
        rows = np.empty((count, 7), np.int64)
        count = _assign(
            *windows[0], *windows[1],
            *(getattr(each, name) for each in barcodes
              for name in ("which", "lengths", "mismatches", "most")),
            delta, bases.LETTER_SETS,
            *(np.empty(size, np.uint8) for size in (*sizes, max(sizes))),
            *(np.empty(size, np.int64) for size in sizes), rows,
        )  # fmt: skip
    return rows[:count]


@jit_no_alloc
def _assign(
    letters: Any, begins: Any, ends: Any, places: Any,
    other_letters: Any, other_begins: Any, other_ends: Any, other_places: Any,
    which: Any, lengths: Any, mismatches: Any, most: Any,
    other_which: Any, other_lengths: Any, other_mismatches: Any, other_most: Any,
    delta: Any, sets: Any, errors: Any, other_errors: Any, here: Any, starts: Any,
    other_starts: Any, rows: Any,
) -> Any:  # fmt: skip
    """See `assign`. Return the number of rows, of which there may be more than have room."""
    count = 0
    for read in range(begins.shape[0]):
        _compare(
            letters, begins[read], ends[read], places, lengths, mismatches, sets, here, errors,
            starts,
        )  # fmt: skip
        _compare(
            other_letters, other_begins[read], other_ends[read], other_places, other_lengths,
            other_mismatches, sets, here, other_errors, other_starts,
        )  # fmt: skip
        fewest = 2 * LONGEST
        for s in range(which.shape[0]):
            fewest = min(fewest, errors[which[s]] + other_errors[other_which[s]])
        shared, first = 0, count
        for s in range(which.shape[0]):
            one, other = np.int64(errors[which[s]]), np.int64(other_errors[other_which[s]])
            if one + other < fewest + delta:
                shared += 1
                if one <= most[s] and other <= other_most[s]:
                    if count < rows.shape[0]:
                        rows[count, READ], rows[count, SAMPLE] = read, s
                        rows[count, START], rows[count, ERRORS] = starts[which[s]], one
                        rows[count, OTHER_START] = other_starts[other_which[s]]
                        rows[count, OTHER_ERRORS] = other
                    count += 1
        for row in range(first, min(count, rows.shape[0])):
            rows[row, SHARED] = shared
    return count


@jit_no_alloc
def _compare(
    letters: Any, begin: Any, end: Any, places: Any, lengths: Any, mismatches: Any, sets: Any,
    here: Any, errors: Any, starts: Any,
) -> None:  # fmt: skip
    """Count the errors of each barcode at its best place in a window, the first of several."""
    barcodes, shortest = lengths.shape[0], mismatches.shape[0]
    for b in range(barcodes):
        errors[b], starts[b] = lengths[b], 0
        shortest = min(shortest, lengths[b])
    for start in range(min(places, end - begin - shortest + 1)):
        here[:] = 0
        for i in range(min(mismatches.shape[0], end - begin - start)):
            row = mismatches[i, sets[letters[begin + start + i]]]
            for b in range(barcodes):
                here[b] += row[b]
        for b in range(barcodes):
            if start + lengths[b] <= end - begin and here[b] < errors[b]:
                errors[b], starts[b] = here[b], start

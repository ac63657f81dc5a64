"""The sample of each read by its barcodes, of which there are one or two: mismatches are counted.

A barcode is looked for in a window of letters, at its beginning or at every place, where it is
whole in there. The mismatches of all barcodes at a place are summed position by position, from a
table, so that many go through a register at once. The sample with the fewest in all of its barcodes
is the read's, unless another has fewer than `delta` more: then they are tied.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.cpu_planes import find_rows

LONGEST = 255  # bases of a barcode
READ, SAMPLE, START, ERRORS, OTHER_START, OTHER_ERRORS, SHARED = range(7)  # columns of rows


class Barcodes(NamedTuple):
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
    """Windows of letters in which a barcode of each read is looked for.

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
    most = max(len(each.lengths) for each in barcodes)
    errors, starts = np.empty((3, most), np.uint8), np.empty((2, most), np.int64)
    return find_rows(partial(_assign, windows, barcodes, delta, errors, starts), columns=7)


@jit_no_alloc
def _assign(windows: Any, barcodes: Any, delta: Any, errors: Any, starts: Any, rows: Any) -> Any:
    """See `assign`. Return the number of rows, of which there may be more than have room."""
    (one, other), count = barcodes, 0
    for read in range(windows[0].begins.shape[0]):
        _compare(windows[0], read, one, errors[2], errors[0], starts[0])
        _compare(windows[1], read, other, errors[2], errors[1], starts[1])
        fewest = 2 * LONGEST
        for s in range(one.which.shape[0]):
            fewest = min(fewest, errors[0, one.which[s]] + errors[1, other.which[s]])
        shared, first = 0, count
        for s in range(one.which.shape[0]):
            b, c = one.which[s], other.which[s]
            if errors[0, b] + errors[1, c] < fewest + delta:
                shared += 1
                if errors[0, b] <= one.most[s] and errors[1, c] <= other.most[s]:
                    if count < rows.shape[0]:
                        rows[count, READ], rows[count, SAMPLE] = read, s
                        rows[count, START], rows[count, ERRORS] = starts[0, b], errors[0, b]
                        rows[count, OTHER_START] = starts[1, c]
                        rows[count, OTHER_ERRORS] = errors[1, c]
                    count += 1
        for row in range(first, min(count, rows.shape[0])):
            rows[row, SHARED] = shared
    return count


@jit_no_alloc
def _compare(windows: Any, read: Any, barcodes: Any, here: Any, errors: Any, starts: Any) -> None:
    """Count the errors of each barcode at its best place in a window, the first of several."""
    lengths, mismatches = barcodes.lengths, barcodes.mismatches
    begin, end = windows.begins[read], windows.ends[read]
    count, shortest = lengths.shape[0], mismatches.shape[0]
    for b in range(count):
        errors[b], starts[b] = lengths[b], 0
        shortest = min(shortest, lengths[b])
    for start in range(min(windows.places, end - begin - shortest + 1)):
        here[:] = 0
        for i in range(min(mismatches.shape[0], end - begin - start)):
            row = mismatches[i, bases.LETTER_SETS[windows.letters[begin + start + i]]]
            for b in range(count):
                here[b] += row[b]
        for b in range(count):
            if start + lengths[b] <= end - begin and here[b] < errors[b]:
                errors[b], starts[b] = here[b], start

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
    """Barcodes of the samples. What is compared lies sample by sample, so that no index is read.

    lengths     uint8[samples]
    mismatches  uint8[longest, 16, samples]: 1 where the barcode does not match this set of bases at
                this position
    most        int64[samples]: mismatches that a read of the sample may have
    """

    lengths: NDArray[np.uint8]
    mismatches: NDArray[np.uint8]
    most: NDArray[np.int64]

    @classmethod
    def of(cls, given: Sequence[bytes], most: NDArray[np.int64], strict: bool) -> "Barcodes":
        """Return the barcodes of samples, letters of at most `LONGEST` bases.

        strict  whether a letter of a read must be a subset of the barcode's, not only share a base
        """
        lengths = np.array(list(map(len, given)), np.uint8)
        found = np.arange(16)
        mismatches = np.zeros((int(lengths.max()), 16, len(given)), np.uint8)
        for s, barcode in enumerate(given):
            sets = bases.encode(np.frombuffer(barcode, np.uint8))[:, None]
            differs = (found & ~sets) != 0 if strict else (found & sets) == 0
            mismatches[: len(barcode), :, s] = differs | (found == 0)
        return cls(lengths, mismatches, most)


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
    samples = len(barcodes[0].lengths)
    errors, starts = np.empty((3, samples), np.uint8), np.empty((2, samples), np.int64)
    total = np.empty(samples, np.uint16)
    return find_rows(partial(_assign, windows, barcodes, delta, errors, starts, total), columns=7)


@jit_no_alloc
def _assign(
    windows: Any, barcodes: Any, delta: Any, errors: Any, starts: Any, total: Any, rows: Any
) -> Any:
    """See `assign`. Return the number of rows, of which there may be more than have room."""
    (one, other), samples, count = barcodes, total.shape[0], 0
    for read in range(windows[0].begins.shape[0]):
        _compare(windows[0], read, one, errors[2], errors[0], starts[0])
        _compare(windows[1], read, other, errors[2], errors[1], starts[1])
        fewest, shared = np.uint16(2 * LONGEST), 0
        for s in range(samples):
            total[s] = np.uint16(errors[0, s]) + np.uint16(errors[1, s])
            fewest = min(fewest, total[s])
        limit = fewest + delta
        for s in range(samples):
            shared += total[s] < limit
        for s in range(samples):
            if total[s] < limit and errors[0, s] <= one.most[s] and errors[1, s] <= other.most[s]:
                if count < rows.shape[0]:
                    rows[count, READ], rows[count, SAMPLE], rows[count, SHARED] = read, s, shared
                    rows[count, START], rows[count, ERRORS] = starts[0, s], errors[0, s]
                    rows[count, OTHER_START] = starts[1, s]
                    rows[count, OTHER_ERRORS] = errors[1, s]
                count += 1
    return count


@jit_no_alloc
def _compare(windows: Any, read: Any, barcodes: Any, here: Any, errors: Any, starts: Any) -> None:
    """Count the errors of each barcode at its best place in a window, the first of several."""
    lengths, mismatches = barcodes.lengths, barcodes.mismatches
    begin, bases_there = windows.begins[read], windows.ends[read] - windows.begins[read]
    count, longest = lengths.shape[0], mismatches.shape[0]
    shortest = longest
    for b in range(count):
        errors[b], starts[b] = lengths[b], 0
        shortest = min(shortest, lengths[b])
    for start in range(min(windows.places, bases_there - shortest + 1)):
        here[:] = 0
        for i in range(min(longest, bases_there - start)):
            row = mismatches[i, bases.LETTER_SETS[windows.letters[begin + start + i]]]
            for b in range(count):
                here[b] += row[b]
        if start == 0 and longest <= bases_there:  # nearly always: without a branch for each
            for b in range(count):
                errors[b] = min(errors[b], here[b])
            continue
        for b in range(count):
            if start + lengths[b] <= bases_there and here[b] < errors[b]:
                errors[b], starts[b] = here[b], start

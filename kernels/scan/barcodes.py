"""The sample of each read by its barcodes, of which there are one or two: mismatches are counted.

A barcode is looked for in a window of letters, at its beginning or at every place, where it is
whole in there. The mismatches of all barcodes at a place are summed position by position, from a
table, so that many go through a register at once. The sample with the fewest in all of its barcodes
is the read's, unless another has fewer than `delta` more: then they are tied. Most reads begin with
letters that another one began with: what these are of is kept and not compared again.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels import bases
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.letters import ambiguous_in

LONGEST = 255  # bases of a barcode
KEPT_BASES = 15  # of a window at most, four bits each
SLOTS = 1 << 14  # for the letters of windows that are kept
KEY, OTHER_KEY, SAMPLE, ERRORS, OTHER_ERRORS, SHARED = range(6)  # columns of what is kept
NONE = -1


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
    """Windows of letters in which a barcode of each read is looked for; both of a pair are alike.

    letters       uint8[...]
    begins, ends  int64[reads]
    places        most places where a barcode may begin in a window
    """

    letters: NDArray[np.uint8]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    places: int = 1


class BarcodeRows(NamedTuple):
    """Samples that records may be of, by the records.

    record     int32[k]
    sample     int32[k]
    start      int64[k]  where the barcode begins in its window
    end        int64[k]
    errors     int32[k]
    ambiguous  int32[k]  bases under the barcode that are not A, C, G, T or U
    shared     int32[k]  samples that are as good for the read, this one among them
    """

    record: NDArray[np.int32]
    sample: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    errors: NDArray[np.int32]
    ambiguous: NDArray[np.int32]
    shared: NDArray[np.int32]

    @classmethod
    def room(cls, rows: int) -> "BarcodeRows":
        """Return rows with anything in them."""
        kinds = np.int32, np.int32, np.int64, np.int64, np.int32, np.int32, np.int32
        columns: Any = (np.empty(rows, kind) for kind in kinds)
        return cls(*columns)

    def first(self, rows: int) -> "BarcodeRows":
        """Return the first rows."""
        columns: Any = (each[:rows] for each in self)
        return BarcodeRows(*columns)


def assign(
    windows: tuple[BarcodeWindows, BarcodeWindows],
    barcodes: tuple[Barcodes, Barcodes],
    delta: int,
    step: int,
    placed: int,
) -> BarcodeRows:
    """Return the samples that reads may be of, in their order.

    step    records of a read
    placed  how many of them, at most `step`, have a barcode each, whose place and errors are in
            their rows; 0: barcodes stand elsewhere, and all records of a read have rows without a
            place, with the errors of both

    Samples have the sum of the errors of both barcodes. A read may be of one with fewer than the
    fewest and `delta`, and of each barcode at most as many as are allowed; `shared` counts the
    samples with so few, whatever is allowed. A barcode that is nowhere whole in its window has as
    many errors as bases.
    """
    samples = len(barcodes[0].lengths)
    errors, starts = np.empty((3, samples), np.uint8), np.zeros((2, samples), np.int64)
    total, chosen = np.empty(samples, np.uint16), np.empty(samples, np.int64)
    memory = errors, starts, total, chosen, np.full((SLOTS, 6), NONE, np.int64)
    room = len(windows[0].begins) * (placed or step)
    while True:
        rows = BarcodeRows.room(room)
        count = int(_assign(windows, barcodes, delta, step, placed, memory, rows))
        if count <= room:
            return rows.first(count)
        room = count


@jit_no_alloc
def _assign(
    windows: Any, barcodes: Any, delta: Any, step: Any, placed: Any, memory: Any, rows: Any
) -> Any:
    """See `assign`. Return the number of rows, of which there may be more than have room."""
    errors, starts, _, chosen, kept = memory
    count = 0
    for read in range(windows[0].begins.shape[0]):
        key, other_key = _key(windows[0], read, barcodes[0]), _key(windows[1], read, barcodes[1])
        known = kept[key * 0x9E3779B1 + other_key * 0x85EBCA77 >> 30 & SLOTS - 1]  # a hash
        if known[SHARED] != NONE and known[KEY] == key and known[OTHER_KEY] == other_key:
            chosen[0], shared, found = known[SAMPLE], known[SHARED], int(known[SAMPLE] != NONE)
            if found:
                errors[0, chosen[0]], errors[1, chosen[0]] = known[ERRORS], known[OTHER_ERRORS]
        else:
            found, shared = _nearest(windows, read, barcodes, delta, memory)
            if found <= 1 and key != NONE and other_key != NONE:
                known[KEY], known[OTHER_KEY], known[SHARED] = key, other_key, shared
                known[SAMPLE] = s = chosen[0] if found else NONE
                known[ERRORS], known[OTHER_ERRORS] = errors[0, s], errors[1, s]
        for mate in range(placed or step):
            for s in chosen[:found]:
                if count < rows.record.shape[0]:
                    rows.record[count], rows.sample[count] = step * read + mate, s
                    rows.shared[count] = shared
                    length = barcodes[mate].lengths[s] if placed else 0
                    _place(windows[mate], read, starts[mate, s] * (placed > 0), length, rows, count)
                    both = np.int64(errors[0, s]) + errors[1, s]
                    rows.errors[count] = errors[mate, s] if placed else both
                count += 1
    return count


@jit_no_alloc
def _place(windows: Any, read: Any, start: Any, length: Any, rows: Any, row: Any) -> None:
    """Write the place of a barcode to a row."""
    begin = windows.begins[read] + start
    rows.start[row], rows.end[row] = start, start + length
    rows.ambiguous[row] = ambiguous_in(windows.letters, begin, length)


@jit_no_alloc
def _key(windows: Any, read: Any, barcodes: Any) -> Any:
    """Return a number for the letters that are compared.

    NONE for too many, for fewer than the longest barcode has, and where it may begin elsewhere.
    """
    longest, begin = barcodes.mismatches.shape[0], windows.begins[read]
    if windows.places > 1 or longest > min(KEPT_BASES, windows.ends[read] - begin):
        return np.int64(NONE)
    key = np.int64(0)
    for letter in windows.letters[begin : begin + longest]:
        key = key << 4 | bases.LETTER_SETS[letter]
    return key


@jit_no_alloc
def _nearest(windows: Any, read: Any, barcodes: Any, delta: Any, memory: Any) -> Any:
    """Choose the samples of a read; return their number, and how many are as good."""
    (one, other), (errors, starts, total, chosen, _) = barcodes, memory
    _compare(windows[0], read, one, errors[2], errors[0], starts[0])
    _compare(windows[1], read, other, errors[2], errors[1], starts[1])
    fewest, found, shared = np.uint16(2 * LONGEST), 0, 0
    for s in range(total.shape[0]):
        total[s] = np.uint16(errors[0, s]) + np.uint16(errors[1, s])
        fewest = min(fewest, total[s])
    for s in range(total.shape[0]):
        if total[s] < fewest + delta:
            shared += 1
            if errors[0, s] <= one.most[s] and errors[1, s] <= other.most[s]:
                chosen[found] = s
                found += 1
    return found, shared


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

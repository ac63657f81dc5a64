"""Starts and alignments of hits with edits, and alignments of hits with mismatches."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.scan.approximate.types import ErrorHits, Limits
from multigpu.kernels.scan.types import Patterns

OPERATIONS = np.frombuffer(b"=XID", np.uint8)
SAME, DIFFERENT, INSERTION, DELETION = range(4)
NOWHERE = np.int64(1 << 62)
EDIT = np.int64(1 << 40)  # the cost of an edit; less by the start, so that the largest is preferred


class Alignments(NamedTuple):
    """Alignments of hits.

    start    int64[n]      first base in the record, the largest with as few edits
    cigar    uint8[bytes]  text of all: lengths and operations, = X I D
    offsets  int64[n + 1]  of the text of each
    """

    start: NDArray[np.int64]
    cigar: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def text(self, hit: int) -> str:
        """Return the CIGAR of a hit."""
        return self.cigar[self.offsets[hit] : self.offsets[hit + 1]].tobytes().decode()

    def texts(self) -> list[bytes]:
        """Return the CIGARs of all hits."""
        joined = self.cigar.tobytes()
        return [joined[begin:end] for begin, end in pairwise(self.offsets.tolist())]


def align(
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    patterns: Patterns,
    limits: Limits,
    hits: ErrorHits,
    strict: bool,
) -> Alignments:
    """Return the alignments of hits, of which record, pattern, end and edits are known.

    offsets  int64[records + 1]  as in `Chunk`
    letters  uint8[bases]        as in `Chunk`

    Of several alignments with as few edits and as large a start it is the one that, read from its
    end, prefers two bases against each other, then a base of the sample alone, then one of the
    pattern.
    """
    longest = int(patterns.lengths.max(initial=0)) + int(hits.errors.max(initial=0))
    width = 2 * int(hits.errors.max(initial=0)) + 1
    run_bytes = len(str(longest)) + 1
    found = Alignments(
        start=np.empty(len(hits), np.int64),
        cigar=np.empty(int((2 * hits.errors + 1).sum()) * run_bytes, np.uint8),
        offsets=np.zeros(len(hits) + 1, np.int64),
    )
    scratch = Scratch(
        steps=np.empty((longest + 1, width), np.uint8),
        costs=np.empty((2, width), np.int64),
        path=np.empty(longest, np.uint8),
    )
    pairs = Pairs(offsets, letters, patterns.sets, patterns.offsets, limits.prefix, limits.suffix)
    _align_all(pairs, hits.record, hits.pattern, hits.end, hits.errors, strict, scratch, found)
    return found._replace(cigar=found.cigar[: found.offsets[-1]])


def align_without_gaps(
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    patterns: Patterns,
    hits: ErrorHits,
    strict: bool,
) -> Alignments:
    """Return the alignments of hits without insertions and deletions; see `align`."""
    longest = int(patterns.lengths.max(initial=0))
    run_bytes = len(str(longest)) + 1
    found = Alignments(
        start=hits.start,
        cigar=np.empty(int((2 * hits.errors + 1).sum()) * run_bytes, np.uint8),
        offsets=np.zeros(len(hits) + 1, np.int64),
    )
    begins, path = offsets[hits.record] + hits.start, np.empty(longest, np.uint8)
    sets, borders = patterns.sets, patterns.offsets
    _compare_all(letters, begins, sets, borders, hits.pattern, strict, path, found)
    return found._replace(cigar=found.cigar[: found.offsets[-1]])


class Pairs(NamedTuple):
    """Samples and patterns; see `align`."""

    records: NDArray[np.int64]
    samples: NDArray[np.uint8]  # letters
    patterns: NDArray[np.uint8]  # sets of bases
    offsets: NDArray[np.int64]
    prefix: NDArray[np.int64]
    suffix: NDArray[np.int64]


class Scratch(NamedTuple):
    """Memory for one alignment.

    Column k of a row stands for the base of the sample that is k - edits bases nearer to its end
    than the pattern's base is to its own.
    """

    steps: NDArray[np.uint8]  # [bases of the pattern + 1, 2 edits + 1] the operation to each cell
    costs: NDArray[np.int64]  # [2, 2 edits + 1] the row before, and this one
    path: NDArray[np.uint8]  # operations, from the end


@lean
def _align_all(
    pairs: Any, record: Any, pattern: Any, end: Any, errors: Any, strict: Any, scratch: Any,
    found: Any,
) -> None:  # fmt: skip
    for i in range(record.shape[0]):
        p, begin = pattern[i], pairs.records[record[i]]
        sample = pairs.samples[begin : begin + end[i]]
        bases = pairs.patterns[pairs.offsets[p] : pairs.offsets[p + 1]]
        exact = (pairs.prefix[p], bases.shape[0] - pairs.suffix[p])
        _fill_steps(sample, bases, exact, errors[i], strict, scratch)
        count, start = _follow_steps(sample.shape[0], bases.shape[0], errors[i], scratch)
        found.start[i] = start
        found.offsets[i + 1] = _write_cigar(scratch.path, count, found.cigar, found.offsets[i])


@lean
def _fill_steps(
    sample: Any, bases: Any, exact: Any, errors: Any, strict: Any, scratch: Any
) -> None:
    """Find the best step to every cell within `errors` of the diagonal to the end."""
    length, end, width = bases.shape[0], sample.shape[0], 2 * np.int64(errors) + 1
    for k in range(width):
        at = end - length - (k - errors)
        scratch.costs[0, k] = -at if 0 <= at <= end else NOWHERE
    for row in range(1, length + 1):
        before, here = scratch.costs[(row - 1) & 1], scratch.costs[row & 1]
        is_exact = row <= exact[0] or row > exact[1]
        may_insert = not (row < exact[0] or row > max(0, exact[1])) or row == length
        base = bases[row - 1]
        for k in range(width - 1, -1, -1):
            at = end - (length - row) - (k - errors)
            best, step = NOWHERE, SAME
            if 0 <= at <= end:
                if at and before[k] < NOWHERE:
                    under = LETTER_SETS[sample[at - 1]]
                    agrees = under & ~base == 0 if strict else under & base != 0
                    if agrees:
                        best = before[k]
                    elif not is_exact:
                        best, step = before[k] + EDIT, DIFFERENT
                if at and may_insert and k + 1 < width and here[k + 1] + EDIT < best:
                    best, step = here[k + 1] + EDIT, INSERTION
                if not is_exact and k and before[k - 1] + EDIT < best:
                    best, step = before[k - 1] + EDIT, DELETION
            here[k], scratch.steps[row, k] = min(best, NOWHERE), step


@lean
def _follow_steps(end: Any, length: Any, errors: Any, scratch: Any) -> Any:
    """Go back from the end; return the number of operations, and the start."""
    row, k, at, count = length, np.int64(errors), end, 0
    while row:
        step = scratch.steps[row, k]
        scratch.path[count] = step
        count += 1
        if step == INSERTION:
            k, at = k + 1, at - 1
        elif step == DELETION:
            row, k = row - 1, k - 1
        else:
            row, at = row - 1, at - 1
    return count, at


@lean
def _compare_all(
    samples: Any, begins: Any, patterns: Any, offsets: Any, pattern: Any, strict: Any, path: Any,
    found: Any,
) -> None:  # fmt: skip
    for i in range(begins.shape[0]):
        first, length = offsets[pattern[i]], offsets[pattern[i] + 1] - offsets[pattern[i]]
        for j in range(length):
            base, under = patterns[first + j], LETTER_SETS[samples[begins[i] + j]]
            agrees = under & ~base == 0 if strict else under & base != 0
            path[length - 1 - j] = SAME if agrees else DIFFERENT
        found.offsets[i + 1] = _write_cigar(path, length, found.cigar, found.offsets[i])


@lean
def _write_cigar(path: Any, count: Any, text: Any, at: Any) -> Any:
    """Write the operations, which stand from the end on; return where the text ends."""
    last = count - 1
    while last >= 0:
        first = last
        while first and path[first - 1] == path[last]:
            first -= 1
        number, digits = last - first + 1, 1
        while number >= 10**digits:
            digits += 1
        for digit in range(digits):
            text[at + digits - 1 - digit] = ord("0") + number // 10**digit % 10
        text[at + digits] = OPERATIONS[path[last]]
        at += digits + 1
        last = first - 1
    return at

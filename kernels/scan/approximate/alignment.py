"""Starts and alignments of hits with edits, and alignments of hits with mismatches.

An alignment with edits is a path through a table with a row for each base of the pattern. With D
edits it stays in a band of 2 D + 1 columns. Where the steps to all cells of the band fit `BLOCK`
bytes, the path is followed back from its end. Elsewhere a pass over the rows carries along in which
column the path to each cell left the middle row (after Hirschberg 1975). That cell parts it in two,
which are found likewise, each in the band of its own edits, half as wide as both ends are known.

A pattern of L bases takes at most 3 L D cells of computing instead of 2 L D. Its memory is 8 MiB
for steps, L + D bytes for the path and 40 D for rows, instead of 2 L D: 11 MB for 1,000,000 bases
with 36,000 edits.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.types import Hits, Limits, Patterns

OPERATIONS = np.frombuffer(b"=XID", np.uint8)
SAME, DIFFERENT, INSERTION, DELETION = range(4)
INSERTED, DELETED = np.uint8(16), np.uint8(0)  # columns that are no sets of bases
# A cost is EDIT times the edits less START times the start, so that of alignments with as few edits
# that with the largest start costs least. Of steps that cost the same, the operation in the low
# bits prefers one.
OPERATION = 3
START = 4
EDIT = np.int64(1 << 38)
NOWHERE = np.int64(1 << 61)
ANYWHERE = -1  # position
BLOCK = 8 << 20  # bytes of the steps that are kept at a time
Integers = NDArray[np.int64]
MOST_POINTS = 66  # each halves the rows after the one before


class HitAlignments(NamedTuple):
    """Alignments of hits.

    start    int64[n]      first base in the record, the largest with as few edits
    cigar    uint8[bytes]  text of all: lengths and operations, = X I D
    offsets  int64[n + 1]  of the text of each
    """

    start: NDArray[np.int64]
    cigar: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def texts(self) -> list[bytes]:
        """Return the CIGARs of all hits."""
        joined = self.cigar.tobytes()
        return [joined[begin:end] for begin, end in pairwise(self.offsets.tolist())]


def align(
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    patterns: Patterns,
    limits: Limits,
    hits: Hits,
    strict: bool,
) -> HitAlignments:
    """Return the alignments of hits, of which record, pattern, end and edits are known.

    offsets  int64[records + 1]  as in `Chunk`
    letters  uint8[bases]        as in `Chunk`

    Of several alignments with as few edits and as large a start it is the one that, read from its
    end, prefers two bases against each other, then a base of the sample alone, then one of the
    pattern.
    """
    lengths, edits = patterns.lengths[hits.pattern], hits.errors.astype(np.int64)
    longest = int((lengths + edits).max(initial=0))
    found = _make_room(np.empty(len(hits), np.int64), 2 * edits + 1, longest)
    scratch = make_scratch(lengths, edits)
    pairs = Pairs(offsets, letters, patterns.sets, patterns.offsets, limits)
    _align_all(pairs, hits.record, hits.pattern, hits.end, edits, strict, scratch, found)
    return found._replace(cigar=found.cigar[: found.offsets[-1]])


class Layouts(NamedTuple):
    """Columns of alignments, layout after layout.

    columns  uint8[columns]: a set of bases, INSERTED for a base of the sample alone, DELETED for
             one of the signature alone
    borders  int64[layouts + 1]: where the columns of each begin
    gaps     most columns of a layout that are no sets of bases
    """

    columns: NDArray[np.uint8]
    borders: NDArray[np.int64]
    gaps: int = 0


def align_layouts(
    offsets: NDArray[np.int64],
    letters: NDArray[np.uint8],
    layouts: Layouts,
    hits: Hits,
    layout: NDArray[np.int32],
    strict: bool,
) -> HitAlignments:
    """Return the alignments of hits that have these layouts, one for each; see `align`.

    Hits with mismatches alone have `Layouts(patterns.sets, patterns.offsets)`. Bases of the pattern
    that hang over an end of the record are deletions there.
    """
    longest = int(np.diff(layouts.borders).max(initial=0))
    found = _make_room(hits.start, 2 * (hits.errors + layouts.gaps) + 3, longest)
    places = (hits.record, hits.start, hits.end, hits.errors, layout)
    _compare_all(letters, offsets, layouts, places, strict, np.empty(longest, np.uint8), found)
    return found._replace(cigar=found.cigar[: found.offsets[-1]])


def _make_room(start: Integers, runs: NDArray[np.integer], longest: int) -> HitAlignments:
    """Return room for alignments of so many runs of operations and of columns at most."""
    size = int(runs.sum()) * (len(str(longest)) + 1)
    return HitAlignments(start, np.empty(size, np.uint8), np.zeros(len(start) + 1, np.int64))


class Pairs(NamedTuple):
    """Samples and patterns; see `align`."""

    records: NDArray[np.int64]
    samples: NDArray[np.uint8]  # letters
    patterns: NDArray[np.uint8]  # sets of bases
    offsets: NDArray[np.int64]
    limits: Limits


class PathScratch(NamedTuple):
    """Memory for one alignment; `width` is that of the widest band."""

    steps: NDArray[np.uint8]  # [cells] the operation to each cell, row by row
    costs: NDArray[np.int64]  # [width + 1] costs of the cells of a row
    middle: NDArray[np.int64]  # [width] costs of the cells of the middle row
    crossings: NDArray[np.int32]  # [width + 1] column where the path to a cell left that row
    points: NDArray[np.int64]  # [points, 3] row, position and edits of cells on the path
    path: NDArray[np.uint8]  # operations, from the end


def make_scratch(lengths: NDArray[np.int64], edits: NDArray[np.int64]) -> PathScratch:
    """Return memory for alignments of patterns of these lengths with as many edits."""
    widths = 2 * edits + 1
    width = int(widths.max(initial=0))
    return PathScratch(
        steps=np.empty(min(int((lengths * widths).max(initial=0)), max(BLOCK, width)), np.uint8),
        costs=np.empty(width + 1, np.int64),
        middle=np.empty(width, np.int64),
        crossings=np.empty(width + 1, np.int32),
        points=np.empty((MOST_POINTS, 3), np.int64),
        path=np.empty(int((lengths + edits).max(initial=0)), np.uint8),
    )


class EditTable(NamedTuple):
    """Table of edits: a row for each base of a pattern, a position for each of a sample."""

    sample: NDArray[np.uint8]  # letters
    bases: NDArray[np.uint8]  # sets of bases
    exact: tuple[int, int]  # last row of the prefix, last row before the suffix
    strict: bool


class Band(NamedTuple):
    """Cells that a path may go through; column k of a row is position row + shift + k."""

    first: int  # row of the path's begin
    last: int  # row of its end
    shift: int
    width: int
    column: int  # of its end


@jit_no_alloc
def _align_all(
    pairs: Any, record: Any, pattern: Any, end: Any, errors: Any, strict: Any, scratch: Any,
    found: Any,
) -> None:  # fmt: skip
    for i in range(record.shape[0]):
        p, begin = pattern[i], pairs.records[record[i]]
        sample = pairs.samples[begin : begin + end[i]]
        bases = pairs.patterns[pairs.offsets[p] : pairs.offsets[p + 1]]
        exact = (pairs.limits.prefix[p], bases.shape[0] - pairs.limits.suffix[p])
        count = _find_path(EditTable(sample, bases, exact, strict), errors[i], scratch)
        found.start[i] = scratch.points[0, 1]
        found.offsets[i + 1] = _write_cigar(scratch.path, count, found.cigar, found.offsets[i])


@jit_no_alloc
def _find_path(table: Any, edits: Any, scratch: Any) -> Any:
    """Write the operations, from the end on; return their number. points[0] gets the start."""
    points, count, last = scratch.points, 0, 1
    _set_point(points[0], 0, ANYWHERE, 0)
    _set_point(points[1], table.bases.shape[0], table.sample.shape[0], edits)
    while last:
        begin, end = points[last - 1], points[last]
        band = _band_between(begin, end)
        fill_first_row(table, band, begin[1], scratch.costs)
        rows = band.last - band.first
        if rows == 1 or rows * band.width <= scratch.steps.shape[0]:
            for row in range(band.first + 1, band.last + 1):
                steps = scratch.steps[(row - 1 - band.first) * band.width :]
                fill_row(table, band, row, scratch.costs, steps[: band.width])
            count, begin[1] = _follow_steps(band, scratch, count)
            last -= 1
        else:
            row, column, cost = _find_crossing(table, band, scratch)
            begin[1] = (-cost & (EDIT - 1)) // START
            _set_point(points[last + 1], end[0], end[1], end[2])
            _set_point(end, row, row + band.shift + column, begin[2] - (-cost // EDIT))
            last += 1
    return count


@jit_no_alloc
def _set_point(point: Any, row: Any, position: Any, edits: Any) -> None:
    point[0], point[1], point[2] = row, position, edits


@jit_no_alloc
def _band_between(begin: Any, end: Any) -> Any:
    """Return the band of the paths between two points with the edits between them."""
    edits = end[2] - begin[2]
    insertions = deletions = edits
    if begin[1] != ANYWHERE:
        surplus = (end[1] - begin[1]) - (end[0] - begin[0])
        insertions, deletions = (edits + surplus) // 2, (edits - surplus) // 2
    shift = end[1] - end[0] - insertions
    return Band(begin[0], end[0], shift, insertions + deletions + 1, insertions)


@jit_no_alloc
def _columns(table: Any, band: Any, row: Any) -> Any:
    """Return the first column of a row that is in the sample, and the one after the last."""
    at = row + band.shift
    return max(0, -at), min(band.width, table.sample.shape[0] - at + 1)


@jit_no_alloc
def fill_first_row(table: Any, band: Any, begin: Any, costs: Any) -> None:
    """Set the costs of the row that paths begin in, at the position `begin` or ANYWHERE."""
    first, stop = _columns(table, band, band.first)
    for k in range(first, stop):
        position = band.first + band.shift + k
        costs[k] = -position * START if begin in (ANYWHERE, position) else NOWHERE
    costs[band.width] = NOWHERE


@jit_no_alloc
def _find_crossing(table: Any, band: Any, scratch: Any) -> Any:
    """Return the middle row, the column where the path leaves it, and that cell's cost."""
    steps, middle = scratch.steps[: band.width], (band.first + band.last) // 2
    for row in range(band.first + 1, band.last + 1):
        fill_row(table, band, row, scratch.costs, steps)
        if row == middle:
            for k in range(band.width):
                scratch.middle[k], scratch.crossings[k] = scratch.costs[k], k
        elif row > middle:
            first, stop = _columns(table, band, row)
            _move_crossings(steps[first:stop], scratch.crossings[first : stop + 1])
    column = scratch.crossings[band.column]
    return middle, column, scratch.middle[column]


@jit_no_alloc
def fill_row(table: Any, band: Any, row: Any, costs: Any, steps: Any) -> None:
    """Replace the costs of the row before by those of this row, and set the steps to its cells."""
    length, exact, base = table.bases.shape[0], table.exact, table.bases[row - 1]
    is_exact = row <= exact[0] or row > exact[1]
    may_insert = not (row < exact[0] or row > max(0, exact[1])) or row == length
    differing = (NOWHERE if is_exact else EDIT) + DIFFERENT
    deletion = (NOWHERE if is_exact else EDIT) + DELETION
    insertion = (EDIT if may_insert else NOWHERE) + INSERTION
    first, stop = _columns(table, band, row)
    paired, at = first, row + band.shift + first
    if at == 0:
        costs[first] = min(costs[first + 1] + deletion, NOWHERE)
        paired, at = paired + 1, at + 1
    sample = table.sample[at - 1 :]
    _pair_or_delete(sample, base, table.strict, differing, deletion, costs[paired : stop + 1])
    _insert(insertion, costs[first:stop], steps[first:stop])


@jit_no_alloc
def _pair_or_delete(
    sample: Any, base: Any, strict: Any, differing: Any, deletion: Any, costs: Any
) -> None:
    """Replace costs, one column more, by those of paths that end without an insertion."""
    # A loop of its own, over slices from 0 on, becomes vector code.
    for k in range(costs.shape[0] - 1):
        under = LETTER_SETS[sample[k]]
        agrees = under & ~base == 0 if strict else under & base != 0
        paired = costs[k] if agrees else costs[k] + differing
        costs[k] = min(paired, costs[k + 1] + deletion, NOWHERE)


@jit_no_alloc
def _insert(insertion: Any, costs: Any, steps: Any) -> None:
    """Replace the costs of paths that end without an insertion by those of all paths."""
    best = NOWHERE
    for k in range(costs.shape[0]):
        best = min(costs[k], best + insertion)
        steps[k] = best & OPERATION
        best -= best & OPERATION
        costs[k] = best


@jit_no_alloc
def _move_crossings(steps: Any, crossings: Any) -> None:
    """Replace crossings, of one column more, by those of a row with these steps."""
    crossing = crossings[0]
    for k in range(steps.shape[0]):
        if steps[k] == DELETION:
            crossing = crossings[k + 1]
        elif steps[k] != INSERTION:
            crossing = crossings[k]
        crossings[k] = crossing


@jit_no_alloc
def _follow_steps(band: Any, scratch: Any, count: Any) -> Any:
    """Go back from the end of a band; return the number of operations, and where it begins."""
    row, k = band.last, band.column
    while row > band.first:
        step = scratch.steps[(row - 1 - band.first) * band.width + k]
        scratch.path[count] = step
        count += 1
        if step == INSERTION:
            k -= 1
        else:
            row -= 1
            k += step == DELETION
    return count, row + band.shift + k


@jit_no_alloc
def _compare_all(
    letters: Any, offsets: Any, layouts: Any, places: Any, strict: Any, path: Any, found: Any
) -> None:
    for i in range(found.start.shape[0]):
        record, layout, start = places[0][i], places[4][i], places[1][i]
        sample = letters[offsets[record] : offsets[record + 1]]
        columns = layouts.columns[layouts.borders[layout] : layouts.borders[layout + 1]]
        at = start
        if start == 0:  # it may hang over the start
            at = places[2][i]
            for column in columns:
                at -= column != DELETED
        # Where all of the sample is seen, it may hang over either end, or both.
        while _pair_bases(sample, columns, at, strict, path) != places[3][i] and at < start:
            at += 1
        size = columns.shape[0]
        found.offsets[i + 1] = _write_cigar(path, size, found.cigar, found.offsets[i])


@jit_no_alloc
def _pair_bases(sample: Any, columns: Any, at: Any, strict: Any, path: Any) -> Any:
    """Write the operations of a layout at a place, from the end on; return the mismatches."""
    last, errors = columns.shape[0] - 1, 0
    for i in range(last + 1):
        expected, step = columns[i], DELETION
        if expected != DELETED:
            if 0 <= at < sample.shape[0]:
                under = LETTER_SETS[sample[at]]
                agrees = under & ~expected == 0 if strict else under & expected != 0
                step = SAME if agrees else DIFFERENT
                if expected == INSERTED:
                    step = INSERTION
                errors += step == DIFFERENT
            at += 1
        path[last - i] = step
    return errors


@jit_no_alloc
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

"""Lines of a matrix of counts, summed into bins: chromosome, start, end, a count for each sample.

Lines of a chromosome lie on a grid that begins with the first of them. All numbers are whole.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.text.lines import NEWLINE, RETURN, TAB

ZERO, TEN, DIGITS = ord("0"), 10, 18


@jit_no_alloc
def sum_lines(
    raw: Any, grid: Any, least: Any, factors: Any, line: Any, bins: Any, sums: Any, used: Any
) -> Any:
    """Add the counts of lines of one chromosome to bins of several sizes.

    raw      uint8[n]  lines, each with its end, the last one too
    grid     start of the chromosome's first line, bases of a line (the last may be shorter), and
             the largest count
    least    lowest start of the first line
    factors  int64[f]  lines that a bin has where none is missing
    line     int32[samples]         room for the counts of a line
    bins     int64[f, m]            gets the number of each bin on the grid of its size
    sums     int32[f, m, samples]   gets the counts; m: number of lines at least
    used     int64[f]               zeros, which get the number of bins of each size

    Returns the number of lines, the end of the last one in bases, and where the first line begins
    that does not fit: of another chromosome, with another number of columns, no whole numbers,
    beside the grid, or before an earlier one; -1 if all fit.
    """
    origin, width, most = grid
    lines, end, at = 0, 0, 0
    while at < raw.shape[0]:
        begin = at
        while raw[at] == raw[at - begin] and raw[at] != TAB and raw[at] != NEWLINE:
            at += 1
        if raw[at] != raw[at - begin]:
            return lines, end, begin
        start, at = _read_whole(raw, at, TAB)
        stop, at = _read_whole(raw, at, TAB)
        place = start - origin
        if start < least or place % width or not 0 < stop - start <= width:
            return lines, end, begin
        for sample in range(line.shape[0]):
            after = TAB if sample + 1 < line.shape[0] else NEWLINE
            value, at = _read_whole(raw, at, after)
            if not 0 <= value <= most:
                return lines, end, begin
            line[sample] = value
        for f in range(factors.shape[0]):
            number = place // (width * factors[f])
            if used[f] == 0 or bins[f, used[f] - 1] != number:
                bins[f, used[f]] = number
                sums[f, used[f]] = 0
                used[f] += 1
            row = used[f] - 1
            for sample in range(line.shape[0]):
                sums[f, row, sample] += line[sample]
        at += 1
        lines, end, least = lines + 1, stop, start + 1
    return lines, end, -1


@jit_no_alloc
def _read_whole(raw: Any, at: Any, after: Any) -> Any:
    """Return the number after the byte at `at`, and where it ends: at a byte `after`; else -1."""
    if raw[at] != TAB:
        return -1, at
    value, begin = 0, at + 1
    at = begin
    while True:
        digit = raw[at] - ZERO
        if not 0 <= digit < TEN:
            break
        value = value * TEN + digit
        at += 1
    digits = at - begin
    at += after == NEWLINE and raw[at] == RETURN
    return value if raw[at] == after and 0 < digits <= DIGITS else -1, at

"""Whole records of FASTQ and FASTA, as their text: copied, trimmed and masked.

Line ends, wrapping, comments and case of what stays are kept. In a copy the records lie one after
the other: record k is out[offsets[k] : offsets[k + 1]], and ends with a newline.
"""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import copy_bytes
from multigpu.kernels.compiled.text.lines import (
    GREATER,
    NEWLINE,
    PLUS,
    end_of_bases,
    line_end,
    trimmed,
)

ANY_BASE = ord("N")


@jit_no_alloc
def copy_records(raw: Any, begins: Any, sizes: Any, offsets: Any, out: Any) -> None:
    """Copy records of a text to `out`.

    begins   int64[k]      where each record begins in the text
    sizes    int64[k]      its bytes in the text
    offsets  int64[k + 1]  where they go; a place that is one byte longer ends with a newline
    """
    for i in range(begins.shape[0]):
        stop = offsets[i] + sizes[i]
        copy_bytes(out, offsets[i], raw, begins[i], sizes[i])
        if offsets[i + 1] > stop:
            out[stop] = NEWLINE


@jit_no_alloc
def trim_records(out: Any, offsets: Any, kept: Any) -> None:
    """Keep a window of the bases, and of the qualities, of each record; the records move together.

    kept  int64[k, 2]  begin and end of the window
    """
    to = stop = 0
    for k in range(kept.shape[0]):
        at, stop = stop, offsets[k + 1]
        offsets[k] = to
        is_fasta = out[at] == GREATER
        # Lines of names, and of what belongs to them, follow each other in turn.
        for is_bases in (True, False):
            if at < stop:
                end = line_end(out, at) + 1
                copy_bytes(out, to, out, at, end - at)
                at, to = _trim_lines(
                    out, end, stop, kept[k, 0], kept[k, 1], is_bases, is_fasta, to + end - at
                )
    offsets[kept.shape[0]] = to


@jit_no_alloc
def _trim_lines(
    out: Any, at: Any, stop: Any, begin: Any, end: Any, is_bases: Any, is_fasta: Any, to: Any
) -> Any:
    """Move letters [begin, end) of the lines of bases, or of qualities, at `at` to out[to:].

    Lines of which nothing stays are left out, but for one where nothing stays at all. Returns where
    the lines end, before and after.
    """
    first, before, letters_end = to, 0, at
    while at < stop and not (is_bases and not is_fasta and out[at] == PLUS):
        after = line_end(out, at) + 1
        letters_end = _letters_end(out, at, after - 1, is_fasta)
        left, right = max(at, at + begin - before), min(letters_end, at + end - before)
        before += letters_end - at
        at = after
        if left < right:
            copy_bytes(out, to, out, left, right - left)
            copy_bytes(out, to + right - left, out, letters_end, after - letters_end)
            to += right - left + after - letters_end
    if to == first:
        copy_bytes(out, to, out, letters_end, at - letters_end)
        to += at - letters_end
    return at, to


@jit_no_alloc
def mask_records(out: Any, offsets: Any, which: Any, starts: Any, ends: Any) -> None:
    """Write N over windows of bases: [starts[i], ends[i]) of record which[i]."""
    for i in range(which.shape[0]):
        at, stop = offsets[which[i]], offsets[which[i] + 1]
        is_fasta = out[at] == GREATER
        at, before = line_end(out, at) + 1, 0
        while at < stop and before < ends[i] and not (not is_fasta and out[at] == PLUS):
            end = line_end(out, at)
            letters_end = _letters_end(out, at, end, is_fasta)
            for j in range(
                max(at, at + starts[i] - before), min(letters_end, at + ends[i] - before)
            ):
                out[j] = ANY_BASE
            before += letters_end - at
            at = end + 1


@jit_no_alloc
def _letters_end(out: Any, at: Any, end: Any, is_fasta: Any) -> Any:
    """Return where the letters of the line [at, end) end."""
    return end_of_bases(out, at, end) if is_fasta else trimmed(out, at, end)

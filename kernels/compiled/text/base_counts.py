"""FASTA: how many bases of a record are G or C, counted while its lines pass."""

from typing import Any

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import find_byte
from multigpu.kernels.compiled.text.lines import GREATER, NEWLINE, end_of_bases

POSITION, PLACE, GC, BASES, LINE_BEGINS, STATE = 0, 1, 2, 3, 4, 5
UPPER = 0xDF  # clears the bit by which small letters differ
A, C, G, T = ord("A"), ord("C"), ord("G"), ord("T")


@jit_no_alloc
def count(raw: Any, at: Any, state: Any, places: Any, found: Any) -> Any:
    """Count the bases of a record from raw[at] on; return where its next header or the end is.

    raw     uint8[n]; white space at its end ends a line
    state   int64[5]: of the record, from 0, 0, 0, 0, 1 on; kept between calls
    places  int64[p]: ascending positions in the record
    found   int64[p, 2]: gets the number of G and C, and of A, C, G and T, before each place
    """
    size = raw.shape[0]
    _note(state, places, found)
    while at < size:
        if state[LINE_BEGINS] and raw[at] == GREATER:
            return at
        line_end = find_byte(raw, at, size, NEWLINE)
        state[LINE_BEGINS] = line_end >= 0
        if line_end < 0:
            line_end = size
        stop = end_of_bases(raw, at, line_end)
        while at < stop:
            until = stop
            if state[PLACE] < places.shape[0]:
                until = min(stop, at + places[state[PLACE]] - state[POSITION])
            gc, others = 0, 0
            for i in range(at, until):
                base = raw[i] & UPPER
                gc += (base == G) | (base == C)
                others += (base == A) | (base == T)
            state[GC] += gc
            state[BASES] += gc + others
            state[POSITION] += until - at
            at = until
            _note(state, places, found)
        at = line_end + state[LINE_BEGINS]
    return at


@jit_no_alloc
def _note(state: Any, places: Any, found: Any) -> None:
    """Note the counts if this is a place."""
    at = state[PLACE]
    if at < places.shape[0] and places[at] == state[POSITION]:
        found[at, 0], found[at, 1] = state[GC], state[BASES]
        state[PLACE] += 1

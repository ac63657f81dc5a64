"""Pieces of records in a search with edits: which ends are whose, and how hits are joined.

A piece of a long record goes `margin` bases over its border, as many as a hit may have. Hits
belong to pieces by their ends: all ends up to the last base are asked about, and the next piece of
the record, which begins at the border, is asked from `margin` on. So two pieces share one end. A
run of neighbouring ends with the same number of edits may go on over it: only the next piece knows
whether more edits follow, which makes it a hit, or fewer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import AT_BEGIN, AT_END, Chunk, ChunkScanner, Hits


class Piece(NamedTuple):
    """Ends of a chunk that are asked about, where its records are pieces of longer ones.

    first    the first end in the chunk's first record; 0 where the record begins there
    is_open  whether the last record continues after the chunk
    """

    first: int = 0
    is_open: bool = False


WHOLE = Piece()


class EditScanner(ChunkScanner, Protocol):
    """A scanner that tells which hits with edits are those of a piece."""

    def scan(self, chunk: Chunk, piece: Piece = WHOLE) -> Hits:
        """Return the hits that a piece is asked about; those with edits have no starts yet."""


def flag_borders(
    hits: Hits, last: NDArray[np.int64], offsets: NDArray[np.int64], piece: Piece
) -> Hits:
    """Return the hits of a chunk that a piece is asked about, with their flags.

    last     int64[n]            the last end of each hit's run
    offsets  int64[records + 1]  as in `Chunk`
    """
    lengths = np.diff(offsets)
    is_first, is_last = hits.record == 0, hits.record == len(lengths) - 1
    at_begin = is_first & (hits.end == piece.first) & (piece.first > 0)
    at_end = is_last & (last == lengths[hits.record]) & piece.is_open
    edge = (at_begin * AT_BEGIN | at_end * AT_END).astype(np.uint8)
    return replace(hits, edge=edge).take(~is_first | (hits.end >= piece.first))


def continue_runs(
    edge: NDArray[np.uint8],
    key: NDArray[np.integer],
    next_edge: NDArray[np.uint8],
    next_key: NDArray[np.integer],
) -> tuple[NDArray[np.bool_], NDArray[np.uint8]]:
    """Return which hits of an open piece stay, and their flags, by those of the next piece.

    A run at the end of a piece is a hit only if the next piece has it, too, at its begin, where
    no base before is known; else fewer edits follow. The hits at the start of the next piece have
    then served their purpose.

    key, next_key  whose runs are one: equal numbers for the same pattern
    """
    begins = np.flatnonzero((next_edge & AT_BEGIN) != 0)
    begins = begins[np.argsort(next_key[begins])]
    place = np.searchsorted(next_key[begins], key)
    is_open = (edge & AT_END) != 0
    place[~is_open | (place == len(begins))] = -1
    goes_on = np.zeros(len(edge), bool)
    at = begins[place[place >= 0]]
    goes_on[place >= 0] = next_key[at] == key[place >= 0]
    flags = edge.copy()
    flags[goes_on] = (edge[goes_on] & AT_BEGIN) | (next_edge[begins[place[goes_on]]] & AT_END)
    return ~is_open | goes_on, flags


@dataclass(frozen=True, kw_only=True)
class Portion:
    """Bases that a search is asked about: a whole chunk, or a part of one.

    piece         the ends that are asked about; for hits with edits
    begin         where it begins in the portion that it is a half of
    first_record  the record of that portion that its first one is, or is the rest of
    cut           how many bases of that record it does not have
    goes_on       whether its last record continues in the other half, which shares an end with it
    """

    chunk: Chunk
    piece: Piece = WHOLE
    begin: int = 0
    first_record: int = 0
    cut: int = 0
    goes_on: bool = False

    def halves(self, margin: int) -> "tuple[Portion, ...]":
        """Return two portions with all hits of this one together; none where it is too small.

        margin  by how many bases the first goes over the border: most bases of a hit with edits;
                one less of other hits, some of which both have
        """
        letters, offsets = self.chunk.letters, self.chunk.offsets
        middle = len(letters) // 2
        if middle <= 2 * margin + 1:
            return ()
        record = int(np.searchsorted(offsets, middle, "right")) - 1
        cut = middle - int(offsets[record])
        stop, end = middle + margin, int(offsets[record + 1])
        left_offsets = np.append(offsets[: record + 1], min(stop, end))
        goes_on = cut > 0 and end >= stop
        if not cut:
            stop, left_offsets = middle, offsets[: record + 1]
        is_last = cut > 0 and record == len(offsets) - 2
        left = Portion(
            chunk=Chunk(letters[: int(left_offsets[-1])], left_offsets),
            piece=Piece(self.piece.first, goes_on or (is_last and self.piece.is_open)),
            goes_on=goes_on,
        )
        right = Portion(
            chunk=Chunk(letters[middle:], np.maximum(offsets[record:], middle) - middle),
            piece=Piece(margin if cut else 0, self.piece.is_open),
            begin=middle,
            first_record=record,
            cut=cut,
        )
        return left, right


def join_halves(halves: Sequence[Portion], hits: Sequence[Hits]) -> Hits:
    """Return the hits of a portion from those of its halves, in no order, some of them twice."""
    (left_portion, right_portion), (left, right) = halves, hits
    if left_portion.goes_on:
        kept, edge = continue_runs(left.edge, left.pattern, right.edge, right.pattern)
        left = replace(left, edge=edge).take(kept)
        right = right.take((right.edge & AT_BEGIN) == 0)
    return Hits.joined([left, right.moved(right_portion.first_record, right_portion.cut)])

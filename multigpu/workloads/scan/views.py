"""Windows of whole records, which a search takes for the records: slices, circles."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import Hits
from multigpu.kernels.scan.letters import copy_windows
from multigpu.run.values import parse_slice

Numbers = NDArray[np.int64]

FARTHEST = 1 << 62  # beyond the end of every record


class View(ABC):
    """A window of every record, which a search takes for the record."""

    @abstractmethod
    def windows(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return (begin, end, stop), int64[n] each, of the windows of records of these lengths.

        Hits begin in [begin, stop), and lie in [begin, end). An end beyond the record's last base
        continues at its first.
        """

    def of(self, pieces: Pieces, buffers: Buffers) -> Pieces:
        """Return the windows as records; their letters lie in one of the buffers.

        Where a letter of the records is no base, all of them are returned as they are, so that the
        search names it.
        """
        begins, ends, stops = self.windows(pieces.table[:, LENGTH])
        offsets = np.r_[0, np.cumsum(ends - begins)]
        letters = buffers.take(int(offsets[-1]))
        if not copy_windows(pieces.letters, pieces.offsets, begins, ends, letters):
            buffers.give(letters)
            return pieces
        return replace(pieces, letters=letters, offsets=offsets, inside=stops - begins)

    def in_records(self, pieces: Pieces, hits: Hits) -> Hits:
        """Return hits in the windows as hits in the records, in the same order."""
        begins, _, _ = self.windows(pieces.table[hits.record, LENGTH])
        return replace(hits, start=hits.start + begins, end=hits.end + begins)


class WithinView(View):
    """`--within`: slices of the records, as Python has them: borders below 0 count from the end."""

    def __init__(self, text: str) -> None:
        first, last = parse_slice(text)
        self._first, self._last = first or 0, FARTHEST if last is None else last

    def windows(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        begins, ends = _place(self._first, lengths), _place(self._last, lengths)
        ends = np.maximum(begins, ends)
        return begins, ends, ends


def _place(border: int, lengths: Numbers) -> Numbers:
    """Return where the border of a slice lies in records of these lengths."""
    border = max(-FARTHEST, min(border, FARTHEST))
    return np.clip(border + lengths * (border < 0), 0, lengths)


class CircularView(View):
    """`--circular`: records that go on with their first bases, so far as a match may reach.

    A match longer than the circle is in them, too: `PlaceSearch` leaves it out.
    """

    def __init__(self, longest: int) -> None:
        """Take the bases of the longest match."""
        self._longest = longest

    def windows(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        ends = lengths + np.minimum(lengths, self._longest - 1)
        return np.zeros_like(lengths), ends, lengths

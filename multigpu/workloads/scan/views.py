"""Windows of whole records, which a search takes for the records."""

from abc import ABC, abstractmethod
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import Hits
from multigpu.kernels.scan.record_windows import copy_windows

Numbers = NDArray[np.int64]


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

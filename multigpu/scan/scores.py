"""Scores of matches: the mean Phred score of the sample's bases under each."""

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import LENGTH, QUALITY

LOOKED_AT = 256, 1000  # records of a span, and qualities of each
NO_QUALITIES = (255, 0)


def mean_qualities(
    pieces: Pieces,
    record: NDArray[np.int32],
    start: NDArray[np.int64],
    lengths: NDArray[np.int64],
    phred_offset: int,
) -> NDArray[np.float64]:
    """Return the mean Phred score of each match: an exact sum, divided once.

    record   number of the piece that it lies in
    start    its first base in the piece
    lengths  bases of the sample under it

    NaN for FASTA, and for a match without a base of the sample.
    """
    table = pieces.table[record]
    score = np.full(len(table), np.nan)
    if len(table) and table[0, QUALITY] >= 0:
        total = pieces.text.sum_qualities(table, start, lengths)
        total -= lengths * phred_offset
        np.divide(total, lengths, out=score, where=lengths > 0)
    return score


def extreme_qualities(pieces: Pieces) -> tuple[int, int]:
    """Return the lowest and the highest quality character of the first records."""
    records, most = LOOKED_AT
    table = pieces.table[:records]
    if not len(table) or table[0, QUALITY] < 0:
        return NO_QUALITIES
    ends = table[:, QUALITY] + np.minimum(table[:, LENGTH], most)
    letters = np.frombuffer(b"".join(pieces.text.windows(table[:, QUALITY], ends)), np.uint8)
    letters = letters[letters > ord(" ")]  # records may have several lines
    return int(letters.min(initial=255)), int(letters.max(initial=0))

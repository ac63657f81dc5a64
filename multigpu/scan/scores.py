"""Scores of matches: the mean Phred score of the sample's bases under each."""

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import QUALITY


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

"""Segments of one chromosome, and which of them are CNVs.

Rows are regions, numbered through the chromosome. A span of rows is (first, stop), half open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.workloads.cnv.options import CnvOptions

if TYPE_CHECKING:
    from multigpu.workloads.cnv.result import SegmentTable

NOT_CALLED = -1  # copy number of segments where nothing is called

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Indices = NDArray[np.int32]
Spans = tuple[Rows, Rows]


def rows_of_spans(first: Rows, lengths: Rows) -> Rows:
    """Return the rows of all spans, one span after the other."""
    before = np.cumsum(lengths) - lengths
    rows: Rows = np.arange(int(lengths.sum())) + np.repeat(first - before, lengths)
    return rows


@dataclass(frozen=True, eq=False)
class Columnar:
    """Arrays of the same length, as the columns of a table."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: NDArray[Any] | slice) -> Self:
        """Return some of the rows, chosen by mask, index or slice."""
        return type(self)(**{each.name: getattr(self, each.name)[rows] for each in fields(self)})


# A journal restores its parts by position, so these fields are not keyword-only.
@dataclass(frozen=True, eq=False)
class Segments(Columnar):
    """Segments of one chromosome, by sample and position.

    sample        int32[n]    index of the sample
    first, stop   int64[n]    rows of the chromosome
    mean, median  float64[n]  of the signed I/NI
    copy_number   int32[n]    index of the class; NOT_CALLED where nothing was called
    """

    sample: Indices
    first: Rows
    stop: Rows
    mean: Floats
    median: Floats
    copy_number: Indices

    @classmethod
    def joined(cls, parts: "Sequence[Segments]") -> Self:
        """Return the segments of all parts, in the order given."""
        names = [each.name for each in fields(cls)]
        return cls(**{name: np.concatenate([getattr(p, name) for p in parts]) for name in names})

    @classmethod
    def empty(cls) -> Self:
        """Return no segments."""
        rows, floats, indices = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32)
        return cls(indices, rows, rows, floats, floats, indices)


def judged_value(segments: "Segments | SegmentTable", options: CnvOptions) -> Floats:
    """Return the value by which each segment is judged: its mean or its median."""
    return segments.median if options.use_median else segments.mean


def is_beyond_threshold(
    segments: "Segments | SegmentTable", options: CnvOptions
) -> NDArray[np.bool_]:
    """Return which segments are gains or losses if they are wide enough."""
    value = judged_value(segments, options)
    return (value >= options.upper) | (value <= options.lower)


def is_cnv(segments: Segments, options: CnvOptions) -> NDArray[np.bool_]:
    """Return which segments are wide enough and beyond a threshold."""
    is_wide: NDArray[np.bool_] = segments.stop - segments.first >= options.min_width
    return is_beyond_threshold(segments, options) & is_wide

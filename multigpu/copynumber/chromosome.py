"""A chromosome on its way through the pipeline: what a step hands to the next."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.copynumber import matrices
from multigpu.copynumber.calls import Floats, Rows, Segments
from multigpu.copynumber.windows import Window

Spans = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class CnvSpan:
    """A chromosome: its number and name, and its rows of the counts.

    columns  those that are looked at, of cases and then controls; None: all. What follows is of
             these
    ploidy   for normalization; None: the same of all
    copies   that are usual by sex; None: two of all, and CN2 is what the classes call it
    shares   of the reads that others have, by which the model expects fewer; None: all are alike
    """

    block: int
    name: str
    first: int
    stop: int
    columns: tuple[int, ...] | None = None
    ploidy: tuple[int, ...] | None = None
    copies: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None


@dataclass(frozen=True, eq=False)
class CnvPart:
    """What was found on a chromosome; rows count from its first region.

    begin       the chromosome's first region among all
    called      bool[segments]: which of them are CNVs
    regions     rows (first, stop) of the CNV regions; `robust` of the robust ones, if asked for
    fractional  float64[CNV regions, samples], None where it was not asked for
    pieces      rows of the matrices that the client keeps or writes
    """

    begin: int
    segments: Segments
    called: NDArray[np.bool_]
    regions: Spans
    robust: Spans | None
    fractional: Floats | None
    windows: tuple[Window, ...]
    pieces: matrices.Pieces
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Loaded:
    """The counts of a chromosome, [regions, columns]: cases, then controls.

    start, end  where its regions lie
    pieces      how many times smaller the pieces are in which it comes to a device with little room
    """

    span: CnvSpan
    counts: NDArray[Any]
    start: Rows
    end: Rows
    pieces: int = 1


@dataclass(frozen=True, eq=False)
class Computed:
    """Results of stages 2 to 4, on the host.

    scale     float64[columns]: size factors
    level     float64[regions]: of the controls; None in a cohort
    matrices  what the model gave, by name
    robust    segments of I/NI, where robust regions are wanted
    """

    scale: Floats
    level: Floats | None
    matrices: matrices.Matrices
    segments: Segments
    robust: Segments | None
    notes: tuple[str, ...]

    @classmethod
    def nothing(cls, robust: bool) -> Self:
        """Of a chromosome that no sample is looked at on."""
        empty = Segments.empty()
        return cls(np.empty(0), None, {}, empty, empty if robust else None, ())

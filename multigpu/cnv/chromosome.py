"""A chromosome on its way through the pipeline: what a step hands to the next."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.calls.calls import Floats, Rows, Segments
from multigpu.cnv.output import matrices
from multigpu.cnv.output.windows import Window
from multigpu.cnv.samples.genomes import Places, inside

Spans = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class CnvSpan:
    """A chromosome: its number and name, and its rows of the counts.

    columns  those that are looked at, of cases and then controls; None: all. What follows is of
             these
    ploidy   for normalization; None: the same of all
    copies   that are usual by sex; None: two of all, and CN2 is what the classes call it
    shares   of the reads that others have, by which the model expects fewer; None: all are alike
    par      where everybody has two copies, although `copies` says other: pseudoautosomal regions
    """

    block: int
    name: str
    first: int
    stop: int
    columns: tuple[int, ...] | None = None
    ploidy: tuple[int, ...] | None = None
    copies: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None
    par: Places = ()

    def in_par(self, start: Rows, end: Rows) -> NDArray[np.bool_]:
        """bool[n]: which of these stretches lie there."""
        return inside(self.par, start, end)

    def expected(self, in_par: bool) -> tuple[float, ...] | None:
        """`shares`, or what they are in these regions."""
        if not in_par or self.copies is None:
            return self.shares
        shares = self.shares or (1.0,) * len(self.copies)
        return tuple(2 * share / n for share, n in zip(shares, self.copies, strict=True))

    def usual(self, start: Rows, end: Rows) -> NDArray[np.int8] | None:
        """int8[n, columns]: the usual copies in each of these stretches; None: two of all."""
        if self.copies is None:
            return None
        found = np.tile(np.array(self.copies, np.int8), (len(start), 1))
        found[self.in_par(start, end)] = 2
        return found


@dataclass(frozen=True, eq=False)
class CnvPart:
    """What was found on a chromosome; rows count from its first region.

    begin       the chromosome's first region among all
    called      bool[segments]: which of them are CNVs
    regions     rows (first, stop) of the CNV regions; `robust` of the robust ones, if asked for
    fractional  float64[CNV regions, samples], None where it was not asked for
    nested      whether a region of the chromosome ends before one that begins no later
    pieces      rows of the matrices that the client keeps or writes
    """

    begin: int
    segments: Segments
    called: NDArray[np.bool_]
    regions: Spans
    robust: Spans | None
    fractional: Floats | None
    nested: bool
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

    @cached_property
    def par(self) -> NDArray[np.bool_]:
        """bool[regions]: those in pseudoautosomal regions."""
        return self.span.in_par(self.start, self.end)


def stretches(mask: NDArray[np.bool_]) -> list[slice]:
    """Of rows that follow each other."""
    borders = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return [slice(a, b) for a, b in borders.reshape(-1, 2).tolist()]


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

"""A chromosome on its way through the pipeline: what each step hands to the next."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.workloads.cnv.calls.segments import Floats, Rows, Segments, Spans
from multigpu.workloads.cnv.output.matrices import Matrices, Pieces
from multigpu.workloads.cnv.output.windows import Window
from multigpu.workloads.cnv.samples.genomes import Intervals, are_inside


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvSpan:
    """A chromosome: its number and name, and its rows of the counts.

    columns  samples that are compared here, cases and then controls; None: all of them. The other
             fields are about these columns
    ploidy   of each column, for normalization; None: the same for all
    copies   usual copies of each column, where they go by sex; None: two for all
    shares   expected reads of each column relative to an autosome; None: the same for all
    par      pseudoautosomal regions: everybody has two copies there, whatever `copies` says
    """

    block: int
    name: str
    first: int
    stop: int
    columns: tuple[int, ...] | None = None
    ploidy: tuple[int, ...] | None = None
    copies: tuple[int, ...] | None = None
    shares: tuple[float, ...] | None = None
    par: Intervals = ()

    @property
    def rows(self) -> slice:
        """Rows of the counts."""
        return slice(self.first, self.stop)

    def is_in_par(self, start: Rows, end: Rows) -> NDArray[np.bool_]:
        """Return bool[n]: whether each interval lies in a pseudoautosomal region."""
        return are_inside(self.par, start, end)

    def usual_copies(self, start: Rows, end: Rows) -> NDArray[np.int8] | None:
        """Return int8[n, columns]: usual copies in each interval; None: two for all columns."""
        if self.copies is None:
            return None
        found = np.tile(np.array(self.copies, np.int8), (len(start), 1))
        found[self.is_in_par(start, end)] = 2
        return found


class NotComparable(UsageError):
    """Samples cannot be compared on a chromosome; the text begins with its name and a colon."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LoadedChromosome:
    """Counts of a chromosome, [regions, columns]: cases, then controls.

    start, end  of its regions, in bases
    divisor     factor by which the pieces are smaller in which it comes to a device with little
                memory
    """

    span: CnvSpan
    counts: NDArray[Any]
    start: Rows
    end: Rows
    divisor: int = 1

    @cached_property
    def par(self) -> NDArray[np.bool_]:
        """bool[regions]: whether each lies in a pseudoautosomal region."""
        return self.span.is_in_par(self.start, self.end)


@dataclass(frozen=True, eq=False, kw_only=True)
class ComputedChromosome:
    """Results of stages 2 to 4, on the host; the defaults are those without samples.

    robust    segments of I/NI, where robust regions are wanted
    scale     float64[columns]: size factors
    level     float64[regions]: level of the controls; None in a cohort
    matrices  results of the model, by name
    left_out  why the samples are not compared, as in `NotComparable`; empty where they are
    """

    segments: Segments
    robust: Segments | None
    scale: Floats = field(default_factory=lambda: np.empty(0))
    level: Floats | None = None
    matrices: Matrices = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    left_out: str = ""


# A journal restores its parts by position, so these fields are not keyword-only.
@dataclass(frozen=True, eq=False)
class CnvPart:
    """Calls of a chromosome; rows count from its first region.

    begin       the chromosome's first region among all
    called      bool[segments]: which of them are CNVs
    classes     int8[CNVs, all cases]: the model's class of the inner regions of each CNV
    regions     rows (first, stop) of the CNV regions
    robust      rows (first, stop) of the robust CNV regions, where they are wanted
    fractional  float64[CNV regions, samples], where fractional copy numbers are wanted
    pieces      rows of the matrices that the client keeps or writes
    left_out    see `ComputedChromosome`
    """

    begin: int
    segments: Segments
    called: NDArray[np.bool_]
    classes: NDArray[np.int8]
    regions: Spans
    robust: Spans | None
    fractional: Floats | None
    windows: tuple[Window, ...]
    pieces: Pieces
    notes: tuple[str, ...]
    left_out: str


def true_runs(mask: NDArray[np.bool_]) -> list[slice]:
    """Return the runs of consecutive rows in which `mask` is true."""
    borders = np.flatnonzero(np.diff(mask, prepend=False, append=False))
    return [slice(a, b) for a, b in borders.reshape(-1, 2).tolist()]

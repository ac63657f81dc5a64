"""Stages of `--segmentation hmm`, in place of the model and the segments of cn.MOPS.

Counts of a sample are compared with what its reference samples tell that it should have; a hidden
Markov model, whose states are copy numbers, finds the likeliest path through the regions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import USUAL, ExpectedCounts, moves
from multigpu.kernels.hmm.types import Scores
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, SegmentTable, States
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome
from multigpu.workloads.cnv.stages.common_regions import CommonRegions
from multigpu.workloads.cnv.stages.whole_chromosomes import fill_whole

NEIGHBOURS = 1_000_000  # bases at most between regions that are looked at together


@dataclass(frozen=True)
class ExpectCounts:
    """Counts that every sample should have with its usual copies."""

    options: CnvOptions
    backend: KernelBackend
    name: ClassVar[str] = "model"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `expected` and `modelled`: on the host where a chromosome comes piece by piece."""
        (model, order), rows = chromosome.ordered_model, chromosome.piece_rows
        counts, inside = in_order(chromosome.on_device, order), chromosome.par
        host, every = in_order(chromosome.counts, order), np.arange(len(counts))
        common, references = None, chromosome.columns.references
        if references is not None and chromosome.span.copies is None:
            breaks = chromosome.breaks(NEIGHBOURS)
            common = CommonRegions.of(host, model, references.depths, breaks)

        def expect(piece: slice) -> tuple[Array, ...]:
            expected = self.backend.expect(counts[piece], model, inside[piece])
            if common is not None:
                common.replace_in(expected, every[piece], self.backend.put)
            ratios, off = self.backend.log2_ratios(counts[piece], expected)
            return expected.mean, expected.dispersion, ratios[:, : chromosome.cases], off

        if len(counts) <= rows:
            found = expect(slice(0, len(counts)))
        else:
            begins = range(0, len(counts), rows)
            pieces = [[*map(self.backend.get, expect(slice(a, a + rows)))] for a in begins]
            found = tuple(np.concatenate(each) for each in zip(*pieces, strict=True))
        mean, dispersion, ratios, off = found
        self.backend.wait()
        return replace(
            chromosome,
            expected=ExpectedCounts(mean, dispersion),
            common=common,
            modelled={"sini": ratios, "ini": off},
        )


@dataclass(frozen=True)
class FindPaths:
    """Likeliest copies of every sample in every region, and segments of equal ones.

    regions  of the whole run
    """

    options: CnvOptions
    backend: KernelBackend
    regions: int
    name: ClassVar[str] = "segment"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `states` and `segments`."""
        ways = moves_of(chromosome, self.options, self.regions)
        states = np.concatenate([*self._paths(chromosome, ways)], axis=1)
        if self.options.whole_chromosomes:
            fill_whole(states, chromosome.start, chromosome.end)
        ratios = self.backend.get(chromosome.modelled["sini"])
        segments = _segments(chromosome, states, self.options.max_gap, ratios)
        return replace(chromosome, states=states, segments=segments)

    def _paths(self, chromosome: Chromosome, ways: Scores) -> Iterator[States]:
        """Yield int8[regions, cases] of some cases at a time, as many as fit on the device."""
        (model, order), cases = chromosome.ordered_model, chromosome.cases
        counts, rows = in_order(chromosome.on_device, order), chromosome.piece_rows
        expected, inside = chromosome.expected, chromosome.par
        assert expected is not None
        if len(counts) <= rows:
            every = slice(0, cases)
            yield self.backend.get(self.backend.paths(counts, expected, model, ways, inside, every))
            return
        at_a_time = max(1, rows * cases // len(counts))
        for first in range(0, cases, at_a_time):
            some = slice(first, min(first + at_a_time, cases))
            few = np.ascontiguousarray(counts[:, some])
            mean = self.backend.put(np.ascontiguousarray(expected.mean[:, some]))
            means = ExpectedCounts(mean, self.backend.put(expected.dispersion))
            own = replace(
                model,
                sizes=model.sizes[:, some],
                copies=model.copies[:, some],
                noise=model.noise[some],
            )
            every = slice(0, some.stop - first)
            yield self.backend.get(self.backend.paths(few, means, own, ways, inside, every))


def in_order(counts: Array, order: NDArray[np.intp]) -> Array:
    """Return the counts with their columns in another order, which mostly is the same."""
    if (order == np.arange(counts.shape[1])).all():
        return counts
    return counts[:, order].copy()


def moves_of(chromosome: Chromosome, options: CnvOptions, regions: int) -> Scores:
    """Return int32[regions, 4]: scores of the ways into the regions of a chromosome."""
    return moves(chromosome.start, chromosome.end, regions, options.max_gap)


def _segments(
    chromosome: Chromosome, states: States, max_gap: int | None, ratios: Floats
) -> SegmentTable:
    """Return the runs of equal states of every case; none but whole chromosomes crosses a gap."""
    (rows, cases), breaks = states.shape, chromosome.breaks(max_gap)
    is_first = np.ones((cases, rows), np.bool_)
    is_first[:, 1:] = (states[1:] != states[:-1]).T
    is_whole = (is_first.sum(axis=1) == 1) & (states[0] != USUAL)
    is_first |= breaks & ~is_whole[:, None]
    sample, first = np.nonzero(is_first)
    stop = np.append(first[1:], rows)
    stop[stop == 0] = rows
    tracks = np.ascontiguousarray(ratios.T, np.float64).ravel()
    begins = sample * rows + first
    runs = np.split(tracks, begins[1:])
    return SegmentTable.uncalled(
        chrom=np.full(len(first), chromosome.span.chrom, np.int32),
        sample=chromosome.places[sample],
        first=first,
        stop=stop,
        start=chromosome.start[first],
        end=last_bases(chromosome.end, first, stop, False),
        mean=np.add.reduceat(tracks, begins) / (stop - first),
        median=np.array([np.median(run) for run in runs]),
    )

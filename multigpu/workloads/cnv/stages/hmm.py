"""Stages of `--segmentation hmm`, in place of the model and the segments of cn.MOPS.

Counts of a sample are compared with what its reference samples tell that it should have; a hidden
Markov model, whose states are copy numbers, finds the likeliest path through the regions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from multigpu.kernels.hmm import USUAL, ExpectedCounts, moves
from multigpu.kernels.hmm.types import LEAST_MEAN, Scores
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, Mask, SegmentTable, States
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome
from multigpu.workloads.cnv.stages.common_regions import CommonRegions
from multigpu.workloads.cnv.stages.whole_chromosomes import fill_whole

NEIGHBOURS = 1_000_000  # bases at most between regions that are looked at together
TRANSPOSED = 64  # cases whose segments are found at a time


def with_common_regions(chromosome: Chromosome) -> Chromosome:
    """Return the chromosome with `common`, which the host finds before the device has its turn."""
    references = chromosome.columns.references
    if references is None or chromosome.span.copies is not None or not chromosome.counts.size:
        return chromosome
    about = chromosome.sample_model, references.depths, chromosome.breaks(NEIGHBOURS)
    return replace(chromosome, common=CommonRegions.of(chromosome.counts, *about))


@dataclass(frozen=True)
class ExpectCounts:
    """Counts that every sample should have with its usual copies."""

    options: CnvOptions
    backend: KernelBackend
    name: ClassVar[str] = "model"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `expected` and `modelled`: on the host where a chromosome comes piece by piece."""
        model, counts, rows = chromosome.sample_model, chromosome.on_device, chromosome.piece_rows
        every, common = np.arange(len(counts)), chromosome.common

        def expect(piece: slice) -> tuple[Array, ...]:
            part = self.backend.put(counts[piece])
            expected = self.backend.expect(part, model, chromosome.par[piece])
            common.replace_in(expected, every[piece], self.backend.put)
            ratios = self.backend.log2_ratios(part, expected, chromosome.cases)
            return expected.mean, expected.dispersion, ratios

        if len(counts) <= rows:
            found = expect(slice(0, len(counts)))
        else:
            shapes = (every.size, model.samples), every.size, (every.size, chromosome.cases)
            found = tuple(np.empty(shape, np.float32) for shape in shapes)
            for piece in (slice(first, first + rows) for first in every[::rows].tolist()):
                for whole, part in zip(found, expect(piece), strict=True):
                    whole[piece] = self.backend.get(part)
        mean, dispersion, ratios = found
        self.backend.wait()
        return replace(
            chromosome,
            expected=ExpectedCounts(mean, dispersion),
            modelled={"sini": ratios},
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
        """Add `states`, `segments`, and the mean absolute log2 ratios; these come to the host."""
        ways = moves_of(chromosome, self.options, self.regions)
        states = np.concatenate([*self._paths(chromosome, ways)], axis=1)
        told = chromosome.counts.mean(axis=1) > LEAST_MEAN
        _forget(states, told)
        if self.options.whole_chromosomes:
            fill_whole(states, told, chromosome.start, chromosome.end)
        ratios = self.backend.get(chromosome.modelled["sini"])
        segments = _segments(chromosome, states, self.options.max_gap, ratios)
        mean = np.abs(ratios).mean(axis=1, dtype=np.float64).astype(np.float32)
        return replace(
            chromosome,
            states=states,
            segments=SegmentTable.joined([*segments]),
            modelled={"sini": ratios, "ini": mean},
        )

    def _paths(self, chromosome: Chromosome, ways: Scores) -> Iterator[States]:
        """Yield int8[regions, cases] of some cases at a time, as many as fit on the device."""
        counts, expected, put = chromosome.on_device, chromosome.expected, self.backend.put
        rows, cases, model = chromosome.piece_rows, chromosome.cases, chromosome.sample_model
        assert expected is not None

        def states(counts: Array, expected: ExpectedCounts, some: slice) -> States:
            about = (expected, model.of(some), ways, chromosome.par)
            return self.backend.get(self.backend.paths(counts, *about))

        if len(counts) <= rows:
            yield states(counts, expected, slice(cases))
            return
        at_a_time = max(1, rows * cases // len(counts))
        for some in (slice(first, first + at_a_time) for first in range(0, cases, at_a_time)):
            part = ExpectedCounts(put(expected.mean[:, some]), put(expected.dispersion))
            yield states(put(counts[:, some]), part, some)


def moves_of(chromosome: Chromosome, options: CnvOptions, regions: int) -> Scores:
    """Return int32[regions, 3]: scores of the ways into the regions of a chromosome."""
    return moves(chromosome.start, chromosome.end, regions, options.max_gap)


def _forget(states: States, told: Mask) -> None:
    """Set states of regions without reads to be usual, unless they lie within a change.

    told  bool[regions]: whether there are reads to tell copies
    """
    rows = np.flatnonzero(told)
    if not len(rows) or told.all():
        return
    silent = np.flatnonzero(~told)
    later = np.searchsorted(rows, silent)
    is_between = (later > 0) & (later < len(rows))
    states[silent] = USUAL
    before, after = (states[rows[later[is_between] - k]] for k in (1, 0))
    states[silent[is_between]] = np.where(before == after, before, USUAL)


def _segments(
    chromosome: Chromosome, states: States, max_gap: int | None, ratios: Floats
) -> Iterator[SegmentTable]:
    """Yield the runs of equal states, of some cases at a time.

    None but whole chromosomes crosses a gap.
    """
    rows, breaks = len(states), chromosome.breaks(max_gap)
    for begin in range(0, chromosome.cases, TRANSPOSED):
        own = np.ascontiguousarray(states[:, begin : begin + TRANSPOSED].T)
        is_first = np.diff(own, axis=1, prepend=-1) != 0
        is_whole = (is_first.sum(axis=1) == 1) & (own[:, 0] != USUAL)
        is_first |= breaks & ~is_whole[:, None]
        sample, first = np.nonzero(is_first)
        stop = np.append(first[1:], rows)
        stop[stop == 0] = rows
        tracks = np.ascontiguousarray(ratios[:, begin : begin + TRANSPOSED].T, np.float64).ravel()
        begins = sample * rows + first
        yield SegmentTable.uncalled(
            chrom=np.full(len(first), chromosome.span.chrom, np.int32),
            sample=chromosome.places[begin + sample],
            first=first,
            stop=stop,
            start=chromosome.start[first],
            end=last_bases(chromosome.end, first, stop, False),
            mean=np.add.reduceat(tracks, begins) / (stop - first),
            median=np.array([np.median(run) for run in np.split(tracks, begins[1:])]),
        )

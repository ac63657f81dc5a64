"""Stages of `--segmentation hmm`, in place of the model and the segments of cn.MOPS.

Counts of a sample are compared with what its reference samples tell that it should have; a hidden
Markov model, whose states are copy numbers, finds the likeliest path through the regions. On the
host every CNV then gets its quality, and the copies of all samples there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import cpu as hmm
from multigpu.kernels.hmm.moves import moves, without_memory
from multigpu.kernels.hmm.qualities import FLANK, copies_and_quality, genotypes, qualities
from multigpu.kernels.hmm.types import LEAST_MEAN, USUAL, ExpectedCounts, Scores
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import (
    NOT_CALLED,
    Copies,
    Floats,
    Genotypes,
    Indices,
    Mask,
    Rows,
    SegmentTable,
    Spans,
    States,
)
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies, is_large
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome
from multigpu.workloads.cnv.stages.common_regions import CommonRegions
from multigpu.workloads.cnv.stages.whole_chromosomes import fill_whole

NEIGHBOURS = 1_000_000  # bases at most between regions that are looked at together
TRANSPOSED = 64  # cases whose segments are found at a time
MOST_ROWS = 500  # of a CNV that tell its quality and genotypes: more would tell the same
HALF = 0.5  # of the samples that a common change has, or of the regions of a CNV
UNSURE_QUALITY = 3.0  # Phred, at most, where the copies that are usual cannot be told


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
            chromosome, expected=ExpectedCounts(mean, dispersion), modelled={"sini": ratios}
        )


@dataclass(frozen=True)
class FindPaths:
    """Likeliest copies of every sample in every region, and segments of equal ones."""

    options: CnvOptions
    backend: KernelBackend
    regions: int  # of the whole run
    name: ClassVar[str] = "segment"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `ways`, and on the host `states`, `segments` and the mean absolute log2 ratios."""
        ways = moves(chromosome.start, chromosome.end, self.regions, self.options.max_gap)
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
            ways=ways,
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


def genotyped(
    chromosome: Chromosome, options: CnvOptions
) -> tuple[SegmentTable, Copies, Genotypes]:
    """Return the segments with all columns, `CnvPart.classes`, and genotypes of the CNVs."""
    segments, places, common = chromosome.segments, chromosome.places, chromosome.common
    assert chromosome.states is not None
    assert chromosome.ways is not None
    column = np.searchsorted(places, segments.sample)
    state = chromosome.states[segments.first, column]
    changed = np.flatnonzero((state != USUAL) & is_large(segments, options))
    calls, column, state = segments.take(changed), column[changed], state[changed]
    model = chromosome.sample_model
    spans, counts, expected, ways, inside = _evidence(chromosome, calls, chromosome.ways)
    quality = qualities(counts, expected, model, ways, (column, *spans, state), inside)
    unsure = common.share_of(calls.first, calls.stop, only_unsure=True) >= HALF
    quality[unsure] = np.minimum(quality[unsure], UNSURE_QUALITY)

    good = quality >= options.min_quality
    calls, column, state = calls.take(good), column[good], state[good]
    usual, own = chromosome.usual_copies(calls.start, calls.end), (np.arange(len(calls)), column)
    # Carriers of a common CNV often have the same borders.
    borders = calls.first * (len(chromosome.start) + 1) + calls.stop
    _, one, alike = np.unique(borders, return_index=True, return_inverse=True)
    spans, cases = (spans[0][good][one], spans[1][good][one]), model.of(slice(chromosome.cases))
    likely = genotypes(counts, expected, cases, *spans, inside)
    known, certain = copies_and_quality(likely, usual[one][:, places])
    known, certain = known[alike], certain[alike]
    # A region alone does not outweigh the others in a genotype, as it may in a path.
    own_usual, change = usual[own[0], calls.sample], state - USUAL
    agrees = np.sign(known[own] - own_usual) == np.sign(change)
    known[own] = np.where(agrees, known[own], np.maximum(own_usual + change, 0))
    certain[own] = np.where(agrees, certain[own], 0)
    copies, certainty = np.full(usual.shape, NOT_CALLED, np.int8), np.full(usual.shape, np.nan)
    copies[:, places], certainty[:, places] = known, certain
    many = (known != usual[:, places]).mean(axis=1) >= HALF
    many &= common.share_of(calls.first, calls.stop) >= HALF  # of controls, too
    found = Genotypes(
        copies=copies, quality=certainty.astype(np.float32), is_common=many | unsure[good]
    )
    classes = _relative_classes(copies, usual, options).astype(np.int8)
    classes[copies == NOT_CALLED] = NOT_CALLED
    called = _called(chromosome, options, changed[good], quality[good], known[own])
    return called, classes, found


def _evidence(
    chromosome: Chromosome, calls: SegmentTable, ways: Scores
) -> tuple[Spans, NDArray[Any], ExpectedCounts, Scores, Mask]:
    """Return spans of rows, first and stop of each call; and counts, what is expected, moves, par.

    These are of rows in calls, of a long one of the first, and around them. Moves are without
    memory where rows are left out.
    """
    stop = np.minimum(calls.stop, calls.first + MOST_ROWS)
    change = np.zeros(len(ways) + 1, np.int64)
    np.add.at(change, np.maximum(calls.first - FLANK, 0), 1)
    np.add.at(change, np.minimum(stop + FLANK, len(ways)), -1)
    rows = np.flatnonzero(np.cumsum(change[:-1]))
    counts, inside = chromosome.counts[rows], chromosome.par[rows]
    expected = hmm.expect(counts, chromosome.sample_model, inside)
    chromosome.common.replace_in(expected, rows)
    ways = without_memory(ways[rows], np.diff(rows, prepend=-2) > 1)
    spans = np.searchsorted(rows, calls.first), np.searchsorted(rows, stop)
    return spans, counts, expected, ways, inside


def _called(
    chromosome: Chromosome, options: CnvOptions, changed: Rows, quality: Floats, copies: Copies
) -> SegmentTable:
    """Return the segments, of which those at `changed` are CNVs with these copies."""
    segments, usual = chromosome.segments, chromosome.usual_copies_of(chromosome.segments)
    cnv, every = np.zeros(len(segments), np.bool_), np.full(len(segments), np.nan)
    cnv[changed], every[changed] = True, quality
    shown_copies = usual.astype(np.int32)
    shown_copies[changed] = copies
    numbers = _relative_classes(shown_copies, usual, options)
    shown = classes_by_usual_copies(options)[usual, numbers]
    return replace(segments, cnv=cnv, quality=every, copy_number=numbers, shown=shown)


def _relative_classes(copies: NDArray[Any], usual: NDArray[Any], options: CnvOptions) -> Indices:
    """Return the class that stands for these copies where so many are usual."""
    scale = options.usual_copies / np.maximum(usual, 1)
    found = np.minimum(np.rint(copies * scale), len(options.classes) - 1)
    return np.asarray(found, np.int32)

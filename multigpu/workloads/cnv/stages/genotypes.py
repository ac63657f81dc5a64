"""Last stage of `--segmentation hmm`, on the host: copies of every sample at every CNV."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import USUAL, ExpectedCounts, SampleModel
from multigpu.kernels.hmm import cpu as hmm
from multigpu.kernels.hmm.moves import without_memory
from multigpu.kernels.hmm.qualities import FLANK, copies_and_quality, genotypes, qualities
from multigpu.kernels.hmm.types import Scores
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import (
    NOT_CALLED,
    Copies,
    Genotypes,
    Indices,
    Mask,
    Rows,
    SegmentTable,
    States,
)
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies, is_large
from multigpu.workloads.cnv.stages.chromosome import Chromosome
from multigpu.workloads.cnv.stages.copy_states import in_order, moves_of

MOST_ROWS = 500  # of a CNV that tell its quality and genotypes: more would tell the same

HALF = 0.5  # of the samples that a common change has, or of the regions of a CNV
UNSURE_QUALITY = 3.0  # Phred, at most, where the copies that are usual cannot be told


def genotyped(
    chromosome: Chromosome, options: CnvOptions, regions: int
) -> tuple[SegmentTable, Copies, Genotypes]:
    """Return the segments with all columns, `CnvPart.classes`, and genotypes of the CNVs.

    regions  of the whole run
    """
    segments, columns = chromosome.segments, _columns(chromosome, chromosome.segments)
    assert chromosome.states is not None
    states = chromosome.states[segments.first, columns]
    changed = np.flatnonzero((states != USUAL) & is_large(segments, options))
    calls, state = segments.take(changed), states[changed]
    few = _RowsOfCalls.of(chromosome, calls, moves_of(chromosome, options, regions))
    quality = few.qualities(columns[changed], state)
    if chromosome.common is not None:
        unsure = chromosome.common.share_of(calls.first, calls.stop, only_unsure=True) >= HALF
        quality[unsure] = np.minimum(quality[unsure], UNSURE_QUALITY)
    good = quality >= options.min_quality
    changed, state, quality = changed[good], state[good], quality[good]
    usual = chromosome.usual_copies(calls.start, calls.end)[good]
    known, certain = few.genotypes(np.flatnonzero(good), usual[:, chromosome.places])
    own = np.arange(len(changed)), columns[changed]
    called = usual[own[0], segments.sample[changed]] + state - USUAL
    # A region alone does not outweigh the others in a genotype, as it may in a path.
    agrees = np.sign(known[own] - usual[own[0], segments.sample[changed]]) == np.sign(state - USUAL)
    known[own] = np.where(agrees, known[own], np.maximum(called, 0))
    certain[own] = np.where(agrees, certain[own], 0)
    is_common = np.zeros(len(known), np.bool_)
    if chromosome.common is not None:
        many = (known != usual[:, chromosome.places]).mean(axis=1) >= HALF
        common = chromosome.common.share_of(calls.first, calls.stop) >= HALF  # of controls, too
        is_common = many & common[good] | unsure[good]
    found = _of_all_cases(chromosome, known, certain, is_common)
    return _called(chromosome, options, changed, quality, found)


def _columns(chromosome: Chromosome, segments: SegmentTable) -> NDArray[np.intp]:
    """Return the column of each segment's sample among those compared on the chromosome."""
    return np.searchsorted(chromosome.places, segments.sample)


def _of_all_cases(
    chromosome: Chromosome, known: Copies, certain: NDArray[np.float32], is_common: Mask
) -> Genotypes:
    """Return genotypes of all cases, also of those that are not compared."""
    shape = len(known), len(chromosome.copies)
    copies, quality = np.full(shape, NOT_CALLED, np.int8), np.full(shape, np.nan, np.float32)
    copies[:, chromosome.places], quality[:, chromosome.places] = known, certain
    return Genotypes(copies=copies, quality=quality, is_common=is_common)


def _called(
    chromosome: Chromosome,
    options: CnvOptions,
    changed: Rows,
    quality: NDArray[np.float64],
    found: Genotypes,
) -> tuple[SegmentTable, Copies, Genotypes]:
    """Return the segments, of which those at `changed` are CNVs, and what `genotyped` does."""
    segments = chromosome.segments
    cnv, every = np.zeros(len(segments), np.bool_), np.full(len(segments), np.nan)
    cnv[changed], every[changed] = True, quality
    usual = chromosome.usual_copies_of(segments)
    copies = usual.astype(np.int32)
    copies[changed] = found.copies[np.arange(len(changed)), segments.sample[changed]]
    numbers = _relative_classes(copies, usual, options)
    shown = classes_by_usual_copies(options)[usual, numbers]
    segments = replace(segments, cnv=cnv, quality=every, copy_number=numbers, shown=shown)
    calls = segments.take(changed)
    usual = chromosome.usual_copies(calls.start, calls.end)
    classes = _relative_classes(found.copies, usual, options).astype(np.int8)
    classes[found.copies == NOT_CALLED] = NOT_CALLED
    return segments, classes, found


def _relative_classes(copies: NDArray[Any], usual: NDArray[Any], options: CnvOptions) -> Indices:
    """Return the class that stands for these copies where so many are usual."""
    scale = options.usual_copies / np.maximum(usual, 1)
    found = np.minimum(np.rint(copies * scale), len(options.classes) - 1)
    return np.asarray(found, np.int32)


@dataclass(frozen=True, eq=False, kw_only=True)
class _RowsOfCalls:
    """Rows of a chromosome that tell the qualities and genotypes of some calls.

    Of a long call these are its first rows.

    counts       [rows, columns] in the order of the model
    moves        into each row, without memory where rows before it are left out
    first, stop  of each call among these rows
    """

    counts: NDArray[Any]
    inside: NDArray[np.bool_]
    expected: ExpectedCounts
    model: SampleModel
    moves: Scores
    first: Rows
    stop: Rows

    @classmethod
    def of(cls, chromosome: Chromosome, calls: SegmentTable, ways: Scores) -> "_RowsOfCalls":
        model, order = chromosome.ordered_model
        stop = np.minimum(calls.stop, calls.first + MOST_ROWS)
        change = np.zeros(len(ways) + 1, np.int64)
        np.add.at(change, np.maximum(calls.first - FLANK, 0), 1)
        np.add.at(change, np.minimum(stop + FLANK, len(ways)), -1)
        rows = np.flatnonzero(np.cumsum(change[:-1]))
        counts, inside = in_order(chromosome.counts[rows], order), chromosome.par[rows]
        expected = hmm.expect(counts, model, inside)
        if chromosome.common is not None:
            chromosome.common.replace_in(expected, rows)
        return cls(
            counts=counts,
            inside=inside,
            expected=expected,
            model=model,
            moves=without_memory(ways[rows], np.diff(rows, prepend=-2) > 1),
            first=np.searchsorted(rows, calls.first),
            stop=np.searchsorted(rows, stop),
        )

    def qualities(self, columns: NDArray[np.intp], states: States) -> NDArray[np.float64]:
        """Return the quality of each call, of the sample in its column and with its state."""
        calls = columns, self.first, self.stop, states.astype(np.int64)
        return qualities(self.counts, self.expected, self.model, self.moves, calls, self.inside)

    def genotypes(
        self, calls: NDArray[np.intp], usual: Copies
    ) -> tuple[Copies, NDArray[np.float32]]:
        """Return int8 and float32[calls, cases]: likeliest copies of all cases, and their quality.

        usual  int8[calls, cases]
        """
        spans = self.first[calls], self.stop[calls]
        found = genotypes(self.counts, self.expected, self.model, *spans, self.inside)
        return copies_and_quality(found[:, : usual.shape[1]], usual)

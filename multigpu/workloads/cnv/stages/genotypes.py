"""Last stage of `--segmentation hmm`, on the host: copies of every sample at every CNV."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import USUAL, ExpectedCounts
from multigpu.kernels.hmm import cpu as hmm
from multigpu.kernels.hmm.moves import without_memory
from multigpu.kernels.hmm.qualities import FLANK, copies_and_quality, genotypes, qualities
from multigpu.kernels.hmm.types import Scores
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
)
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies, is_large
from multigpu.workloads.cnv.stages.chromosome import Chromosome
from multigpu.workloads.cnv.stages.hmm import moves_of

MOST_ROWS = 500  # of a CNV that tell its quality and genotypes: more would tell the same
HALF = 0.5  # of the samples that a common change has, or of the regions of a CNV
UNSURE_QUALITY = 3.0  # Phred, at most, where the copies that are usual cannot be told


def genotyped(
    chromosome: Chromosome, options: CnvOptions, regions: int
) -> tuple[SegmentTable, Copies, Genotypes]:
    """Return the segments with all columns, `CnvPart.classes`, and genotypes of the CNVs.

    regions  of the whole run
    """
    segments, places, common = chromosome.segments, chromosome.places, chromosome.common
    assert chromosome.states is not None
    column = np.searchsorted(places, segments.sample)
    state = chromosome.states[segments.first, column]
    changed = np.flatnonzero((state != USUAL) & is_large(segments, options))
    calls, column, state = segments.take(changed), column[changed], state[changed]
    model, ways = chromosome.sample_model, moves_of(chromosome, options, regions)
    spans, counts, expected, ways, inside = _evidence(chromosome, calls, ways)
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
    is_common = common.share_of(calls.first, calls.stop) >= HALF  # of controls, too
    found = Genotypes(
        copies=copies,
        quality=certainty.astype(np.float32),
        is_common=many & is_common | unsure[good],
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

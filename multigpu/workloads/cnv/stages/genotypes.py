"""Last stage of `--segmentation hmm`, on the host: copies of every sample at every CNV."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.hmm import USUAL
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import NOT_CALLED, Copies, Genotypes, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import classes_by_usual_copies, is_large
from multigpu.workloads.cnv.stages.chromosome import Chromosome


def genotyped(
    chromosome: Chromosome, options: CnvOptions
) -> tuple[SegmentTable, Copies, Genotypes]:
    """Return the segments with all columns, `CnvPart.classes`, and genotypes of the CNVs."""
    segments, shown = chromosome.segments, classes_by_usual_copies(options)
    columns = np.searchsorted(chromosome.places, segments.sample)
    assert chromosome.states is not None
    states = chromosome.states[segments.first, columns]
    usual = chromosome.usual_copies_of(segments)
    segments = replace(segments, cnv=(states != USUAL) & is_large(segments, options))
    copies = np.where(segments.cnv, np.maximum(usual + states - USUAL, 0), usual)
    numbers = relative_classes(copies, usual, options)
    segments = replace(segments, copy_number=numbers, shown=shown[usual, numbers])
    cnvs = segments.take(segments.cnv)
    known = np.full((len(cnvs), len(chromosome.copies)), NOT_CALLED, np.int8)
    genotypes = Genotypes(
        copies=known,
        quality=np.zeros(known.shape, np.float32),
        is_common=np.zeros(len(cnvs), np.bool_),
    )
    return segments, known, genotypes


def relative_classes(
    copies: NDArray[np.integer], usual: NDArray[np.integer], options: CnvOptions
) -> NDArray[np.int32]:
    """Return the class that stands for these copies where so many are usual."""
    scale = options.usual_copies / np.maximum(usual, 1)
    found = np.minimum(np.rint(copies * scale), len(options.classes) - 1)
    return np.asarray(found, np.int32)

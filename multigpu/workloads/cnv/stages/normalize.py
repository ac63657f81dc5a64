"""First stage: size factors of a chromosome's samples; and those that need all chromosomes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.kernels.compiled.parallel import cores
from multigpu.kernels.normalization import cpu as normalization
from multigpu.kernels.normalization.types import (
    ChromosomeError,
    Normalization,
    NormalizationError,
    groups,
)
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.stages.backends import KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome, NotComparable
from multigpu.workloads.cnv.stages.whole_chromosomes import WholeChange


@dataclass(frozen=True)
class Normalize:
    """Size factors of each chromosome by itself, unless the client has found them."""

    options: CnvOptions
    backend: KernelBackend
    name: ClassVar[str] = "normalize"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `scale`, and notes. With --norm 2 only cases are normalized, as in R."""
        span, columns = chromosome.span, chromosome.columns
        scale = np.ones(len(columns.names))
        if not self.options.is_normalized:
            return replace(chromosome, scale=scale)
        if columns.factors is not None:
            scale = columns.factors[span.block]
            if np.isnan(scale).any():
                raise NotComparable(f"{span.name}: no size factors can be found there")
            return replace(chromosome, scale=scale)
        used = columns.cases if self.options.norm == 2 else len(scale)
        ploidy = None if span.ploidy is None else span.ploidy[:used]
        counts = chromosome.on_device
        if used < len(scale) or chromosome.par.any():
            counts = np.ascontiguousarray(chromosome.counts[~chromosome.par, :used])
        how = normalization_options(self.options, ploidy)
        try:
            found = self.backend.size_factors(
                self.backend.put_or_keep(counts),
                [slice(0, len(counts))],
                how,
                [span.name],
                totals=columns.totals[:used],
            )
        except NormalizationError as error:
            kind = NotComparable if isinstance(error, ChromosomeError) else UsageError
            raise kind(error.describe(columns.names[:used])) from error
        scale[:used] = found.factors[0]
        if changes := columns.whole.get(span.block):
            scale = _as_elsewhere(chromosome, scale, changes)
        return replace(chromosome, scale=scale, notes=found.notes)


def _as_elsewhere(chromosome: Chromosome, scale: Floats, changes: Sequence[WholeChange]) -> Floats:
    """Return the size factors, with which what is changed as a whole does not look usual."""
    means, scale = chromosome.counts.mean(axis=0), scale.copy()
    copies = np.array(chromosome.span.copies or [2] * len(scale))
    levels = {n: np.median((scale * means)[copies == n]) for n in np.unique(copies).tolist()}
    for change in changes:
        k = int(np.searchsorted(chromosome.places, change.case))
        scale[k] = levels[int(copies[k])] * change.depth / means[k]
    return scale


def normalization_options(options: CnvOptions, ploidy: tuple[int, ...] | None) -> Normalization:
    """Return how counts are normalized, with the ploidy of each column."""
    return Normalization(
        norm_type=options.norm_type,
        size_factor=options.size_factor,
        norm_quantile=options.norm_quantile,
        size_factor_quantile=options.size_factor_quantile,
        ploidy=ploidy,
    )


def size_factors_of_genome(
    values: NDArray[Any], cohort: Cohort, spans: Sequence[CnvSpan], options: CnvOptions
) -> tuple[Floats | None, tuple[str, ...]]:
    """Return float64[chromosomes, columns] and notes; None where workers find the factors.

    They are NaN on a chromosome that cannot be normalized where others can.

    Raises UsageError for counts that cannot be normalized.
    """
    if not options.is_normalized or not (options.genome_wide or cohort.ploidy):
        return None, ()
    blocks, names = [span.rows for span in spans], [span.name for span in spans]
    if options.genome_wide:
        values = autosomal_counts(values, spans)
        blocks, names = [slice(0, len(values))], ["the genome"]
    how = normalization_options(options, cohort.ploidy)
    leaves_out = len(blocks) > 1 and not options.compat_r
    try:
        found = normalization.size_factors(
            values, blocks, how, names, cores(), leaves_out=leaves_out
        )
    except NormalizationError as error:
        raise UsageError(error.describe(cohort.names)) from error
    factors = np.broadcast_to(found.factors, (len(spans), found.factors.shape[1]))
    return factors, found.notes


def coverages_of_genome(
    values: NDArray[Any], spans: Sequence[CnvSpan], options: CnvOptions
) -> Floats | None:
    """Return float64[columns]: the coverages that are modelled with --norm 2, else None."""
    if options.norm != 2 or options.model == "single":
        return None
    return np.asarray(normalization.coverages(autosomal_counts(values, spans), cores()))


def autosomal_counts(values: NDArray[Any], spans: Sequence[CnvSpan]) -> NDArray[Any]:
    """Return [regions, columns] where all have two copies; all counts if that is nowhere.

    Counts of the other chromosomes would tell less about a sample's depth than about its sex.
    The result is a copy where other chromosomes lie between.
    """
    rows = [span.rows for span in spans if span.copies is None]
    if not rows:
        return values
    if sum(each.stop - each.start for each in rows) == rows[-1].stop - rows[0].start:
        return values[rows[0].start : rows[-1].stop]
    return np.concatenate([values[each] for each in rows])


def zero_fractions(
    counts: NDArray[Any], options: CnvOptions, ploidy: tuple[int, ...] | None
) -> NDArray[Any]:
    """Return counts with 0 where all samples normalized together are below 1, as in R.

    Counts that are whole numbers are 0 there already.
    """
    if counts.dtype == np.int32:
        return counts
    known = ploidy if ploidy is not None and ploidy.count(2) > 1 else None
    out = counts.copy()
    for members in groups(normalization_options(options, known).ploidies(counts.shape[1])):
        if len(members) > 1:
            rows = np.flatnonzero((counts[:, members] < 1).all(axis=1))
            out[np.ix_(rows, np.array(members))] = 0
    return out

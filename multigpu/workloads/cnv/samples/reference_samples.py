"""Reference samples: with whom a sample is compared, how deep it was read, and how noisy it is.

Samples that were prepared and sequenced alike vary alike from region to region. The depths of those
that vary most as a sample does tell what it would have with the usual copies, as in ExomeDepth
(Plagnol et al., Bioinformatics 2012, 28:2747) and CANOES (Backenroth et al., Nucleic Acids Research
2014, 42:e97).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.kernels.compiled.parallel import cores, over_spans
from multigpu.kernels.hmm import cpu as hmm
from multigpu.kernels.hmm.types import (
    LEAST_DISPERSION,
    MOST_LISTED,
    NORMAL_MAD,
    SHRINKAGE,
    SampleModel,
)
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import Copies, Floats, Indices, Mask, Rows
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.sex import FEMALE, MALE, cohort_coverage, is_sex_chromosome

MOST_BLOCKS = 20_000  # of regions, by which samples are compared
BLOCK_ROWS = 8  # regions in a block at most: sums are less noisy
AUTO = 10  # reference samples
FEWEST = 3  # of these a change in one does not show: it may be the sample itself
WATCHED = 48  # samples that tell how much a region varies
USUAL_DEPTH = 0.05  # of the mean: regions with less in the median sample tell nothing
USUAL_READS = 1.0  # expected in a region that tells how noisy a sample is
LEAST_DEPTH = 1e-6  # of a sample
DIGITS = 9  # of correlations
LEAST_VALUES = 1 << 16  # whose medians a thread takes
MOST_UNLIKE = -2.0  # below all correlations: a sample is no reference of its own
CLIP = 2.0  # standard deviations by which a region counts in correlations at most
LEAST_SPREAD = 0.05  # of the logarithms of depths
OFFSET = 0.02  # of depths, before logarithms are taken
NEAREST, OF_A_SEX = 24, 12  # samples for each case; those of either sex at least, for X and Y


@dataclass(frozen=True, eq=False, kw_only=True)
class ReferenceSamples:
    """Facts from the autosomes about the columns of the counts, cases and then controls.

    correlation float64[columns]: mean of those with a column's reference samples
    """

    cases: int  # number of columns that are cases
    count: int  # reference samples of each; fewer on a chromosome that fewer samples have
    # int32[columns, references]: what it may be compared with, the most alike first, itself last
    nearest: Indices
    sizes: Floats  # float64[columns]: depth, 1 in the mean
    # Middle and spread of the logarithms of regions' depths: of their counts by sizes
    depths: tuple[float, float]
    correlation: Floats
    dispersion: float  # that of a usual region
    noise: Floats  # float64[columns]: factor on the dispersion, at least 1
    watched: Indices  # int32[n]: columns whose spread tells how much a region varies

    @classmethod
    def of(cls, sampled: NDArray[Any], cases: int, options: CnvOptions) -> Self:
        """Return the reference samples of all columns, two at least.

        sampled  int32 or float64[blocks, rows, columns]: counts of `sampled_rows`
        """
        sums, columns = sampled.sum(axis=1, dtype=np.float64), sampled.shape[2]
        sizes = _sizes(sums) if options.is_normalized else np.ones(columns)
        alike = correlations(sums / sizes)
        first = cases if options.model == "reference" else 0
        nearest = first + np.argsort(-alike[:, first:], axis=1, kind="stable").astype(np.int32)
        np.fill_diagonal(alike, 1)
        wanted = {"auto": AUTO, "all": MOST_LISTED}.get(str(options.reference_samples))
        wanted = wanted or int(options.reference_samples)
        count = _count(min(wanted, MOST_LISTED), columns - first)
        others = np.arange(first, columns, dtype=np.int32)
        every = np.linspace(0, len(others) - 1, min(WATCHED, len(others))).astype(np.intp)
        rows = np.arange(columns)[:, None]
        found = cls(
            cases=cases,
            count=count,
            nearest=nearest,
            sizes=sizes,
            depths=_depths(sums / sizes / sampled.shape[1]),
            correlation=alike[rows, nearest[:, :count]].mean(axis=1),
            dispersion=0.0,
            noise=np.ones(columns),
            watched=others[every],
        )
        found = found._with_noise(np.ascontiguousarray(sampled[:, 0]))
        return found if options.is_normalized else replace(found, sizes=sizes)

    def _with_noise(self, counts: NDArray[Any]) -> Self:
        """Return them with noise, dispersion, and better sizes, from counts[regions, columns]."""
        columns = len(self.sizes)
        every = replace(self, cases=columns)  # controls have noise, too
        all_two = np.full(columns, 2, np.int8)
        model = every.model(np.arange(columns), all_two)
        expected = hmm.expect(counts, model, threads=cores())
        mean = expected.mean.astype(np.float64)
        usual = (mean > USUAL_READS).any(axis=1)
        if not usual.any():
            return self
        counts, mean, region = counts[usual], mean[usual], expected.dispersion[usual, None]
        ratio = counts / mean
        off = _medians(ratio.T)
        off[off == 0] = 1
        beyond = (region - LEAST_DISPERSION) / SHRINKAGE  # it was shrunk towards 0
        dispersion = float(np.median(beyond))
        region = region + (1 - SHRINKAGE) * dispersion
        variance = region + (1 + 1 / model.worth) / mean
        deviations = (ratio / off - 1) / np.sqrt(variance)
        middle = _medians(deviations.T)
        noise = (NORMAL_MAD * _medians(np.abs(deviations - middle).T)) ** 2
        return replace(
            self, dispersion=dispersion, sizes=self.sizes * off, noise=np.maximum(noise, 1.0)
        )

    @property
    def factors(self) -> Floats:
        """float64[columns]: factors that make counts of all columns comparable."""
        return np.asarray(self.sizes.mean() / self.sizes)

    def ordered(self, span: CnvSpan) -> CnvSpan:
        """Return a chromosome whose columns are cases, then watched controls, then the others."""
        every = np.arange(len(self.sizes)) if span.columns is None else np.array(span.columns, int)
        order = np.argsort(~self._is_sample(every), kind="stable")
        if (order[1:] > order[:-1]).all():
            return span
        of_each: dict[str, Any] = {
            name: tuple(getattr(span, name)[k] for k in order)
            for name in ("ploidy", "copies", "shares")
            if getattr(span, name) is not None
        }
        return replace(span, columns=tuple(every[order].tolist()), **of_each)

    def _is_sample(self, columns: NDArray[Any]) -> Mask:
        return (columns < self.cases) | np.isin(columns, self._watched(columns))

    def _watched(self, columns: NDArray[Any]) -> NDArray[Any]:
        """Return the watched ones of some columns, or other controls where none of these is."""
        found = np.intersect1d(columns, self.watched)
        return found if len(found) else columns[columns >= self.watched[0]][:WATCHED]

    def model(self, columns: NDArray[Any], copies: Copies) -> SampleModel:
        """Return what the kernels need to know of the columns of a chromosome.

        columns  int[n] of an `ordered` span: all cases and watched controls are the model's samples
        copies   int8[n]: usual copies of each outside of pseudoautosomal regions
        """
        samples = int(self._is_sample(columns).sum())
        place = np.full(len(self.sizes), -1, np.int32)
        place[columns] = np.arange(len(columns))
        there = place[self.nearest[columns[:samples]]]
        allowed = np.cumsum(there >= 0, axis=1)
        count = _count(self.count, int(allowed[0, -1]))
        chosen = (there >= 0) & (allowed <= count)
        references = there[chosen].reshape(samples, count)
        pairs = np.stack([copies, np.full_like(copies, 2)])
        depths = self.sizes[columns] * pairs / 2
        return SampleModel(
            weights=1 / np.maximum(depths, LEAST_DEPTH),
            references=np.ascontiguousarray(references),
            sizes=np.ascontiguousarray(depths[:, :samples]),
            copies=np.ascontiguousarray(pairs[:, :samples]),
            noise=self.noise[columns[:samples]],
            spread=place[self._watched(columns)],
            dispersion=self.dispersion,
        )


def sampled_rows(spans: Sequence[CnvSpan]) -> Rows:
    """Return int64[blocks, rows]: neighbouring regions, evenly over the autosomes.

    These are all chromosomes where none has two copies in everybody.
    """
    autosomes = [span for span in spans if span.copies is None] or spans
    rows = np.concatenate([np.arange(span.first, span.stop) for span in autosomes])
    width = min(max(1, len(rows) // MOST_BLOCKS), BLOCK_ROWS)
    blocks = len(rows) // width
    chosen = np.linspace(0, blocks - 1, min(blocks, MOST_BLOCKS)).astype(np.int64)
    return np.asarray(rows[: blocks * width].reshape(blocks, width)[chosen])


def _count(wanted: int, among: int) -> int:
    """Return how many reference samples each of these samples has: few have themselves, too."""
    return min(wanted, max(min(FEWEST, among), among - 1))


def _sizes(sums: Floats) -> Floats:
    """Return float64[columns], 1 in the mean: depths by the median over regions of usual depth.

    sums  float64[regions, columns]
    """
    means = np.maximum(sums.mean(axis=0), LEAST_DEPTH)
    typical = _medians(sums / means)
    usual = typical > USUAL_DEPTH
    if not usual.any():
        return np.asarray(means / means.mean())
    sizes = _medians((sums[usual] / typical[usual, None]).T)
    return np.asarray(np.maximum(sizes / max(sizes.mean(), LEAST_DEPTH), LEAST_DEPTH))


def _depths(depths: Floats) -> tuple[float, float]:
    """Return middle and spread of the logarithms of depths, float64[regions, columns]."""
    typical = _medians(depths)
    logs = np.log(typical[typical > USUAL_DEPTH * max(depths.mean(), LEAST_DEPTH)])
    if not len(logs):
        return 0.0, np.inf
    middle = float(np.median(logs))
    spread = NORMAL_MAD * float(np.median(np.abs(logs - middle)))
    return middle, max(spread, LEAST_SPREAD)


def _medians(rows: Floats) -> Floats:
    """Return float64[n], the medians of float64[n, values], of which threads take some each."""
    found = np.empty(len(rows))

    def work(begin: int, stop: int) -> None:
        np.median(np.ascontiguousarray(rows[begin:stop]), axis=1, out=found[begin:stop])

    over_spans(work, len(rows), cores(), max(1, LEAST_VALUES // rows.shape[1]))
    return found


def correlations(depths: Floats) -> Floats:
    """Return float64[columns, columns]: correlations of how columns differ from the median one.

    depths  float64[regions, columns]: counts of samples as if these were read equally deep
    """
    depths = depths / max(depths.mean(), LEAST_DEPTH)
    typical = _medians(depths)[:, None]
    usual = typical[:, 0] > USUAL_DEPTH
    usual = usual if usual.any() else np.ones(len(usual), np.bool_)
    tracks = np.log2((depths[usual] + OFFSET) / (typical[usual] + OFFSET))
    # Samples that share a CNV are not alike otherwise.
    deviation = NORMAL_MAD * _medians(np.abs(tracks).T)
    tracks = (tracks / np.maximum(deviation, LEAST_DEPTH)).clip(-CLIP, CLIP)
    tracks -= tracks.mean(axis=0)
    tracks /= np.maximum(np.sqrt((tracks**2).sum(axis=0)), LEAST_DEPTH)
    # Last bits of a product of matrices depend on the processor and its threads; orders must not.
    alike = np.round(tracks.T @ tracks, DIGITS)
    np.fill_diagonal(alike, MOST_UNLIKE)
    return np.asarray(alike)


def nearest_controls(
    cases: Counts, store: CountsStore, cohort: Cohort, wanted: str | int
) -> tuple[Counts, Cohort]:
    """Return the samples of a kept cohort that vary most as the cases do, and what is known then.

    cohort  the cases, and all samples of the store as their controls
    wanted  number of reference samples: "auto", "all" (then these are all samples), or a number
    """
    number = len(store.samples) if wanted == "all" else NEAREST
    number = max(number, 2 * wanted) if isinstance(wanted, int) else number
    if number >= len(store.samples) or len(cases.regions) != len(store.regions):
        return store.counts(), cohort
    chosen = _nearest(cases, store, number)
    names = tuple(store.samples[k] for k in chosen)
    kept = [*range(len(cases.samples)), *(len(cases.samples) + k for k in chosen)]

    ploidy = None if cohort.ploidy is None else tuple(cohort.ploidy[k] for k in kept)
    sexes = tuple(cohort.sexes[k] for k in kept) if cohort.sexes else ()
    return store.counts(chosen), replace(cohort, controls=names, ploidy=ploidy, sexes=sexes)


def autosomal_correlations(regions: Regions, counts: NDArray[Any]) -> Floats:
    """Return float64[columns, columns]: how alike columns vary; of all regions without autosomes.

    counts  [regions, columns]
    """
    names = [not is_sex_chromosome(name) for name in regions.names]
    is_autosomal = np.array(names, np.bool_)[regions.chrom]
    counts = counts[is_autosomal] if is_autosomal.any() else counts
    return correlations(counts / np.maximum(counts.mean(axis=0), LEAST_DEPTH))


def _nearest(cases: Counts, store: CountsStore, number: int) -> list[int]:
    """Return the numbers of samples of a store, ascending."""
    rows, kept = store.read("subset"), np.ascontiguousarray(store.read("subset_counts").T)
    regions = store.regions.take(rows)
    alike = autosomal_correlations(regions, np.hstack([cases.values[rows], kept]))
    coverage = cohort_coverage(Counts(regions, store.samples, kept), None, None)
    sexes = np.array(coverage.sexes() if coverage else [""] * len(store.samples))
    first, chosen = len(cases.samples), set[int]()
    for nearest in np.argsort(-alike[:first, first:], axis=1, kind="stable"):
        chosen.update(nearest[:number].tolist())
        for sex in (MALE, FEMALE):
            chosen.update(nearest[sexes[nearest] == sex][:OF_A_SEX].tolist())
    return sorted(chosen)

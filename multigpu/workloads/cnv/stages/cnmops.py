"""Stages of cn.MOPS: the mixture of Poissons, and segments of the signed I/NI of every sample."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from multigpu.kernels.cnmops.reference import level_of_sample
from multigpu.kernels.cnmops.types import Model, ModelError
from multigpu.kernels.segmentation.cpu import cbs
from multigpu.kernels.segmentation.types import Circular, Segmentation, SegmentedTracks
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, Indices, SegmentTable
from multigpu.workloads.cnv.results.intervals import last_bases
from multigpu.workloads.cnv.stages.backends import Array, KernelBackend
from multigpu.workloads.cnv.stages.chromosome import Chromosome, NotComparable, true_runs

NEEDED = ("sini", "ini")  # results that the next stage takes
CBS_WIDEST = 5  # widest least width of a segment that circular binary segmentation takes


@dataclass(frozen=True)
class RunModel:
    """The model of all regions."""

    options: CnvOptions
    backend: KernelBackend
    fetched: tuple[str, ...]  # names of the results that come back to the host
    name: ClassVar[str] = "model"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `level` and `modelled`: on the host where it comes piece by piece and is large."""
        level = self._level(chromosome)
        modelled = self._all_pieces(chromosome, level)
        self.backend.wait()  # else its time is that of the next stage
        return replace(chromosome, level=level, modelled=modelled)

    def _level(self, chromosome: Chromosome) -> Array | None:
        """Return float64[regions]: the level of the controls or of a single sample, or None."""
        counts, cases, par = chromosome.on_device, chromosome.cases, chromosome.par
        if self.options.model == "single":
            try:
                level = level_of_sample(chromosome.counts[~par])
            except ModelError as error:
                raise NotComparable(f"{chromosome.span.name}: {error}") from error
            return self.backend.put(np.full(len(counts), level))
        if self.options.model != "reference":
            return None
        factors = chromosome.scale[cases:] if chromosome.columns.coverages is None else None
        usual, par_usual = (each[cases:] for each in chromosome.coverages)
        level_of = self.backend.level_of_controls
        found = level_of(counts[:, cases:].copy(), factors, usual)
        for rows in true_runs(par):
            found[rows] = level_of(counts[rows, cases:].copy(), factors, par_usual)
        return found

    def _all_pieces(self, chromosome: Chromosome, level: Array | None) -> dict[str, Array]:
        counts, cases, rows = chromosome.on_device, chromosome.cases, chromosome.piece_rows
        has_coverages = chromosome.columns.coverages is not None
        scale = np.ones(cases) if has_coverages else chromosome.scale[:cases]
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        coverages, par_coverages = (each[:cases] for each in chromosome.coverages)
        if self.options.model == "haplo":  # R's haploid model of all regions takes no coverages
            coverages = par_coverages = np.ones(cases)

        def model(piece: slice, coverages: Floats) -> dict[str, Array]:
            return self._model(x[piece], None if level is None else level[piece], coverages, scale)

        whole: dict[str, Array] = {}
        for begin in range(0, len(x), rows):
            piece = slice(begin, min(begin + rows, len(x)))
            found = model(piece, coverages)
            for run in true_runs(chromosome.par[piece]):
                again = model(slice(begin + run.start, begin + run.stop), par_coverages)
                for name, values in again.items():
                    found[name][run] = values
            if len(x) <= rows:
                return found
            for name in sorted({*self.fetched, *NEEDED} & set(found)):
                if not begin:
                    shape = len(x), *found[name].shape[1:]
                    whole[name] = self.backend.empty(shape, found[name].dtype)
                self.backend.assign(whole[name], piece, found[name])
        return whole

    def _model(
        self, counts: Array, level: Array | None, coverages: Floats, scale: Floats
    ) -> dict[str, Array]:
        how = coverages, model_options(self.options), scale
        if level is None:
            result = self.backend.model(counts, *how)
        else:
            result = self.backend.model_against(counts, level, *how)
        found: dict[str, Any] = {
            name: getattr(result, name) for name in ("sini", "ini", "alpha", "posterior")
        }
        found["copy_number"] = result.cn_index
        if "lambda" in self.fetched:
            found["lambda"] = result.lambda_
        return {name: values for name, values in found.items() if values is not None}


def model_options(options: CnvOptions) -> Model:
    """Return the options of the mixture model."""
    return Model(
        fold_changes=options.fold_changes,
        main=options.main,
        prior_impact=options.prior_impact,
        cycles=options.cycles,
        min_read_count=options.min_read_count,
        posterior=options.posterior,
        kind=options.model if options.model in ("single", "reference") else "cohort",
        compat_r=options.compat_r,
    )


@dataclass(frozen=True)
class Segment:
    """Segments of the samples, and of I/NI where robust regions are wanted."""

    options: CnvOptions
    backend: KernelBackend
    threads: int  # of the CPU, for circular binary segmentation, whose tests follow each other
    is_segmented: bool  # whether the job has enough regions for a segmentation
    name: ClassVar[str] = "segment"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `segments`, `robust`, and notes."""
        if not self.is_segmented:
            return chromosome
        found, notes = self._segment_samples(chromosome)
        robust, ini = chromosome.robust, chromosome.modelled["ini"]
        if self.options.robust:  # with 0 they are found from the CNVs
            how = Segmentation(
                min_segment=self.options.robust_min_width, thresholds=self.options.robust
            )
            offsets = np.array([0, len(ini)], np.int64)
            each = self.backend.segment(self.backend.put(ini), offsets, how)
            robust = self._table(chromosome, each, np.zeros(1, np.int32))
        return replace(chromosome, segments=found, robust=robust, notes=(*chromosome.notes, *notes))

    def _segment_samples(self, chromosome: Chromosome) -> tuple[SegmentTable, tuple[str, ...]]:
        """Return the segments of every case, and notes."""
        sini: Array = chromosome.modelled["sini"]
        regions, cases = sini.shape
        estimates = self.options.segmentation == "fast" and self.options.seg_limits is None
        if regions == 1 and estimates and not self.options.compat_r:
            # R stops here: one value has no deviation, by which it estimates thresholds.
            note = f"{chromosome.span.name}: one region only, nothing is called there"
            return SegmentTable.empty(), (note,)
        rows = chromosome.piece_rows
        at_a_time = cases if regions <= rows else max(1, rows * cases // regions)
        how = segmentation_options(self.options)
        found: list[SegmentTable] = []
        notes: list[str] = []
        for first in range(0, cases, at_a_time):
            some = sini[:, first : first + at_a_time]
            # A sample's values lie side by side, so this is no copy where all came in one piece.
            values = some.T.reshape(-1)
            values = values if values.flags.c_contiguous else values.copy()
            offsets = np.arange(some.shape[1] + 1, dtype=np.int64) * regions
            if isinstance(how, Circular):
                each = cbs(self.backend.get(values), offsets, how, self.threads)
            else:
                each = self.backend.segment(self.backend.put(values), offsets, how)
            found.append(self._table(chromosome, each, chromosome.places[first:]))
            notes += each.notes
        return SegmentTable.joined(found), tuple(dict.fromkeys(notes))

    def _table(
        self, chromosome: Chromosome, found: SegmentedTracks, samples: Indices
    ) -> SegmentTable:
        """Return the kernel's segments of tracks; `samples` has the number of each track's."""
        begin = found.track * len(chromosome.start)
        first, stop = found.start - begin, found.end - begin
        return SegmentTable.uncalled(
            chrom=np.full(len(found), chromosome.span.chrom, np.int32),
            sample=samples[found.track],
            first=first,
            stop=stop,
            start=chromosome.start[first],
            end=last_bases(chromosome.end, first, stop, self.options.compat_r),
            mean=found.mean,
            median=found.median,
        )


def segmentation_options(options: CnvOptions) -> Segmentation | Circular:
    """Return the options of R's fast segmentation, or of circular binary segmentation."""
    if options.segmentation == "cbs":
        return Circular(min_width=min(max(options.min_width, 2), CBS_WIDEST), seed=options.seed)
    return Segmentation(
        alpha=options.seg_alpha,
        eps=options.seg_eps,
        delta=options.seg_delta,
        max_window=options.seg_max_window,
        min_segment=options.min_width,
        cyber_weight=options.seg_cyber_weight,
        thresholds=options.seg_limits,
    )

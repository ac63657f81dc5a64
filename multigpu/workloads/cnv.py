"""Copy numbers as a workload: a chromosome's counts in, its calls out.

A span is a chromosome. Its counts go to the device once, and stages 2 to 4 (normalize, model,
segment) run there; what comes back are segments and, where they are wanted, matrices. Stage 5, the
calls, is `multigpu.copynumber.calls` on the host, while the device is at the next chromosome.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.workload import Place
from kernels.cnmops import Model, ModelError
from kernels.cnmops import cpu as cnmops_cpu
from kernels.cnmops import reference as cnmops_reference
from kernels.normalization import Normalization, NormalizationError
from kernels.normalization.types import groups
from kernels.segmentation import Segmentation, TrackError
from multigpu.copynumber import calls, matrices, windows
from multigpu.copynumber.calls import Floats, Rows, Segments
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.source import CountsSource
from multigpu.copynumber.windows import Window
from multigpu.errors import UsageError

Spans = tuple[Rows, Rows]


@dataclass(frozen=True, eq=False)
class CnvSpan:
    """A chromosome: its number and name, its rows of the counts, and where its regions lie.

    ploidy  of every sample on this chromosome; None: the same of all
    """

    block: int
    name: str
    first: int
    stop: int
    start: Rows
    end: Rows
    ploidy: tuple[int, ...] | None = None


@dataclass(frozen=True, eq=False)
class CnvPart:
    """What was found on a chromosome; rows count from its first region.

    called      bool[segments]: which of them are CNVs
    regions     rows (first, stop) of the CNV regions; `robust` of the robust ones, if asked for
    fractional  float64[CNV regions, samples], None where it was not asked for
    pieces      rows of the matrices that the client keeps or writes
    """

    block: int
    segments: Segments
    called: NDArray[np.bool_]
    regions: Spans
    robust: Spans | None
    fractional: Floats | None
    windows: tuple[Window, ...]
    pieces: matrices.Pieces
    notes: tuple[str, ...]


@dataclass(eq=False)
class CnvWorkload:
    """Everything a worker needs to know of a copy-number job.

    counts     of the samples, or of the cases and then the controls
    cases      how many of the columns are not controls
    totals     float64[columns]: reads of each on all chromosomes
    factors    float64[chromosomes, columns]: size factors where the client knows them already
    cov        float64[columns]: coverages where these are modelled (norm 2)
    segmented  whether there are enough regions for that
    keep       matrices to hand back; with `store` they are written there instead
    shown      CNV regions of each chromosome to hand back for figures
    threads    of the CPU for the kernels of a worker
    """

    key: str
    options: CnvOptions
    counts: CountsSource
    cases: int
    totals: Floats
    factors: Floats | None = None
    cov: Floats | None = None
    segmented: bool = True
    keep: tuple[str, ...] = ()
    store: Path | None = None
    shown: int = 0
    threads: int = 1

    def open(self, place: Place) -> "CnvSession":
        return CnvSession(self, backend_of(place, self.threads))

    def correct(self, span: CnvSpan, part: CnvPart) -> None:
        """Spans are exact."""


@dataclass(frozen=True)
class Backend:
    """The kernels of a place, and the way of arrays there and back.

    more  keywords for the kernels: how many threads
    """

    normalization: Any
    cnmops: Any
    segmentation: Any
    more: dict[str, int]
    active: Callable[[], AbstractContextManager[Any]]
    put: Callable[[Any], Any]
    get: Callable[[Any], Any]


def backend_of(place: Place, threads: int) -> Backend:
    """The kernels for a place."""
    if place.gpu is None:
        from kernels.normalization import cpu as normalization
        from kernels.segmentation import cpu as segmentation

        return Backend(
            normalization, cnmops_cpu, segmentation, {"threads": threads},
            nullcontext, lambda host: host, lambda here: here,
        )  # fmt: skip
    import cupy

    from kernels.cnmops import cuda as cnmops_cuda
    from kernels.normalization import cuda as normalization_cuda
    from kernels.segmentation import cuda as segmentation_cuda

    return Backend(
        normalization_cuda, cnmops_cuda, segmentation_cuda, {},
        lambda: cupy.cuda.Device(place.gpu), cupy.asarray, cupy.asnumpy,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Loaded:
    """The counts of a chromosome, [regions, columns]: cases, then controls."""

    span: CnvSpan
    counts: NDArray[Any]


@dataclass(frozen=True, eq=False)
class Computed:
    """Results of stages 2 to 4, on the host.

    scale     float64[columns]: size factors
    level     float64[regions]: of the controls; None in a cohort
    matrices  what the model gave, by name
    robust    segments of I/NI, where robust regions are wanted
    """

    scale: Floats
    level: Floats | None
    matrices: matrices.Matrices
    segments: Segments
    robust: Segments | None
    notes: tuple[str, ...]


class CnvSession:
    """The pipeline on one worker; one chromosome at a time is on its device."""

    def __init__(self, workload: CnvWorkload, backend: Backend) -> None:
        self.workload, self.options, self.backend = workload, workload.options, backend
        self.model = model_options(workload.options)
        self._device = threading.Lock()

    def load(self, span: CnvSpan) -> Loaded:
        """The chromosome's counts; no copy where they lie in this process."""
        return Loaded(span, self.workload.counts.rows(span.first, span.stop))

    def compute(self, loaded: Loaded) -> Computed:
        """Stages 2 to 4. Raises UsageError for what R stops at, too."""
        try:
            with self._device, self.backend.active():
                return self._computed(loaded)
        except TrackError as error:
            raise UsageError(f"{loaded.span.name}: {error.problem}") from error
        except NormalizationError as error:
            raise UsageError(str(error)) from error
        except ModelError as error:
            raise UsageError(f"{loaded.span.name}: {error}") from error

    def _computed(self, loaded: Loaded) -> Computed:
        counts = self.backend.put(loaded.counts)
        scale, notes = self._size_factors(counts, loaded.span)
        result, level = self._modelled(counts, scale)
        segments, robust = self._segmented(result)
        found = {
            "sini": result.sini, "ini": result.ini, "copy_number": result.cn_index,
            "lambda": result.lambda_, "alpha": result.alpha, "posterior": result.posterior,
        }  # fmt: skip
        get = self.backend.get
        wanted = {name: get(found[name]) for name in self._wanted() if name in found}
        level = None if level is None else get(level)
        return Computed(scale, level, wanted, segments, robust, notes)

    def _wanted(self) -> tuple[str, ...]:
        """The matrices that must come back to the host."""
        shown = ("sini", "ini") if self.workload.shown else ()
        return tuple(dict.fromkeys((*self.workload.keep, *shown)))

    def _size_factors(self, counts: Any, span: CnvSpan) -> tuple[Floats, tuple[str, ...]]:
        """float64[columns] and notes. With norm 2 only the cases are normalized, as in R."""
        workload, columns = self.workload, counts.shape[1]
        factors = np.ones(columns)
        if self.options.norm == 0 or self.options.model == "single":
            return factors, ()
        if workload.factors is not None:
            return workload.factors[span.block], ()
        used = np.arange(workload.cases if self.options.norm == 2 else columns)
        ploidy = None if span.ploidy is None else span.ploidy[: len(used)]
        if ploidy is not None and ploidy.count(2) < 2:  # chromosome Y: males among themselves
            used, ploidy = np.flatnonzero(np.array(ploidy) == max(ploidy)), None
            if len(used) < 2:
                return factors, (f"{span.name}: only one sample has it, not normalized",)
        found = self.backend.normalization.size_factors(
            counts if len(used) == columns else counts[:, used],
            [slice(0, len(counts))],
            normalization_options(self.options, ploidy),
            [span.name],
            totals=workload.totals[used],
            **self.backend.more,
        )
        factors[used] = found.factors[0]
        return factors, found.notes

    def _modelled(self, counts: Any, scale: Floats) -> tuple[Any, Any]:
        """Stage 3: the result for the cases, and the level of the controls where there are any."""
        cases, cov = self.workload.cases, self.workload.cov
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        applied = scale if cov is None else np.ones(len(scale))
        kernels, more = self.backend.cnmops, self.backend.more
        if self.model.kind == "cohort":
            coverages = self.coverages(haploid=True)
            return kernels.model(x, coverages, self.model, applied, **more), None
        if self.model.kind == "single":
            level = self.backend.put(np.full(len(x), kernels.level_of_sample(x)))
        else:
            of_controls = scale[cases:] if cov is None else 1 / cov[cases:]
            level = kernels.level_of_controls(counts[:, cases:].copy(), of_controls)
        coverages = self.coverages()
        result = kernels.model_against(x, level, coverages, self.model, applied[:cases], **more)
        return result, level

    def coverages(self, haploid: bool = False) -> Floats:
        """float64[cases]; R's haploid model of all regions takes none."""
        cases, cov = self.workload.cases, self.workload.cov
        if cov is None or (haploid and self.options.model == "haplo"):
            return np.ones(cases)
        return cov[:cases]

    def _segmented(self, result: Any) -> tuple[Segments, Segments | None]:
        """Stage 4: segments of every sample and, where robust regions are wanted, of I/NI."""
        robust = None if self.options.robust is None else Segments.empty()
        if not self.workload.segmented:
            return Segments.empty(), robust
        rows, samples = result.sini.shape
        values = result.sini.T.reshape(-1)  # a sample's values lie side by side: no copy
        offsets = np.arange(samples + 1, dtype=np.int64) * rows
        kernels, more = self.backend.segmentation, self.backend.more
        if self.options.segmentation == "cbs":
            found = kernels.cbs(values, offsets, cbs_options(self.options), **more)
        else:
            found = kernels.segment(values, offsets, segmentation_options(self.options), **more)
        if self.options.robust:
            whole, limits = np.array([0, rows], np.int64), robust_options(self.options)
            robust = _segments(kernels.segment(result.ini, whole, limits, **more), rows)
        return _segments(found, rows), robust

    def finish(self, loaded: Loaded, computed: Computed) -> CnvPart:
        """Stage 5, and the matrices to where they are wanted."""
        calling = _Calling(self, loaded, computed)
        segments, called = calling.copy_numbers()
        regions = calls.cnv_regions(segments, called, merge=self.options.model != "single")
        return CnvPart(
            loaded.span.block,
            segments,
            called,
            regions,
            calling.robust(segments.take(called)),
            calling.fractional(regions),
            calling.windows(segments, called, regions),
            calling.pieces(),
            computed.notes,
        )

    def close(self) -> None:
        """Nothing is kept between chromosomes."""


class _Calling:
    """Stage 5 of one chromosome."""

    def __init__(self, session: CnvSession, loaded: Loaded, computed: Computed) -> None:
        self.session, self.options = session, session.options
        self.span, self.computed = loaded.span, computed
        self.cases = session.workload.cases
        self.counts = loaded.counts[:, : self.cases]

    def normalized(self, rows: Any) -> Floats:
        """[rows, samples]: counts times size factors; 0 where all are below 1."""
        counts = self.counts[rows]
        values: Floats = counts * self.computed.scale[: self.cases]
        if counts.dtype != np.int32 and self.options.norm and self.options.model != "single":
            ploidy = normalization_options(self.options, self.span.ploidy).ploidies(self.cases)
            for members in groups(ploidy):
                if len(members) > 1:
                    values[np.ix_((counts[:, members] < 1).all(axis=1), members)] = 0
        return values

    def copy_numbers(self) -> tuple[Segments, NDArray[np.bool_]]:
        """The segments with their classes, and which of them are CNVs."""
        segments = self.computed.segments
        called = calls.is_cnv(segments, self.options)
        cnvs = segments.take(called)
        copies = np.empty((0, self.cases), np.int32)
        if len(cnvs):
            threads = self.session.workload.threads
            copies = self._modelled(cnmops_cpu, (cnvs.first, cnvs.stop), threads=threads).cn_index
        numbers = calls.integer_copy_numbers(segments, copies, called, self.options)
        return replace(segments, copy_number=numbers), called

    def _modelled(self, kernels: Any, spans: Spans, median: bool = False, **more: int) -> Any:
        """What the model says of the inner regions of spans, each taken as one region."""
        place = (self.span.start, self.span.end, spans, median)
        averages, model = calls.inner_averages(self.normalized, *place), self.session.model
        coverages = self.session.coverages()
        if self.computed.level is None:
            return kernels.model(averages, coverages, model, **more)
        level = calls.inner_averages(self._level, *place)[:, 0]
        # One sample is called with the floor of the reference model, too.
        model = replace(model, kind="reference")
        return kernels.model_against(averages, level, coverages, model, **more)

    def _level(self, rows: NDArray[np.intp]) -> Floats:
        assert self.computed.level is not None
        return self.computed.level[rows, None]

    def robust(self, cnvs: Segments) -> Spans | None:
        """The stretches of I/NI above the threshold; without a threshold the CNVs that touch."""
        if self.computed.robust is None:
            return None
        if not self.options.robust:
            return calls.union_in_bases(cnvs.first, cnvs.stop, self.span.start, self.span.end)
        kept = self.computed.robust.take(self.computed.robust.mean > self.options.robust)
        return kept.first, kept.stop

    def fractional(self, regions: Spans) -> Floats | None:
        """[regions, samples]: copy numbers of the CNV regions, where they are wanted."""
        if self.options.fractional is None:
            return None
        if not len(regions[0]):
            return np.empty((0, self.cases))
        # Plain arithmetic, as R's: where CN0 is sure, its 0.05 lies on the border of rounding.
        median = self.options.fractional == "median"
        sini = self._modelled(cnmops_reference, regions, median).sini
        return calls.fractional(sini, self.options)

    def windows(
        self, segments: Segments, called: NDArray[np.bool_], regions: Spans
    ) -> tuple[Window, ...]:
        """The largest CNV regions and what is around them."""
        chosen = windows.largest(*regions, self.session.workload.shown)
        return tuple(
            self._window(segments, segments.take(called), int(regions[0][k]), int(regions[1][k]))
            for k in chosen
        )

    def _window(self, segments: Segments, cnvs: Segments, first: int, stop: int) -> Window:
        start, end = self.span.start, self.span.end
        rows = windows.surroundings(first, stop, len(start))
        carriers = np.unique(cnvs.sample[(cnvs.first < stop) & (cnvs.stop > first)])
        shown = windows.shown_samples(carriers, self.cases)
        sini, ini = self.computed.matrices["sini"], self.computed.matrices["ini"]
        return Window(
            self.span.block, int(start[first]), int(end[stop - 1]), stop - first,
            windows.thinned((start[rows] + end[rows]) / 2), shown, carriers,
            windows.thinned(self.normalized(rows)[:, shown]), windows.thinned(sini[rows][:, shown]),
            windows.thinned(ini[rows]), windows.drawn_segments(segments, shown, rows, start, end),
        )  # fmt: skip

    def pieces(self) -> matrices.Pieces:
        """The matrices that are kept; those that are stored leave only the ends here."""
        workload, found = self.session.workload, dict(self.computed.matrices)
        if "normalized" in workload.keep:
            found["normalized"] = self.normalized(slice(None))
        kept = {name: found[name] for name in workload.keep}
        if not kept:
            return []
        if workload.store is None:
            return [(self.span.first, kept)]
        return matrices.write(workload.store, self.span.first, kept, self.cases)


def _segments(found: Any, rows: int) -> Segments:
    """The kernel's segments of tracks of `rows` values each, not called yet."""
    begin = found.track * rows
    return Segments(
        found.track.astype(np.int32), found.start - begin, found.end - begin,
        found.mean, found.median, np.full(len(found), calls.NOT_CALLED, np.int32),
    )  # fmt: skip


# ---- options of the kernels -------------------------------------------------------------------


def normalization_options(options: CnvOptions, ploidy: Sequence[int] | None) -> Normalization:
    return Normalization(
        options.norm_type, options.size_factor, options.norm_quantile,
        options.size_factor_quantile, None if ploidy is None else tuple(ploidy),
    )  # fmt: skip


def model_options(options: CnvOptions) -> Model:
    kind = {"single": "single", "reference": "reference"}.get(options.model, "cohort")
    return Model(
        options.fold_changes, options.main, options.prior_impact, options.cycles,
        options.min_read_count, options.posterior, kind, options.compat_r,
    )  # fmt: skip


def segmentation_options(options: CnvOptions) -> Segmentation:
    return Segmentation(
        options.seg_alpha, options.seg_eps, options.seg_delta, options.seg_max_window,
        options.min_width, options.seg_cyber_weight, options.seg_median,
    )  # fmt: skip


def robust_options(options: CnvOptions) -> Segmentation:
    return Segmentation(min_segment=options.robust_min_width, thresholds=options.robust)

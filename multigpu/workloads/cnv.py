"""Copy numbers as a workload: a chromosome's counts in, its calls out.

A span is a chromosome. Its counts go to the device once, and stages 2 to 4 (normalize, model,
segment) run there; what comes back are segments and, where they are wanted, matrices. One that is
too large comes in pieces: spans of regions for the model, samples for the segmentation. Stage 5,
the calls, is `multigpu.copynumber.calls` on the host, while the device is at the next chromosome.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.plan import MEMORY_FRACTION, Cost, chunk_units
from cluster.workload import Place
from kernels.cnmops import Model, ModelError
from kernels.cnmops import cpu as cnmops_cpu
from kernels.cnmops import reference as cnmops_reference
from kernels.normalization import Normalization, NormalizationError
from kernels.normalization.types import groups
from kernels.segmentation import Circular, Segmentation, TrackError
from multigpu.config import DEFAULT_CHUNK_BYTES
from multigpu.copynumber import calls, matrices, windows
from multigpu.copynumber.calls import Floats, Rows, Segments
from multigpu.copynumber.options import CnvOptions
from multigpu.copynumber.source import CountsSource
from multigpu.copynumber.windows import Window
from multigpu.errors import UsageError

BYTES_PER_VALUE = 64  # on a device, of a region and sample: results, and room for segmentation

CBS_WIDEST = 5  # least width of a segment that circular binary segmentation may be given

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

    begin       the chromosome's first region among all
    called      bool[segments]: which of them are CNVs
    regions     rows (first, stop) of the CNV regions; `robust` of the robust ones, if asked for
    fractional  float64[CNV regions, samples], None where it was not asked for
    pieces      rows of the matrices that the client keeps or writes
    """

    begin: int
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
    chunk_bytes, memory_fraction   as in `RunOptions`: a chromosome that is larger comes in pieces
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
    chunk_bytes: int = DEFAULT_CHUNK_BYTES
    memory_fraction: float = MEMORY_FRACTION

    def open(self, place: Place) -> "CnvSession":
        budget = int(place.free_bytes * self.memory_fraction)
        return CnvSession(self, backend_of(place, self.threads), budget)

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

    def __init__(self, workload: CnvWorkload, backend: Backend, budget: int) -> None:
        self.workload, self.options, self.backend = workload, workload.options, backend
        self.budget = budget
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
        counts = loaded.counts
        rows = self._piece_rows(counts)
        if len(counts) <= rows:
            counts = self.backend.put(counts)  # and it stays there for all three stages
        scale, notes = self._size_factors(counts, loaded.span)
        level = self._level(counts, scale)
        found = self._modelled(counts, level, scale, rows)
        segments, more = self._segmented(found["sini"], rows)
        robust = self._robust(found["ini"])
        get = self.backend.get
        wanted = {name: get(found[name]) for name in self._wanted() if name in found}
        level = None if level is None else get(level)
        return Computed(scale, level, wanted, segments, robust, (*notes, *more))

    def _wanted(self) -> tuple[str, ...]:
        """The matrices that must come back to the host."""
        shown = ("sini", "ini") if self.workload.shown else ()
        return tuple(dict.fromkeys((*self.workload.keep, *shown)))

    def _piece_rows(self, counts: NDArray[Any]) -> int:
        """Regions that are on the device at a time."""
        samples, classes = self.workload.cases, len(self.options.classes)
        each = counts.shape[1] * counts.itemsize
        found = BYTES_PER_VALUE * samples + 8 * classes * (1 + samples * self.options.posterior)
        largest = max(1, self.workload.chunk_bytes // each)
        return chunk_units(Cost(each + found, 0), self.budget, 1, largest)

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

    def _level(self, counts: Any, scale: Floats) -> Any:
        """float64[regions]: the level of the controls, or of a single sample; None in a cohort."""
        cases, cov, kernels = self.workload.cases, self.workload.cov, self.backend.cnmops
        if self.model.kind == "cohort":
            return None
        if self.model.kind == "single":
            return self.backend.put(np.full(len(counts), kernels.level_of_sample(counts)))
        of_controls = scale[cases:] if cov is None else 1 / cov[cases:]
        return kernels.level_of_controls(counts[:, cases:].copy(), of_controls)

    def _modelled(self, counts: Any, level: Any, scale: Floats, rows: int) -> dict[str, Any]:
        """Stage 3: the matrices by name; on the host where they come piece by piece."""
        cases = self.workload.cases
        applied = scale[:cases] if self.workload.cov is None else np.ones(cases)
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        if len(x) <= rows:
            return self._model(x, level, applied)
        pieces = []
        for begin in range(0, len(x), rows):
            piece = slice(begin, begin + rows)
            found = self._model(x[piece], None if level is None else level[piece], applied)
            names = {*self._wanted(), "sini", "ini"} & set(found)
            pieces.append({name: self.backend.get(found[name]) for name in sorted(names)})
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _model(self, counts: Any, level: Any, scale: Floats) -> dict[str, Any]:
        kernels, more = self.backend.cnmops, self.backend.more
        if level is None:
            result = kernels.model(counts, self.coverages(haploid=True), self.model, scale, **more)
        else:
            place = (counts, level, self.coverages(), self.model, scale)
            result = kernels.model_against(*place, **more)
        found = {
            "sini": result.sini, "ini": result.ini, "copy_number": result.cn_index,
            "alpha": result.alpha, "posterior": result.posterior,
        }  # fmt: skip
        if "lambda" in self.workload.keep:
            found["lambda"] = result.lambda_
        return {name: values for name, values in found.items() if values is not None}

    def coverages(self, haploid: bool = False) -> Floats:
        """float64[cases]; R's haploid model of all regions takes none."""
        cases, cov = self.workload.cases, self.workload.cov
        if cov is None or (haploid and self.options.model == "haplo"):
            return np.ones(cases)
        return cov[:cases]

    def _segmented(self, sini: Any, rows: int) -> tuple[Segments, tuple[str, ...]]:
        """Stage 4: the segments of every sample, and notes."""
        regions, samples = sini.shape
        if not self.workload.segmented:
            return Segments.empty(), ()
        at_a_time = samples if regions <= rows else max(1, rows * samples // regions)
        found, notes = [], []
        for first in range(0, samples, at_a_time):
            some = sini[:, first : first + at_a_time]
            # A sample's values lie side by side, so this is no copy where all came in one piece.
            values = some.T.reshape(-1)
            values = self.backend.put(values if values.flags.c_contiguous else values.copy())
            each = self._segment(values, np.arange(some.shape[1] + 1, dtype=np.int64) * regions)
            found.append(_segments(each, regions, first))
            notes += each.notes
        return Segments.joined(found), tuple(dict.fromkeys(notes))

    def _segment(self, values: Any, offsets: Rows) -> Any:
        kernels, more = self.backend.segmentation, self.backend.more
        if self.options.segmentation == "cbs":
            return kernels.cbs(values, offsets, cbs_options(self.options), **more)
        return kernels.segment(values, offsets, segmentation_options(self.options), **more)

    def _robust(self, ini: Any) -> Segments | None:
        """The segments of I/NI, where robust regions are wanted."""
        if self.options.robust is None:
            return None
        if not self.workload.segmented or not self.options.robust:
            return Segments.empty()
        values, whole = self.backend.put(ini), np.array([0, len(ini)], np.int64)
        limits = robust_options(self.options)
        found = self.backend.segmentation.segment(values, whole, limits, **self.backend.more)
        return _segments(found, len(ini))

    def finish(self, loaded: Loaded, computed: Computed) -> CnvPart:
        """Stage 5, and the matrices to where they are wanted."""
        calling = _Calling(self, loaded, computed)
        segments, called = calling.copy_numbers()
        regions = calls.cnv_regions(segments, called, merge=self.options.model != "single")
        return CnvPart(
            loaded.span.first,
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


def _segments(found: Any, rows: int, first: int = 0) -> Segments:
    """The kernel's segments of tracks of `rows` values each, not called yet.

    first  the sample of track 0
    """
    begin = found.track * rows
    return Segments(
        (found.track + first).astype(np.int32), found.start - begin, found.end - begin,
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


def cbs_options(options: CnvOptions) -> Circular:
    return Circular(min_width=min(max(options.min_width, 2), CBS_WIDEST), seed=options.seed)


def robust_options(options: CnvOptions) -> Segmentation:
    return Segmentation(min_segment=options.robust_min_width, thresholds=options.robust)

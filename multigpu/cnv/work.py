"""Copy numbers as a workload: a chromosome's counts in, its calls out.

A span is a chromosome. Its counts go to the device once, and stages 2 to 4 (normalize, model,
segment) run there; what comes back are segments and, where they are wanted, matrices. One that is
too large comes in pieces: spans of regions for the model, samples for the segmentation. Stage 5,
the calls, is `multigpu.cnv.calls.calling` on the host, while the device is at other chromosomes.
"""

import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.plan import MEMORY_FRACTION
from multigpu.cluster.engine.workload import Place
from multigpu.cluster.workers.history import step
from multigpu.cnv.backends import (
    Backend,
    backend_of,
    cbs_options,
    model_options,
    normalization_options,
    robust_options,
    segmentation_options,
    wiped,
)
from multigpu.cnv.calls import calls
from multigpu.cnv.calls.calling import Calling
from multigpu.cnv.calls.calls import Floats, Rows, Segments
from multigpu.cnv.chromosome import CnvPart, CnvSpan, Computed, Loaded, stretches
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.output.windows import Window
from multigpu.cnv.plan import Shape
from multigpu.cnv.source import CountsSource
from multigpu.errors import UsageError
from multigpu.kernels.cnmops import ModelError
from multigpu.kernels.normalization import NormalizationError
from multigpu.kernels.segmentation import TrackError
from multigpu.run.fitness import Expected, require
from multigpu.run.options import DEFAULT_CHUNK_BYTES

PART_CLASSES = (CnvPart, Segments, Window)  # what a journal of copy numbers holds
STAGES = ("normalize", "model", "segment", "call")  # timed as steps of their own


@dataclass(eq=False)
class CnvWorkload:
    """Everything a worker needs to know of a copy-number job.

    counts     of the samples, or of the cases and then the controls
    samples    the names of these columns
    cases      how many of them are not controls
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
    samples: tuple[str, ...]
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
    expected: Expected | None = None  # of a worker that is not this process

    def only(self, columns: Sequence[int]) -> "CnvWorkload":
        """The same for some of the samples."""
        kept = np.array(columns, np.intp)
        return replace(
            self,
            samples=tuple(self.samples[k] for k in columns),
            cases=int((kept < self.cases).sum()),
            totals=self.totals[kept],
            factors=None if self.factors is None else self.factors[:, kept],
            cov=None if self.cov is None else self.cov[kept],
        )

    def open(self, place: Place) -> "CnvSession":
        require(self.expected, place)
        budget = int(place.free_bytes * self.memory_fraction)
        return CnvSession(self, backend_of(place, self.threads), budget)

    def name(self, span: CnvSpan) -> str:
        return span.name

    def correct(self, span: CnvSpan | None, part: CnvPart) -> None:
        """Spans are exact."""


class CnvSession:
    """The pipeline on one worker; a few chromosomes at a time are on its device."""

    def __init__(self, workload: CnvWorkload, backend: Backend, budget: int) -> None:
        self.workload, self.options, self.backend = workload, workload.options, backend
        self.budget = budget
        self.model = model_options(workload.options)
        self._device = threading.Semaphore(backend.at_once)
        self._own = threading.local()  # of each lane

    def load(self, span: CnvSpan) -> Loaded:
        """The chromosome's counts; no copy where they lie in this process."""
        counts, start, end = self.workload.counts.rows(span.first, span.stop, self._room)
        if span.columns is not None:
            counts = counts.take(span.columns, axis=1)
        if counts.size and self.options.norm == 1 and self.options.model != "single":
            counts = wiped(counts, self.options, span.ploidy)
        return Loaded(span, counts, start, end)

    def _room(self, size: int) -> NDArray[np.uint8]:
        """Memory for the counts of this lane's chromosome, after that of its next one."""
        if not hasattr(self._own, "room") or len(self._own.room) < size:
            self._own.room = self.backend.room(size)
        room: NDArray[np.uint8] = self._own.room[:size]
        return room

    def compute(self, loaded: Loaded) -> Computed:
        """Stages 2 to 4. Raises UsageError for what R stops at, too."""
        if not loaded.counts.size:
            return Computed.nothing(robust=self.options.robust is not None)
        try:
            with self._device, self.backend.active():
                computed, fetched = self._of(loaded.span)._computed(loaded)
        except TrackError as error:
            raise UsageError(f"{loaded.span.name}: {error.problem}") from error
        except ModelError as error:
            raise UsageError(f"{loaded.span.name}: {error}") from error
        # Another chromosome has the device meanwhile.
        return replace(computed, matrices={name: own() for name, own in fetched.items()})

    def _of(self, span: CnvSpan) -> "CnvSession":
        """The same for those samples that are looked at on a chromosome."""
        if span.columns is None:
            return self
        some = copy(self)
        some.workload = self.workload.only(span.columns)
        return some

    def _computed(self, loaded: Loaded) -> tuple[Computed, dict[str, Callable[[], Any]]]:
        """All but the matrices, and how they come."""
        counts, rows = loaded.counts, self._piece_rows(loaded)
        if len(counts) <= rows:
            counts = self.backend.put(counts)  # and it stays there for all three stages
        with step("normalize"):
            scale, notes = self._size_factors(counts, loaded)
        with step("model"):
            level = self._level(counts, scale, loaded)
            found = self._modelled(counts, level, scale, rows, loaded)
            self.backend.wait()  # else its time is that of the next stage
        with step("segment"):
            segments, more = self._segmented(found["sini"], rows, loaded.span.name)
            robust = self._robust(found["ini"])
        names = [name for name in self._wanted() if name in found]
        fetched = {name: self.backend.fetch(found[name]) for name in names}
        level = None if level is None else self.backend.get(level)
        computed = Computed(scale, level, {}, segments, robust, (*notes, *more))
        return computed, fetched

    def _wanted(self) -> tuple[str, ...]:
        """The matrices that must come back to the host."""
        shown = ("sini", "ini") if self.workload.shown else ()
        return tuple(dict.fromkeys((*self.workload.keep, *shown)))

    def _shape(self, loaded: Loaded) -> Shape:
        regions, columns = loaded.counts.shape
        return Shape(regions, columns, self.workload.cases, loaded.counts.itemsize)

    def _piece_rows(self, loaded: Loaded) -> int:
        """Regions that are on the device at a time."""
        place = (self.budget, self.backend.at_once, self.workload.chunk_bytes)
        return self._shape(loaded).piece_rows(self.options, *place, loaded.pieces)

    def need(self, loaded: Loaded) -> int:
        if not loaded.counts.size:
            return 0
        rows = min(self._piece_rows(loaded), len(loaded.counts))
        return rows * self._shape(loaded).row_bytes(self.options)

    def halves(self, loaded: Loaded) -> tuple[Loaded, ...]:
        """The same chromosome, which comes to the device in pieces half as large."""
        smaller = replace(loaded, pieces=2 * loaded.pieces)
        return (smaller,) if self.need(smaller) < self.need(loaded) else ()

    def joined(
        self, loaded: Loaded, halves: Sequence[Loaded], computed: Sequence[Computed]
    ) -> Computed:
        return computed[0]

    def _size_factors(self, counts: Any, loaded: Loaded) -> tuple[Floats, tuple[str, ...]]:
        """float64[columns] and notes. With norm 2 only the cases are normalized, as in R."""
        workload, span, columns = self.workload, loaded.span, counts.shape[1]
        factors = np.ones(columns)
        if self.options.norm == 0 or self.options.model == "single":
            return factors, ()
        if workload.factors is not None:
            return workload.factors[span.block], ()
        used = workload.cases if self.options.norm == 2 else columns
        ploidy = None if span.ploidy is None else span.ploidy[:used]
        if used < columns or loaded.par.any():
            counts = np.ascontiguousarray(loaded.counts[~loaded.par, :used])
        try:
            found = self.backend.normalization.size_factors(
                counts,
                [slice(0, len(counts))],
                normalization_options(self.options, ploidy),
                [span.name],
                totals=workload.totals[:used],
                **self.backend.more,
            )
        except NormalizationError as error:
            raise UsageError(error.told(workload.samples[:used])) from error
        factors[:used] = found.factors[0]
        return factors, found.notes

    def _level(self, counts: Any, scale: Floats, loaded: Loaded) -> Any:
        """float64[regions]: the level of the controls, or of a single sample; None in a cohort."""
        cases, cov, kernels = self.workload.cases, self.workload.cov, self.backend.cnmops
        if self.model.kind == "cohort":
            return None
        if self.model.kind == "single":
            others = self.backend.put(loaded.counts[~loaded.par]) if loaded.par.any() else counts
            return self.backend.put(np.full(len(counts), kernels.level_of_sample(others)))
        of_controls = scale[cases:] if cov is None else None

        def of(rows: slice, in_par: bool) -> Any:
            shares = loaded.span.expected(in_par)
            over = np.ones(counts.shape[1] - cases) if cov is None else cov[cases:]
            over = over if shares is None else over * np.array(shares[cases:])
            return kernels.level_of_controls(counts[rows, cases:].copy(), of_controls, over)

        level = of(slice(None), in_par=False)
        for rows in stretches(loaded.par):
            level[rows] = of(rows, in_par=True)
        return level

    def _modelled(
        self, counts: Any, level: Any, scale: Floats, rows: int, loaded: Loaded
    ) -> dict[str, Any]:
        """Stage 3: the matrices by name; on the host where they come piece by piece."""
        cases = self.workload.cases
        applied = scale[:cases] if self.workload.cov is None else np.ones(cases)
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        haploid = level is None
        cov, in_par = (self.coverages(loaded.span, par, haploid) for par in (False, True))

        def of(piece: slice, cov: Floats) -> dict[str, Any]:
            return self._model(x[piece], None if level is None else level[piece], cov, applied)

        pieces = []
        for begin in range(0, len(x), rows):
            piece = slice(begin, min(begin + rows, len(x)))
            found = of(piece, cov)
            for own in stretches(loaded.par[piece]):
                again = of(slice(begin + own.start, begin + own.stop), in_par)
                for name, values in again.items():
                    found[name][own] = values
            if len(x) <= rows:
                return found
            names = {*self._wanted(), "sini", "ini"} & set(found)
            pieces.append({name: self.backend.get(found[name]) for name in sorted(names)})
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _model(self, counts: Any, level: Any, cov: Floats, scale: Floats) -> dict[str, Any]:
        kernels, more = self.backend.cnmops, self.backend.more
        if level is None:
            result = kernels.model(counts, cov, self.model, scale, **more)
        else:
            result = kernels.model_against(counts, level, cov, self.model, scale, **more)
        found = {
            "sini": result.sini, "ini": result.ini, "copy_number": result.cn_index,
            "alpha": result.alpha, "posterior": result.posterior,
        }  # fmt: skip
        if "lambda" in self.workload.keep:
            found["lambda"] = result.lambda_
        return {name: values for name, values in found.items() if values is not None}

    def coverages(self, span: CnvSpan, in_par: bool, haploid: bool = False) -> Floats:
        """float64[cases]; R's haploid model of all regions takes none."""
        cases, cov = self.workload.cases, self.workload.cov
        known = cov is not None and not (haploid and self.options.model == "haplo")
        found = cov[:cases] if cov is not None and known else np.ones(cases)
        shares = span.expected(in_par)
        return found if shares is None else found * np.array(shares[:cases])

    def _segmented(self, sini: Any, rows: int, name: str) -> tuple[Segments, tuple[str, ...]]:
        """Stage 4: the segments of every sample, and notes."""
        regions, samples = sini.shape
        if not self.workload.segmented:
            return Segments.empty(), ()
        if regions == 1 and self._estimates and not self.options.compat_r:  # where R stops
            return Segments.empty(), (f"{name}: one region only, nothing is called there",)
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

    @property
    def _estimates(self) -> bool:
        """Whether thresholds of the segmentation come from the values themselves."""
        return self.options.segmentation == "fast" and self.options.seg_median is None

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
        some, span = self._of(loaded.span), loaded.span
        with step("call"):
            coverages = some.coverages(span, in_par=False), some.coverages(span, in_par=True)
            calling = Calling(some.workload, coverages, loaded, computed)
            return calling.part(self.workload.cases)

    def close(self) -> None:
        self._own = threading.local()
        self.backend.close()


def _segments(found: Any, rows: int, first: int = 0) -> Segments:
    """The kernel's segments of tracks of `rows` values each, not called yet.

    first  the sample of track 0
    """
    begin = found.track * rows
    return Segments(
        (found.track + first).astype(np.int32), found.start - begin, found.end - begin,
        found.mean, found.median, np.full(len(found), calls.NOT_CALLED, np.int32),
    )  # fmt: skip

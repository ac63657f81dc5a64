"""Copy numbers as a workload: a chromosome's counts in, its calls out.

A span is a chromosome. Its counts go to the device once, and stages 2 to 4 (normalize, model,
segment) run there; segments come back and, where they are wanted, matrices. A chromosome that is
too large comes in pieces: spans of regions for the model, samples for the segmentation. Stage 5,
the calls, is `calls.caller` on the host, while the device is at other chromosomes.
"""

import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.cluster.workers.history import step
from multigpu.errors import UsageError
from multigpu.kernels.cnmops import ModelError
from multigpu.kernels.normalization import ChromosomeError, NormalizationError
from multigpu.kernels.segmentation import Segmentation, TrackError
from multigpu.run.fitness import Expected, require
from multigpu.workloads.cnv.backends import Backend, Fetch, open_backend
from multigpu.workloads.cnv.calls.caller import ChromosomeCaller
from multigpu.workloads.cnv.calls.segments import NOT_CALLED, Floats, Segments
from multigpu.workloads.cnv.chromosome import (
    CnvPart,
    CnvSpan,
    ComputedChromosome,
    LoadedChromosome,
    NotComparable,
    true_runs,
)
from multigpu.workloads.cnv.counts_source import CountsSource
from multigpu.workloads.cnv.kernel_options import (
    cbs_options,
    model_options,
    normalization_options,
    segmentation_options,
)
from multigpu.workloads.cnv.normalization import zero_fractions
from multigpu.workloads.cnv.options import CnvOptions, KeptResults
from multigpu.workloads.cnv.output.windows import Window
from multigpu.workloads.cnv.plan import Shape

PART_CLASSES = (CnvPart, Segments, Window)  # what a journal of copy numbers holds
STAGES = ("normalize", "model", "segment", "call")  # timed as steps of their own


@dataclass(eq=False, kw_only=True)
class CnvWorkload:
    """Everything a worker needs to know of a copy-number job.

    counts           of the cases and then the controls
    samples          names of these columns
    cases            number of columns that are not controls
    totals           float64[columns]: reads of each on all chromosomes
    factors          float64[chromosomes, columns]: size factors, where the client has found them
    coverages        float64[columns]: coverages, where these are modelled (--norm 2)
    is_segmented     whether there are enough regions for a segmentation
    kept             results to hand back besides the calls
    threads          of the CPU, for the kernels of a worker
    chunk_bytes      of counts that come to a device at a time, at most
    memory_fraction  share of a device's free memory to use
    expected         what a worker in another process must have
    """

    key: str
    options: CnvOptions
    counts: CountsSource
    samples: tuple[str, ...]
    cases: int
    totals: Floats
    factors: Floats | None
    coverages: Floats | None
    is_segmented: bool
    kept: KeptResults
    threads: int
    chunk_bytes: int
    memory_fraction: float
    expected: Expected | None

    def model_coverages(self, span: CnvSpan) -> tuple[Floats, Floats]:
        """Return float64[columns]: coverages that the model takes for averages of counts.

        The second are those in pseudoautosomal regions.
        """
        usual = np.ones(len(self.samples)) if self.coverages is None else self.coverages
        if span.shares is not None:
            usual = usual * np.array(span.shares)
        return usual, usual if span.copies is None else usual * 2 / np.array(span.copies)

    def open(self, place: Place) -> "CnvSession":
        """Set up on a device. Raises Unfit where the worker lacks something."""
        require(self.expected, place)
        budget = int(place.free_bytes * self.memory_fraction)
        return CnvSession(self, open_backend(place, self.threads), budget)

    def name(self, span: CnvSpan) -> str:
        """Return the chromosome's name."""
        return span.name

    def correct(self, span: CnvSpan | None, part: CnvPart) -> None:
        """Return None: spans are exact."""


class CnvSession:
    """The pipeline on a device of a worker; a few chromosomes at a time are on the device."""

    def __init__(self, workload: CnvWorkload, backend: Backend, budget: int) -> None:
        self.workload, self.options, self.backend = workload, workload.options, backend
        self.budget = budget
        self.model = model_options(workload.options)
        self._device = threading.Semaphore(backend.at_once)
        self._thread = threading.local()

    # ---- steps of a chunk ---------------------------------------------------------------------

    def load(self, span: CnvSpan) -> LoadedChromosome:
        """Return the chromosome's counts; no copy where they lie in this process."""
        counts, start, end = self.workload.counts.rows(span.first, span.stop, self._room)
        if span.columns is not None:
            counts = counts.take(span.columns, axis=1)
        if counts.size and self.options.norm == 1 and self.options.model != "single":
            counts = zero_fractions(counts, self.options, span.ploidy)
        return LoadedChromosome(span=span, counts=counts, start=start, end=end)

    def _room(self, size: int) -> NDArray[np.uint8]:
        """Return memory for the counts of this thread's chromosome, reused for its next one."""
        thread = self._thread
        if not hasattr(thread, "room") or len(thread.room) < size:
            thread.room = self.backend.allocate(size)
        room: NDArray[np.uint8] = thread.room[:size]
        return room

    def compute(self, loaded: LoadedChromosome) -> ComputedChromosome:
        """Run stages 2 to 4. Raises UsageError for data at which R stops, too."""
        name = loaded.span.name
        nothing = ComputedChromosome(segments=Segments.empty(), robust=self._segment_ini(None))
        if not loaded.counts.size:
            return nothing
        try:
            with self._device, self.backend.active():
                computed, fetches = self._for_columns(loaded.span)._compute_on_device(loaded)
        except NotComparable as error:
            if self.options.compat_r:
                raise
            return replace(nothing, left_out=f"{error}")
        except TrackError as error:
            raise UsageError(f"{name}: {error.problem}") from error
        except ModelError as error:
            raise UsageError(f"{name}: {error}") from error
        # Another chromosome has the device meanwhile.
        return replace(computed, matrices={name: fetch() for name, fetch in fetches.items()})

    def need(self, loaded: LoadedChromosome) -> int:
        """Return bytes of device memory that a chromosome takes at most."""
        if not loaded.counts.size:
            return 0
        return self._piece_rows(loaded) * self._shape(loaded).row_bytes(self.options)

    def halves(self, loaded: LoadedChromosome) -> tuple[LoadedChromosome, ...]:
        """Return the chromosome with pieces half as large; nothing where they cannot be."""
        smaller = replace(loaded, divisor=2 * loaded.divisor)
        return (smaller,) if self.need(smaller) < self.need(loaded) else ()

    def joined(
        self,
        loaded: LoadedChromosome,
        halves: Sequence[LoadedChromosome],
        computed: Sequence[ComputedChromosome],
    ) -> ComputedChromosome:
        """Return the only result: `halves` gives one chromosome, in smaller pieces."""
        return computed[0]

    def finish(self, loaded: LoadedChromosome, computed: ComputedChromosome) -> CnvPart:
        """Run stage 5, and write the matrices where they are wanted."""
        if computed.left_out:  # no sample is compared
            span = replace(loaded.span, columns=(), ploidy=None, copies=(), shares=None)
            loaded = replace(loaded, span=span, counts=loaded.counts[:, :0])
        workload = self._for_columns(loaded.span).workload
        with step("call"):
            return ChromosomeCaller(workload, loaded, computed, self.workload.cases).part()

    def close(self) -> None:
        """Give back the memory that is kept between chromosomes."""
        self._thread = threading.local()
        self.backend.close()

    def _for_columns(self, span: CnvSpan) -> "CnvSession":
        """Return the session for the samples that are compared on a chromosome."""
        if span.columns is None:
            return self
        session, of_all = copy(self), self.workload
        chosen = np.array(span.columns, np.intp)
        session.workload = replace(
            of_all,
            samples=tuple(of_all.samples[k] for k in span.columns),
            cases=int((chosen < of_all.cases).sum()),
            totals=of_all.totals[chosen],
            factors=None if of_all.factors is None else of_all.factors[:, chosen],
            coverages=None if of_all.coverages is None else of_all.coverages[chosen],
        )
        return session

    # ---- stages 2 to 4, on the device ---------------------------------------------------------

    def _compute_on_device(
        self, loaded: LoadedChromosome
    ) -> tuple[ComputedChromosome, dict[str, Fetch]]:
        """Return the results without the matrices, and functions that fetch these."""
        counts, rows = loaded.counts, self._piece_rows(loaded)
        if len(counts) <= rows:
            counts = self.backend.put(counts)  # and it stays there for all three stages
        with step("normalize"):
            scale, notes = self._size_factors(counts, loaded)
        with step("model"):
            level = self._level(counts, scale, loaded)
            found = self._model_pieces(counts, level, scale, rows, loaded)
            self.backend.wait()  # else its time is that of the next stage
        with step("segment"):
            segments, more_notes = self._segment_samples(found["sini"], rows, loaded.span.name)
            robust = self._segment_ini(found["ini"])
        fetches = {n: self.backend.fetch(found[n]) for n in self._fetched_matrices() if n in found}
        computed = ComputedChromosome(
            scale=scale,
            level=None if level is None else self.backend.get(level),
            segments=segments,
            robust=robust,
            notes=(*notes, *more_notes)[-1 if len(loaded.counts) == 1 else 0 :],
        )
        return computed, fetches

    def _fetched_matrices(self) -> tuple[str, ...]:
        """Return the names of the matrices that must come back to the host."""
        kept = self.workload.kept
        shown = ("sini", "ini") if kept.shown else ()
        return tuple(dict.fromkeys((*kept.matrices, *shown)))

    def _shape(self, loaded: LoadedChromosome) -> Shape:
        regions, columns = loaded.counts.shape
        return Shape(regions, columns, self.workload.cases, loaded.counts.itemsize)

    def _piece_rows(self, loaded: LoadedChromosome) -> int:
        """Return the number of regions that are on the device at a time."""
        return self._shape(loaded).piece_rows(
            self.options,
            budget=self.budget,
            at_once=self.backend.at_once,
            chunk_bytes=self.workload.chunk_bytes,
            divisor=loaded.divisor,
        )

    def _size_factors(
        self, counts: Any, loaded: LoadedChromosome
    ) -> tuple[Floats, tuple[str, ...]]:
        """Return float64[columns] and notes. With --norm 2 only cases are normalized, as in R."""
        workload, span, columns = self.workload, loaded.span, counts.shape[1]
        factors = np.ones(columns)
        if not self.options.is_normalized:
            return factors, ()
        if workload.factors is not None:
            if np.isnan(workload.factors[span.block]).any():
                raise NotComparable(f"{span.name}: no size factors can be found there")
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
                **self.backend.normalization_arguments,
            )
        except NormalizationError as error:
            kind = NotComparable if isinstance(error, ChromosomeError) else UsageError
            raise kind(error.describe(workload.samples[:used])) from error
        factors[:used] = found.factors[0]
        return factors, found.notes

    def _level(self, counts: Any, scale: Floats, loaded: LoadedChromosome) -> Any:
        """Return float64[regions]: the level of the controls or of a single sample, or None."""
        if self.model.kind == "cohort":
            return None
        if self.model.kind == "single":
            others = self.backend.put(loaded.counts[~loaded.par]) if loaded.par.any() else counts
            try:
                level = self.backend.cnmops.level_of_sample(others)
            except ModelError as error:
                raise NotComparable(f"{loaded.span.name}: {error}") from error
            return self.backend.put(np.full(len(counts), level))
        cases = self.workload.cases
        factors = scale[cases:] if self.workload.coverages is None else None
        usual, par = (each[cases:] for each in self.workload.model_coverages(loaded.span))
        level_of = self.backend.cnmops.level_of_controls
        level = level_of(counts[:, cases:].copy(), factors, usual)
        for rows in true_runs(loaded.par):
            level[rows] = level_of(counts[rows, cases:].copy(), factors, par)
        return level

    def _model_pieces(
        self, counts: Any, level: Any, scale: Floats, rows: int, loaded: LoadedChromosome
    ) -> dict[str, Any]:
        """Return the model's matrices by name; on the host where they come piece by piece."""
        cases = self.workload.cases
        applied = scale[:cases] if self.workload.coverages is None else np.ones(cases)
        x = counts if counts.shape[1] == cases else counts[:, :cases].copy()
        coverages, par_coverages = self.workload.model_coverages(loaded.span)
        if self.options.model == "haplo":  # R's haploid model of all regions takes no coverages
            coverages = par_coverages = np.ones(cases)

        def model(piece: slice, piece_coverages: Floats) -> dict[str, Any]:
            piece_level = None if level is None else level[piece]
            return self._model(x[piece], piece_level, piece_coverages[:cases], applied)

        pieces = []
        for begin in range(0, len(x), rows):
            piece = slice(begin, min(begin + rows, len(x)))
            found = model(piece, coverages)
            for run in true_runs(loaded.par[piece]):
                again = model(slice(begin + run.start, begin + run.stop), par_coverages)
                for name, values in again.items():
                    found[name][run] = values
            if len(x) <= rows:
                return found
            names = {*self._fetched_matrices(), "sini", "ini"} & set(found)
            pieces.append({name: self.backend.get(found[name]) for name in sorted(names)})
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _model(self, counts: Any, level: Any, coverages: Floats, scale: Floats) -> dict[str, Any]:
        kernels, more = self.backend.cnmops, self.backend.kernel_arguments
        if level is None:
            result = kernels.model(counts, coverages, self.model, scale, **more)
        else:
            result = kernels.model_against(counts, level, coverages, self.model, scale, **more)
        found = {name: getattr(result, name) for name in ("sini", "ini", "alpha", "posterior")}
        found["copy_number"] = result.cn_index
        if "lambda" in self.workload.kept.matrices:
            found["lambda"] = result.lambda_
        return {name: values for name, values in found.items() if values is not None}

    def _segment_samples(self, sini: Any, rows: int, name: str) -> tuple[Segments, tuple[str, ...]]:
        """Return the segments of every sample, and notes."""
        regions, samples = sini.shape
        if not self.workload.is_segmented:
            return Segments.empty(), ()
        estimates = self.options.segmentation == "fast" and self.options.seg_median is None
        if regions == 1 and estimates and not self.options.compat_r:
            # R stops here: one value has no deviation, by which it estimates thresholds.
            return Segments.empty(), (f"{name}: one region only, nothing is called there",)
        at_a_time = samples if regions <= rows else max(1, rows * samples // regions)
        kernels, more = self.backend.segmentation, self.backend.kernel_arguments
        is_cbs = self.options.segmentation == "cbs"
        segment = kernels.cbs if is_cbs else kernels.segment
        how = cbs_options(self.options) if is_cbs else segmentation_options(self.options)
        found, notes = [], []
        for first in range(0, samples, at_a_time):
            some = sini[:, first : first + at_a_time]
            # A sample's values lie side by side, so this is no copy where all came in one piece.
            values = some.T.reshape(-1)
            values = self.backend.put(values if values.flags.c_contiguous else values.copy())
            offsets = np.arange(some.shape[1] + 1, dtype=np.int64) * regions
            each = segment(values, offsets, how, **more)
            found.append(_segments_of_tracks(each, regions, first))
            notes += each.notes
        return Segments.joined(found), tuple(dict.fromkeys(notes))

    def _segment_ini(self, ini: Any) -> Segments | None:
        """Return the segments of I/NI, which is None without samples, for robust regions."""
        robust = self.options.robust
        if robust is None:
            return None
        if not self.workload.is_segmented or not robust or ini is None:
            return Segments.empty()
        found = self.backend.segmentation.segment(
            self.backend.put(ini),
            np.array([0, len(ini)], np.int64),
            Segmentation(min_segment=self.options.robust_min_width, thresholds=robust),
            **self.backend.kernel_arguments,
        )
        return _segments_of_tracks(found, len(ini))


def _segments_of_tracks(found: Any, rows: int, first_sample: int = 0) -> Segments:
    """Return the kernel's segments of tracks of `rows` values each; they are not called yet."""
    begin = found.track * rows
    return Segments(
        sample=(found.track + first_sample).astype(np.int32),
        first=found.start - begin,
        stop=found.end - begin,
        mean=found.mean,
        median=found.median,
        copy_number=np.full(len(found), NOT_CALLED, np.int32),
    )

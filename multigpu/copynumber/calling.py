"""Stage 5 on a chromosome, on the host: the rules of `calls` applied to what the kernels found."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernels.cnmops import cpu as cnmops_cpu
from kernels.cnmops import reference as cnmops_reference
from multigpu.copynumber import calls, matrices, windows
from multigpu.copynumber.backends import model_options, wiped
from multigpu.copynumber.calls import Floats, Rows, Segments
from multigpu.copynumber.chromosome import CnvPart, Computed, Loaded, Spans
from multigpu.copynumber.windows import Window

if TYPE_CHECKING:
    from multigpu.workloads.cnv import CnvWorkload


class Calling:
    """Stage 5 of one chromosome.

    coverages  float64[cases]: those that the model of averages takes
    """

    def __init__(
        self, job: "CnvWorkload", coverages: Floats, loaded: Loaded, computed: Computed
    ) -> None:
        self.job, self.options, self.coverages = job, job.options, coverages
        self.span, self.computed = loaded.span, computed
        self.start, self.end = loaded.start, loaded.end
        self.counts = loaded.counts[:, : job.cases]

    def part(self) -> CnvPart:
        """All of it."""
        segments, called = self.copy_numbers()
        regions = calls.cnv_regions(segments, called, merge=self.options.model != "single")
        return CnvPart(
            self.span.first,
            segments,
            called,
            regions,
            self.robust(segments.take(called)),
            self.fractional(regions),
            self.windows(segments, called, regions),
            self.pieces(),
            self.computed.notes,
        )

    def normalized(self, rows: Any) -> Floats:
        """[rows, samples]: counts times size factors."""
        counts = self.counts[rows]
        if self.job.cov is not None:  # the model takes them as they are, the calls do not
            counts = wiped(counts, self.options, None)
        values: Floats = counts * self.computed.scale[: self.job.cases]
        return values

    def copy_numbers(self) -> tuple[Segments, NDArray[np.bool_]]:
        """The segments with their classes, and which of them are CNVs."""
        segments = self.computed.segments
        called = calls.is_cnv(segments, self.options)
        cnvs = segments.take(called)
        copies = np.empty((0, self.job.cases), np.int32)
        if len(cnvs):
            threads = self.job.threads
            copies = self._modelled(cnmops_cpu, (cnvs.first, cnvs.stop), threads=threads).cn_index
        numbers = calls.integer_copy_numbers(segments, copies, called, self.options)
        return replace(segments, copy_number=numbers), called

    def _modelled(self, kernels: Any, spans: Spans, median: bool = False, **more: int) -> Any:
        """What the model says of the inner regions of spans, each taken as one region."""
        place = (self.start, self.end, spans, median)
        averages, model = calls.inner_averages(self.normalized, *place), model_options(self.options)
        coverages = self.coverages
        if self.computed.level is None:
            return kernels.model(averages, coverages, model, **more)
        level = calls.inner_averages(self._level, *place)[:, 0]
        # One sample is called with the floor of the reference model, too.
        model = replace(model, kind="reference")
        return kernels.model_against(averages, level, coverages, model, **more)

    def _level(self, rows: Rows) -> Floats:
        assert self.computed.level is not None
        return self.computed.level[rows, None]

    def robust(self, cnvs: Segments) -> Spans | None:
        """The stretches of I/NI above the threshold; without a threshold the CNVs that touch."""
        if self.computed.robust is None:
            return None
        if not self.options.robust:
            return calls.union_in_bases(cnvs.first, cnvs.stop, self.start, self.end)
        kept = self.computed.robust.take(self.computed.robust.mean > self.options.robust)
        return kept.first, kept.stop

    def fractional(self, regions: Spans) -> Floats | None:
        """[regions, samples]: copy numbers of the CNV regions, where they are wanted."""
        if self.options.fractional is None:
            return None
        if not len(regions[0]):
            return np.empty((0, self.job.cases))
        # Plain arithmetic, as R's: where CN0 is sure, its 0.05 lies on the border of rounding.
        median = self.options.fractional == "median"
        sini = self._modelled(cnmops_reference, regions, median).sini
        return calls.fractional(sini, self.options)

    def windows(
        self, segments: Segments, called: NDArray[np.bool_], regions: Spans
    ) -> tuple[Window, ...]:
        """The largest CNV regions and what is around them."""
        chosen = windows.largest(*regions, self.job.shown)
        return tuple(
            self._window(segments, segments.take(called), int(regions[0][k]), int(regions[1][k]))
            for k in chosen
        )

    def _window(self, segments: Segments, cnvs: Segments, first: int, stop: int) -> Window:
        start, end = self.start, self.end
        rows = windows.surroundings(first, stop, len(start))
        carriers = np.unique(cnvs.sample[(cnvs.first < stop) & (cnvs.stop > first)])
        shown = windows.shown_samples(carriers, self.job.cases)
        sini, ini = self.computed.matrices["sini"], self.computed.matrices["ini"]
        return Window(
            self.span.block, int(start[first]), int(end[stop - 1]), stop - first,
            windows.thinned((start[rows] + end[rows]) / 2), shown, carriers,
            windows.thinned(self.normalized(rows)[:, shown]), windows.thinned(sini[rows][:, shown]),
            windows.thinned(ini[rows]), windows.drawn_segments(segments, shown, rows, start, end),
        )  # fmt: skip

    def pieces(self) -> matrices.Pieces:
        """The matrices that are kept; those that are stored leave only the ends here."""
        workload, found = self.job, dict(self.computed.matrices)
        if "normalized" in workload.keep:
            found["normalized"] = self.normalized(slice(None))
        kept = {name: found[name] for name in workload.keep}
        if not kept:
            return []
        if workload.store is None:
            return [(self.span.first, kept)]
        return matrices.write(workload.store, self.span.first, kept, self.job.cases)

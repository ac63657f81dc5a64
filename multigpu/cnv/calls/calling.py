"""Stage 5 on a chromosome, on the host: the rules of `calls` applied to what the kernels found."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cnv.backends import model_options, wiped
from multigpu.cnv.calls import calls
from multigpu.cnv.calls.calls import Floats, Rows, Segments
from multigpu.cnv.chromosome import CnvPart, Computed, Loaded, Spans, stretches
from multigpu.cnv.output import matrices, windows
from multigpu.cnv.output.windows import Window
from multigpu.kernels.cnmops import cpu as cnmops_cpu
from multigpu.kernels.cnmops import reference as cnmops_reference

if TYPE_CHECKING:
    from multigpu.cnv.work import CnvWorkload


class Calling:
    """Stage 5 of one chromosome.

    coverages  float64[cases]: those that the model of averages takes; and in pseudoautosomal
               regions
    """

    def __init__(
        self,
        job: "CnvWorkload",
        coverages: tuple[Floats, Floats],
        loaded: Loaded,
        computed: Computed,
    ) -> None:
        self.job, self.options, self.coverages = job, job.options, coverages
        self.span, self.computed = loaded.span, computed
        self.start, self.end, self.par = loaded.start, loaded.end, loaded.par
        self.counts = loaded.counts[:, : job.cases]

    def part(self, samples: int) -> CnvPart:
        """All of it. samples: how many there are, of which some may not be looked at here."""
        segments, called = self.copy_numbers()
        regions = calls.cnv_regions(segments, called, merge=self.options.model != "single")
        among = Among(self.span.columns, samples)
        return CnvPart(
            self.span.first,
            among.segments(segments),
            called,
            regions,
            self.robust(segments.take(called)),
            among.columns(self.fractional(regions)),
            bool((self.end[1:] < self.end[:-1]).any()),
            tuple(map(among.window, self.windows(segments, called, regions))),
            self.pieces(among),
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
            copies = self._modelled(
                cnmops_cpu, (cnvs.first, cnvs.stop), "cn_index", threads=threads
            )
        numbers = calls.integer_copy_numbers(segments, copies, called, self.options)
        return replace(segments, copy_number=numbers), called

    def _modelled(
        self, kernels: Any, spans: Spans, what: str, median: bool = False, **more: int
    ) -> NDArray[Any]:
        """[spans, cases]: what the model says of their inner regions, each taken as one region."""
        in_par = self.span.in_par(*self._bases(spans))
        own = self._of_one_kind(spans, in_par)
        place = (self.start, self.end, own, median, self.options.compat_r)
        averages = calls.inner_averages(self.normalized, *place)
        level = None
        if self.computed.level is not None:
            level = calls.inner_averages(self._level, *place)[:, 0]
        found = self._model(kernels, averages, level, self.coverages[0], what, **more)
        if in_par.any():
            some = None if level is None else level[in_par]
            there = self._model(kernels, averages[in_par], some, self.coverages[1], what, **more)
            found[in_par] = there
        return found

    def _model(
        self, kernels: Any, averages: Floats, level: Floats | None, coverages: Floats, what: str,
        **more: int,
    ) -> NDArray[Any]:  # fmt: skip
        model = model_options(self.options)
        if level is None:
            result = kernels.model(averages, coverages, model, **more)
        else:  # one sample is called with the floor of the reference model, too
            model = replace(model, kind="reference")
            result = kernels.model_against(averages, level, coverages, model, **more)
        return np.array(getattr(result, what))

    def _of_one_kind(self, spans: Spans, in_par: NDArray[np.bool_]) -> Spans:
        """The spans without what lies across a border of pseudoautosomal regions.

        Of a span that does, the longest stretch on the side of its middle: with others, samples
        would have other shares of the reads.
        """
        if not self.par.any():
            return spans
        first, stop = (side.copy() for side in spans)
        before = np.cumsum(np.append(0, self.par))
        inside = before[stop] - before[first]
        for k in np.flatnonzero((inside > 0) & (inside < stop - first)).tolist():
            same = stretches(self.par[first[k] : stop[k]] == in_par[k])
            longest = max(same, key=lambda rows: rows.stop - rows.start)
            first[k], stop[k] = first[k] + longest.start, first[k] + longest.stop
        return first, stop

    def _bases(self, spans: Spans) -> Spans:
        """Where these rows begin and end."""
        first, stop = spans
        return self.start[first], self.end[stop - 1]

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
        sini = self._modelled(cnmops_reference, regions, "sini", median)
        copies = self.span.usual(*self._bases(regions))
        own = 2 if copies is None else copies[:, : self.job.cases]
        return calls.fractional(sini, self.options, own)

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

    def pieces(self, among: "Among") -> matrices.Pieces:
        """The matrices that are kept; those that are stored leave only the ends here."""
        workload, found = self.job, dict(self.computed.matrices)
        if not workload.keep:
            return []
        if "normalized" in workload.keep and self.job.cases:
            found["normalized"] = self.normalized(slice(None))
        usual = self.span.usual(self.start, self.end)
        if usual is not None and "copy_number" in found:
            named = calls.names_by_copies(self.options).astype(matrices.DTYPES["copy_number"])
            found["copy_number"] = named[usual[:, : self.job.cases], found["copy_number"]]
        sizes = {"region": len(self.start), "class": len(self.options.classes)}
        some = found if self.job.cases else dict.fromkeys(workload.keep)
        kept = {name: among.matrix(name, some[name], sizes) for name in workload.keep}
        if workload.store is None:
            return [(self.span.first, kept)]
        return matrices.write(workload.store, self.span.first, kept, among.samples)


class Among:
    """What was found of some samples, in its place among all.

    chosen   which they are, and the controls behind them; None: all
    samples  how many there are in all
    """

    def __init__(self, chosen: tuple[int, ...] | None, samples: int) -> None:
        self.samples = samples
        of_cases = range(samples) if chosen is None else [k for k in chosen if k < samples]
        self._all = chosen is None
        self._place = np.array(of_cases, np.int32)

    def segments(self, found: Segments) -> Segments:
        return found if self._all else replace(found, sample=self._place[found.sample])

    def columns(self, values: Floats | None) -> Floats | None:
        """[n, samples]: NaN in those of the others."""
        if self._all or values is None:
            return values
        every = np.full((len(values), self.samples), np.nan)
        every[:, self._place] = values
        return every

    def window(self, window: Window) -> Window:
        if self._all:
            return window
        drawn = window.segments.copy()
        drawn[:, 0] = self._place[drawn[:, 0].astype(np.int32)]
        shown, carriers = self._place[window.samples], self._place[window.carriers]
        return replace(window, samples=shown, carriers=carriers, segments=drawn)

    def matrix(self, name: str, values: Any, sizes: dict[str, int]) -> NDArray[Any]:
        """One with a column for every sample; what was not looked at is NaN, or NOT_CALLED."""
        if self._all:
            return np.asarray(values)
        dimensions = matrices.DIMENSIONS[name]
        shape = [{**sizes, "sample": self.samples}[each] for each in dimensions]
        dtype = matrices.DTYPES.get(name, np.dtype(np.float64))
        every = np.full(shape, calls.NOT_CALLED if dtype.kind == "i" else np.nan, dtype)
        if values is not None:
            every[..., self._place if "sample" in dimensions else slice(None)] = values
        return every

"""Stage 5 on a chromosome, on the host: from the segments of the kernels to calls."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops import cpu as cnmops_cpu
from multigpu.kernels.cnmops import reference as cnmops_reference
from multigpu.workloads.cnv.calls.averages import inner_averages
from multigpu.workloads.cnv.calls.copy_numbers import (
    classes_by_usual_copies,
    fractional_copy_numbers,
    integer_copy_numbers,
)
from multigpu.workloads.cnv.calls.regions import last_bases, union, union_in_bases
from multigpu.workloads.cnv.calls.segments import NOT_CALLED, Floats, Segments, Spans, is_cnv
from multigpu.workloads.cnv.chromosome import (
    CnvPart,
    ComputedChromosome,
    LoadedChromosome,
    true_runs,
)
from multigpu.workloads.cnv.kernel_options import model_options
from multigpu.workloads.cnv.normalization import zero_fractions
from multigpu.workloads.cnv.output import matrices, windows
from multigpu.workloads.cnv.output.windows import Window

if TYPE_CHECKING:
    from multigpu.workloads.cnv.work import CnvWorkload


class ChromosomeCaller:
    """Stage 5 of one chromosome.

    workload   that of the samples that are compared on the chromosome
    all_cases  number of cases on all chromosomes
    cases      number of compared cases: the first columns of the counts
    places     int32[cases]: their numbers among all cases
    """

    def __init__(
        self,
        workload: "CnvWorkload",
        loaded: LoadedChromosome,
        computed: ComputedChromosome,
        all_cases: int,
    ) -> None:
        self.workload, self.options, self.cases = workload, workload.options, workload.cases
        self.loaded, self.computed, self.all_cases = loaded, computed, all_cases
        columns = range(all_cases) if loaded.span.columns is None else loaded.span.columns
        self.places = np.array([k for k in columns if k < all_cases], np.int32)

    def part(self) -> CnvPart:
        """Return the calls of the chromosome, with the numbers that samples have among all."""
        segments, called, classes = self._called_segments()
        segments = replace(segments, sample=self.places[segments.sample])
        cnvs = segments.take(called)
        regions = cnvs.first, cnvs.stop
        if self.options.model != "single":
            regions = union(*regions)
        return CnvPart(
            begin=self.loaded.span.first,
            segments=segments,
            called=called,
            classes=classes,
            regions=regions,
            robust=self._robust_regions(cnvs),
            fractional=self._fractional(regions),
            windows=self._windows(segments, cnvs, regions),
            pieces=self._pieces(),
            notes=self.computed.notes,
            left_out=self.computed.left_out,
        )

    def _normalized(self, rows: Any) -> Floats:
        """Return [rows, cases]: counts times size factors."""
        counts = self.loaded.counts[rows, : self.cases]
        if self.workload.coverages is not None:
            # Coverages are modelled, and counts are as they were given.
            counts = zero_fractions(counts, self.options, None)
        values: Floats = counts * self.computed.scale[: self.cases]
        return values

    def _called_segments(self) -> tuple[Segments, NDArray[np.bool_], NDArray[np.int8]]:
        """Return the segments with their classes, which of them are CNVs, and `CnvPart.classes`."""
        segments = self.computed.segments
        called = is_cnv(segments, self.options)
        cnvs = segments.take(called)
        classes = np.empty((0, self.cases), np.int32)
        if len(cnvs):
            spans = cnvs.first, cnvs.stop
            classes = self._model_averages(
                cnmops_cpu, spans, "cn_index", threads=self.workload.threads
            )
        numbers = integer_copy_numbers(segments, classes, called, self.options)
        of_all = np.full((len(cnvs), self.all_cases), NOT_CALLED, np.int8)
        of_all[:, self.places] = classes
        return replace(segments, copy_number=numbers), called, of_all

    def _model_averages(
        self, kernels: Any, spans: Spans, field: str, *, median: bool = False, **more: int
    ) -> NDArray[Any]:
        """Return [spans, cases]: a field of the model of each span's inner regions as one."""
        in_par = self.loaded.span.is_in_par(*self._bases(spans))
        place = self.loaded.start, self.loaded.end, self._on_one_side_of_par(spans, in_par)
        how: dict[str, Any] = {"median": median, "overlapping": self.options.compat_r}
        averages = inner_averages(self._normalized, *place, **how)
        level = self.computed.level
        if level is not None:
            level = inner_averages(level[:, None].__getitem__, *place, **how)[:, 0]
        both = self.workload.model_coverages(self.loaded.span)
        coverages, par_coverages = (each[: self.cases] for each in both)
        model = model_options(self.options)

        def run_model(rows: Any, coverages: Floats) -> NDArray[Any]:
            if level is None:
                result = kernels.model(averages[rows], coverages, model, **more)
            else:
                # A single sample is called with the floor of the reference model, too.
                against = replace(model, kind="reference")
                args = averages[rows], level[rows], coverages, against
                result = kernels.model_against(*args, **more)
            return np.array(getattr(result, field))

        found = run_model(slice(None), coverages)
        if in_par.any():
            found[in_par] = run_model(in_par, par_coverages)
        return found

    def _on_one_side_of_par(self, spans: Spans, in_par: NDArray[np.bool_]) -> Spans:
        """Return the spans without what lies across a border of pseudoautosomal regions.

        Samples have other shares of the reads there. Of a span that crosses a border, the longest
        run of rows on the side of its middle stays.
        """
        par = self.loaded.par
        if not par.any():
            return spans
        first, stop = (side.copy() for side in spans)
        before = np.cumsum(np.append(0, par))
        inside = before[stop] - before[first]
        for k in np.flatnonzero((inside > 0) & (inside < stop - first)).tolist():
            same = true_runs(par[first[k] : stop[k]] == in_par[k])
            longest = max(same, key=lambda rows: rows.stop - rows.start)
            first[k], stop[k] = first[k] + longest.start, first[k] + longest.stop
        return first, stop

    def _bases(self, spans: Spans) -> Spans:
        """Return where spans of rows begin and end, in bases."""
        end = last_bases(self.loaded.end, *spans, self.options.compat_r)
        return self.loaded.start[spans[0]], end

    def _robust_regions(self, cnvs: Segments) -> Spans | None:
        """Return the segments of I/NI above the threshold; with threshold 0, CNVs that touch."""
        if self.computed.robust is None:
            return None
        if not self.options.robust:
            return union_in_bases(cnvs.first, cnvs.stop, self.loaded.start, self.loaded.end)
        robust = self.computed.robust.take(self.computed.robust.mean > self.options.robust)
        return robust.first, robust.stop

    def _fractional(self, regions: Spans) -> Floats | None:
        """Return [regions, all cases]: fractional copy numbers, where they are wanted.

        They are NaN for the cases that are not compared.
        """
        if self.options.fractional is None:
            return None
        found = np.full((len(regions[0]), self.all_cases), np.nan)
        if not len(found):
            return found
        # Plain arithmetic, as R's: where CN0 is sure, its 0.05 lies on the border of rounding.
        median = self.options.fractional == "median"
        sini = self._model_averages(cnmops_reference, regions, "sini", median=median)
        copies = self.loaded.span.usual_copies(*self._bases(regions))
        usual = self.options.usual_copies if copies is None else copies[:, : self.cases]
        found[:, self.places] = fractional_copy_numbers(sini, self.options, usual)
        return found

    def _windows(self, segments: Segments, cnvs: Segments, regions: Spans) -> tuple[Window, ...]:
        """Return the largest CNV regions and their surroundings."""
        sizes = regions[1] - regions[0]
        # Of several that are equally large the earlier ones.
        largest = np.sort(np.argsort(-sizes, kind="stable")[: self.workload.kept.shown])
        chosen = [each[largest].tolist() for each in (*regions, *self._bases(regions))]
        start, end, thinned = self.loaded.start, self.loaded.end, windows.thinned
        found = []
        for first, stop, first_base, last_base in zip(*chosen, strict=True):
            rows = windows.surroundings(first, stop, len(start))
            carriers = np.unique(cnvs.sample[(cnvs.first < stop) & (cnvs.stop > first)])
            shown = windows.shown_samples(carriers, self.places)
            columns = np.searchsorted(self.places, shown)
            window = Window(
                chrom=self.loaded.span.block,
                begin=first_base,
                end=last_base,
                length=stop - first,
                position=thinned((start[rows] + end[rows]) / 2),
                samples=shown,
                carriers=carriers,
                counts=thinned(self._normalized(rows)[:, columns]),
                sini=thinned(self.computed.matrices["sini"][rows][:, columns]),
                ini=thinned(self.computed.matrices["ini"][rows]),
                segments=windows.drawn_segments(segments, shown, rows, start, end),
            )
            found.append(window)
        return tuple(found)

    def _pieces(self) -> matrices.Pieces:
        """Return the matrices to keep; where they are stored, only the ends that are left."""
        span = self.loaded.span
        found = dict(self.computed.matrices)
        kept = self.workload.kept
        if not kept.matrices:
            return []
        if "normalized" in kept.matrices and self.cases:
            found["normalized"] = self._normalized(slice(None))
        usual = span.usual_copies(self.loaded.start, self.loaded.end)
        if usual is not None and "copy_number" in found:
            classes = classes_by_usual_copies(self.options).astype(matrices.DTYPES["copy_number"])
            found["copy_number"] = classes[usual[:, : self.cases], found["copy_number"]]
        wanted = {name: self._of_all_cases(name, found.get(name)) for name in kept.matrices}
        if kept.store is None:
            return [(span.first, wanted)]
        return matrices.write(kept.store, span.first, wanted, self.all_cases)

    def _of_all_cases(self, name: str, values: NDArray[Any] | None) -> NDArray[Any]:
        """Return a matrix with a column for every case: NaN or NOT_CALLED if not compared.

        values  None where no case is compared
        """
        if values is not None and self.loaded.span.columns is None:
            return values
        dimensions = matrices.DIMENSIONS[name]
        sizes = {
            "region": len(self.loaded.start),
            "class": len(self.options.classes),
            "sample": self.all_cases,
        }
        dtype = matrices.DTYPES.get(name, np.dtype(np.float64))
        empty = NOT_CALLED if dtype.kind == "i" else np.nan
        found = np.full([sizes[each] for each in dimensions], empty, dtype)
        if values is not None:
            found[..., self.places if "sample" in dimensions else slice(None)] = values
        return found

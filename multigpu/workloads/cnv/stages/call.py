"""Last stage, on the host: from the segments of a chromosome to its calls."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops import cpu as cnmops_cpu
from multigpu.kernels.cnmops import reference as cnmops_reference
from multigpu.workloads.cnv.options import CnvOptions, KeptResults
from multigpu.workloads.cnv.records import (
    NOT_CALLED,
    CnvPart,
    Copies,
    Floats,
    Pieces,
    RegionTable,
    Rows,
    SampleTracks,
    SegmentTable,
    Spans,
)
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.results.copy_numbers import (
    classes_by_usual_copies,
    fractional_copy_numbers,
    integer_copy_numbers,
    is_cnv,
)
from multigpu.workloads.cnv.results.intervals import (
    cut,
    last_bases,
    rows_of_spans,
    union,
    union_in_bases,
)
from multigpu.workloads.cnv.stages.chromosome import Chromosome, true_runs
from multigpu.workloads.cnv.stages.cnmops import model_options
from multigpu.workloads.cnv.stages.hmm import genotyped
from multigpu.workloads.cnv.stages.normalize import zero_fractions
from multigpu.workloads.cnv.stages.whole_chromosomes import whole_segments

ROWS_AT_A_TIME = 1 << 10  # rows whose values a thread holds; a longer span comes alone


@dataclass(frozen=True)
class Call:
    """Calls of every chromosome."""

    options: CnvOptions
    kept: KeptResults
    threads: int  # for the model of the CNVs
    name: ClassVar[str] = "call"

    def run(self, chromosome: Chromosome) -> Chromosome:
        """Add `part`; matrices that are stored are written."""
        return replace(chromosome, part=_Calls(self, chromosome).part())


class _Calls:
    def __init__(self, stage: Call, chromosome: Chromosome) -> None:
        self.stage, self.options, self.kept = stage, stage.options, stage.kept
        self.chromosome, self.cases = chromosome, chromosome.cases
        self.places, self.all_cases = chromosome.places, len(chromosome.copies)
        self.shown = classes_by_usual_copies(self.options)

    def part(self) -> CnvPart:
        genotypes = None
        if self.options.is_hmm and self.chromosome.states is not None:
            segments, classes, genotypes = genotyped(self.chromosome, self.options)
        else:
            segments, classes = self._called_segments()
        cnvs = segments.take(segments.cnv)
        regions = cnvs.first, cnvs.stop
        if self.options.model != "single":
            regions = union(*regions, self.chromosome.breaks(self.options.max_gap))
        kept = slice(None if self.kept.copies else 0)
        return CnvPart(
            segments=segments,
            classes=classes[kept],
            usual=self.chromosome.usual_copies(cnvs.start[kept], cnvs.end[kept]),
            regions=self._region_table(regions, self._fractional(regions)),
            robust=self._robust_regions(cnvs),
            tracks=self._tracks(),
            pieces=self._pieces(),
            notes=self.chromosome.notes,
            left_out=self.chromosome.left_out,
            genotypes=genotypes,
        )

    def _normalized(self, rows: Any) -> Floats:
        """Return [rows, cases]: counts times size factors."""
        counts = self.chromosome.counts[rows, : self.cases]
        if self.chromosome.columns.coverages is not None:
            # Coverages are modelled, and counts are as they were given.
            counts = zero_fractions(counts, self.options, None)
        return np.asarray(counts * self.chromosome.scale[: self.cases])

    def _called_segments(self) -> tuple[SegmentTable, Copies]:
        """Return the segments with all columns, and `CnvPart.classes`."""
        segments, place = self.chromosome.segments, (self.chromosome.start, self.chromosome.end)
        segments = cut(segments, self.chromosome.breaks(self.options.max_gap), *place)
        if changes := self.chromosome.columns.whole.get(self.chromosome.span.block):
            segments = whole_segments(segments, changes, *place)
        segments = replace(segments, cnv=is_cnv(segments, self.options))
        spans = segments.first[segments.cnv], segments.stop[segments.cnv]
        classes = np.full((len(spans[0]), self.all_cases), NOT_CALLED, np.int8)
        if len(classes):  # carriers of one change often have the same span
            unlike, which = np.unique(np.stack(spans), axis=1, return_inverse=True)
            found = self._model_averages(
                cnmops_cpu, (unlike[0], unlike[1]), "cn_index", threads=self.stage.threads
            )
            classes[:, self.places] = found[which]
        numbers = integer_copy_numbers(segments, classes, self.options)
        usual = self.chromosome.usual_copies_of(segments)
        called = replace(segments, copy_number=numbers, shown=self.shown[usual, numbers])
        if self.options.fractional is not None:
            value = segments.median if self.options.fractional == "median" else segments.mean
            found = fractional_copy_numbers(value, self.options, usual)
            called = replace(called, fractional=found)
        return called, classes

    def _model_averages(
        self, kernels: Any, spans: Spans, field: str, *, median: bool = False, **more: int
    ) -> NDArray[Any]:
        """Return [spans, cases]: a field of the model of each span's inner regions as one."""
        in_par = self.chromosome.span.is_in_par(*self._bases(spans))
        spans = self._on_one_side_of_par(spans, in_par)
        place = self.chromosome.start, self.chromosome.end, spans
        how: dict[str, Any] = {
            "median": median,
            "overlapping": self.options.compat_r,
            "threads": self.stage.threads,
        }
        averages = inner_averages(self._normalized, *place, **how)
        level = self.chromosome.level
        if level is not None:
            level = inner_averages(level[:, None].__getitem__, *place, **how)[:, 0]
        coverages, par_coverages = (each[: self.cases] for each in self.chromosome.coverages)
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
        par = self.chromosome.par
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
        end = last_bases(self.chromosome.end, *spans, self.options.compat_r)
        return self.chromosome.start[spans[0]], end

    def _region_table(self, spans: Spans, fractional: Floats | None = None) -> RegionTable:
        """Return regions, given as rows, in which all samples have what is usual."""
        start, end = self._bases(spans)
        usual = self.chromosome.usual_copies(start, end)
        if fractional is None:
            fractional = np.full(usual.shape, np.nan)
        return RegionTable(
            chrom=np.full(len(start), self.chromosome.span.chrom, np.int32),
            start=start,
            end=end,
            copy_number=self.shown[usual, self.options.main],
            fractional=fractional,
        )

    def _robust_regions(self, cnvs: SegmentTable) -> RegionTable | None:
        """Return the segments of I/NI above the threshold; with threshold 0, CNVs that touch."""
        if self.options.robust is None:
            return None
        robust, place = self.chromosome.robust, (self.chromosome.start, self.chromosome.end)
        if not self.options.robust:
            return self._region_table(union_in_bases(cnvs.first, cnvs.stop, *place))
        robust = robust.take(robust.mean > self.options.robust)
        return self._region_table((robust.first, robust.stop))

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
        usual = self.chromosome.usual_copies(*self._bases(regions))[:, self.places]
        found[:, self.places] = fractional_copy_numbers(sini, self.options, usual)
        return found

    def _tracks(self) -> SampleTracks | None:
        """Return the values of all samples along the chromosome, where they are wanted."""
        if not self.kept.track_step or not self.cases:
            return None
        sini, step = self.chromosome.matrices["sini"], self.kept.track_step
        first = np.arange(0, len(sini), step)
        stop = np.minimum(first + step, len(sini))
        means = (np.add.reduceat(sini, first, axis=0).T / (stop - first)).T
        return SampleTracks(
            chrom=self.chromosome.span.chrom,
            row=(first + stop - 1) // 2,
            samples=self.places,
            values=means.astype(np.float32),
        )

    def _pieces(self) -> Pieces:
        """Return the matrices to keep; where they are stored, only the ends that are left."""
        chromosome, kept = self.chromosome, self.kept
        if not kept.matrices:
            return []
        found = dict(chromosome.matrices)
        if "normalized" in kept.matrices and self.cases:
            found["normalized"] = self._normalized(slice(None))
        if chromosome.span.copies is not None and "copy_number" in found:
            usual = chromosome.usual_copies(chromosome.start, chromosome.end)[:, self.places]
            classes = self.shown.astype(matrices.DTYPES["copy_number"])
            found["copy_number"] = classes[usual, found["copy_number"]]
        wanted = {name: self._of_all_cases(name, found.get(name)) for name in kept.matrices}
        if kept.store is None:
            return [(chromosome.span.first, wanted)]
        return matrices.write(kept.store, chromosome.span.first, wanted, self.all_cases)

    def _of_all_cases(self, name: str, values: NDArray[Any] | None) -> NDArray[Any]:
        """Return a matrix with a column for every case: NaN or NOT_CALLED if not compared.

        values  None where no case is compared
        """
        if values is not None and self.cases == self.all_cases:
            return values
        dimensions = matrices.DIMENSIONS[name]
        sizes = {
            "region": len(self.chromosome.start),
            "class": len(self.options.classes),
            "sample": self.all_cases,
        }
        dtype = matrices.DTYPES.get(name, np.dtype(np.float64))
        empty = NOT_CALLED if dtype.kind == "i" else np.nan
        found = np.full([sizes[each] for each in dimensions], empty, dtype)
        if values is not None:
            found[..., self.places if "sample" in dimensions else slice(None)] = values
        return found


def inner_averages(
    values: Callable[[Rows], Floats],
    start: Rows,
    end: Rows,
    spans: Spans,
    *,
    median: bool = False,
    overlapping: bool = False,
    threads: int = 1,
) -> Floats:
    """Return [spans, columns]: the mean (or median) over the inner rows of each span.

    values       returns [rows, columns] for some rows, so that not all are held at a time
    spans        one at least
    overlapping  whether rows count that only share a base with the span, as in R
    """

    def averages(first: Rows, stop: Rows) -> Floats:
        if overlapping:
            rows, lengths = overlapping_rows(start, end, first, stop)
        else:
            lengths = stop - first
            rows = rows_of_spans(first, lengths)
        rows, lengths = inner_rows(rows, lengths)
        begins, every = np.cumsum(lengths) - lengths, values(rows)
        if median:
            parts = np.split(every, begins[1:])
            return np.array([np.median(part, axis=0) for part in parts])
        return np.asarray(np.add.reduceat(every, begins, axis=0) / lengths[:, None])

    lengths = spans[1] - spans[0]
    borders = np.flatnonzero(np.diff(np.cumsum(lengths) // ROWS_AT_A_TIME)) + 1
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate([*pool.map(averages, *(np.split(x, borders) for x in spans))])


def overlapping_rows(start: Rows, end: Rows, first: Rows, stop: Rows) -> tuple[Rows, Rows]:
    """Return the rows whose regions share a base with each span, and their number for each span.

    R takes these, which are more than the span's own rows where regions overlap each other.
    `start` is ascending.
    """
    lowest, highest = start[first], end[stop - 1]
    begin, earlier = first.copy(), np.arange(len(first))
    while len(earlier):  # spans that may begin yet a row before
        earlier = earlier[begin[earlier] > 0]
        earlier = earlier[end[begin[earlier] - 1] > lowest[earlier]]
        begin[earlier] -= 1
    lengths = np.maximum(np.searchsorted(start, highest), stop) - begin
    span = np.repeat(np.arange(len(first)), lengths)
    rows = rows_of_spans(begin, lengths)
    shared = (start[rows] < highest[span]) & (end[rows] > lowest[span])
    return rows[shared], np.bincount(span[shared], minlength=len(first))


def inner_rows(rows: Rows, lengths: Rows) -> tuple[Rows, Rows]:
    """Return the rows without the first and last of each span that has more than two.

    Those two may lie on a border of the CNV.
    """
    ends = np.cumsum(lengths)
    many = lengths > 2
    kept = np.ones(len(rows), np.bool_)
    kept[(ends - lengths)[many]] = kept[ends[many] - 1] = False
    return rows[kept], lengths - 2 * many

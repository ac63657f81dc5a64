"""Figures of the report on copy numbers: a heat map of all samples, and a plot for each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import Figure, Json, axis, heat_map, literal, rounded
from multigpu.run.command import number_of
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, Rows, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.intervals import rows_of_spans
from multigpu.workloads.cnv.results.result import CnvResult

# Colours in the style sheet of reports, and a sentence about them for the page.
LOSS, GAIN = "blue", "red"
COLOURS = "Red is gain, blue is loss."
HEAT_LIMIT = 2.0  # of signed I/NI in the heat map: beyond it colours do not change
MOST_CELLS = 400_000  # of the heat map
BINS = (200, 1500)  # of all regions, fewest and most
MOST_SAMPLES = 60  # with a plot: the page stays below 10 MB
MOST_SEGMENTS, MOST_CNVS = 1000, 200  # of a sample, the longest
FARTHEST = 4.0  # values beyond it are drawn there
SHARE_OF_NAMED = 0.01  # of the regions, on a chromosome whose name has room
DIGITS = 9  # of places on the axis


def value_name(options: CnvOptions) -> str:
    """Return what values of samples and means of segments are."""
    return "log2 ratio" if options.is_hmm else "signed I/NI"


@dataclass(frozen=True, eq=False, kw_only=True)
class HeatMap:
    """Regions in bins, each within a chromosome."""

    values: Floats  # float64[samples, bins]: the segment mean farthest from 0; NaN without any
    labels: list[str]  # chromosome and place of every bin
    begins: NDArray[np.int64]  # int64[chromosomes]: the first bin of each
    names: tuple[str, ...]  # names of the chromosomes

    @property
    def middles(self) -> Floats:
        """Middle of each chromosome, in bins."""
        return np.asarray((self.begins + np.r_[self.begins[1:], len(self.labels)]) / 2)


def bin_means(result: CnvResult) -> HeatMap:
    """Return the heat map of a result; bins have the same number of regions, or a few less."""
    regions, segments = result.regions, result.segments
    first_rows = np.array([block.start for block in regions.blocks])
    sizes = np.diff(first_rows, append=len(regions))
    names = tuple(regions.names[k] for k in regions.chrom[first_rows].tolist())
    width = -(-len(regions) // int(np.clip(MOST_CELLS // len(result.samples), *BINS)))
    begins = np.cumsum([0, *(-(-sizes // width))])
    place = np.zeros(len(regions.names), np.int64)
    place[regions.chrom[first_rows]] = begins[:-1]
    values = np.full((len(result.samples), int(begins[-1])), np.nan)
    first = place[segments.chrom] + segments.first // width
    stop = place[segments.chrom] + -(-segments.stop // width)
    for k in np.argsort(np.abs(segments.mean), kind="stable").tolist():  # the strongest stays
        values[segments.sample[k], first[k] : stop[k]] = segments.mean[k]
    # With the number of the region no two bins have the same label.
    labels = [
        f"{name}:{regions.start[begin + row] + 1:,}, region {row + 1:,}"
        for name, begin, size in zip(names, first_rows.tolist(), sizes.tolist(), strict=True)
        for row in range(0, size, width)
    ]
    return HeatMap(values=values, labels=labels, begins=begins[:-1], names=names)


def places(segments: SegmentTable, result: CnvResult) -> list[str]:
    """Return the place of each segment: chromosome:start-end, from 1 and inclusive."""
    names = result.regions.names
    columns = (segments.chrom, segments.start + 1, segments.end)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [f"{names[k]}:{start}-{end}" for k, start, end in rows]


def labels(segments: SegmentTable, result: CnvResult) -> list[str]:
    """Return the copy number of each segment, as in the tables."""
    indices, names = class_labels(segments.shown, result.options.classes)
    return [names[k] for k in indices.tolist()]


def genes(segments: SegmentTable, result: CnvResult, most: int = 8) -> list[str]:
    """Return the names of each segment's regions, at most so many, and the number of others."""
    found = []
    for names in result.genes(segments):
        more = f" and {len(names) - most:,} more" if len(names) > most else ""
        found.append(", ".join(names[:most]) + more)
    return found


def about(segments: SegmentTable, result: CnvResult) -> list[str]:
    """Return size, mean and quality of each segment in words."""
    signed = value_name(result.options)
    columns = (segments.rows, segments.end - segments.start, segments.mean, segments.quality)
    return [
        f"{number_of(rows, 'region')}, {bases:,} bases, {signed} {mean:.2f}"
        + ("" if np.isnan(quality) else f", quality {quality:.0f}")
        for rows, bases, mean, quality in zip(*(each.tolist() for each in columns), strict=True)
    ]


def cohort_figure(result: CnvResult) -> Figure:
    """Return the heat map of all samples."""
    heat = bin_means(result)
    ticks = {"tickvals": heat.middles.tolist(), "ticktext": list(map(literal, heat.names))}
    xaxis = axis("regions, by chromosome", type="category", showgrid=False, **ticks)
    figure = heat_map(
        np.round(heat.values, 2),
        list(map(literal, heat.labels)),
        result.samples,
        xaxis=xaxis,
        rows="sample",
        unit=f"{value_name(result.options)}, gain > 0",
        limits=(-HEAT_LIMIT, HEAT_LIMIT),
        colours=(f"{LOSS}-deep", f"{LOSS}-pale", "zero", f"{GAIN}-pale", f"{GAIN}-deep"),
    )
    figure.layout["shapes"] = borders(heat.begins[1:] - 0.5)
    return figure


def borders(places: NDArray[Any]) -> list[Json]:
    """Return lines across a figure at these places of its x axis."""
    line = {"width": 1, "color": "var(--quiet)"}
    common = {"type": "line", "y0": 0, "y1": 1, "yref": "paper", "line": line}
    return [{**common, "x0": x, "x1": x} for x in places.tolist()]


@dataclass(frozen=True, eq=False)
class RegionAxis:
    """An axis on which regions lie side by side, with room between chromosomes and at gaps.

    Rows are those of regions, numbered through all chromosomes.
    """

    begins: Rows  # int64[chromosomes]: the first region of each
    breaks: Rows  # int64[n]: regions with room before them
    room: int  # width of that, in regions

    @classmethod
    def of(cls, result: CnvResult) -> Self:
        """Return the axis of all regions of a run."""
        regions = result.regions
        begins = np.array([block.start for block in regions.blocks])
        gaps = regions.start[1:] - regions.end[:-1] > result.options.drawn_gap
        breaks = np.union1d(begins[1:], np.flatnonzero(gaps) + 1)
        # Room is at most a fifth of the axis where breaks are fewer than a quarter of the regions.
        return cls(begins, breaks, max(1, len(regions) // max(200, 4 * len(breaks))))

    def place(self, rows: Rows) -> Rows:
        """Return where regions lie on the axis."""
        return np.asarray(rows + self.room * np.searchsorted(self.breaks, rows, "right"))

    def line(self, first: Rows, stop: Rows, heights: Floats) -> Json:
        """Return ascending spans of rows as one line, which breaks between them and at gaps."""
        inner = np.searchsorted(self.breaks, np.array([first, stop - 1]), "right")
        cuts = self.breaks[rows_of_spans(inner[0], inner[1] - inner[0])]
        begin, end = np.sort(np.append(first, cuts)), np.sort(np.append(stop, cuts))
        height = heights[np.searchsorted(first, begin, "right") - 1]
        sides, nothing = (self.place(begin) - 0.5, self.place(end - 1) + 0.5), height + np.nan
        x, y = np.column_stack([*sides, nothing]), np.column_stack([height, height, nothing])
        return {"x": rounded(x.ravel(), DIGITS), "y": rounded(y.ravel())}

    def layout(self, result: CnvResult) -> Json:
        """Return the layout of a plot: names of large chromosomes, and lines between them."""
        regions, sizes = result.regions, np.diff(self.begins, append=len(result.regions))
        is_named = sizes >= SHARE_OF_NAMED * len(regions)
        begins, middles = self.begins[is_named], (self.begins + sizes // 2)[is_named]
        names = [literal(regions.names[k]) for k in regions.chrom[begins].tolist()]
        ticks: Json = {"tickvals": self.place(middles).tolist(), "ticktext": names}
        shapes = borders(self.place(begins[begins > 0]) - (self.room + 1) / 2)
        ends = self.place(np.array([0, len(regions) - 1])) + np.array([-1, 1]) * (self.room + 1)
        ticks |= {"range": ends.tolist(), "showgrid": False, "zeroline": False}
        yaxis = axis(value_name(result.options))
        xaxis = axis("regions, by chromosome", **ticks)
        return {"xaxis": xaxis, "yaxis": yaxis, "shapes": shapes}


class SamplePlots:
    """The plots of samples; there are none without tracks.

    shown, others  samples with a plot, of which those with CNVs come first, and without one
    """

    def __init__(self, result: CnvResult) -> None:
        self.result = result
        called = set(result.called.sample.tolist())
        order = sorted(range(len(result.samples)), key=lambda k: k not in called)
        self.shown = order[:MOST_SAMPLES] if result.tracks else []
        self.others = order[len(self.shown) :]

    def figures(self) -> Iterator[Figure]:
        """Yield a figure a sample, with the sample and its number of CNVs as the title."""
        if not self.shown:
            return
        common, layout, values = self._points(), self._axis.layout(self.result), self._values()
        losses, gains = self.result.qc.losses, self.result.qc.gains
        for k in self.shown:
            points = {
                "type": "scatter", "mode": "markers", "y": rounded(np.round(values[:, k], 2)),
                "marker": {"size": 3, "color": "var(--quiet)"}, "showlegend": False,
                "hovertemplate": "%{text}<br>%{y}<extra></extra>",
            }  # fmt: skip
            yield Figure(
                data=[points, *self._segments(k)],
                common=common,
                layout=layout,
                height=420,
                title=f"{self.result.samples[k]}: losses {losses[k]}, gains {gains[k]}",
            )

    @cached_property
    def _axis(self) -> RegionAxis:
        return RegionAxis.of(self.result)

    def _points(self) -> Json:
        """Return place and text of each point, which all samples share."""
        result, regions = self.result, self.result.regions
        # The region in the middle of those that each point stands for.
        rows = np.concatenate([result.first_rows[each.chrom] + each.row for each in result.tracks])
        names, chrom, genes = regions.names, regions.chrom[rows].tolist(), regions.genes
        middle = ((regions.start[rows] + regions.end[rows]) // 2).tolist()
        texts = [f"{names[k]}:{at:,}" for k, at in zip(chrom, middle, strict=True)]
        if genes:
            texts = [f"{text} {genes[row]}" for text, row in zip(texts, rows.tolist(), strict=True)]
        return {"x": self._axis.place(rows).tolist(), "text": [*map(literal, texts)]}

    def _values(self) -> Floats:
        """Return float64[points, samples], with NaN where a sample is not compared."""
        parts = []
        for each in self.result.tracks:
            parts.append(np.full((len(each.row), len(self.result.samples)), np.nan))
            parts[-1][:, each.samples] = each.values
        return np.concatenate(parts).clip(-FARTHEST, FARTHEST)

    def _segments(self, sample: int) -> Iterator[Json]:
        """Yield the segments of a sample, losses and gains in their colours."""
        own = self.result.segments
        own = own.take(own.sample == sample)
        own = own.take(np.argsort(self.result.rows_of(own)[0]))
        kind = direction(own.copy_number, self.result.options) * own.cnv
        yield self._line(_longest(own.take(kind == 0), MOST_SEGMENTS), "segments", "ink", 1)
        for sign, name, colour in ((-1, "losses", LOSS), (1, "gains", GAIN)):
            cnvs = _longest(own.take(kind == sign), MOST_CNVS)
            if len(cnvs):
                yield self._line(cnvs, name, colour, 4)
                yield self._marks(cnvs, name, colour)

    def _line(self, segments: SegmentTable, name: str, colour: str, width: int) -> Json:
        heights = np.clip(segments.mean, -FARTHEST, FARTHEST)
        return {
            "type": "scatter", "mode": "lines", "name": name, "legendgroup": name,
            "line": {"color": f"var(--{colour})", "width": width}, "hoverinfo": "skip",
            **self._axis.line(*self.result.rows_of(segments), heights),
        }  # fmt: skip

    def _marks(self, cnvs: SegmentTable, name: str, colour: str) -> Json:
        """Return a mark in the middle of each CNV, which tells about it; it shows short ones."""
        first, stop = self.result.rows_of(cnvs)
        makers = (places, labels, about, genes)
        lines = zip(*(make(cnvs, self.result) for make in makers), strict=True)
        return {
            "type": "scatter", "mode": "markers", "legendgroup": name, "showlegend": False,
            "x": self._axis.place((first + stop - 1) // 2).tolist(),
            "y": rounded(np.clip(cnvs.mean, -FARTHEST, FARTHEST)),
            "marker": {"size": 7, "color": f"var(--{colour})"},
            "text": ["<br>".join(map(literal, filter(None, each))) for each in lines],
            "hovertemplate": "%{text}<extra></extra>",
        }  # fmt: skip


def _longest(segments: SegmentTable, most: int) -> SegmentTable:
    """Return the segments with most regions, in their order."""
    return segments.take(np.sort(np.argsort(-segments.rows, kind="stable")[:most]))

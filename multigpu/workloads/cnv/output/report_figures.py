"""Figures of the report on copy numbers, and their numbers; the plots of samples are apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import (
    Figure,
    Json,
    axis,
    bar_figure,
    bars,
    heat_map,
    literal,
    name_axis,
    rounded,
)
from multigpu.run.command import number_of
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, SegmentTable, Window
from multigpu.workloads.cnv.results.copy_numbers import class_labels, direction
from multigpu.workloads.cnv.results.result import CnvResult

# Colours in the style sheet of reports, and a sentence about them for the page.
LOSS, GAIN = "blue", "red"
COLOURS = "Red is gain, blue is loss."
HEAT_LIMIT = 2.0  # of signed I/NI in the heat map: beyond it colours do not change
SAMPLE_COLOURS = tuple(f"var(--{letter})" for letter in "abcdefgh")
NAMED = len(SAMPLE_COLOURS)  # carriers in a legend: more would cover the figure
MOST_CELLS = 400_000  # of the heat map
BINS = (200, 1500)  # of all regions, fewest and most
SIZE_BINS = 24


def value_names(options: CnvOptions) -> tuple[str, str]:
    """Return what values of samples and means of segments are, and what those of regions are."""
    return ("log2 ratio", "mean |log2 ratio|") if options.is_hmm else ("signed I/NI", "I/NI")


@dataclass(frozen=True, eq=False, kw_only=True)
class HeatMap:
    """Regions in bins, each within a chromosome.

    values  float64[samples, bins]: the segment mean farthest from 0 in each bin; NaN without any
    labels  chromosome and place of every bin
    begins  int64[chromosomes]: the first bin of each
    names   names of the chromosomes
    """

    values: Floats
    labels: list[str]
    begins: NDArray[np.int64]
    names: tuple[str, ...]

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
    signed, _ = value_names(result.options)
    columns = (segments.rows, segments.end - segments.start, segments.mean, segments.quality)
    return [
        f"{number_of(rows, 'region')}, {bases:,} bases, {signed} {mean:.2f}"
        + ("" if np.isnan(quality) else f", quality {quality:.0f}")
        for rows, bases, mean, quality in zip(*(each.tolist() for each in columns), strict=True)
    ]


def sizes(result: CnvResult) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of length bins in bases, and the numbers of losses and gains in each."""
    calls = result.called
    lengths = calls.end - calls.start
    if not len(lengths):
        return np.array([1.0, 10.0]), np.zeros(1, np.int64), np.zeros(1, np.int64)
    low, high = np.floor(np.log10(lengths.min())), np.ceil(np.log10(lengths.max() + 1))
    edges = np.logspace(low, high, SIZE_BINS + 1)
    kind = direction(calls.copy_number, result.options)
    losses, gains = (np.histogram(lengths[kind == k], edges)[0] for k in (-1, 1))
    return edges, losses, gains


def window_title(window: Window, result: CnvResult) -> str:
    """Return the place of a CNV region, from 1 and inclusive, and its size."""
    name = result.regions.names[window.chrom]
    carriers = len(window.carriers)
    samples = "1 sample" if carriers == 1 else f"{carriers} samples"
    return f"{name}:{window.begin + 1:,}-{window.end:,} ({window.length:,} regions, {samples})"


# ---- figures ---------------------------------------------------------------------------------


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
        unit=f"{value_names(result.options)[0]}, gain > 0",
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


def _bars(x: list[Any], losses: Any, gains: Any, xaxis: Json, **more: Any) -> Figure:
    """Return losses and gains as stacked bars; `more` is added to both traces."""
    kinds = (("losses", losses, LOSS), ("gains", gains, GAIN))
    traces = [bars(x, y.tolist(), shade, name=name, **more) for name, y, shade in kinds]
    return bar_figure(traces, xaxis, "number of CNVs")


def calls_figure(result: CnvResult) -> Figure:
    """Return the numbers of losses and gains of each sample as bars."""
    names, xaxis = list(map(literal, result.samples)), name_axis("sample", result.samples)
    return _bars(names, result.qc.losses, result.qc.gains, xaxis)


def sizes_figure(result: CnvResult) -> Figure:
    """Return the lengths of losses and gains as bars."""
    edges, losses, gains = sizes(result)
    middles, widths = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    by_length = axis("length in bases", type="log")
    return _bars(rounded(middles), losses, gains, by_length, width=rounded(widths))


def window_figure(window: Window, result: CnvResult) -> Figure:
    """Return counts, signed I/NI with segments, and I/NI of a CNV region, one above the other."""
    data, (signed, strength) = [], value_names(result.options)
    for k, sample in window.drawing_order():
        style = _style(sample, window)
        name = literal(result.samples[sample])
        for place, values in (("y", window.counts), ("y2", np.round(window.sini, 2))):
            data.append(
                {
                    "type": "scatter", "mode": "lines", "y": rounded(values[:, k], 3),
                    "yaxis": place, "name": name, "legendgroup": name, "line": style,
                    "showlegend": place == "y" and sample in window.carriers[:NAMED],
                    "hovertemplate": f"{name}<br>%{{x}} Mb<br>%{{y}}<extra></extra>",
                }
            )  # fmt: skip
    data += [_segment(row, window, result) for row in window.segments]
    data.append(
        {
            "type": "scatter", "mode": "lines", "fill": "tozeroy", "yaxis": "y3",
            "y": rounded(window.ini), "line": {"color": "var(--soft)", "width": 1},
            "name": strength, "showlegend": False,
        }
    )  # fmt: skip
    shade = {
        "type": "rect", "x0": window.begin / 1e6, "x1": window.end / 1e6, "y0": 0, "y1": 1,
        "yref": "paper", "fillcolor": "#f3c969", "opacity": 0.18, "line": {"width": 0},
    }  # fmt: skip
    layout = {
        "xaxis": axis(
            f"position on {literal(result.regions.names[window.chrom])}, Mb", anchor="y3"
        ),
        "yaxis": axis("normalized counts", domain=[0.62, 1]),
        "yaxis2": axis(signed, domain=[0.2, 0.58]),
        "yaxis3": axis(strength, domain=[0, 0.16]),
        "shapes": [shade],
    }
    return Figure(
        data=data,
        layout=layout,
        height=560,
        title=window_title(window, result),
        common={"x": np.round(window.position / 1e6, 6).tolist()},
    )


def _segment(row: Floats, window: Window, result: CnvResult) -> Json:
    sample = int(row[0])
    name = literal(result.samples[sample])
    style = {**_style(sample, window), "width": 4 if sample in window.carriers else 1}
    return {
        "type": "scatter", "mode": "lines", "x": np.round(row[1:3] / 1e6, 6).tolist(),
        "y": rounded(np.array([row[3], row[3]])), "yaxis": "y2", "line": style, "name": name,
        "legendgroup": name, "showlegend": False,
        "hovertemplate": f"{name}: segment<br>%{{y}}<extra></extra>",
    }  # fmt: skip


def _style(sample: int, window: Window) -> Json:
    """Return the style of a sample: carriers in colours, the others grey."""
    carriers = window.carriers.tolist()
    if sample not in carriers:
        return {"color": "var(--quiet)", "width": 1}
    return {"color": SAMPLE_COLOURS[carriers.index(sample) % NAMED], "width": 2}

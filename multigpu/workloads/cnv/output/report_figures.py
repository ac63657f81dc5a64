"""Figures of the report on copy numbers, and their numbers; the plots of samples are apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import (
    Figure,
    Json,
    axis,
    heat_map,
    literal,
)
from multigpu.run.command import number_of
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.records import Floats, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import class_labels
from multigpu.workloads.cnv.results.result import CnvResult

# Colours in the style sheet of reports, and a sentence about them for the page.
LOSS, GAIN = "blue", "red"
COLOURS = "Red is gain, blue is loss."
HEAT_LIMIT = 2.0  # of signed I/NI in the heat map: beyond it colours do not change
MOST_CELLS = 400_000  # of the heat map
BINS = (200, 1500)  # of all regions, fewest and most


def value_name(options: CnvOptions) -> str:
    """Return what values of samples and means of segments are."""
    return "log2 ratio" if options.is_hmm else "signed I/NI"


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
    signed = value_name(result.options)
    columns = (segments.rows, segments.end - segments.start, segments.mean, segments.quality)
    return [
        f"{number_of(rows, 'region')}, {bases:,} bases, {signed} {mean:.2f}"
        + ("" if np.isnan(quality) else f", quality {quality:.0f}")
        for rows, bases, mean, quality in zip(*(each.tolist() for each in columns), strict=True)
    ]


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

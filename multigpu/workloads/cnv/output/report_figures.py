"""Figures of the report on copy numbers, but for the plots of samples."""

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
from multigpu.workloads.cnv.output import overview
from multigpu.workloads.cnv.output.colours import CARRIERS, HEAT_LIMIT, Palette
from multigpu.workloads.cnv.records import Floats, Window
from multigpu.workloads.cnv.results.result import CnvResult

SAMPLE_COLOURS = tuple(f"var(--{letter})" for letter in "abcdefgh")
NAMED = len(CARRIERS)  # carriers in a legend: more would cover the figure


def cohort_figure(result: CnvResult, palette: Palette) -> Figure:
    """Return the heat map of all samples."""
    heat = overview.heat_map(result)
    loss, gain = palette.loss.name, palette.gain.name
    places = {"tickvals": heat.middles.tolist(), "ticktext": list(map(literal, heat.names))}
    xaxis = axis("regions, by chromosome", type="category", showgrid=False, **places)
    figure = heat_map(
        np.round(heat.values, 2),
        list(map(literal, heat.labels)),
        result.samples,
        xaxis=xaxis,
        rows="sample",
        unit=f"{overview.value_names(result.options)[0]}, gain > 0",
        limits=(-HEAT_LIMIT, HEAT_LIMIT),
        colours=(f"{loss}-deep", f"{loss}-pale", "zero", f"{gain}-pale", f"{gain}-deep"),
    )
    figure.layout["shapes"] = borders(heat.begins[1:] - 0.5)
    return figure


def borders(places: NDArray[Any]) -> list[Json]:
    """Return lines across a figure at these places of its x axis."""
    line = {"width": 1, "color": "var(--quiet)"}
    common = {"type": "line", "y0": 0, "y1": 1, "yref": "paper", "line": line}
    return [{**common, "x0": x, "x1": x} for x in places.tolist()]


def _bars(
    x: list[Any], losses: Any, gains: Any, palette: Palette, xaxis: Json, **more: Any
) -> Figure:
    """Return losses and gains as stacked bars; `more` is added to both traces."""
    kinds = (("losses", losses, palette.loss), ("gains", gains, palette.gain))
    traces = [bars(x, y.tolist(), shade.name, name=name, **more) for name, y, shade in kinds]
    return bar_figure(traces, xaxis, "number of CNVs")


def calls_figure(result: CnvResult, palette: Palette) -> Figure:
    """Return the numbers of losses and gains of each sample as bars."""
    names, xaxis = list(map(literal, result.samples)), name_axis("sample", result.samples)
    return _bars(names, result.qc.losses, result.qc.gains, palette, xaxis)


def sizes_figure(result: CnvResult, palette: Palette) -> Figure:
    """Return the lengths of losses and gains as bars."""
    edges, losses, gains = overview.sizes(result)
    middles, widths = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    by_length = axis("length in bases", type="log")
    return _bars(rounded(middles), losses, gains, palette, by_length, width=rounded(widths))


def window_figure(window: Window, result: CnvResult) -> Figure:
    """Return counts, signed I/NI with segments, and I/NI of a CNV region, one above the other."""
    data, (signed, strength) = [], overview.value_names(result.options)
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
        title=overview.window_title(window, result),
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

"""The HTML report, one file that can be read without a network."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np

from multigpu import __version__
from multigpu.run.declarations import flag
from multigpu.run.report import literal, shown
from multigpu.workloads.cnv.calls.segments import Floats
from multigpu.workloads.cnv.options import FIELDS, CnvOptions
from multigpu.workloads.cnv.output import overview
from multigpu.workloads.cnv.output.colours import GAIN_RED, Palette
from multigpu.workloads.cnv.output.windows import Window
from multigpu.workloads.cnv.result import CnvResult
from multigpu.workloads.cnv.samples.inputs import COUNTING
from multigpu.workloads.count.options import CountOptions

PLOTLY = "package_data/plotly.min.js"
OTHER = "#b8bcc4"
# Colours of samples: neither the red nor the blue of gains and losses.
CARRIERS = ("#1b8a5a", "#b8860b", "#7d3c98", "#0e7490", "#d35400", "#5d4037", "#6b7c00", "#c2378b")
LIMIT = 2.0  # of the heat map: beyond it colours do not change
NAMED = len(CARRIERS)  # carriers in a legend: more would cover the figure
DIGITS = 4  # significant, of numbers in figures

Figure = dict[str, Any]


def render(
    result: CnvResult,
    palette: Palette = GAIN_RED,
    *,
    inputs: Sequence[str] = (),
    counting: Mapping[str, Any] = MappingProxyType({}),
) -> bytes:
    """Return the page; its bytes depend on the arguments alone.

    inputs    files of the counts, in words
    counting  parameters of counting, by name
    """
    from jinja2 import Environment

    environment = Environment(autoescape=True, finalize=shown, trim_blocks=True, lstrip_blocks=True)
    source = files("multigpu.workloads.cnv").joinpath("report.html.j2").read_text(encoding="utf-8")
    losses, gains = overview.calls_by_sample(result)
    samples = len(result.samples)
    sexes = result.sex[:samples] or [""] * samples
    ploidies = (result.ploidy or (2,) * samples)[:samples]
    page: str = environment.from_string(source).render(
        plotly=files("plotly").joinpath(PLOTLY).read_text(encoding="utf-8"),
        version=__version__,
        facts=_facts(result),
        changed=_changed(result.options, counting),
        inputs=inputs,
        notes=result.notes,
        rows=list(
            zip(result.samples, sexes, ploidies, losses.tolist(), gains.tolist(), strict=True)
        ),
        has_sex=any(sexes),
        coverage=_coverage(result),
        has_ploidy=result.ploidy is not None,
        windows=[window_title(window, result) for window in result.windows],
        colours=palette.words,
        figures=_script(_figures(result, palette)),
    )
    return page.encode()


def _coverage(result: CnvResult) -> list[tuple[str, str]]:
    """Return the coverage of X and Y of every sample; nothing where sexes were not inferred."""
    shares = result.sex_coverage.shares() if result.sex_coverage else []
    words = [("" if np.isnan(v) else f"{v:.2f}" for v in pair) for pair in shares]
    return [(x, y) for x, y in words[: len(result.samples)]]


def _facts(result: CnvResult) -> list[tuple[str, str]]:
    blocks = result.regions.blocks
    controls = len(result.controls)
    return [
        ("Model", result.options.model),
        ("Samples", f"{len(result.samples):,}"),
        *([("Controls", f"{controls:,}")] if controls else []),
        ("Regions", f"{len(result.regions):,}"),
        ("Chromosomes", f"{len(blocks):,}"),
        ("Segments", f"{len(result.segments):,}"),
        ("CNVs", f"{len(result.called):,}"),
        ("CNV regions", f"{len(result.called_regions):,}"),
    ]


def _changed(options: CnvOptions, counting: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the parameters of the model and of counting that are not the default."""
    model, usual = CnvOptions.of(options.model), CountOptions().parameters()
    used = {name: getattr(options, name) for name in FIELDS}
    changed = {
        "--" + name.replace("_", "-"): v for name, v in used.items() if v != getattr(model, name)
    }
    for name, value in counting.items():
        if name in COUNTING and value != usual[name]:
            changed[flag(name, name != "index")] = "" if name == "index" else value
    return [(name.removeprefix("--"), _shown(value)) for name, value in changed.items()]


def _shown(value: Any) -> str:
    """Return a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def window_title(window: Window, result: CnvResult) -> str:
    """Return the place of a CNV region, from 1 and inclusive, and its size."""
    name = result.regions.names[window.chrom]
    carriers = len(window.carriers)
    samples = "1 sample" if carriers == 1 else f"{carriers} samples"
    return f"{name}:{window.begin + 1:,}-{window.end:,} ({window.length:,} regions, {samples})"


def _figures(result: CnvResult, palette: Palette) -> dict[str, Figure]:
    samples = list(map(literal, result.samples))
    edges, losses, gains = overview.sizes(result)
    middles, widths = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    by_sample = {"type": "category", "automargin": True}
    by_length = {"type": "log", "title": {"text": "length in bases"}}
    every = {
        "heat": _heat(overview.heat_map(result), result, palette),
        "calls": _bars(samples, *overview.calls_by_sample(result), palette, by_sample),
        "sizes": _bars(
            _rounded(middles), losses, gains, palette, by_length, width=_rounded(widths)
        ),
    }
    for number, window in enumerate(result.windows):
        every[f"window{number}"] = _window(window, result)
    return every


def _script(figures: dict[str, Figure]) -> str:
    """Return JSON without tags: one could end the script it stands in, or open a comment there."""
    return json.dumps(figures, separators=(",", ":")).replace("<", "\\u003c")


def _rounded(values: Floats) -> list[Any]:
    """Return values with few digits, and None for NaN, which JSON does not have."""
    if values.ndim > 1:
        return [_rounded(row) for row in values]
    return [None if np.isnan(v) else float(f"{v:.{DIGITS}g}") for v in values.tolist()]


def _heat(heat: overview.HeatMap, result: CnvResult, palette: Palette) -> Figure:
    lines = [
        {
            "type": "line", "x0": x - 0.5, "x1": x - 0.5, "y0": 0, "y1": 1, "yref": "paper",
            "line": {"width": 1, "color": "#d0d4da"},
        }
        for x in heat.begins[1:].tolist()
    ]  # fmt: skip
    trace = {
        "type": "heatmap", "z": _rounded(heat.values), "x": list(map(literal, heat.labels)),
        "y": list(map(literal, result.samples)),
        "hovertemplate": "%{y}<br>%{x}<br>%{z}<extra></extra>",
        "zmin": -LIMIT, "zmax": LIMIT, "colorscale": palette.heat,
        "colorbar": {"title": {"text": "signed I/NI"}, "thickness": 12},
    }  # fmt: skip
    layout = {
        "height": int(np.clip(160 + 18 * len(result.samples), 260, 900)),
        "xaxis": {
            "type": "category", "tickvals": heat.middles.tolist(),
            "ticktext": list(map(literal, heat.names)), "showgrid": False,
        },
        "yaxis": {"autorange": "reversed", "automargin": True, "type": "category"},
        "shapes": lines, "margin": {"l": 70, "r": 20, "t": 40, "b": 50},
    }  # fmt: skip
    return {"data": [trace], "layout": layout}


def _bars(
    x: list[Any], losses: Any, gains: Any, palette: Palette, xaxis: Figure, **more: Any
) -> Figure:
    """Return losses and gains as stacked bars; `more` is added to both traces."""
    kinds = (("losses", losses, palette.loss.line), ("gains", gains, palette.gain.line))
    bars = [
        {"type": "bar", "x": x, "y": y.tolist(), "name": name, "marker": {"color": colour}} | more
        for name, y, colour in kinds
    ]
    layout = {"barmode": "stack", "xaxis": xaxis, "yaxis": {"title": {"text": "CNVs"}}}
    return {"data": bars, "layout": layout}


def _window(window: Window, result: CnvResult) -> Figure:
    """Return counts, signed I/NI with segments, and I/NI, one above the other."""
    x = np.round(window.position / 1e6, 6).tolist()
    data = []
    for k, sample in window.drawing_order():
        style = _style(sample, window)
        name = literal(result.samples[sample])
        for axis, values in (("y", window.counts), ("y2", window.sini)):
            data.append(
                {
                    "type": "scatter", "mode": "lines", "x": x, "y": _rounded(values[:, k]),
                    "yaxis": axis, "name": name, "legendgroup": name, "line": style,
                    "showlegend": axis == "y" and sample in window.carriers[:NAMED],
                    "hovertemplate": f"{name}<br>%{{x}} Mb<br>%{{y}}<extra></extra>",
                }
            )  # fmt: skip
    data += [_segment(row, window, result) for row in window.segments]
    data.append(
        {
            "type": "scatter", "mode": "lines", "fill": "tozeroy", "x": x, "yaxis": "y3",
            "y": _rounded(window.ini), "line": {"color": "#5b6470", "width": 1},
            "name": "I/NI", "showlegend": False,
        }
    )  # fmt: skip
    return {"data": data, "layout": _window_layout(window)}


def _segment(row: Floats, window: Window, result: CnvResult) -> Figure:
    sample = int(row[0])
    name = literal(result.samples[sample])
    style = {**_style(sample, window), "width": 4 if sample in window.carriers else 1}
    return {
        "type": "scatter", "mode": "lines", "x": np.round(row[1:3] / 1e6, 6).tolist(),
        "y": _rounded(np.array([row[3], row[3]])), "yaxis": "y2", "line": style, "name": name,
        "legendgroup": name, "showlegend": False,
        "hovertemplate": f"{name}: segment<br>%{{y}}<extra></extra>",
    }  # fmt: skip


def _style(sample: int, window: Window) -> Figure:
    """Return the style of a sample: carriers in colours, the others grey."""
    carriers = window.carriers.tolist()
    if sample not in carriers:
        return {"color": OTHER, "width": 1}
    return {"color": CARRIERS[carriers.index(sample) % len(CARRIERS)], "width": 2}


def _window_layout(window: Window) -> Figure:
    axis = {"title": {"standoff": 4}}
    return {
        "height": 560,
        "xaxis": {"title": {"text": "Mb"}, "anchor": "y3"},
        "yaxis": {**axis, "domain": [0.62, 1], "title": {"text": "normalized counts"}},
        "yaxis2": {**axis, "domain": [0.2, 0.58], "title": {"text": "signed I/NI"}},
        "yaxis3": {**axis, "domain": [0, 0.16], "title": {"text": "I/NI"}},
        "shapes": [
            {
                "type": "rect", "x0": window.begin / 1e6, "x1": window.end / 1e6, "y0": 0, "y1": 1,
                "yref": "paper", "fillcolor": "#f3c969", "opacity": 0.18, "line": {"width": 0},
            }
        ],
    }  # fmt: skip

"""Figures of the report as PNG or SVG files."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.workloads.cnv.output import overview
from multigpu.workloads.cnv.output.colours import CARRIERS, GAIN_RED, HEAT_LIMIT, OTHER, Palette
from multigpu.workloads.cnv.records import Floats, Window
from multigpu.workloads.cnv.results.result import CnvResult

DPI = 150
SETTINGS = {  # text stays text, also with $ in it, and its ids are the same in every run
    "svg.hashsalt": "multigpu", "svg.fonttype": "none", "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "path.simplify": True, "text.parse_math": False,
}  # fmt: skip


def draw(result: CnvResult, folder: Path, kind: str, palette: Palette = GAIN_RED) -> None:
    """Write cohort, calls, sizes and a file for each of the largest CNV regions, as png or svg."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def save(name: str, width: float, height: float, paint: Any, *of: Any) -> None:
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure, *of)
        date = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(folder / f"{name}.{kind}", dpi=DPI, metadata=date)

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # A name's letters that the font lacks are shown as boxes.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        height = float(np.clip(1.5 + 0.18 * len(result.samples), 2.5, 12))
        save("cohort", 12, height, _cohort, overview.heat_map(result), result, palette)
        save("calls", 8, 3.5, _calls, result, palette)
        save("sizes", 6, 3.5, _sizes, result, palette)
        for number, window in enumerate(result.windows, 1):
            save(f"region_{number:02}", 9, 7, _region, window, result)


def _cohort(figure: Any, heat: overview.HeatMap, result: CnvResult, palette: Palette) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    axes = figure.subplots()
    colours = LinearSegmentedColormap.from_list("gains and losses", palette.heat)
    image = axes.imshow(
        heat.values,
        colours,
        aspect="auto",
        interpolation="nearest",
        vmin=-HEAT_LIMIT,
        vmax=HEAT_LIMIT,
    )
    for border in heat.begins[1:].tolist():
        axes.axvline(border - 0.5, color="#d0d4da", linewidth=0.8)
    axes.set_xticks(heat.middles, heat.names, rotation=90 if len(heat.names) > 12 else 0)
    if len(result.samples) <= overview.NAMED_SAMPLES:
        axes.set_yticks(range(len(result.samples)), result.samples)
    else:
        axes.set_ylabel(f"{len(result.samples):,} samples")
    figure.colorbar(image, label=overview.value_names(result.options)[0], fraction=0.02)


def _bars(figure: Any, x: Any, losses: Any, gains: Any, palette: Palette, **settings: Any) -> Any:
    """Draw losses and gains as stacked bars, and return their axes."""
    axes = figure.subplots()
    axes.bar(x, losses, color=palette.loss.line, label="losses", **settings)
    axes.bar(x, gains, bottom=losses, color=palette.gain.line, label="gains", **settings)
    axes.set_ylabel("CNVs")
    axes.legend(frameon=False)
    return axes


def _calls(figure: Any, result: CnvResult, palette: Palette) -> None:
    x = np.arange(len(result.samples))
    axes = _bars(figure, x, result.qc.losses, result.qc.gains, palette)
    if len(x) <= overview.NAMED_SAMPLES:
        axes.set_xticks(x, result.samples, rotation=90)
    else:
        axes.set_xlabel("samples")


def _sizes(figure: Any, result: CnvResult, palette: Palette) -> None:
    edges, losses, gains = overview.sizes(result)
    axes = _bars(figure, edges[:-1], losses, gains, palette, width=np.diff(edges), align="edge")
    axes.set_xscale("log")
    axes.set_xlabel("length in bases")


def _region(figure: Any, window: Window, result: CnvResult) -> None:
    counts, sini, ini = figure.subplots(3, sharex=True, height_ratios=[3, 3, 1])
    x, carriers = window.position / 1e6, window.carriers.tolist()
    for k, sample in window.drawing_order():
        style = _style(sample, carriers)
        label = result.samples[sample] if sample in carriers[: len(CARRIERS)] else None
        counts.plot(x, window.counts[:, k], label=label, **style)
        sini.plot(x, window.sini[:, k], **{**style, "linewidth": 0.6})
    for sample, begin, end, mean in window.segments.tolist():
        width = 3 if int(sample) in carriers else 0.8
        place: Floats = np.array([begin, end]) / 1e6
        sini.plot(place, [mean, mean], **{**_style(int(sample), carriers), "linewidth": width})
    ini.fill_between(x, window.ini, color="#8a929c")
    names = "normalized counts", *overview.value_names(result.options)
    for axes, name in zip((counts, sini, ini), names, strict=True):
        axes.axvspan(window.begin / 1e6, window.end / 1e6, color="#f3c969", alpha=0.18, linewidth=0)
        axes.set_ylabel(name)
    ini.set_xlabel("Mb")
    counts.set_title(overview.window_title(window, result), loc="left", fontsize=10)
    if carriers:
        counts.legend(frameon=False, ncols=4, fontsize=8)


def _style(sample: int, carriers: list[int]) -> dict[str, Any]:
    if sample not in carriers:
        return {"color": OTHER, "linewidth": 0.6}
    return {"color": CARRIERS[carriers.index(sample) % len(CARRIERS)], "linewidth": 1.4}

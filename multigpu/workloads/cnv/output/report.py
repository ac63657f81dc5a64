"""Contents of the report on copy numbers: what `multigpu.report` makes a page of."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from multigpu.citation import CN_MOPS
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
from multigpu.report.page import Card, Column, Page, Provenance, Section, Table
from multigpu.run.declarations import flag
from multigpu.workloads.cnv.options import FIELDS, CnvOptions
from multigpu.workloads.cnv.output import overview
from multigpu.workloads.cnv.output.colours import CARRIERS, GAIN_RED, HEAT_LIMIT, Palette
from multigpu.workloads.cnv.records import Floats, Window
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.samples.inputs import COUNTING
from multigpu.workloads.count.options import CountOptions

SAMPLE_COLOURS = tuple(f"var(--{letter})" for letter in "abcdefgh")
NAMED = len(CARRIERS)  # carriers in a legend: more would cover the figure
HEAT = (
    "Means of segments; where several lie in one place the strongest. {} Drag to zoom, double click"
    " to return."
)
WINDOWS = (
    "Samples with a CNV there are coloured; thick lines are segments, the shaded part is the CNV"
    " region."
)
COVERAGE = "X and Y: coverage by that of the autosomes, by which the sex is inferred."


def render(
    result: CnvResult,
    palette: Palette = GAIN_RED,
    *,
    inputs: Sequence[str] = (),
    counting: Mapping[str, Any] = MappingProxyType({}),
    provenance: Provenance | None = None,
) -> bytes:
    """Return the page; its bytes depend on the arguments alone.

    inputs      files of the counts, in words
    counting    parameters of counting, by name
    provenance  command and time, for the header
    """
    page = Page(
        title="Copy-number variants",
        method="cn.MOPS",
        inputs=inputs,
        cards=[*_cards(result)],
        sections=[*_sections(result, palette)],
        settings=[*_changed(result.options, counting)],
        provenance=provenance,
        references=[CN_MOPS],
    )
    return page.html()


def _cards(result: CnvResult) -> Iterator[Card]:
    numbers = {
        "Samples": len(result.samples), "Controls": len(result.controls),
        "CNVs": len(result.called), "CNV regions": len(result.called_regions),
        "Segments": len(result.segments), "Regions": len(result.regions),
        "Chromosomes": len(result.regions.blocks),
    }  # fmt: skip
    for name, number in numbers.items():
        if number or name != "Controls":
            yield Card(name, f"{number:,}")
    yield Card("Model", result.options.model)


def _changed(options: CnvOptions, counting: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the model and of counting that are not the default, as one entry."""
    model, usual = CnvOptions.of(options.model), CountOptions().parameters()
    used = {name: getattr(options, name) for name in FIELDS}
    changed = {
        "--" + name.replace("_", "-"): v for name, v in used.items() if v != getattr(model, name)
    }
    for name, value in counting.items():
        if name in COUNTING and value != usual[name]:
            changed[flag(name, name != "index")] = "" if name == "index" else value
    if changed:
        words = (f"{name.removeprefix('--')} {_shown(v)}".strip() for name, v in changed.items())
        yield "Other than the model's defaults", "; ".join(words)


def _shown(value: Any) -> str:
    """Return a value as on the command line."""
    if isinstance(value, tuple):
        return ",".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _sections(result: CnvResult, palette: Palette) -> Iterator[Section]:
    if result.notes:
        yield Section(title="Notes", items=result.notes)
    heat = _heat(overview.heat_map(result), result, palette)
    text = HEAT.format(palette.words)
    yield Section(title="Signed I/NI over the genome", text=text, figures=[heat])
    for title, figure in (("CNVs of each sample", _calls), ("Sizes of CNVs", _sizes)):
        yield Section(title=title, figures=[figure(result, palette)], is_half=True)
    windows = [_window(window, result) for window in result.windows]
    text = WINDOWS if windows else "There are no CNVs."
    yield Section(title="The largest CNV regions", text=text, figures=windows)
    text = COVERAGE if result.sex_coverage else ""
    yield Section(title="Samples", text=text, table=_samples(result))


def _samples(result: CnvResult) -> Table:
    columns: dict[Column, Sequence[object]] = {Column("sample"): result.samples}
    if any(result.sex[: len(result.samples)]):
        columns[Column("sex")] = [sex or "unknown" for sex in result.sex]
    if result.sex_coverage:
        for name, shares in zip("XY", zip(*result.sex_coverage.shares(), strict=True), strict=True):
            words = ["" if np.isnan(share) else f"{share:.2f}" for share in shares]
            columns[Column(name, "coverage, autosomes = 1", is_number=True)] = words
    if result.ploidy is not None:
        columns[Column("ploidy", "usual copies", is_number=True)] = result.ploidy
    for name, numbers in zip(("losses", "gains"), overview.calls_by_sample(result), strict=True):
        columns[Column(name, "CNVs", is_number=True)] = numbers.tolist()
    # Controls come after the samples.
    return Table("samples", [*columns], list(zip(*columns.values(), strict=False)))


# ---- figures ----------------------------------------------------------------------------------


def _heat(heat: overview.HeatMap, result: CnvResult, palette: Palette) -> Figure:
    loss, gain = palette.loss.name, palette.gain.name
    places = {"tickvals": heat.middles.tolist(), "ticktext": list(map(literal, heat.names))}
    xaxis = axis("position by chromosome", type="category", showgrid=False, **places)
    figure = heat_map(
        np.round(heat.values, 2),
        list(map(literal, heat.labels)),
        result.samples,
        xaxis=xaxis,
        rows="sample",
        unit="signed I/NI, gain > 0",
        limits=(-HEAT_LIMIT, HEAT_LIMIT),
        colours=(f"{loss}-deep", f"{loss}-pale", "zero", f"{gain}-pale", f"{gain}-deep"),
    )
    figure.layout["shapes"] = [
        {
            "type": "line", "x0": x - 0.5, "x1": x - 0.5, "y0": 0, "y1": 1, "yref": "paper",
            "line": {"width": 1, "color": "var(--quiet)"},
        }
        for x in heat.begins[1:].tolist()
    ]  # fmt: skip
    return figure


def _bars(
    x: list[Any], losses: Any, gains: Any, palette: Palette, xaxis: Json, **more: Any
) -> Figure:
    """Return losses and gains as stacked bars; `more` is added to both traces."""
    kinds = (("losses", losses, palette.loss), ("gains", gains, palette.gain))
    traces = [bars(x, y.tolist(), shade.name, name=name, **more) for name, y, shade in kinds]
    return bar_figure(traces, xaxis, "number of CNVs")


def _calls(result: CnvResult, palette: Palette) -> Figure:
    numbers, names = overview.calls_by_sample(result), list(map(literal, result.samples))
    return _bars(names, *numbers, palette, name_axis("sample", result.samples))


def _sizes(result: CnvResult, palette: Palette) -> Figure:
    edges, losses, gains = overview.sizes(result)
    middles, widths = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    by_length = axis("length in bases", type="log")
    return _bars(rounded(middles), losses, gains, palette, by_length, width=rounded(widths))


def _window(window: Window, result: CnvResult) -> Figure:
    """Return counts, signed I/NI with segments, and I/NI, one above the other."""
    data = []
    for k, sample in window.drawing_order():
        style = _style(sample, window)
        name = literal(result.samples[sample])
        for place, values in (("y", window.counts), ("y2", np.round(window.sini, 3))):
            data.append(
                {
                    "type": "scatter", "mode": "lines", "y": rounded(values[:, k]), "yaxis": place,
                    "name": name, "legendgroup": name, "line": style,
                    "showlegend": place == "y" and sample in window.carriers[:NAMED],
                    "hovertemplate": f"{name}<br>%{{x}} Mb<br>%{{y}}<extra></extra>",
                }
            )  # fmt: skip
    data += [_segment(row, window, result) for row in window.segments]
    data.append(
        {
            "type": "scatter", "mode": "lines", "fill": "tozeroy", "yaxis": "y3",
            "y": rounded(window.ini), "line": {"color": "var(--soft)", "width": 1},
            "name": "I/NI", "showlegend": False,
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
        "yaxis2": axis("signed I/NI", domain=[0.2, 0.58]),
        "yaxis3": axis("I/NI", domain=[0, 0.16]),
        "shapes": [shade],
    }
    return Figure(
        data=data,
        layout=layout,
        height=560,
        title=overview.window_title(window, result),
        x=np.round(window.position / 1e6, 6).tolist(),
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

"""Figures of a report in plotly's words, molecules in those of 3Dmol.js: ready for JSON.

Colours that differ in the dark are `var(--name)`, with a name of `page.css`.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import printable

DIGITS = 4  # significant, of numbers in figures
LONGEST_NAME = 18  # characters beside an axis
MARKUP = ("%{", "var(")  # begin a value in what is shown under the mouse, and a colour

Json = dict[str, Any]
DECIMALS = 3  # of coordinates, Å


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure.

    data    traces
    common  what the traces have that have no x of their own: x, texts
    layout  besides fonts, backgrounds and grids, which the page has
    height  pixels
    title   by which it is chosen, where a section has several
    """

    data: Sequence[Json]
    layout: Json
    height: int = 320
    title: str = ""
    common: Json = field(default_factory=dict)


def literal(name: str) -> str:
    """Return `name` so that plotly shows it letter by letter: it knows tags and templates."""
    text = escape(printable(name), quote=False)
    for begin in MARKUP:
        text = text.replace(begin, f"{begin[:-1]}&#{ord(begin[-1])};")
    return text


def axis(title: str, **more: Any) -> Json:
    """Return an axis. title: what it shows, its unit, and which direction is better if one is."""
    return {"title": {"text": title}, **more}


def name_axis(title: str, names: Sequence[str], **more: Any) -> Json:
    """Return an axis of names. Where one is long, all are shown, cut: the mouse has the whole."""
    if max(map(len, names), default=0) > LONGEST_NAME:
        cut = [n if len(n) <= LONGEST_NAME else f"{n[: LONGEST_NAME - 6]}…{n[-5:]}" for n in names]
        more |= {"tickvals": list(range(len(names))), "ticktext": [*map(literal, cut)]}
    return axis(title, type="category", **more)


def bars(x: Sequence[Any], y: Sequence[Any], colour: str = "brand", **more: Any) -> Json:
    """Return bars as a trace. colour: its name in `page.css`."""
    return {"type": "bar", "x": x, "y": y, "marker": {"color": f"var(--{colour})"}, **more}


def bar_figure(traces: Sequence[Json], xaxis: Json, y: str, title: str = "") -> Figure:
    """Return a figure of bars, one upon the other. y: what they show, for the axis."""
    layout = {"barmode": "stack", "xaxis": xaxis, "yaxis": axis(y)}
    return Figure(data=traces, layout=layout, title=title)


def heat_map(
    values: NDArray[Any],
    x: Sequence[Any],
    y: Sequence[str],
    *,
    xaxis: Json,
    rows: str,
    unit: str,
    limits: tuple[float, float],
    colours: Sequence[str] = ("zero", "brand"),
    title: str = "",
) -> Figure:
    """Return a heat map, the first row on top.

    values   [rows, columns]
    x, y     what the columns are, as plotly shows it, and the names of the rows
    rows     what the rows are
    unit     what the values are
    limits   values of the first and of the last colour
    colours  their names in `page.css`
    """
    shades = [[k / (len(colours) - 1), f"var(--{name})"] for k, name in enumerate(colours)]
    trace = {
        "type": "heatmap", "z": rounded(values), "x": x, "y": [*map(literal, y)],
        "zmin": limits[0], "zmax": limits[1], "colorscale": shades,
        "hovertemplate": f"%{{y}}<br>%{{x}}<br>%{{z}} {unit}<extra></extra>",
        "colorbar": {
            "title": {"text": unit, "side": "top"}, "thickness": 12, "orientation": "h",
            "y": 1, "yanchor": "bottom", "ypad": 0,
        },
    }  # fmt: skip
    layout = {"xaxis": xaxis, "yaxis": name_axis(rows, y, autorange="reversed")}
    height = int(np.clip(230 + 18 * len(values), 330, 1700))
    return Figure(data=[trace], layout=layout, height=height, title=title)


def rounded(values: NDArray[Any], digits: int = DIGITS) -> list[Any]:
    """Return values with few digits, and None for NaN, which JSON does not have."""
    if values.ndim > 1:
        return [rounded(row, digits) for row in values]
    return [None if np.isnan(v) else _short(float(f"{v:.{digits}g}")) for v in values.tolist()]


def _short(value: float) -> float:
    """Return the same number, which JSON writes without a point where it is whole."""
    return int(value) if value.is_integer() else value


def as_script(figures: Mapping[str, Figure]) -> str:
    """Return figures as JSON; of an object in several, later ones have the first one's name."""
    plain, owners = {}, dict[int, str]()
    for name, each in figures.items():
        plain[name] = {"data": each.data, "height": each.height}
        for part, value in (("layout", each.layout), ("common", each.common)):
            owner = owners.setdefault(id(value), name)
            plain[name][part] = value if owner == name else owner
    return script_json(plain)


def script_json(value: Any) -> str:
    """Return JSON without tags: one could end the script it stands in, or open a comment there."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


class DrawnMolecule(NamedTuple):
    """Atoms and their bonds, as sticks.

    title      by which it is chosen
    elements   symbols
    positions  float64[n, 3], Å
    bonds      two atoms from 0, and the order
    labels     what the mouse shows of each atom; () for its element
    is_thin    whether it is only what is around the others, on which the view is framed
    is_shown   to begin with
    """

    title: str
    elements: Sequence[str]
    positions: NDArray[np.float64]
    bonds: Sequence[tuple[int, int, int]]
    labels: Sequence[str] = ()
    is_thin: bool = False
    is_shown: bool = True

    def as_json(self) -> Json:
        return {**self._asdict(), "positions": self.positions.round(DECIMALS).tolist()}


class Surface(NamedTuple):
    """The surface of a part of a grid, half transparent.

    title            by which it is chosen
    is_inside        bool[nx, ny, nz]
    origin, spacing  float64[3], Å: of the grid
    """

    title: str
    is_inside: NDArray[np.bool_]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]
    is_shown: bool = True

    def as_json(self) -> Json:
        bits = np.packbits(self.is_inside, bitorder="little")
        return {
            "size": list(self.is_inside.shape),
            "origin": self.origin.tolist(),
            "spacing": self.spacing.tolist(),
            "bits": base64.b64encode(bits.tobytes()).decode(),
        }


Scene = Sequence[DrawnMolecule | Surface]  # what a viewer shows, each shown or hidden by its title

"""Parts that reports share: a picture of busy devices, and names as figures show them."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.events import Event
from multigpu.errors import printable

BINS = 240
LEFT, WIDTH, ROW, BAR = 260, 720, 24, 16  # pixels: names, all bars, a row, a bar
COLOUR = "#2a6f97"
TEMPLATE = "%{"  # begins a value in what is shown under the mouse


class DeviceChart:
    """Listener that notes when each device computed."""

    def __init__(self) -> None:
        self._spans: dict[str, list[tuple[float, float]]] = {}

    def __call__(self, event: Event) -> None:
        if event.name == "finished":
            name = f"{event.details['worker']} {event.details['device']}"
            spans = self._spans.setdefault(name, [])
            spans += [(a, b) for step, a, b, _ in event.details["steps"] if step == "compute"]

    def svg(self) -> str:
        """Return the picture: a row for each device; the darker, the busier it was."""
        ends = [time for spans in self._spans.values() for span in spans for time in span]
        if not ends:
            return ""
        begin, seconds = min(ends), max(max(ends) - min(ends), 1e-9)
        rows = [
            self._row(number, name, (np.array(spans) - begin) / seconds)
            for number, (name, spans) in enumerate(sorted(self._spans.items()))
        ]
        height = ROW * len(rows) + ROW
        scale = (
            f'<text x="{LEFT}" y="{height - 6}">0 s</text>'
            f'<text x="{LEFT + WIDTH}" y="{height - 6}" text-anchor="end">{seconds:.3g} s</text>'
        )
        return (
            f'<svg viewBox="0 0 {LEFT + WIDTH} {height}" role="img" font-size="12"'
            f' aria-label="devices over time">{"".join(rows)}{scale}</svg>'
        )

    def _row(self, number: int, name: str, spans: NDArray[np.float64]) -> str:
        busy, y = _covered(spans), ROW * number
        label = f"{escape(name)}  {busy.mean():.0%}"
        step = WIDTH / BINS
        bars = "".join(
            f'<rect x="{LEFT + at * step:.1f}" y="{y + 4}" width="{step:.2f}" height="{BAR}"'
            f' fill="{COLOUR}" fill-opacity="{share:.2f}"/>'
            for at, share in enumerate(busy.tolist())
            if share >= 0.005
        )
        return f'<text x="0" y="{y + 16}">{label}</text>{bars}'


def _covered(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return float64[BINS]: the share of each bin of 0..1 that spans, float64[n, 2], cover."""
    covered = np.zeros(BINS)
    reached = 0.0
    for begin, end in spans[np.argsort(spans[:, 0])].tolist():
        begin, reached = max(begin, reached), max(end, reached)
        if begin < end:
            borders = np.clip(np.linspace(0, 1, BINS + 1), begin, end)
            covered += np.diff(borders) * BINS
    return covered


def shown(value: object) -> object:
    """Return what a page shows of a value: of plain texts what is printable."""
    return printable(value) if type(value) is str else value


def literal(name: str) -> str:
    """Return `name` so that plotly shows it letter by letter: it knows tags and templates."""
    return escape(printable(name), quote=False).replace(TEMPLATE, "%&#123;")

"""The colours of gains and losses, the same in every file of a run."""

from dataclasses import dataclass
from typing import Literal, get_args

Colours = Literal["gain-red", "gain-blue"]
CHOICES: tuple[str, ...] = get_args(Colours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """One colour as different files need it.

    name        in words, and in the style sheet of reports
    rgb         for BED and IGV: red,green,blue
    bright      for the end of IGV's scale
    line        for bars and lines in figures
    dark, pale  for the end of the heat map, and half the way to it
    """

    name: str
    rgb: str
    bright: str
    line: str
    dark: str
    pale: str


RED = Shade(
    name="red", rgb="200,30,30", bright="255,0,0", line="#c0392b", dark="#8e1b12", pale="#e08a80"
)
BLUE = Shade(
    name="blue", rgb="30,60,200", bright="0,0,255", line="#2450a8", dark="#173a86", pale="#7f9ce0"
)
NEUTRAL, WHITE = "120,120,120", "#f7f7f7"
HEAT_LIMIT = 2.0  # of signed I/NI in the heat map: beyond it colours do not change
OTHER = "#b8bcc4"
# Colours of samples: neither the red nor the blue of gains and losses.
CARRIERS = ("#1b8a5a", "#b8860b", "#7d3c98", "#0e7490", "#d35400", "#5d4037", "#6b7c00", "#c2378b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours of gains and losses."""

    gain: Shade
    loss: Shade

    @classmethod
    def named(cls, name: Colours) -> "Palette":
        """Return the palette of this name; gain-red is IGV's."""
        red = name == "gain-red"
        return cls(gain=RED, loss=BLUE) if red else cls(gain=BLUE, loss=RED)

    @property
    def heat(self) -> list[tuple[float, str]]:
        """Colours of the heat map, from the strongest loss (0) to the strongest gain (1)."""
        loss, gain = self.loss, self.gain
        return [(0, loss.dark), (0.25, loss.pale), (0.5, WHITE), (0.75, gain.pale), (1, gain.dark)]

    @property
    def words(self) -> str:
        """Sentence for a page."""
        return f"{self.gain.name.capitalize()} is gain, {self.loss.name} is loss."


GAIN_RED = Palette.named("gain-red")

"""The colours of gains and losses, the same in every file of a run."""

from dataclasses import dataclass
from typing import Literal, get_args

Colours = Literal["gain-red", "gain-blue"]
CHOICES: tuple[str, ...] = get_args(Colours)


@dataclass(frozen=True)
class Shade:
    """One colour as different files need it.

    rgb         of BED and IGV: red, green, blue with commas between
    bright      of IGV's scale, at its end
    line        of bars and lines in figures
    dark, pale  of the heat map: its end, and half the way to it
    """

    rgb: str
    bright: str
    line: str
    dark: str
    pale: str


RED = Shade("200,30,30", "255,0,0", "#c0392b", "#8e1b12", "#e08a80")
BLUE = Shade("30,60,200", "0,0,255", "#2450a8", "#173a86", "#7f9ce0")
NEUTRAL, WHITE = "120,120,120", "#f7f7f7"


@dataclass(frozen=True)
class Palette:
    """Which colour is a gain and which a loss."""

    gain: Shade
    loss: Shade

    @classmethod
    def of(cls, colours: Colours) -> "Palette":
        """The palette of this name; gain-red is IGV's."""
        return cls(RED, BLUE) if colours == "gain-red" else cls(BLUE, RED)

    @property
    def heat(self) -> list[tuple[float, str]]:
        """The colours of the heat map, from the strongest loss (0) to the strongest gain (1)."""
        loss, gain = self.loss, self.gain
        return [(0, loss.dark), (0.25, loss.pale), (0.5, WHITE), (0.75, gain.pale), (1, gain.dark)]

    @property
    def words(self) -> str:
        """What a page says of it."""
        gain, loss = ("red", "blue") if self.gain is RED else ("blue", "red")
        return f"{gain.capitalize()} is gain, {loss} is loss."


GAIN_RED = Palette.of("gain-red")

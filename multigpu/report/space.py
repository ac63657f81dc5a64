"""Molecules in space, for the viewer of a page (3Dmol.js): as numbers, ready for JSON."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import Json

DECIMALS = 3  # of coordinates, Å


class DrawnMolecule(NamedTuple):
    """Atoms and their bonds.

    title      by which it is chosen
    elements   symbols
    positions  float64[n, 3], Å
    bonds      two atoms from 0, and the order
    labels     what the mouse shows of each atom; () for its element
    """

    title: str
    elements: Sequence[str]
    positions: NDArray[np.float64]
    bonds: Sequence[tuple[int, int, int]]
    labels: Sequence[str] = ()

    def as_json(self) -> Json:
        return {
            "elements": list(self.elements),
            "positions": self.positions.round(DECIMALS).tolist(),
            "bonds": [list(bond) for bond in self.bonds],
            "labels": list(self.labels),
        }


class Surface(NamedTuple):
    """The surface of a part of a grid.

    title            by which it is chosen
    is_inside        bool[nx, ny, nz]
    origin, spacing  float64[3], Å: of the grid
    """

    title: str
    is_inside: NDArray[np.bool_]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]

    def as_json(self) -> Json:
        bits = np.packbits(self.is_inside, bitorder="little")
        return {
            "size": list(self.is_inside.shape),
            "origin": self.origin.tolist(),
            "spacing": self.spacing.tolist(),
            "bits": base64.b64encode(bits.tobytes()).decode(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a viewer shows, framed on the models. Everything is shown or hidden by its title.

    models    as sticks; the first is shown to begin with
    around    as thin sticks
    surface   half transparent
    """

    models: Sequence[DrawnMolecule]
    around: DrawnMolecule | None = None
    surface: Surface | None = None

    @property
    def titles(self) -> list[tuple[str, str]]:
        """What can be chosen: its title, and its place in the JSON."""
        others = {"around": self.around, "surface": self.surface}
        named = [(each.title, name) for name, each in others.items() if each is not None]
        return [*((each.title, str(k)) for k, each in enumerate(self.models)), *named]

    def as_json(self) -> Json:
        return {
            "models": [each.as_json() for each in self.models],
            "around": self.around and self.around.as_json(),
            "surface": self.surface and self.surface.as_json(),
        }

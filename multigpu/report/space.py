"""Molecules in space, for the viewer of a page (3Dmol.js): as numbers, ready for JSON."""

import base64
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.report.figures import Json

DECIMALS = 3  # of coordinates, Å


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

"""Arguments of maps: a rigid receptor, and a grid box around its pocket."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Maps = dict[str, NDArray[np.float32]]

MOST_ELEMENTS = 1022  # along an axis
MOST_POINTS = 1 << 28  # a map of them takes 1 GiB
FARTHEST = 1e5  # Å
DECIMALS = 3  # of every value, as in files of maps


@dataclass(frozen=True)
class Receptor:
    """The atoms of a rigid receptor, as in PDBQT: all heavy atoms and the polar hydrogens.

    There is an atom. Numbers are finite and within ±1e5 Å, ±1000 e.
    """

    positions: Floats  # float64[n, 3], Å
    charges: Floats  # float64[n], e
    types: tuple[str, ...]  # n AutoDock types: "C", "OA", "HD", "Zn"
    names: tuple[str, ...] = ()  # for messages, "ZN of HOH A 12", or none: atoms are numbered

    def __len__(self) -> int:
        return len(self.types)

    def name_of(self, atom: int) -> str:
        """Return how a message names an atom."""
        return self.names[atom] if self.names else f"atom {atom + 1}"


@dataclass(frozen=True)
class GridBox:
    """Points of maps: center + spacing · (k − elements / 2), k from 0 to elements on each axis.

    Raises ValueError for elements beyond 1 to 1022 an axis, 2^28 points or more, a spacing that
    is not within 0.01 to 10 Å, and a center beyond ±1e5 Å.
    """

    center: tuple[float, float, float]  # x, y, z in Å
    elements: tuple[int, int, int]  # intervals an axis, as AutoGrid's `npts`; points less one
    spacing: float = 0.375  # Å

    def __post_init__(self) -> None:
        if not all(1 <= count <= MOST_ELEMENTS for count in self.elements):
            raise ValueError(f"{self.elements} elements; 1 to {MOST_ELEMENTS} an axis are possible")
        if math.prod(self.shape) >= MOST_POINTS:
            raise ValueError(f"a box of {math.prod(self.shape):,} points; fewer than 2^28")
        if not 0.01 <= self.spacing <= 10:
            raise ValueError(f"the spacing is {self.spacing}; 0.01 to 10 Å is possible")
        if not all(abs(middle) <= FARTHEST for middle in self.center):
            raise ValueError(f"the center {self.center} is not finite or beyond ±{FARTHEST:g} Å")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Points along x, y and z."""
        nx, ny, nz = self.elements
        return nx + 1, ny + 1, nz + 1

    @property
    def origin(self) -> Floats:
        """float64[3]: the point with the lowest coordinates, Å."""
        return np.asarray(np.array(self.center) - self.spacing * (np.array(self.elements) / 2))

    @property
    def axes(self) -> tuple[Floats, ...]:
        """Coordinates of the points along x, y and z, Å."""
        ends = zip(self.origin, self.shape, strict=True)
        return tuple(low + self.spacing * np.arange(count) for low, count in ends)


def require_types(
    receptor: Receptor, types: Sequence[str], known: Collection[str], program: str
) -> None:
    """Raise ValueError for a type of the receptor, or of a map, that a scoring lacks."""
    for atom, name in enumerate(receptor.types):
        if name not in known:
            raise ValueError(f"{receptor.name_of(atom)}: {program} has no type {name!r}")
    for name in types:
        if name not in known:
            raise ValueError(f"{program} has no type {name!r} to make a map of")


def rounded(values: Floats) -> NDArray[np.float32]:
    """Return values as they are read back from a file of maps, which has three decimals."""
    scale = 10.0**DECIMALS
    return (np.rint(values * scale) / scale + 0.0).astype(np.float32)  # no -0.0

"""One grid of scores, or the maps of AutoGrid, and whether it can be interpolated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError

AXES = "xyz"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pocket:
    """One grid, or the maps of AutoGrid.

    values   float32[maps, nx, ny, nz], finite
    origin   float64[3]  where values[:, 0, 0, 0] stands, Å
    spacing  float64[3]  Å, positive
    types    the atom type of each map but the last two, which are electrostatics and
             desolvation; () for a plain grid, which is one score for every atom
    absent   atom types whose maps are named and not there
    """

    path: str
    layout: str
    values: NDArray[np.float32]
    origin: NDArray[np.float64]
    spacing: NDArray[np.float64]
    types: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[int, int, int]:
        """Points along x, y and z."""
        nx, ny, nz = self.values.shape[1:]
        return nx, ny, nz

    @property
    def end(self) -> NDArray[np.float64]:
        """float64[3]: where the last value stands."""
        end: NDArray[np.float64] = self.origin + self.spacing * (np.array(self.shape) - 1)
        return end

    @property
    def center(self) -> NDArray[np.float64]:
        """float64[3]: the middle of the box."""
        return (self.origin + self.end) / 2

    def distance(self, point: NDArray[np.float64]) -> float:
        """Return how far a point is from the grid, Å; 0 inside."""
        outside = np.maximum(np.maximum(self.origin - point, point - self.end), 0)
        return float(np.sqrt((outside**2).sum()))


def check_pocket(pocket: Pocket) -> Pocket:
    """Return the pocket. Raises InputError for a grid that cannot be interpolated."""
    for axis, points, step in zip(AXES, pocket.shape, pocket.spacing, strict=True):
        if points < 2:
            problem = f"the grid has {points} point along {axis}: it needs at least two"
            raise InputError(pocket.path, problem)
        if not 0 < step < np.inf:
            problem = f"the spacing along {axis} is {step:g}, not positive and finite"
            raise InputError(pocket.path, problem)
    if not np.isfinite(pocket.origin).all():
        raise InputError(pocket.path, "the origin is no place: it is not finite")
    if not np.isfinite(pocket.values).all():
        raise _not_finite(pocket)
    return pocket


def _not_finite(pocket: Pocket) -> InputError:
    places = np.argwhere(~np.isfinite(pocket.values))
    where, index = int(places[0][0]), places[0][1:].tolist()
    value = pocket.values[(where, *index)]
    name = f"map {[*pocket.types, 'e', 'd'][where]}, " if pocket.types else ""
    more = f" and {len(places) - 1:,} more" if len(places) > 1 else ""
    problem = f"the value is {value}{more}: every value must be a number"
    return InputError(pocket.path, problem, f"{name}grid index {index} (from 0)")

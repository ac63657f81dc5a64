"""The errors and thresholds that `bounds.py` proves, in plain NumPy: what `bounds.cuh` finds."""

from dataclasses import dataclass

import numpy as np

from multigpu.kernels.rotation import Field, Ligands, PoseSearch
from multigpu.kernels.rotation.bounds import (
    KAPPAS,
    LEAST,
    MOST,
    SHORTFALLS,
    SLACK,
    UNIT,
    FieldBounds,
    place_errors,
    threshold_above,
)
from multigpu.kernels.rotation.rotations import Floats


@dataclass(frozen=True)
class Bounds:
    """Bounds of one ligand: E(b), float64[powers], inf where none was found, and T."""

    errors: Floats
    top: float

    def threshold(self, greatest: np.float32) -> np.float32:
        """Return the score below which no pose can win, from the greatest of a decided pose."""
        highest = float(greatest)
        at_most = self.top - np.r_[0.0, SHORTFALLS[:-1]] + self.errors
        at_least = self.top - SHORTFALLS - self.errors
        possible = self.errors[(at_most >= highest) & (at_least <= highest)]
        lowest = highest - possible.max() if len(possible) else -np.inf
        return threshold_above(self.errors, self.top, lowest)


def bounds_of(field: Field, ligand: Ligands, search: PoseSearch) -> Bounds:
    """Return the bounds of one ligand."""
    found = FieldBounds(field)
    channels, weights = ligand.channels.ravel(), ligand.weights.ravel()
    (delta,) = place_errors(field, ligand, search)
    rounding = (len(weights) + 32) * UNIT
    is_jumpy = field.interpolation == "nearest" and field.outside != "penalty"
    change = rounding if is_jumpy else rounding + delta
    powers = np.frexp(weights)[1][:, None]  # weight >= 2^(power - 1)
    # top - M <= 2^(b + 1) / weight <= 2^(b + 2 - power) < 2^(b + 3 - power)
    reach = (np.arange(len(SHORTFALLS)) + 3 - powers).clip(0, MOST - LEAST)
    steep = found.steepness[channels[:, None], reach]  # [terms, powers, kappas]
    tops = found.tops[channels].astype(float)
    rounded = rounding * (weights @ np.abs(tops) + SHORTFALLS)
    sums = np.einsum("t,tpk->pk", weights, steep) + KAPPAS * SHORTFALLS[:, None]
    left = 1 - delta * KAPPAS
    errors = sums * change + rounded[:, None]
    errors = np.where(left > 0.1, errors * SLACK / np.maximum(left, 0.1), np.inf).min(axis=1)
    fits = (SLACK * delta * steep[:, :, 0] <= SHORTFALLS * 2.0 ** (1 - powers)).all(axis=0)
    errors[~fits | (delta >= 0.5)] = np.inf
    return Bounds(np.minimum.accumulate(errors[::-1])[::-1], float(weights @ tops))

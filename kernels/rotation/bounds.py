"""Bounds of a field: how near a score in single precision is to the one in double.

The search computes s(pose) in single precision, and S(pose) in double precision only where that
could be the highest: docs/dock.md has the proof, `bounds.cuh` its formulas over the terms of each
ligand. Here are, with G the sum over the axes of the largest difference of neighbouring nodes of a
cell, M its highest node, and `top` a channel's highest value,

    A(κ, d) = max of G − κ (top − M) over the cells with top − M <= d, but at least 0

and δ, in units of the spacing: no coordinate of an atom's place in float32 is off by more. SLACK
covers the rounding of both.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation.rotations import Floats
from multigpu.kernels.rotation.types import PENALTY, Field, Ligands, PoseSearch

UNIT = 2.0**-24
SLACK = 1.01  # for the rounding of these bounds themselves
KAPPAS = np.r_[0.0, 2.0 ** np.arange(0, 15, 2)]
LEAST, MOST = -20, 126  # of b; D below 2^LEAST counts as that, and none is above 2^MOST
SHORTFALLS = 2.0 ** np.arange(LEAST, MOST + 1)


class FieldBounds:
    """Numbers of a field that the proof needs.

    tops       float32[channels]
    steepness  float64[channels, powers, kappas]: A(κ, 2^(LEAST + power)); the last: of all cells
    """

    def __init__(self, field: Field) -> None:
        self.tops = field.highest
        self.steepness = np.zeros((len(self.tops), len(SHORTFALLS), len(KAPPAS)))
        if field.interpolation == "linear":
            for channel, values in enumerate(field.values):
                self.steepness[channel] = _steepness(values, self.tops[channel])
        if field.outside == "penalty":
            self.steepness = np.maximum(self.steepness, _steepness_outside(field, self.tops))


def _steepness(values: NDArray[np.float32], top: np.float32) -> Floats:
    """Return A(κ, d), from the steepest of the cells in each power of two of top − M."""
    axes = ((0, (1, 2)), (1, (0, 2)), (2, (0, 1)))
    # The largest change along an axis on the edges of a cell, of all axes.
    steep = np.add.reduce([_over_corners(np.abs(np.diff(values, axis=k)), x) for k, x in axes])
    below = (top - _over_corners(values, (0, 1, 2))).ravel()
    power = np.clip(np.frexp(below)[1], LEAST, MOST)  # below < 2^power
    power[below < SHORTFALLS[0]] = LEAST
    steepest = np.full(len(SHORTFALLS), -np.inf, np.float32)
    np.maximum.at(steepest, power - LEAST, steep.ravel())
    return _above_kappas(steepest)


def _steepness_outside(field: Field, tops: NDArray[np.float32]) -> Floats:
    """Return float64[channels, powers, kappas]: the same of all places with a penalty."""
    nearest = (field.spacing * field.middle).min()
    steepest = 2 * np.sqrt((field.spacing**2).sum() * PENALTY * SHORTFALLS)
    there = tops[:, None] + PENALTY * nearest**2 / SLACK < SHORTFALLS
    return _above_kappas(np.where(there, steepest, -np.inf))


def _above_kappas(steepest: NDArray[Any]) -> Floats:
    """Return A(κ, d) of the steepest in each power of two of the shortfall.

    steepest: [..., powers]
    """
    least = np.r_[0.0, SHORTFALLS[:-1]]
    excess = steepest[..., None] - KAPPAS * least[:, None]
    return np.maximum(np.maximum.accumulate(excess, axis=-2), 0)


def _over_corners(nodes: NDArray[np.float32], axes: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the larger of two neighbours along each of the axes."""
    for axis in axes:
        near = np.moveaxis(nodes, axis, 0)
        nodes = np.moveaxis(np.maximum(near[:-1], near[1:]), 0, axis)
    return nodes


def place_errors(field: Field, ligands: Ligands, search: PoseSearch) -> Floats:
    """Return float64[n]: δ of each ligand, of which there must be one."""
    squared = np.einsum("ij,ij->i", ligands.relative, ligands.relative)
    radius = np.sqrt(np.maximum.reduceat(squared, ligands.offsets[:-1]))
    far = np.abs(search.targets(ligands) - field.origin) + search.shifts.radius
    reach = ((radius[:, None] + far) / field.spacing).max(axis=1)
    return np.asarray(SLACK * 10 * UNIT * (reach + 1))


def doubts(place_errors: Floats) -> NDArray[np.float32]:
    """Return float32[n]: a place computed in float32 is undecided within this of a jump."""
    return (SLACK * place_errors + 2 * UNIT).astype(np.float32)

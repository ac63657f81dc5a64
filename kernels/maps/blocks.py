"""Blocks of points: what is far from a block acts on it through a few nodes.

Electrostatics have no cutoff. The field of all atoms that are at least `reach` away from a block of
8 × 8 × 8 points is smooth there: it is computed at 4 × 4 × 4 nodes and interpolated by cubics in
between. With h half of the block's length, atoms are 6 h from its sides or farther, where the
error is below 1e-4 of an atom's field at that distance (the nodes are near Chebyshev's).
"""

from typing import NamedTuple

import numpy as np

from multigpu.kernels.maps.autogrid import (
    CUTOFF,
    FAR_FIRST,
    FAR_SHIFT,
    MANY,
    POLARITY,
    RAMP_TERMS,
    STEPS,
)
from multigpu.kernels.maps.types import DECIMALS, Floats, GridBox

SIDE = 8  # points
NODES = (0.25, 2.15625, 4.84375, 6.75)  # in units of the spacing, from a block's first point
REACH = 6 * (SIDE - 1) / 2  # in units of the spacing

# Macros of maps.cu.
DEFINES: dict[str, float] = {"SIDE": SIDE, "NODES": len(NODES), "RAMP_TERMS": RAMP_TERMS}
DEFINES |= {"STEPS": STEPS, "FAR_SHIFT": FAR_SHIFT, "FAR_FIRST": FAR_FIRST}
DEFINES |= {"CUTOFF": CUTOFF, "POLARITY": POLARITY, "MANY": MANY, "SCALE": 10.0**DECIMALS}


class Lattice(NamedTuple):
    """The points of a box, and its blocks.

    halves    float64[3]        half of the box along each axis, in units of the spacing
    spacing   Å
    reach     Å: atoms nearer to a block are near
    nodes     float64[4]        `NODES`
    weights   float64[SIDE, 4]  of the nodes, at the points of a block along an axis
    """

    halves: Floats
    spacing: float
    reach: float
    nodes: Floats
    weights: Floats


def lattice_of(box: GridBox) -> Lattice:
    """Return the points of a box."""
    nodes, points = np.array(NODES), np.arange(SIDE)
    weights = np.ones((SIDE, len(nodes)))
    for node, here in enumerate(NODES):
        for other in NODES[:node] + NODES[node + 1 :]:
            weights[:, node] *= (points - other) / (here - other)
    # A little beyond the cutoff, so that rounding leaves no pair out.
    reach = max(CUTOFF + 1e-6, REACH * box.spacing)
    return Lattice(np.array(box.elements) * 0.5, float(box.spacing), reach, nodes, weights)


def blocks_of(box: GridBox) -> tuple[int, ...]:
    """Return the number of blocks along x, y and z; the last ones may stand out of the box."""
    return tuple(-(-points // SIDE) for points in box.shape)

"""The proof of how far a score in single precision may be from the one in double precision.

The search computes s(pose) in single precision, and S(pose) in double precision only where that
could be the highest. Let u = 2^-24 be the unit of rounding.

**Places.** An atom's place in units of the spacing is g = A x + b: A the rotation divided by the
spacing, x the atom relative to the centroid, b the target's place with the shift. The kernels
round A, x and b to float32 and add the three products to b in float32. With |A x| <= r, the
ligand's radius in those units, x and A bring 2u r, the products u r, the start u |b|, and three
additions 3u (r + |b|): at most 6u r + 4u |b|. Taking 1/2 off, to find the cell by rounding, costs
u (r + |b| + 1). So no coordinate is off by more than δ = 10u (r + |b| + 1), which leaves room for
terms in u² and for double precision's own rounding. Let g' be the place that was computed.

**Rounding of values.** The 21 operations of the interpolation err by at most 24u V, V the largest
|node| of the cell; weight and product by 5u V; the sum over the N terms of all atoms, in any
order, by N u V each: in all ν V with ν = (N + 32) u.

**Steps.** From g' to g the trilinear field changes by at most δ G, where G is the sum over the axes
of the largest difference of neighbouring nodes, in any of the cells between (δ < 1/2, so at most
four). Clamping only takes away from that.

**Steep cells.** Near a clash G is five orders of magnitude above its usual size, but there scores
are bad in proportion. Let `top` be a channel's highest value, M the highest node of a cell, and

    A(κ, d) = max of G − κ (top − M) over the cells with top − M <= d, but at least 0

An atom's term of weight w, with the value v at g', falls short of its best by t = top − v. Say the
whole pose falls short by D = Σ w t <= 2^b, so that t <= 2^b / w =: d. In the atom's cell
top − M <= t. On the way to g the field may fall a little: by less than d if δ A(0, 2d) <= d, which
is asked for, and so all cells there have top − M <= t + fall <= 2d, G <= A(κ, 2d) + κ (t + fall).
With V <= |top| + (top − M) + G, the sum over all terms of falls and roundings is at most

    E(b) = [Σ w ((δ + ν) A(κ, 2d) + ν |top|) + ((δ + ν) κ + ν) 2^b] / (1 − δ κ)    for any κ >= 0

The least of these for some κ is taken; and as D <= 2^b is no more than D <= 2^(b+1), the least of
E(b), E(b + 1), ….

**Outside.** Clamped values, and those of nothing, do not change outside of the grid. With the
penalty an atom's first term has v = −P d² there, d the distance in Å from the middle of the grid,
and the others have v = 0. `top` is at least 0 then, so that t >= P d². Along a coordinate in units
of the spacing h, v changes by at most 2P |d_axis| h, in the sum over the axes by
G <= 2P d |h| <= 2 |h| √(P t): a place outside counts as one more cell with M = v and this G. None
is there below t = top + P m², with m half of the shortest edge of the grid. The 9 operations of
P d² err by less than 24u V with V = |v|.

**Thresholds.** A pose with 2^(b-1) <= D <= 2^b has s and S within E(b) of T − D, T = Σ w top, and
of each other. So the pose with the highest s is in one of certain b, and the largest E of these
gives S of the best pose at least the value L = max s − E. A pose with S >= L, again, is in one of
certain b, and its s is at least L less the largest E of those: the threshold.

**Decisions.** With interpolation "nearest", or where atoms outside score nothing or a penalty, the
field has jumps. A pose
with an atom within δ of one is *undecided*: the kernels give it the score +inf, so that it is
always computed in double precision, and it takes no part in max s. All other poses have every
atom on the right side, and the above holds for them; with "nearest" G is 0 inside.

Here is what the proof needs of a field, and δ; `bounds.cuh` has the formulas over the terms of each
ligand. SLACK covers the rounding of both.
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

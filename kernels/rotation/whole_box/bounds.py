"""Bounds: how much a block of poses is at least below the highest score that is possible.

A block is a rotation with neighbouring shifts. An atom's *shortfall* is its highest value in the
whole box less its own; a pose scores the sum of the highest values less its shortfalls. The least
shortfall of an atom anywhere in a block is read from a map: its fused nodes (the sum of weight ×
channel over its terms), pooled over all the nodes that interpolation may touch. So a few look-ups
leave out up to 512 poses. docs/dock.md has the proof.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.rotation.bounds import UNIT, place_errors
from multigpu.kernels.rotation.memory import TOLERANCE
from multigpu.kernels.rotation.rotations import Floats, Indices, Shifts
from multigpu.kernels.rotation.types import PENALTY, Field, Ligands, PoseSearch

MOST_ALONG = 8  # shifts of a block along an axis, and
MOST_NODES_ALONG = 10.0  # nodes from the first to the last
DOUBLE = 2.0**-53  # as `UNIT`, in double precision
INWARDS = 1.001  # nodes: a place outside scores no more than one so much nearer to the middle
Floats32 = NDArray[np.float32]


@dataclass(frozen=True)
class Level:
    """Blocks of one size, and the maps that bound them. All: int64[3], of x, y and z."""

    sides: Indices  # shifts along a block
    strides: Indices  # nodes from one value of a map to the next
    windows: Indices  # nodes of which a value is the least


def levels(field: Field, shifts: Shifts, coarser: int = 1) -> list[Level]:
    """Return the levels, from single poses to the largest blocks, each of two by two by two.

    coarser: a power of two by which the maps have fewer values along each axis
    """
    per_shift, along = shifts.step / field.spacing, np.array(shifts.sides)
    sides = np.full(3, MOST_ALONG)
    while (too_long := (sides > 1) & ((sides - 1) * per_shift > MOST_NODES_ALONG)).any():
        sides = np.where(too_long, sides // 2, sides)
    sides = -(-along // -(-along // sides))
    found: list[Level] = []
    while True:
        strides = coarser * 2 ** np.log2(np.maximum(sides * per_shift / 2, 1)).astype(np.int64)
        reach = strides + (sides - 1) * per_shift
        windows = np.ceil(reach - TOLERANCE).astype(np.int64) + 1
        found.insert(0, Level(sides, strides, windows))
        if (sides == 1).all():
            return found
        sides = -(-sides // 2)


@dataclass(frozen=True)
class AtomKinds:
    """Atoms that score alike everywhere."""

    kind: Indices  # int64[atoms]: of each atom
    channels: NDArray[np.int32]  # int32[kinds, terms]
    weights: Floats  # float64[kinds, terms]
    # float64[kinds, 3]: where the first shift may put such an atom at least, and the last one at
    # most, in units of the spacing from the origin
    lowest: Floats
    highest: Floats


def kinds_of(field: Field, search: PoseSearch, bodies: Ligands) -> AtomKinds:
    """Return the kinds of atoms of the bodies of one ligand."""
    both = np.concatenate([bodies.channels.astype(np.float64), bodies.weights], axis=1)
    rows, kind = np.unique(both, axis=0, return_inverse=True)
    kind = kind.reshape(-1).astype(np.int64)
    radius = np.zeros(len(rows))
    np.maximum.at(radius, kind, np.sqrt((bodies.relative**2).sum(axis=1)))
    targets = (search.targets(bodies) - field.origin) / field.spacing
    around = radius[:, None] / field.spacing + 0.01
    ends = search.shifts.vectors(np.array([0, search.shifts.count - 1])) / field.spacing
    terms = bodies.channels.shape[1]
    return AtomKinds(
        kind=kind,
        channels=rows[:, :terms].astype(np.int32),
        weights=np.ascontiguousarray(rows[:, terms:]),
        lowest=targets.min(axis=0) + ends[0] - around,
        highest=targets.max(axis=0) + ends[1] + around,
    )


@dataclass(frozen=True)
class BoundMaps:
    """The least shortfalls of the kinds of one ligand, of all levels."""

    values: Floats32  # float32[...]: map after map, C-contiguous
    begins: Indices  # int64[levels, kinds]: of the maps in `values`
    shapes: Indices  # int64[levels, kinds, 3]
    # int64[levels, kinds, 3]: a value is of the places f with floor(f / stride) = low + its number
    # in the map; f in units of the spacing
    lows: Indices
    tops: Floats  # float64[kinds]: what an atom scores at most


def levels_within(field: Field, search: PoseSearch, kinds: AtomKinds, most: int) -> list[Level]:
    """Return the levels whose maps take at most so many bytes, or nearly none."""
    for coarser in 2 ** np.arange(6):
        found = levels(field, search.shifts, int(coarser))
        if 4 * extents(kinds, found)[1].prod(axis=2).sum() <= most:
            break
    return found


def extents(kinds: AtomKinds, sizes: list[Level]) -> tuple[Indices, Indices]:
    """Return int64[levels, kinds, 3] twice: `BoundMaps.lows` and `BoundMaps.shapes`."""
    strides = np.array([level.strides for level in sizes])[:, None]
    lows = np.floor(kinds.lowest / strides).astype(np.int64)
    return lows, np.floor(kinds.highest / strides).astype(np.int64) - lows + 1


def bound_maps(field: Field, kinds: AtomKinds, sizes: list[Level]) -> BoundMaps:
    """Return the maps of a ligand."""
    lows, shapes = extents(kinds, sizes)
    counts = shapes.prod(axis=2)
    begins = np.cumsum(counts).reshape(counts.shape) - counts
    values, tops = np.empty(counts.sum(), np.float32), np.empty(len(kinds.channels))
    strides = np.array([level.strides for level in sizes])
    windows = np.array([level.windows for level in sizes])
    for k in range(len(tops)):
        first = (lows[:, k] * strides).min(axis=0)
        end = ((lows[:, k] + shapes[:, k] - 1) * strides + windows).max(axis=0)
        pooled = fused_nodes(field, kinds.channels[k], kinds.weights[k], first, end)
        tops[k] = pooled.max()
        np.subtract(np.float32(tops[k]), pooled, out=pooled)
        have = np.ones(3, np.int64)
        for number in range(len(sizes)):
            pooled, have = least_in(pooled, have, windows[number]), windows[number]
            begin = lows[number, k] * strides[number] - first
            picks = tuple(
                slice(at, at + (size - 1) * stride + 1, stride)
                for at, size, stride in zip(begin, shapes[number, k], strides[number], strict=True)
            )
            at = begins[number, k]
            values[at : at + counts[number, k]] = pooled[picks].ravel()
    return BoundMaps(values, begins, shapes, lows, tops)


def fused_nodes(
    field: Field, channels: NDArray[np.int32], weights: Floats, first: Indices, end: Indices
) -> Floats32:
    """Return float32[nx, ny, nz]: what an atom scores at the nodes from `first` to before `end`.

    There may be nodes outside of the grid; those, and the ones on its border, have at least what
    an atom scores that is outside in a cell beside them.
    """
    axes = [np.arange(low, high) for low, high in zip(first, end, strict=True)]
    last = np.array(field.shape) - 1
    held = [np.clip(axis, 0, most) for axis, most in zip(axes, last, strict=True)]
    cut = tuple(slice(each[0], each[-1] + 1) for each in held)
    total = sum(
        field.values[channel][cut] * np.float32(weight)
        for channel, weight in zip(channels, weights, strict=True)
    )
    within = [axis - each[0] for axis, each in zip(held, held, strict=True)]
    found: Floats32 = np.ascontiguousarray(total[np.ix_(*within)], np.float32)
    if field.outside == "clamp":
        return found
    beyond = np.zeros(found.shape, np.float32)
    if field.outside == "penalty":
        near = [
            np.maximum(np.abs(axis - middle) - INWARDS, 0) * spacing
            for axis, middle, spacing in zip(axes, field.middle, field.spacing, strict=True)
        ]
        squared = np.add.outer(np.add.outer(near[0] ** 2, near[1] ** 2), near[2] ** 2)
        beyond = (-PENALTY * weights[0] * squared).astype(np.float32)
    is_outside = _any_axis([axis != each for axis, each in zip(axes, held, strict=True)])
    on_border = _any_axis([(a <= 0) | (a >= most) for a, most in zip(axes, last, strict=True)])
    np.maximum(found, beyond, out=found, where=on_border)
    np.copyto(found, beyond, where=is_outside)
    return found


def _any_axis(flags: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    x, y, z = flags
    return np.asarray(x[:, None, None] | y[:, None] | z)


def least_in(values: Floats32, have: Indices, want: Indices) -> Floats32:
    """Return the least values in windows of `want` nodes an axis, from those of `have` nodes."""
    for axis in range(3):
        width = int(have[axis])
        while width < want[axis]:
            more = min(width, int(want[axis]) - width)
            near = np.moveaxis(values, axis, 0)
            values = np.moveaxis(np.minimum(near[:-more], near[more:]), 0, axis)
            width += more
    return values


def margins(
    field: Field, search: PoseSearch, bodies: Ligands, kinds: AtomKinds, tops: Floats
) -> tuple[Floats, Floats]:
    """Return allowances for rounding, absolute and relative, float64[bodies] both.

    No pose of a block scores as much as T if the sum of its shortfalls is above
    (Σ tops − T + absolute) · relative. tops: `BoundMaps.tops`
    """
    highest = np.abs(field.highest[bodies.channels]).astype(np.float64)
    constant = 32 * UNIT * (2 * (bodies.weights * highest).sum(axis=1) + np.abs(tops[kinds.kind]))
    places = place_errors(field, bodies, search) * (DOUBLE / UNIT) + TOLERANCE
    absolute = np.add.reduceat(constant, bodies.offsets[:-1]) + rounding(field, search, bodies)
    return absolute, 1 + 8 * places + 4 * (bodies.sizes + 8) * UNIT


def rounding(field: Field, search: PoseSearch, bodies: Ligands) -> Floats:
    """Return float64[bodies]: how far a score in double precision is at most from the true one."""
    largest = field.largest[bodies.channels].astype(np.float64)
    if field.outside == "penalty":
        reach = (np.abs(search.targets(bodies) - field.origin) + search.shifts.radius).max(axis=1)
        reach += np.sqrt((bodies.relative**2).sum(axis=1).max()) + field.spacing.max() * max(
            field.shape
        )
        far = np.repeat(3 * PENALTY * reach**2, bodies.sizes)
        largest[:, 0] = np.maximum(largest[:, 0], far)
    sums = np.add.reduceat((bodies.weights * largest).sum(axis=1), bodies.offsets[:-1])
    return np.asarray(2 * DOUBLE * sums * (bodies.channels.shape[1] * bodies.sizes + 40))

"""Bonds between near atoms, and the fragments into which bonds join the atoms of a molecule."""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit

TOLERANCE = 0.4  # Å: a bond may be longer than the sum of the radii of its atoms by this
HYDROGEN_RADIUS = 0.31  # Å: two atoms that are no larger are not bonded
LOOKED_AT = 8  # atoms
CROWDED = 0.3  # Å: atoms that are nearer than this overlap


@jit
def near_pairs(positions: Any, radii: Any) -> Any:
    """Return int64[pairs, 2]: atoms nearer than their radii and TOLERANCE, not two hydrogens."""
    pairs, count = np.empty((2 * len(radii), 2), np.int64), 0
    for a in range(len(radii)):
        for b in range(a + 1, len(radii)):
            reach = radii[a] + radii[b] + TOLERANCE
            if not 0 < _squared_distance(positions, a, b) < reach * reach or reach < 0:
                continue
            if max(radii[a], radii[b]) > HYDROGEN_RADIUS:
                if count == len(pairs):
                    pairs = np.concatenate((pairs, np.empty_like(pairs)))
                pairs[count, 0], pairs[count, 1] = a, b
                count += 1
    return pairs[:count]


@jit
def _squared_distance(positions: Any, a: Any, b: Any) -> Any:
    x, y = positions[a, 0] - positions[b, 0], positions[a, 1] - positions[b, 1]
    z = positions[a, 2] - positions[b, 2]
    return x * x + y * y + z * z


@jit
def fragments(atoms: Any, pairs: Any) -> Any:
    """Return int64[atoms]: the first atom of the fragment of each."""
    first = np.arange(atoms)  # of each atom one of its fragment that is not after it
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        while first[a] != a:
            first[a] = a = first[first[a]]
        while first[b] != b:
            first[b] = b = first[first[b]]
        first[max(a, b)] = min(a, b)
    for atom in range(atoms):
        first[atom] = first[first[atom]]
    return first


@jit
def are_crowded(positions: Any) -> Any:
    """Whether most of the first atoms have another nearer than CROWDED, but not on their place."""
    apart, looked_at = 0, min(LOOKED_AT, len(positions))
    for a in range(looked_at):
        overlaps = False
        for b in range(len(positions)):
            overlaps |= 0 < _squared_distance(positions, a, b) < CROWDED * CROWDED
        apart += not overlaps
    return 2 * apart < looked_at


@jit
def largest_fragments(positions: Any, radii: Any, sizes: Any, ends: Any) -> Any:
    """Return bool[atoms]: which are of the largest fragment of their molecule, of equals the first.

    All are where half of a molecule is in others; none where its atoms are crowded.

    sizes, ends: int64[molecules], of their atoms; those of size 0 are left out
    """
    found = np.zeros(len(radii), np.bool_)
    for size, end in zip(sizes, ends):  # noqa: B905 (Numba knows no `strict`)
        begin = end - size
        places = positions[begin:end]
        if not size or are_crowded(places):
            continue
        first = fragments(size, near_pairs(places, radii[begin:end]))
        atoms = np.bincount(first)
        largest = np.argmax(atoms)
        found[begin:end] = (first == largest) | (2 * atoms[largest] <= size)
    return found

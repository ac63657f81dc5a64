"""Generated ligands and pockets: the same seed gives the same bytes on every machine.

Ligands are random trees and rings on the lattice of diamond, whose bonds have the length and the
angles of saturated carbon, so valences are right and coordinates exact. A pocket is a sum of wells
around the origin with a wall outside.
"""

from typing import BinaryIO

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

from multigpu.errors import UsageError
from multigpu.formats.storage.compressed import Compressed

BOND = 1.54  # Å
STEP = BOND / 3**0.5
# From an atom to its neighbours; every other atom has them in the opposite directions.
DIRECTIONS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))
# Elements by the number of bonds; repeated ones are more likely.
ELEMENTS = (
    ("C",),
    ("C", "C", "O", "N", "F", "Cl"),
    ("C", "C", "C", "N", "O", "S"),
    ("C", "C", "C", "N"),
    ("C",),
)
LIMIT = 1 << 32  # ligands of a file
BATCH = 1000  # ligands that are written at once
MOST_ATOMS = 900  # so that atoms and the bonds of rings fit fields of three digits
WALL = 2.0  # score lost for every Å beyond the radius
DECIMALS = 3
WIDEST = 100  # Å between points, so that a pocket is within what docking takes

Site = tuple[int, int, int]


def _bits(seed: int, stream: int) -> PCG64:
    """Return a source of random words, which every version of NumPy makes alike."""
    if seed < 0:
        raise UsageError(f"seed is {seed}: it must be at least 0")
    return PCG64(SeedSequence([seed, stream]))


def _below(limit: int, bits: PCG64) -> int:
    """Return a random whole number from 0 to limit - 1."""
    return int(bits.random_raw()) % limit


def ligands(
    out: BinaryIO | Compressed, count: int, min_atoms: int, max_atoms: int, seed: int
) -> None:
    """Write `count` ligands lig0, lig1, … as SDF, centred on the origin, without hydrogens.

    min_atoms, max_atoms  numbers of atoms are uniform from the one up to and with the other

    Raises UsageError for impossible quantities, before anything is written.
    """
    if not 0 <= count < LIMIT:
        raise UsageError(f"count is {count}: it must be at least 0, and less than {LIMIT:,}")
    if not 1 <= min_atoms <= max_atoms <= MOST_ATOMS:
        raise UsageError(f"atoms from {min_atoms} to {max_atoms}: 1 to {MOST_ATOMS} are possible")
    for begin in range(0, count, BATCH):
        batch = range(begin, min(begin + BATCH, count))
        out.write("".join(_ligand(i, min_atoms, max_atoms, seed) for i in batch).encode())


def _ligand(number: int, min_atoms: int, max_atoms: int, seed: int) -> str:
    bits = _bits(seed, number)
    sites, bonds = _grow(min_atoms + _below(max_atoms - min_atoms + 1, bits), bits)
    degrees = np.bincount(np.array(bonds, int).ravel(), minlength=len(sites))
    choices = [ELEMENTS[degree] for degree in degrees.tolist()]
    elements = [choice[_below(len(choice), bits)] for choice in choices]
    places = np.array(sites) * STEP
    places -= places.mean(axis=0)
    atom_lines = [
        f"{x:10.4f}{y:10.4f}{z:10.4f} {element:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"
        for element, (x, y, z) in zip(elements, places.tolist(), strict=True)
    ]
    bond_lines = [f"{a + 1:3d}{b + 1:3d}  1  0\n" for a, b in bonds]
    head = f"lig{number}\n  multigpu          3D\n\n"
    counts = f"{len(sites):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"
    return "".join([head, counts, *atom_lines, *bond_lines, "M  END\n$$$$\n"])


def _grow(atoms: int, bits: PCG64) -> tuple[list[Site], list[tuple[int, int]]]:
    """Return sites, each a neighbour of an earlier one, and the bonds between all neighbours."""
    sites: list[Site] = [(0, 0, 0)]
    number = {sites[0]: 0}
    signs = [1]
    bonds: list[tuple[int, int]] = []
    while len(sites) < atoms:
        start = _below(len(sites), bits)
        site = _neighbours(sites[start], signs[start])[_below(4, bits)]
        if site in number:
            continue
        sign = -signs[start]
        near = sorted(number[other] for other in _neighbours(site, sign) if other in number)
        bonds += [(other, len(sites)) for other in near]
        number[site] = len(sites)
        sites.append(site)
        signs.append(sign)
    return sites, bonds


def _neighbours(site: Site, sign: int) -> list[Site]:
    x, y, z = site
    return [(x + sign * dx, y + sign * dy, z + sign * dz) for dx, dy, dz in DIRECTIONS]


def pocket(out: BinaryIO, points: int, spacing: float, wells: int, seed: int) -> None:
    """Write a pocket around the origin as .npz: `grid`, `origin` and `spacing`.

    points   along each axis
    spacing  Å
    wells    places where atoms score, of random depth and width, within half of the box

    Raises UsageError for impossible quantities, before anything is written.
    """
    if points < 2 or points > 1000 or wells < 1 or not 1e-6 <= spacing <= WIDEST:
        spacings = f"a spacing of 1e-6 to {WIDEST} Å"
        raise UsageError(f"a pocket needs 2 to 1000 points, {spacings} and at least one well")
    if wells > points**3:
        raise UsageError(f"a pocket of {points} points along each axis has no {wells:,} wells")
    half = spacing * (points - 1) / 2
    axis = np.arange(points) * spacing - half
    grid = np.zeros((points,) * 3)
    chance = Generator(_bits(seed, 0))
    for _ in range(wells):
        *center, depth, width = chance.random(5).tolist()
        x, y, z = (
            np.exp(-(((axis - (2 * c - 1) * half / 2) / (1.0 + width)) ** 2)) for c in center
        )
        grid += (0.5 + depth) * x[:, None, None] * y[:, None] * z
    squared = axis**2
    radius = np.sqrt(squared[:, None, None] + squared[:, None] + squared)
    grid -= WALL * np.maximum(radius - half * 0.75, 0)
    values = np.round(grid, DECIMALS).astype(np.float32)
    np.savez(out, grid=values, origin=np.full(3, -half), spacing=np.float64(spacing))

"""Generated ligands and pockets: the same seed gives the same bytes, on every machine.

Ligands are random trees and rings on the lattice of diamond, whose bonds have the length and the
angles of saturated carbon, so their valences are right and their coordinates exact. A pocket is a
sum of wells around the origin with a wall outside.
"""

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.random import PCG64, SeedSequence
from numpy.typing import NDArray

from multigpu.errors import UsageError
from multigpu.scan.simulate import Sink

BOND = 1.54  # Å
STEP = BOND / 3**0.5
TOWARDS = ((1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1))  # of every other atom: −
ELEMENTS = (  # by the number of bonds: what may stand there, the more likely the more often
    ("C",),
    ("C", "C", "O", "N", "F", "Cl"),
    ("C", "C", "C", "N", "O", "S"),
    ("C", "C", "C", "N"),
    ("C",),
)
LIMIT = 1 << 32  # ligands of a file
BATCH = 1000  # ligands in one piece of text
MOST_ATOMS = 900  # for the fields of three digits, with the bonds of rings
WALL = 2.0  # score that every Å beyond the radius takes
DECIMALS = 3


class _Random:
    """Whole numbers out of the raw words of PCG64, which are the same in every version."""

    def __init__(self, seed: int, *stream: int) -> None:
        if seed < 0:
            raise UsageError(f"seed is {seed}: it must be at least 0")
        self._bits = PCG64(SeedSequence([seed, *stream]))

    def below(self, limit: int) -> int:
        return int(self._bits.random_raw()) % limit

    def fractions(self, count: int) -> NDArray[np.float64]:
        """float64[count] in 0..1"""
        fractions: NDArray[np.float64] = (self._bits.random_raw(count) >> np.uint64(11)) / 2.0**53
        return fractions


def ligands(out: Sink, count: int, min_atoms: int, max_atoms: int, seed: int) -> None:
    """Write `count` ligands lig0, lig1, … as SDF, centred on the origin, hydrogens left out.

    min_atoms  of the smallest; numbers are uniform up to and with `max_atoms`
    raises     UsageError for impossible quantities, before anything is written
    """
    if not 0 <= count < LIMIT:
        raise UsageError(f"count is {count}: it must be at least 0, and less than {LIMIT:,}")
    if not 1 <= min_atoms <= max_atoms <= MOST_ATOMS:
        raise UsageError(f"atoms from {min_atoms} to {max_atoms}: 1 to {MOST_ATOMS} are possible")
    for begin in range(0, count, BATCH):
        batch = range(begin, min(begin + BATCH, count))
        out.write("".join(_ligand(i, min_atoms, max_atoms, seed) for i in batch).encode())


def _ligand(number: int, min_atoms: int, max_atoms: int, seed: int) -> str:
    random = _Random(seed, number)
    sites, bonds = _grown(random, min_atoms + random.below(max_atoms - min_atoms + 1))
    degrees = np.bincount(np.ravel(bonds), minlength=len(sites)) if bonds else np.zeros(1, int)
    choices = [ELEMENTS[degree] for degree in degrees.tolist()]
    elements = [choice[random.below(len(choice))] for choice in choices]
    places = np.array(sites) * STEP
    places -= places.mean(axis=0)
    atoms = [
        f"{x:10.4f}{y:10.4f}{z:10.4f} {element:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"
        for element, (x, y, z) in zip(elements, places.tolist(), strict=True)
    ]
    joined = [f"{a + 1:3d}{b + 1:3d}  1  0\n" for a, b in bonds]
    head = f"lig{number}\n  multigpu          3D\n\n"
    counts = f"{len(atoms):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"
    return "".join([head, counts, *atoms, *joined, "M  END\n$$$$\n"])


Site = tuple[int, int, int]


def _grown(random: _Random, atoms: int) -> tuple[list[Site], list[tuple[int, int]]]:
    """Sites of the lattice, each a neighbour of one before, and the bonds between neighbours."""
    sites: list[Site] = [(0, 0, 0)]
    number = {sites[0]: 0}
    signs = [1]
    bonds: list[tuple[int, int]] = []
    while len(sites) < atoms:
        start = random.below(len(sites))
        site = _neighbours(sites[start], signs[start])[random.below(4)]
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
    return [(x + sign * dx, y + sign * dy, z + sign * dz) for dx, dy, dz in TOWARDS]


def pocket(out: BinaryIO, points: int, spacing: float, wells: int, seed: int) -> None:
    """Write a pocket around the origin as .npz: `grid`, `origin` and `spacing`.

    points   along each axis
    spacing  Å
    wells    places where atoms score, of random depth and width, within half of the box
    raises   UsageError for impossible quantities, before anything is written
    """
    if points < 2 or points > 1000 or wells < 1 or not 0 < spacing < np.inf:
        raise UsageError("a pocket needs 2 to 1000 points, a spacing above 0 and at least one well")
    if wells > points**3:
        raise UsageError(f"a pocket of {points} points along each axis has no {wells:,} wells")
    random = _Random(seed, 0)
    half = spacing * (points - 1) / 2
    axis = np.arange(points) * spacing - half
    grid = np.zeros((points,) * 3)
    for x, y, z, depth, width in _wells(random, wells, half):
        near = [np.exp(-(((axis - center) / width) ** 2)) for center in (x, y, z)]
        grid += depth * near[0][:, None, None] * near[1][:, None] * near[2]
    squared = axis**2
    radius = np.sqrt(squared[:, None, None] + squared[:, None] + squared)
    grid -= WALL * np.maximum(radius - half * 0.75, 0)
    values = np.round(grid, DECIMALS).astype(np.float32)
    np.savez(out, grid=values, origin=np.full(3, -half), spacing=np.float64(spacing))


def _wells(random: _Random, count: int, half: float) -> Iterator[tuple[float, ...]]:
    for _ in range(count):
        x, y, z, depth, width = random.fractions(5).tolist()
        yield *((2 * c - 1) * half / 2 for c in (x, y, z)), 0.5 + depth, 1.0 + width

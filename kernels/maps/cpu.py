"""AutoGrid 4's maps on a CPU: in Numba, one thread, without the GIL; row by row of points."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.maps.autogrid import (
    CUTOFF,
    FAR_FIRST,
    FAR_SHIFT,
    LONE_PAIRS,
    MANY,
    POLARITY,
    RAMP_TERMS,
    STEPS,
    Bond,
    prepare,
)
from multigpu.kernels.maps.types import Floats, GridBox, Maps, Receptor, rounded


class RowBuffers(NamedTuple):
    """Memory for the points of a row, beside their energies."""

    least: Floats  # float64[nz]: squared distance of the nearest donor
    nearest: NDArray[np.int32]  # int32[nz]: which it is
    electrostatics: Floats  # float64[nz]: sums over all atoms
    solvations: Floats  # float64[nz]: sums over those within the cutoff
    lows: Floats  # float64[nz, probes]: least of the energies of `Bond.SINGLE`
    highs: Floats  # float64[nz, probes]: greatest of them


def compute_maps(receptor: Receptor, box: GridBox, types: Sequence[str]) -> Maps:
    """Return what `multigpu.kernels.maps.compute_maps` does."""
    inputs, points = prepare(receptor, box, types), box.shape[2]
    least, electrostatics, solvations = np.empty((3, points))
    lows, highs = np.empty((2, points, len(types)))
    row = RowBuffers(least, np.empty(points, np.int32), electrostatics, solvations, lows, highs)
    names = [*types, "e", "d"]
    return in_slabs(box, names, lambda ix, slab: _fill(inputs, inputs.x[ix], row, slab))


@jit_no_alloc
def _fill(inputs: Any, x: Any, row: Any, slab: Any) -> Any:
    """Set the energies of a slab of points, float64[ny, nz, probes + 2]."""
    probes = len(inputs.probes)
    for iy in range(slab.shape[0]):
        energies = slab[iy]
        _find_donors(inputs, x, inputs.y[iy], row)
        row.electrostatics[:], row.solvations[:] = 0.0, 0.0
        row.lows[:], row.highs[:] = MANY, -MANY
        for atom in range(len(inputs.atoms)):
            _add_atom(inputs, atom, x, inputs.y[iy], row, energies)
        for iz in range(slab.shape[1]):
            volumes = energies[iz, probes + 1]
            for probe in range(probes):
                if row.lows[iz, probe] < MANY:
                    energies[iz, probe] += row.lows[iz, probe] + row.highs[iz, probe]
                energies[iz, probe] += volumes * inputs.probes[probe, 0]
                energies[iz, probe] += row.solvations[iz] * inputs.probes[probe, 1]
            energies[iz, probes] = row.electrostatics[iz]
            energies[iz, probes + 1] = volumes * POLARITY


@jit_no_alloc
def _find_donors(inputs: Any, x: Any, y: Any, row: Any) -> Any:
    """Find the donor nearest to each point of a row, among those within the cutoff."""
    row.least[:], row.nearest[:] = MANY, -1
    for donor in inputs.donors:
        dx, dy, z = inputs.atoms[donor].x - x, inputs.atoms[donor].y - y, inputs.atoms[donor].z
        level = dx * dx + dy * dy
        if level < CUTOFF * CUTOFF:
            low, high = reach(z, math.sqrt(CUTOFF * CUTOFF - level), inputs.z)
            for iz in range(low, high):
                square = level + (z - inputs.z[iz]) * (z - inputs.z[iz])
                if square < row.least[iz]:
                    row.least[iz], row.nearest[iz] = square, donor


@jit_no_alloc
def _add_atom(inputs: Any, atom: Any, x: Any, y: Any, row: Any, energies: Any) -> Any:
    """Add the energies of an atom to those of a row, float64[nz, probes + 2]."""
    record, probes = inputs.atoms[atom], len(inputs.probes)
    charge, kind, z = record.charge, record.kind, record.z
    dx, dy = record.x - x, record.y - y
    level = dx * dx + dy * dy
    if charge != 0.0:
        _add_far(charge, level, z, inputs.z, inputs.far, row.electrostatics)
    if level >= CUTOFF * CUTOFF:
        return
    low, high = reach(z, math.sqrt(CUTOFF * CUTOFF - level), inputs.z)
    for iz in range(low, high):
        dz = z - inputs.z[iz]
        square = level + dz * dz
        if square >= CUTOFF * CUTOFF:
            continue
        r = math.sqrt(square)
        entry = int(r * STEPS)
        row.electrostatics[iz] += charge * inputs.screening[entry] / max(r, 0.5)
        energies[iz, probes + 1] += inputs.water[entry] * record.volume
        row.solvations[iz] += inputs.water[entry] * record.solvation
        inverse, share, beside = 1.0 / r if r > 0.0 else 0.0, -1.0, -1.0
        for probe in range(probes):
            energy, bond = inputs.pairs[kind, entry, probe], inputs.bonds[kind, probe]
            if bond == Bond.NONE:
                energies[iz, probe] += energy
                continue
            if share < 0.0:
                share = _share(record, dx * inverse, dy * inverse, dz * inverse)
            energy = _directed(energy, share)
            if bond == Bond.SHARED:
                if beside < 0.0:
                    alone = record.power == 0 or share <= 0.0 or atom == row.nearest[iz]
                    nearest = inputs.atoms[row.nearest[iz]]
                    beside = 1.0 if alone else _ramp(nearest, record, inputs.ramp)
                energies[iz, probe] += beside * energy
            else:
                row.lows[iz, probe] = min(row.lows[iz, probe], energy)
                row.highs[iz, probe] = max(row.highs[iz, probe], energy)


@jit_no_alloc
def _add_far(charge: Any, level: Any, z: Any, points: Any, far: Any, electrostatics: Any) -> Any:
    """Add the electrostatics of an atom where it is beyond the cutoff; vector instructions."""
    for iz in range(len(points)):
        square = level + (z - points[iz]) * (z - points[iz])
        k = max((np.float64(square).view(np.int64) >> FAR_SHIFT) - FAR_FIRST, 0)
        electrostatics[iz] += charge * far[k]


@jit_no_alloc
def _directed(energy: Any, share: Any) -> Any:
    """Return the energy of a hydrogen bond in a direction: repulsion does not depend on it."""
    steric = min(max(energy / 100.0, 0.0), 1.0)
    return energy * (share + (1.0 - share) * steric)


@jit_no_alloc
def _dot(vector: Any, x: Any, y: Any, z: Any) -> Any:
    return x * vector[0] + y * vector[1] + z * vector[2]


@jit_no_alloc
def _ramp(nearest: Any, atom: Any, terms: Any) -> Any:
    """Return (1 − cos(4/3 θ)) / 2 of the angle θ between the axes of two donors.

    The series takes t: cos θ = 2 t² − 1.
    """
    one = nearest.frame[0]
    cosine = min(max(_dot(atom.frame[0], one[0], one[1], one[2]), -1.0), 1.0)
    u = (1.0 - math.sqrt((1.0 + cosine) * 0.5)) * 0.5
    value = 0.0
    for k in range(RAMP_TERMS - 1, -1, -1):
        value = value * u + terms[k]
    return 0.5 - 0.5 * value


@jit_no_alloc
def _share(atom: Any, x: Any, y: Any, z: Any) -> Any:
    """Return how good the direction of a hydrogen bond is, 0 to 1, from the point to the atom.

    Lone pairs are those of Boobbyer et al., J. Med. Chem. 32, 1083, 1989.
    """
    if atom.power == 0:
        return 1.0
    cosine = 0.0 - _dot(atom.frame[0], x, y, z)
    if atom.power != LONE_PAIRS:
        squared = max(cosine, 0.0) * max(cosine, 0.0)
        return squared if atom.power == 2 else squared * squared
    if cosine < -0.34202:
        return 0.0
    out = _dot(atom.frame[1], x, y, z)
    level = math.sqrt(max(1.0 - out * out, 0.0))  # cosine of the angle out of the plane
    if cosine < 0.0:
        rest = 0.116978 - cosine * cosine
        return 562.25 * (rest * rest * rest) * level
    along = abs(_dot(atom.frame[2], x, y, z))
    sine = min(along / level, 1.0) if level > 0.0 else 0.0  # of the angle in the plane
    return (0.9 + 0.2 * sine * math.sqrt(1.0 - sine * sine)) * level


def in_slabs(box: GridBox, names: Sequence[str], fill: Callable[[int, Floats], None]) -> Maps:
    """Return maps of these names, AutoGrid's or Vina's, rounded.

    fill: called with ix and float64[ny, nz, names] of 0, sets the energies there
    """
    maps = np.empty((len(names), *box.shape), np.float32)
    for ix in range(box.shape[0]):
        slab = np.zeros((*box.shape[1:], len(names)))
        fill(ix, slab)
        maps[:, ix] = rounded(slab).transpose(2, 0, 1)
    return dict(zip(names, maps, strict=True))


@jit_no_alloc
def reach(place: Any, distance: Any, points: Any) -> Any:
    """Return a range of even points along an axis with all that are nearer to a place."""
    spacing = points[1] - points[0]
    low = math.floor((place - distance - points[0]) / spacing)
    high = math.ceil((place + distance - points[0]) / spacing) + 1
    return min(max(low, 0), len(points)), min(max(high, 0), len(points))

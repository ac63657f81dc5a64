"""AutoGrid 4's maps on a CPU: in Numba, one thread, without the GIL; a block of points at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.maps.autogrid import (
    CUTOFF,
    FIRST_OCTAVE,
    OCTAVES,
    PARTS,
    POLARITY,
    RAMP_TERMS,
    STEPS,
    prepare,
)
from multigpu.kernels.maps.blocks import NODES, SIDE, lattice_of
from multigpu.kernels.maps.types import Floats, GridBox, Maps, Receptor, rounded

FAR_SHIFT = 52 - PARTS.bit_length() + 1  # leaves exponent and part of a float64's bits
FAR_FIRST = (1023 + FIRST_OCTAVE) * PARTS
CUTOFF_SQUARED = CUTOFF * CUTOFF
MANY = 1e30  # kcal/mol, above every energy
assert OCTAVES + FIRST_OCTAVE == 37  # squared distances up to 2^37 Å²


class BlockBuffers(NamedTuple):
    """Memory for a block of points.

    near, donors       int32[atoms]       near atoms; which of these are donors
    places, squares    float64[3, atoms], float64[atoms]  of near atoms; distances from a point
    fields             float64[64]        far atoms' electrostatics at the nodes
    nodes              float64[3, 64]     where these are
    sums, lows, highs  float64[probes]    energies at a point
    """

    near: NDArray[np.int32]
    donors: NDArray[np.int32]
    places: Floats
    squares: Floats
    fields: Floats
    nodes: Floats
    sums: Floats
    lows: Floats
    highs: Floats


def compute_maps(receptor: Receptor, box: GridBox, types: Sequence[str]) -> Maps:
    """Return what `multigpu.kernels.maps.compute_maps` does."""
    atoms, tables, probes = prepare(receptor, box, types)
    values = np.empty((len(types) + 2, *box.shape))
    nodes = len(NODES) ** 3
    room = BlockBuffers(
        *np.empty((2, len(receptor)), np.int32),
        *(np.empty((3, len(receptor))), np.empty(len(receptor))),
        *(np.empty(nodes), np.empty((3, nodes))),
        *np.empty((3, len(types))),
    )
    _fill(atoms, tables, probes, lattice_of(box), room, values)
    return dict(zip([*types, "e", "d"], rounded(values), strict=True))


@jit_no_alloc
def _fill(atoms: Any, tables: Any, probes: Any, lattice: Any, room: Any, values: Any) -> Any:
    """Set float64[probes + 2, nx, ny, nz]."""
    shape = values.shape
    for bx in range(0, shape[1], SIDE):
        for by in range(0, shape[2], SIDE):
            for bz in range(0, shape[3], SIDE):
                near, donors = _list_near(atoms, lattice, (bx, by, bz), room)
                _set_fields(atoms, tables.far, lattice, (bx, by, bz), room)
                for ix in range(bx, min(bx + SIDE, shape[1])):
                    for iy in range(by, min(by + SIDE, shape[2])):
                        for iz in range(bz, min(bz + SIDE, shape[3])):
                            point = (
                                (ix - lattice.halves[0]) * lattice.spacing,
                                (iy - lattice.halves[1]) * lattice.spacing,
                                (iz - lattice.halves[2]) * lattice.spacing,
                            )
                            charge, water = _sum(atoms, tables, probes, room, near, donors, point)
                            far = _interpolated(
                                room.fields, lattice.weights, ix - bx, iy - by, iz - bz
                            )
                            for probe in range(shape[0] - 2):
                                values[probe, ix, iy, iz] = room.sums[probe]
                            values[shape[0] - 2, ix, iy, iz] = charge + far
                            values[shape[0] - 1, ix, iy, iz] = water * POLARITY


@jit_no_alloc
def _is_near(atoms: Any, lattice: Any, block: Any, atom: Any) -> Any:
    """Return whether an atom is within reach of a block."""
    square = 0.0
    for axis in range(3):
        low = (block[axis] - lattice.halves[axis]) * lattice.spacing
        high = (block[axis] + (SIDE - 1) - lattice.halves[axis]) * lattice.spacing
        at = atoms.places[atom, axis]
        apart = max(max(low - at, at - high), 0.0)
        square += apart * apart
    return square <= lattice.reach * lattice.reach


@jit_no_alloc
def _list_near(atoms: Any, lattice: Any, block: Any, room: Any) -> Any:
    """List the near atoms of a block in order; return how many, and how many donors."""
    near, donors = 0, 0
    for atom in range(atoms.places.shape[0]):
        if _is_near(atoms, lattice, block, atom):
            room.near[near] = atom
            for axis in range(3):
                room.places[axis, near] = atoms.places[atom, axis]
            if atoms.roles[atom] == 1 or atoms.roles[atom] == 2:
                room.donors[donors] = near
                donors += 1
            near += 1
    return near, donors


@jit_no_alloc
def _far_energy(far: Any, square: Any) -> Any:
    """Return the electrostatics of two charges of 1 e beyond the cutoff, from their distance²."""
    k = (np.float64(square).view(np.int64) >> FAR_SHIFT) - FAR_FIRST
    return far[k, 0] + far[k, 1] * square


@jit_no_alloc
def _set_fields(atoms: Any, far: Any, lattice: Any, block: Any, room: Any) -> Any:
    """Set the electrostatics of far atoms at a block's nodes."""
    nodes, fields, at = lattice.nodes.shape[0], room.fields, room.nodes
    for node in range(nodes * nodes * nodes):
        x, y, z = node // (nodes * nodes), node // nodes % nodes, node % nodes
        at[0, node] = (block[0] + lattice.nodes[x] - lattice.halves[0]) * lattice.spacing
        at[1, node] = (block[1] + lattice.nodes[y] - lattice.halves[1]) * lattice.spacing
        at[2, node] = (block[2] + lattice.nodes[z] - lattice.halves[2]) * lattice.spacing
        fields[node] = 0.0
    for atom in range(atoms.places.shape[0]):
        charge = atoms.charges[atom]
        if charge == 0.0 or _is_near(atoms, lattice, block, atom):
            continue
        ax, ay, az = atoms.places[atom, 0], atoms.places[atom, 1], atoms.places[atom, 2]
        for node in range(fields.shape[0]):
            x, y, z = ax - at[0, node], ay - at[1, node], az - at[2, node]
            fields[node] += charge * _far_energy(far, x * x + y * y + z * z)


@jit_no_alloc
def _interpolated(fields: Any, weights: Any, ix: Any, iy: Any, iz: Any) -> Any:
    """Return the field of far atoms at a point of a block."""
    nodes = weights.shape[1]
    total = 0.0
    for x in range(nodes):
        plane = 0.0
        for y in range(nodes):
            line = 0.0
            for z in range(nodes):
                line += weights[iz, z] * fields[(x * nodes + y) * nodes + z]
            plane += weights[iy, y] * line
        total += weights[ix, x] * plane
    return total


@jit_no_alloc
def _sum(
    atoms: Any, tables: Any, probes: Any, room: Any, near: Any, donors: Any, point: Any
) -> Any:
    """Set the energies of the probes at a point; return the near charges' energy, and water's."""
    sums, lows, highs, squares, count = (
        room.sums,
        room.lows,
        room.highs,
        room.squares,
        len(room.sums),
    )
    for probe in range(count):
        sums[probe], lows[probe], highs[probe] = 0.0, MANY, -MANY
    for j in range(near):
        x = room.places[0, j] - point[0]
        y = room.places[1, j] - point[1]
        z = room.places[2, j] - point[2]
        squares[j] = x * x + y * y + z * z
    nearest, least = -1, MANY
    for k in range(donors):
        if squares[room.donors[k]] < least:
            least = squares[room.donors[k]]
            nearest = room.near[room.donors[k]]
    electrostatics, volumes, solvations = 0.0, 0.0, 0.0
    for j in range(near):
        square, atom = squares[j], room.near[j]
        if square > CUTOFF_SQUARED:
            electrostatics += atoms.charges[atom] * _far_energy(tables.far, square)
            continue
        r = np.sqrt(square)
        entry = int(r * STEPS)
        electrostatics += atoms.charges[atom] * tables.screening[entry] / max(r, 0.5)
        volumes += tables.water[entry] * atoms.volumes[atom]
        solvations += tables.water[entry] * atoms.solvations[atom]
        pairs = tables.pairs[atoms.kinds[atom], entry]
        role = atoms.roles[atom]
        if role == 0:
            for probe in range(count):
                sums[probe] += pairs[probe]
            continue
        inverse = 1.0 / r if r > 0.0 else 0.0
        dx = (room.places[0, j] - point[0]) * inverse
        dy = (room.places[1, j] - point[1]) * inverse
        dz = (room.places[2, j] - point[2]) * inverse
        if role <= 2:
            share, facing = _donor_share(atoms, atom, dx, dy, dz)
            beside = -1.0
            for probe in range(count):
                other, energy = probes.roles[probe], pairs[probe]
                if other == 3 or other == 5:
                    if beside < 0.0:
                        beside = 1.0
                        if facing and atom != nearest:
                            beside = _ramp(atoms.axes, nearest, atom, tables.ramp)
                    sums[probe] += beside * _directed(energy, share)
                elif other == 4:
                    bond = _directed(energy, share)
                    lows[probe], highs[probe] = min(lows[probe], bond), max(highs[probe], bond)
                else:
                    sums[probe] += energy
        else:
            share = -1.0
            for probe in range(count):
                other, energy = probes.roles[probe], pairs[probe]
                if other == 1 or other == 2:
                    if share < 0.0:
                        share = _acceptor_share(atoms, atom, dx, dy, dz)
                    bond = _directed(energy, share)
                    lows[probe], highs[probe] = min(lows[probe], bond), max(highs[probe], bond)
                else:
                    sums[probe] += energy
    for probe in range(count):
        if lows[probe] < MANY:
            sums[probe] += lows[probe] + highs[probe]
        sums[probe] += volumes * probes.solvations[probe] + solvations * probes.volumes[probe]
    return electrostatics, volumes


@jit_no_alloc
def _directed(energy: Any, share: Any) -> Any:
    """Return the energy of a hydrogen bond in a direction: repulsion does not depend on it."""
    steric = min(max(energy / 100.0, 0.0), 1.0)
    return energy * (share + (1.0 - share) * steric)


@jit_no_alloc
def _cosine(axes: Any, atom: Any, dx: Any, dy: Any, dz: Any) -> Any:
    """Return the cosine between an atom's axis and the direction from it to the point, −d."""
    return 0.0 - (dx * axes[atom, 0] + dy * axes[atom, 1] + dz * axes[atom, 2])


@jit_no_alloc
def _donor_share(atoms: Any, atom: Any, dx: Any, dy: Any, dz: Any) -> Any:
    """Return how good a donor's direction is, 0 to 1, and whether the point is before it."""
    if atoms.roles[atom] == 1:
        return 1.0, False
    cosine = _cosine(atoms.axes, atom, dx, dy, dz)
    if cosine <= 0.0:
        return 0.0, False
    squared = cosine * cosine
    return (squared if atoms.powers[atom] == 2 else squared * squared), True


@jit_no_alloc
def _ramp(axes: Any, nearest: Any, atom: Any, terms: Any) -> Any:
    """Return (1 − cos(4/3 θ)) / 2 of the angle θ between the axes of two donors.

    It is that of the nearest donor and the donor itself; cos θ = 2 t² − 1.
    """
    cosine = 0.0
    for axis in range(3):
        cosine += axes[nearest, axis] * axes[atom, axis]
    cosine = min(max(cosine, -1.0), 1.0)
    u = (1.0 - np.sqrt((1.0 + cosine) * 0.5)) * 0.5
    value = 0.0
    for k in range(RAMP_TERMS - 1, -1, -1):
        value = value * u + terms[k]
    return 0.5 - 0.5 * value


@jit_no_alloc
def _acceptor_share(atoms: Any, atom: Any, dx: Any, dy: Any, dz: Any) -> Any:
    """Return how good an acceptor's direction is, 0 to 1 (Boobbyer et al. 1989 for two bonds)."""
    role = atoms.roles[atom]
    if role == 3:
        return 1.0
    cosine = _cosine(atoms.axes, atom, dx, dy, dz)
    if role == 4:
        return cosine * cosine if cosine > 0.0 else 0.0
    if cosine < -0.34202:
        return 0.0
    nx, ny, nz = atoms.normals[atom, 0], atoms.normals[atom, 1], atoms.normals[atom, 2]
    out = dx * nx + dy * ny + dz * nz
    level = np.sqrt(max(1.0 - out * out, 0.0))  # cosine of the angle out of the plane
    if cosine < 0.0:
        rest = 0.116978 - cosine * cosine
        return 562.25 * (rest * rest * rest) * level
    x, y, z = dy * nz - dz * ny, dz * nx - dx * nz, dx * ny - dy * nx
    length = x * x + y * y + z * z
    sine = 0.0  # of the angle in the plane
    if length > 0.0:
        axes = atoms.axes
        sine = (x * axes[atom, 0] + y * axes[atom, 1] + z * axes[atom, 2]) / np.sqrt(length)
    sine = min(abs(sine), 1.0)
    return (0.9 + 0.2 * sine * np.sqrt(1.0 - sine * sine)) * level

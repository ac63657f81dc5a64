"""AutoGrid 4's maps on a CPU: in Numba, one thread, without the GIL; block by block."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.maps.autogrid import (
    CUTOFF,
    FAR_FIRST,
    FAR_SHIFT,
    MANY,
    POLARITY,
    RAMP_TERMS,
    STEPS,
    prepare,
)
from multigpu.kernels.maps.blocks import NODES, SIDE, lattice_of
from multigpu.kernels.maps.types import Floats, GridBox, Maps, Receptor, rounded

CUTOFF_SQUARED = CUTOFF * CUTOFF


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
    atoms, tables = prepare(receptor, box, types)
    values = np.empty((len(types) + 2, *box.shape))
    nodes = len(NODES) ** 3
    near, donors = np.empty((2, len(receptor)), np.int32)
    places, squares = np.empty((3, len(receptor))), np.empty(len(receptor))
    at_nodes = (np.empty(nodes), np.empty((3, nodes)))
    room = BlockBuffers(near, donors, places, squares, *at_nodes, *np.empty((3, len(types))))
    _fill(atoms, tables, lattice_of(box), room, values)
    names = [*types, "e", "d"]
    return {name: rounded(each) for name, each in zip(names, values, strict=True)}


@jit_no_alloc
def _fill(atoms: Any, tables: Any, lattice: Any, room: Any, values: Any) -> Any:
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
                            charge, water = _sum(atoms, tables, room, near, donors, point)
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
def _sum(atoms: Any, tables: Any, room: Any, near: Any, donors: Any, point: Any) -> Any:
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
        kind, inverse, share = atoms.kinds[atom], 1.0 / r if r > 0.0 else 0.0, -1.0
        for probe in range(count):
            energy, bond = tables.pairs[kind, entry, probe], tables.bonds[kind, probe]
            if bond == 0:
                sums[probe] += energy
                continue
            if share < 0.0:
                x = (room.places[0, j] - point[0]) * inverse
                y = (room.places[1, j] - point[1]) * inverse
                z = (room.places[2, j] - point[2]) * inverse
                share, beside = _share(atoms, atom, x, y, z), 1.0
                if atoms.roles[atom] == 2 and share > 0.0 and atom != nearest:
                    beside = _ramp(atoms.axes, nearest, atom, tables.ramp)
            energy = _directed(energy, share)
            if bond == 1:
                sums[probe] += beside * energy
            else:
                lows[probe], highs[probe] = min(lows[probe], energy), max(highs[probe], energy)
    for probe in range(count):
        if lows[probe] < MANY:
            sums[probe] += lows[probe] + highs[probe]
        sums[probe] += volumes * tables.probe_solvations[probe]
        sums[probe] += solvations * tables.probe_volumes[probe]
    return electrostatics, volumes


@jit_no_alloc
def _directed(energy: Any, share: Any) -> Any:
    """Return the energy of a hydrogen bond in a direction: repulsion does not depend on it."""
    steric = min(max(energy / 100.0, 0.0), 1.0)
    return energy * (share + (1.0 - share) * steric)


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
def _share(atoms: Any, atom: Any, dx: Any, dy: Any, dz: Any) -> Any:
    """Return how good the direction of a hydrogen bond is, 0 to 1; d: from the point to the atom.

    That of a double acceptor is of Boobbyer et al., J. Med. Chem. 32, 1083, 1989.
    """
    role, axes, normals = atoms.roles[atom], atoms.axes, atoms.normals
    if role == 1 or role == 3:
        return 1.0
    cosine = 0.0 - (dx * axes[atom, 0] + dy * axes[atom, 1] + dz * axes[atom, 2])
    if role != 5:
        if cosine <= 0.0:
            return 0.0
        squared = cosine * cosine
        return squared if atoms.powers[atom] == 2 else squared * squared
    if cosine < -0.34202:
        return 0.0
    nx, ny, nz = normals[atom, 0], normals[atom, 1], normals[atom, 2]
    out = dx * nx + dy * ny + dz * nz
    level = np.sqrt(max(1.0 - out * out, 0.0))  # cosine of the angle out of the plane
    if cosine < 0.0:
        rest = 0.116978 - cosine * cosine
        return 562.25 * (rest * rest * rest) * level
    x, y, z = dy * nz - dz * ny, dz * nx - dx * nz, dx * ny - dy * nx
    length = x * x + y * y + z * z
    sine = 0.0  # of the angle in the plane
    if length > 0.0:
        sine = (x * axes[atom, 0] + y * axes[atom, 1] + z * axes[atom, 2]) / np.sqrt(length)
    sine = min(abs(sine), 1.0)
    return (0.9 + 0.2 * sine * np.sqrt(1.0 - sine * sine)) * level

"""AutoGrid 4's energies of a probe atom near a receptor: parameters, tables, bond directions.

The force field is AutoDock 4.1's (Huey, Morris, Olson & Goodsell, J. Comput. Chem. 28, 1145, 2007).
Its parameters are those that autogrid4 4.2.6 has built in, its rules those of that program's users'
guide, with thresholds as the program behaves; `docs/dock.md` has them in words. Tables belong to
the definition: a distance is truncated to 0.01 Å before anything is looked up by it.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.maps.types import DECIMALS, Floats, GridBox, Receptor, require_types
from multigpu.kernels.numerics.log2_exp2 import LOG2E, exp2_of

CUTOFF = 8.0  # Å, of all terms but electrostatics
STEPS = 100  # entries of a table per Å
ENTRIES = int(CUTOFF * STEPS) + 1
SMOOTHING = 25  # entries to either side: the lowest energy within 0.25 Å counts
CEILING = 1e5  # kcal/mol, of a pair
WEIGHT_PAIR, WEIGHT_BOND, WEIGHT_CHARGE, WEIGHT_WATER = 0.1662, 0.1209, 0.1406, 0.1322
COULOMB = 332.0  # kcal Å / (mol e²)
POLARITY = 0.01097  # solvation parameter per e
SIGMA = 3.6  # Å, of the desolvation's Gaussian
WINDOW = 20  # bonded atoms are looked for among so many before and after, in the file's order

# `MapInputs.far` is looked up by the first bits of a squared distance, from CUTOFF² to 2^37 Å².
FIRST_OCTAVE, OCTAVES, PARTS = 6, 31, 2048
FAR_SHIFT = 52 - 11  # leaves log2(PARTS) bits of a float64's fraction
FAR_FIRST = (1023 + FIRST_OCTAVE) * PARTS - 1
RAMP_TERMS = 32
MANY = 1e30  # kcal/mol or Å², above all others
LONE_PAIRS = -1  # in place of a power

# Macros of maps.cu.
DEFINES: dict[str, float] = {"STEPS": STEPS, "ENTRIES": ENTRIES, "RAMP_TERMS": RAMP_TERMS}
DEFINES |= {"FAR_SHIFT": FAR_SHIFT, "FAR_FIRST": FAR_FIRST, "LONE_PAIRS": LONE_PAIRS}
DEFINES |= {"CUTOFF": CUTOFF, "POLARITY": POLARITY, "MANY": MANY, "SCALE": 10.0**DECIMALS}


class Role(IntEnum):
    """Part that an atom plays in a hydrogen bond; "spherical": whatever the direction."""

    NONE = 0
    SPHERICAL_DONOR = 1
    DONOR = 2
    SPHERICAL_ACCEPTOR = 3
    ACCEPTOR = 4  # of one bond
    DOUBLE_ACCEPTOR = 5  # of two bonds


DONORS = (Role.SPHERICAL_DONOR, Role.DONOR)


class Bond(IntEnum):
    """Rule by which the energies of pairs with one probe are put together."""

    NONE = 0  # the sum
    SHARED = 1  # the sum, less where another donor is nearer and looks the same way
    SINGLE = 2  # the least and the greatest alone


class AtomType(NamedTuple):
    """Parameters of an AutoDock type."""

    radius: float  # Å, of a pair of such atoms: the distance of the least energy
    depth: float  # kcal/mol, of that energy
    volume: float  # Å³
    solvation: float  # kcal/(mol Å³)
    role: Role = Role.NONE
    bond_radius: float = 0.0  # Å, of a hydrogen bond with it as the acceptor
    bond_depth: float = 0.0  # kcal/mol, likewise


def _plain(radius: float, depth: float, volume: float) -> AtomType:
    return AtomType(radius, depth, volume, -0.0011)


_O, _N = (3.2, 0.2, 17.1573, -0.00251), (3.5, 0.16, 22.4493, -0.00162)
_S, _H = (4.0, 0.2, 33.5103, -0.00214), (2.0, 0.02, 0.0, 0.00051)
TYPES = {
    "H": AtomType(*_H),
    "HD": AtomType(*_H, Role.DONOR),
    "HS": AtomType(*_H, Role.SPHERICAL_DONOR),
    "C": AtomType(4.0, 0.15, 33.5103, -0.00143),
    "A": AtomType(4.0, 0.15, 33.5103, -0.00052),
    "N": AtomType(*_N),
    "NA": AtomType(*_N, Role.ACCEPTOR, 1.9, 5.0),
    "NS": AtomType(*_N, Role.SPHERICAL_ACCEPTOR, 1.9, 5.0),
    "OA": AtomType(*_O, Role.DOUBLE_ACCEPTOR, 1.9, 5.0),
    "OS": AtomType(*_O, Role.SPHERICAL_ACCEPTOR, 1.9, 5.0),
    "S": AtomType(*_S),
    "SA": AtomType(*_S, Role.DOUBLE_ACCEPTOR, 2.5, 1.0),
    "P": _plain(4.2, 0.2, 38.7924),
    "F": _plain(3.09, 0.08, 15.448),
    "Cl": _plain(4.09, 0.276, 35.8235),
    "Br": _plain(4.33, 0.389, 42.5661),
    "I": _plain(4.72, 0.55, 55.0585),
    "Mg": _plain(1.3, 0.875, 1.56),
    "Ca": _plain(1.98, 0.55, 2.77),
    "Mn": _plain(1.3, 0.875, 2.14),
    "Fe": _plain(1.3, 0.01, 1.84),
    "Zn": _plain(1.48, 0.55, 1.7),
}
TYPES |= {name.upper(): TYPES[name] for name in ("Cl", "Br", "Mg", "Ca", "Mn", "Fe", "Zn")}


# An atom of a receptor, for Numba and CUDA: Å from the center of the box, e, Å³, kcal/(mol Å³) with
# the charge's part. A hydrogen bond's energy goes by the power of the cosine of its angle to the
# first vector of the frame, 0: by none; lone pairs lie across the second, the third is across both.
# Unit vectors, or 0 where they are unknown. The kind is a row of `MapInputs.pairs`.
ATOM = np.dtype(
    [(name, "<f8") for name in ("x", "y", "z", "charge", "volume", "solvation")]
    + [("frame", "<f8", (3, 3)), ("kind", "<i4"), ("power", "<i4")]
)


class MapInputs(NamedTuple):
    """Points, atoms and probes as kernels take them, and functions of the distance r, kcal/mol."""

    x: Floats  # float64[nx]: coordinates of the points, Å from the center of the box
    y: Floats  # float64[ny]
    z: Floats  # float64[nz]
    atoms: NDArray[np.void]  # `ATOM`[n]
    donors: NDArray[np.int32]  # int32[m]: donors among the atoms
    probes: Floats  # float64[probes, 2]: solvation without charge, volume
    bonds: NDArray[np.int32]  # int32[kinds, probes]: how a pair's energies are put together: `Bond`
    pairs: Floats  # float64[kinds, ENTRIES, probes]: 12-6 or 12-10, smoothed, at floor(100 r)
    screening: Floats  # float64[ENTRIES]: electrostatics of two charges of 1 e, times r, at ⌊100 r⌋
    water: Floats  # float64[ENTRIES]: desolvation's Gaussian, at floor(100 r)
    # float64[parts]: electrostatics beyond the cutoff, else 0; parts of r², PARTS an octave, from 1
    far: Floats
    ramp: Floats  # float64[RAMP_TERMS]: powers of (1 − t) / 2 in cos(8/3 · arccos t), 0 ≤ t ≤ 1


def prepare(receptor: Receptor, box: GridBox, types: Sequence[str]) -> MapInputs:
    """Return what kernels need. Raises ValueError for a type that the force field lacks."""
    require_types(receptor, types, TYPES, "AutoDock 4.1")
    kinds = sorted(set(receptor.types))
    parameters, probes = [TYPES[name] for name in receptor.types], [TYPES[name] for name in types]
    atoms = np.zeros(len(receptor), ATOM)
    atoms["x"], atoms["y"], atoms["z"] = (receptor.positions - np.array(box.center, np.float64)).T
    atoms["charge"] = receptor.charges
    atoms["volume"] = [each.volume for each in parameters]
    atoms["solvation"] = [each.solvation for each in parameters]
    atoms["solvation"] += POLARITY * np.abs(receptor.charges)
    atoms["kind"] = [kinds.index(name) for name in receptor.types]
    atoms["frame"], atoms["power"] = directions(receptor)
    pairs = [[pair_energies(probe, TYPES[kind]) for probe in probes] for kind in kinds]
    bonds = [[_bond(TYPES[kind].role, probe.role) for probe in probes] for kind in kinds]
    tables = np.array(pairs).reshape(len(kinds), len(types), ENTRIES).transpose(0, 2, 1)
    x, y, z = (box.spacing * (np.arange(count + 1.0) - count / 2) for count in box.elements)
    return MapInputs(
        x,
        y,
        z,
        atoms=atoms,
        donors=np.flatnonzero([each.role in DONORS for each in parameters]).astype(np.int32),
        probes=np.array([(each.solvation, each.volume) for each in probes]).reshape(-1, 2),
        bonds=np.array(bonds, np.int32),
        pairs=np.ascontiguousarray(tables),
        screening=screening(),
        water=water(),
        far=far_electrostatics(),
        ramp=ramp(),
    )


def _bond(role: Role, probe: Role) -> Bond:
    if role in DONORS and probe > Role.DONOR:
        return Bond.SINGLE if probe == Role.ACCEPTOR else Bond.SHARED
    return Bond.SINGLE if role > Role.DONOR and probe in DONORS else Bond.NONE


def pair_energies(one: AtomType, other: AtomType) -> Floats:
    """Return float64[ENTRIES]: the energy of two atoms, smoothed; 12-10 for hydrogen bonds."""
    for donor, acceptor in ((one, other), (other, one)):
        if donor.role in DONORS and acceptor.role > Role.DONOR:
            radius, depth, power = acceptor.bond_radius, acceptor.bond_depth * WEIGHT_BOND, 10
            break
    else:
        radius, power = (one.radius + other.radius) / 2, 6
        depth = np.sqrt(one.depth * WEIGHT_PAIR * other.depth * WEIGHT_PAIR)
    r = np.arange(1, ENTRIES + SMOOTHING) / STEPS
    ratio = (radius / r) * (radius / r)
    sixth = ratio * ratio * ratio
    attraction = sixth if power == 6 else sixth * ratio * ratio
    wells = depth / (12 - power) * (power * (sixth * sixth) - 12 * attraction)
    walled = np.concatenate([[CEILING], np.minimum(wells, CEILING)])
    padded = np.pad(walled, (SMOOTHING, 0), constant_values=CEILING)
    return np.asarray(sliding_window_view(padded, 2 * SMOOTHING + 1).min(axis=1))


@jit
def _exp(x: Any) -> Any:
    """Return e ** x, the same on every machine; float64[n] below 0."""
    result = np.empty_like(x)
    for k in range(len(x)):
        result[k] = exp2_of(max(x[k] * LOG2E, -900.0))
    return result


def _dielectric(r: Floats) -> Floats:
    """Return the dielectric of Mehler & Solmajer (Protein Eng. 4, 903, 1991) at r in Å."""
    low, rise, decay, shape = -8.5525, 78.4 + 8.5525, 0.003627, 7.7839
    return np.asarray(low + rise / (1 + shape * _exp(-decay * rise * r)))


def screening() -> Floats:
    """Return `MapInputs.screening`: without any dielectric in the first entry."""
    dielectric = _dielectric(np.arange(ENTRIES) / STEPS)
    dielectric[0] = 1.0
    return WEIGHT_CHARGE * COULOMB / dielectric


def water() -> Floats:
    """Return `MapInputs.water`: 0 in the first entry."""
    r = np.arange(ENTRIES) / STEPS
    gaussian: Floats = WEIGHT_WATER * _exp(r * r * (-0.5 / (SIGMA * SIGMA)))
    gaussian[0] = 0.0
    return gaussian


def far_electrostatics() -> Floats:
    """Return `MapInputs.far`; truncation costs half of a step of the other tables on average."""
    octave, part = np.divmod(np.arange(OCTAVES * PARTS), PARTS)
    r = np.sqrt(np.ldexp(1 + (part + 0.5) / PARTS, octave + FIRST_OCTAVE))
    return np.append(0.0, WEIGHT_CHARGE * COULOMB / (r * _dielectric(r - 0.5 / STEPS)))


def ramp() -> Floats:
    """Return `MapInputs.ramp`: the power series of Chebyshev's function of the order 8/3."""
    terms, order = np.ones(RAMP_TERMS), 8 / 3
    for k in range(RAMP_TERMS - 1):
        terms[k + 1] = terms[k] * (k * k - order * order) / ((k + 0.5) * (k + 1))
    return terms


def directions(receptor: Receptor) -> tuple[Floats, NDArray[np.int32]]:
    """Return frames and powers of `ATOM`.

    Atoms are bonded by distance: to a donor the first within √1.9 Å, to an acceptor those within
    1.3 Å (hydrogen) or 1.9 Å (NA: 1.7 Å). The axis of a donor comes from its atom, that of an
    acceptor from the middle of its bonded atoms (or the point nearest on the line through two of
    them, for OA and SA). The lone pairs of C=O lie in the plane of the carbon's other bonds, those
    of C–O–H and C–O–C in the plane across the line through both neighbours.
    """
    places, roles = receptor.positions, np.array([TYPES[name].role for name in receptor.types])
    light = np.isin(receptor.types, ["H", "HD"])
    polar = np.isin(receptor.types, ["HD"])
    axes, normals = np.zeros_like(places), np.zeros_like(places)

    atoms = np.flatnonzero(np.isin(roles, [Role.DONOR, Role.ACCEPTOR, Role.DOUBLE_ACCEPTOR]))
    steps = np.r_[-WINDOW:0, 1 : WINDOW + 1]
    others = np.clip(atoms[:, None] + steps, 0, len(places) - 1)
    absent = others != atoms[:, None] + steps
    squares = np.where(absent, np.inf, _squared(places[others] - places[atoms, None]))

    reach = np.where(roles[atoms] == Role.ACCEPTOR, 2.89, 3.61)[:, None]
    bonded = squares < np.where(light[others], 1.69, reach)
    bonded = np.where((roles[atoms] == Role.DONOR)[:, None], squares < 1.9, bonded)
    order = np.argsort(~bonded, axis=1, kind="stable")[:, :3]
    nearby = np.take_along_axis(others, order, axis=1)
    first, count = nearby[:, 0], bonded.sum(axis=1)

    donors = (roles[atoms] == Role.DONOR) & (count > 0)
    double = roles[atoms] == Role.DOUBLE_ACCEPTOR
    strong = donors & np.isin(np.array(receptor.types)[first], ["OA", "SA"])
    powers = np.zeros(len(places), np.int32)
    powers[atoms] = np.where(double, LONE_PAIRS, np.where(strong, 4, 2))
    at, (one, two) = places[atoms], places[nearby.T[:2]]
    parts = np.where(donors, 1, np.minimum(count, 3))[:, None]
    middle = (places[nearby] * (np.arange(3) < parts)[..., None]).sum(axis=1) / np.fmax(parts, 1)
    axes[atoms] = _unit(np.where(parts > 0, at - middle, 0.0))

    # Of a carbonyl: the last atom that its carbon is bonded to gives the plane.
    spans = _squared(places[others] - one[:, None])
    beyond = (spans < np.where(polar[others], 1.69, 2.89)) & ~absent & (others != first[:, None])
    last = beyond.shape[1] - 1 - np.argmax(beyond[:, ::-1], axis=1)
    flat = double & (count == 1) & beyond.any(axis=1)
    next_to = _unit(places[others[np.arange(len(atoms)), last]] - one)
    normals[atoms[flat]] = _unit(np.cross(axes[atoms], next_to))[flat]

    bent = double & (count > 1)
    line = _unit(two - one)
    along = ((at - one) * line).sum(axis=1)[:, None] * line
    normals[atoms[bent]] = line[bent]
    axes[atoms[bent]] = _unit(at - one - along)[bent]
    return np.stack([axes, normals, np.cross(normals, axes)], axis=1), powers


def _squared(vectors: Floats) -> Floats:
    return np.asarray((vectors * vectors).sum(axis=-1))


def _unit(vectors: Floats) -> Floats:
    """Return vectors of length 1; those of length 0 stay."""
    lengths = np.sqrt(_squared(vectors))[:, None]
    return vectors / np.where(lengths > 0, lengths, 1.0)

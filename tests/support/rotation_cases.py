"""Cases of the pose search that several test files use: the golden ones and random ones."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from multigpu.formats.molecules.pockets import read_pocket
from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import (
    EulerRotations,
    ListedRotations,
    Shifts,
    near_uniform,
)
from multigpu.kernels.rotation.types import (
    Field,
    Ligands,
    Poses,
    PoseSearch,
    energy_channels,
    energy_terms,
)

Array = NDArray[Any]
SEEDS = st.integers(0, 2**32 - 1)
RULES = st.sampled_from(["linear", "nearest"]), st.sampled_from(["clamp", "zero", "penalty"])
PLAIN = (
    "few_atoms", "grid_linear_clamp", "grid_linear_zero", "grid_nearest_clamp", "many_atoms",
    "odd_precision",
)  # fmt: skip
ORIGIN, SPACING = np.array([-3.0, 5.0, 1.5]), np.array([0.5, 0.75, 0.4])
MIDDLE = tuple((ORIGIN + SPACING * (4, 5.5, 4.5)).tolist())


@dataclass(frozen=True)
class Case:
    field: Field
    ligands: Ligands
    search: PoseSearch
    expected: dict[str, Array]  # atoms, score
    given: dict[str, Array]
    facts: dict[str, Any]


def golden_case(folder: Path, precision: float | None = None, **search: Any) -> Case:
    facts = json.loads((folder / "case.json").read_text())
    given, expected = dict(np.load(folder / "input.npz")), dict(np.load(folder / "expected.npz"))
    if "charges" in given:
        values, ligands = _energies(folder, given)
    else:
        values, ligands = given["grid"][None], plain_ligands([given["atoms"]])
    origin, spacing = np.array(facts["origin"]), np.full(3, facts["spacing"])
    how = facts["interpolation"], facts["outside"]
    field = Field(np.ascontiguousarray(values), origin, spacing, *how)
    rotations = EulerRotations(facts["precision_deg"] if precision is None else precision)
    return Case(field, ligands, PoseSearch(rotations, **search), expected, given, facts)


def _energies(folder: Path, given: dict[str, Array]) -> tuple[Array, Ligands]:
    pocket = read_pocket(str(folder / "1stp_protein.maps.fld"))
    *maps, electrostatics, desolvation = pocket.values
    values = energy_channels(np.stack(maps), electrostatics, desolvation)
    types = np.array([pocket.types.index(name) for name in given["types"]], np.int32)
    terms = energy_terms(types, given["charges"], len(maps))
    return values, Ligands(given["atoms"], np.array([0, len(types)]), *terms)


def plain_ligands(bodies: Sequence[Array]) -> Ligands:
    """Return bodies, float64[k, 3] each, whose atoms score the field's first channel."""
    positions = np.concatenate([*bodies, np.empty((0, 3))])
    offsets = np.cumsum([0, *map(len, bodies)], dtype=np.int64)
    channels = np.zeros((len(positions), 1), np.int32)
    return Ligands(positions, offsets, channels, np.ones(channels.shape))


def random_field(
    rng: np.random.Generator, channels: int = 1, interpolation: Any = "linear",
    outside: Any = "clamp", steep: bool = False, shape: tuple[int, int, int] = (9, 12, 10),
) -> Field:  # fmt: skip
    """Return values of -1 to 1; in a steep one some are 100,000 times as low, as near a clash."""
    values = rng.uniform(-1, 1, (channels, *shape))
    if steep:
        depth = np.where(rng.random(values.shape) < 0.3, rng.uniform(0, 5.5, values.shape), -1)
        values -= np.where(depth > 0, 10**depth, 0)
    return Field(values.astype(np.float32), ORIGIN, SPACING, interpolation, outside)


def random_ligands(
    rng: np.random.Generator, sizes: list[int], channels: int = 1, terms: int = 1
) -> Ligands:
    """Return ligands around the middle of a random field, some of which reach out of it."""
    atoms = sum(sizes)
    positions = MIDDLE + rng.normal(0, 1.2, (atoms, 3))
    weights = rng.uniform(0, 2, (atoms, terms)).round(2)
    columns = rng.integers(0, channels, (atoms, terms), np.int32)
    return Ligands(positions, np.r_[0, np.cumsum(sizes)], columns, weights)


def conformers(rng: np.random.Generator, one: Ligands, many: int, spread: float) -> Ligands:
    """Return bodies of the one ligand's atoms in different places."""
    places = one.positions + rng.normal(0, spread, (many, *one.positions.shape))
    tiled = (np.tile(each, (many, 1)) for each in (one.channels, one.weights))
    return Ligands(places.reshape(-1, 3), np.arange(many + 1) * len(one.positions), *tiled)


def hair_splitting_case(rng: np.random.Generator, interpolation: Any, outside: Any) -> Case:
    """Return a case decided by what single precision cannot distinguish.

    Turned by right angles, atoms come to lie within 1e-8 of borders between nodes, or of the
    grid's, and many poses score the same, but for a spacing that is not quite the same.
    """
    values = rng.integers(-3, 4, (1, 11, 11, 11))
    if rng.random() < 0.5:
        values = np.indices((11, 11, 11)).sum(axis=0)[None]
    spacing = 1 + rng.integers(-2, 3, 3) * 1e-9
    field = Field(values.astype(np.float32), np.zeros(3), spacing, interpolation, outside)
    middle = 5.3
    borders = rng.integers(0, 11, (8, 3)) + (0.5 if interpolation == "nearest" else 0)
    places = np.where(rng.random((8, 3)) < 0.1, borders, rng.uniform(0.7, 9.3, (8, 3)))
    half = places - middle + rng.choice([-1e-8, 0, 1e-8], places.shape)
    ligands = plain_ligands([np.concatenate([half, -half])])
    search = PoseSearch(EulerRotations(90), center=(middle,) * 3)
    return Case(field, ligands, search, {}, {}, {})


def random_search(rng: np.random.Generator, listed: bool, shifts: bool, **more: Any) -> PoseSearch:
    precision = float(rng.choice([30, 36, 45, 50, 54, 67.5, 90]))
    rotations: EulerRotations | ListedRotations = EulerRotations(precision)
    if listed:
        rotations = near_uniform(int(rng.integers(1, 300)))
    box = Shifts((0.3, 0.6, 0.0), 0.3) if shifts else Shifts()
    return PoseSearch(rotations, box, **more)


@dataclass(frozen=True)
class BandCase:
    """Input of a search of a whole box."""

    field: Field
    bodies: Ligands
    ligand_of: NDArray[np.int64]
    search: PoseSearch
    width: float


def band_case(rng: np.random.Generator, interpolation: Any, outside: Any, kind: str) -> BandCase:
    """Return a small box on a random field: "flat", "steep", or "ties", of small whole numbers.

    The bodies of a ligand may differ in their atoms' terms. Some boxes are wider than the field.
    """
    channels, terms, size = (int(most) for most in rng.integers(1, (4, 4, 12)))
    field = random_field(rng, channels, interpolation, outside, steep=kind == "steep")
    if kind == "ties":
        values = np.round(field.values * 2)
        field = Field(values, field.origin, field.spacing, interpolation, outside)
    count = int(rng.integers(1, 5))
    body = random_ligands(rng, [size] * count, channels, terms)
    if rng.random() < 0.5:
        same = np.arange(count * size) % size
        body = Ligands(body.positions, body.offsets, body.channels[same], body.weights[same])
    step = float(rng.choice([0.25, 0.5, 1.3]))
    x, y, z = (rng.choice([0, 1, 2, 4], 3) * step).tolist()
    turns = near_uniform(int(rng.integers(1, 20))) if rng.random() < 0.7 else EulerRotations(120)
    place = tuple((ORIGIN + SPACING * rng.uniform(0, 9, 3)).tolist())
    search = PoseSearch(
        turns, Shifts((x, y, z), step), center=place if rng.random() < 0.6 else None,
        top=int(rng.choice([1, 3, 50, 10**6])), min_rmsd=float(rng.choice([0, 0.5, 2])),
    )  # fmt: skip
    ligand_of = np.sort(rng.integers(0, 3, count))
    return BandCase(field, body, ligand_of, search, float(rng.choice([0, 0.2, 1, 3, 30])))


def poses_on_the_border(apart: float) -> tuple[Field, PoseSearch]:
    """Return a search whose poses are all apart, some of them by exactly the least distance.

    One rotation and 27 shifts; or, where they need not be apart, five equal rotations.
    """
    turn = np.array([[0.3, 0.5, 0.1, 0.7]])
    if not apart:
        turns = ListedRotations(np.repeat(turn, 5, axis=0))
        return random_field(np.random.default_rng(10)), PoseSearch(turns, top=9)
    shifts = Shifts(apart, apart)
    search = PoseSearch(ListedRotations(turn), shifts, top=99, min_rmsd=apart)
    return random_field(np.random.default_rng(10)), search


def assert_same(found: Poses, expected: Poses) -> None:
    """Compare to the last bit."""
    for column in ("ligand", "pose", "score"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column), column)


def assert_right(
    module: Any, field: Field, ligands: Ligands, search: PoseSearch, span: range | None = None
) -> int:
    """Compare a backend's poses with the reference's, and return their number."""
    found = module.PoseSearcher(field, search).best(ligands, span)
    assert_same(found, reference.PoseSearcher(field, search).best(ligands, span))
    return len(found)

"""The search for poses: golden cases, known optima, and what must not change the answer."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import rotation_cases as cases
from support.backends import ALL, DEVICES, backend_of
from support.examples import examples
from support.rotation_cases import RULES, SEEDS

from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import EulerRotations, ListedRotations, Shifts
from multigpu.kernels.rotation.types import (
    Field,
    Ligands,
    Placements,
    Poses,
    PoseSearch,
    energy_channels,
    energy_terms,
    placed,
    split,
)

NATIVE = [ALL[0], ALL[1], ALL[3]]  # the emulated one is slow
FIELDS = st.sampled_from(["flat", "steep", "hair-splitting"])
IDENTITY = ListedRotations(np.array([[1.0, 0, 0, 0]]))


def searcher(backend: str, field: Field, search: PoseSearch) -> Any:
    return backend_of("rotation", backend).PoseSearcher(field, search)


def unit_field(values: Any, **rules: Any) -> Field:
    values = np.ascontiguousarray(values, np.float32)
    return Field(values.reshape(-1, *values.shape[-3:]), np.zeros(3), np.ones(3), **rules)


@pytest.mark.parametrize("backend", NATIVE)
@pytest.mark.parametrize("name", [*cases.PLAIN, "real_1stp"])
def test_golden__the_best_poses_are_found(golden: Path, backend: str, name: str) -> None:
    """The golden scores are of all triples of angles; of each rotation only one is answered."""
    case = cases.golden_case(golden / "dock" / name, top=20 if name in cases.PLAIN else 1)
    poses = searcher(backend, case.field, case.search).best(case.ligands)
    assert len(poses) == case.search.top
    for score in case.expected["top_scores"] if name in cases.PLAIN else ():
        assert np.isclose(poses.score, score, rtol=1e-9).any()
    poses = poses.winners()
    assert poses.score[0] == pytest.approx(float(case.expected["score"]), rel=1e-6)
    atoms = placed(case.ligands, Placements.of(case.ligands, case.search, poses))
    np.testing.assert_allclose(atoms, case.expected["atoms"], atol=1e-9)


@pytest.mark.parametrize("backend", DEVICES)
@examples(100)
@given(SEEDS, *RULES, st.booleans(), st.booleans(), FIELDS)
def test_backends__agree_to_the_last_bit(
    backend: str, seed: int, interpolation: str, outside: str, listed: bool, shifts: bool, kind: str
) -> None:
    """Also where single precision cannot tell."""
    rng = np.random.default_rng(seed)
    if kind == "hair-splitting":
        case = cases.hair_splitting_case(rng, interpolation, outside)
        cases.assert_right(backend_of("rotation", backend), case.field, case.ligands, case.search)
        return
    channels, terms = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    field = cases.random_field(rng, channels, interpolation, outside, steep=kind == "steep")
    ligands = cases.random_ligands(rng, rng.integers(1, 40, 3).tolist(), channels, terms)
    top, apart = int(rng.integers(1, 5)), float(rng.choice([0, 0.5, 2]))
    search = cases.random_search(rng, listed, shifts, top=top, min_rmsd=apart)
    cases.assert_right(backend_of("rotation", backend), field, ligands, search)


@pytest.mark.parametrize("backend", NATIVE[1:])
@examples(25)
@given(SEEDS, *RULES)
def test_answer__does_not_depend_on_how_poses_are_cut(
    backend: str, seed: int, interpolation: str, outside: str
) -> None:
    rng = np.random.default_rng(seed)
    field = cases.random_field(rng, 1, interpolation, outside)
    ligands = cases.random_ligands(rng, [5, 1, 12])
    docking = searcher(backend, field, cases.random_search(rng, listed=False, shifts=False))
    stop = docking.search.stop
    size = int(rng.integers(stop // 30, stop + 1))
    parts = [docking.best(ligands, part) for part in split(range(stop), size)]
    cases.assert_same(Poses.joined(parts).winners(), docking.best(ligands))


@pytest.mark.parametrize("backend", DEVICES)
def test_answer__is_the_same_from_many_threads(backend: str) -> None:
    rng = np.random.default_rng(2)
    field, ligands = cases.random_field(rng), cases.random_ligands(rng, [9] * 12)
    docking = searcher(backend, field, PoseSearch(EulerRotations(20)))
    expected = docking.best(ligands)
    with ThreadPoolExecutor(4) as threads:
        parts = threads.map(lambda i: docking.best(ligands[i : i + 1]).moved(i), range(12))
        cases.assert_same(Poses.joined(list(parts)), expected)


@pytest.mark.parametrize("backend", ALL)
def test_poses__beyond_32_bits(backend: str) -> None:
    rng = np.random.default_rng(4)
    field, ligands = cases.random_field(rng), cases.random_ligands(rng, [6])
    rotations = EulerRotations(0.01)
    assert rotations.count > 2**45
    search = PoseSearch(rotations)
    span = range(2**40 + 5, 2**40 + 3000)
    poses = searcher(backend, field, search).best(ligands, span)
    scores = reference.scores(field, ligands, 0, search, np.arange(span.start, span.stop))
    assert poses.pose[0] == span.start + int(scores.argmax())
    assert poses.score[0] == scores.max()


BODY = np.array([[0, 0, 0], [3, 0, 0], [0, 2, 0], [-1, -2, 1], [-2, 0, -1]], float)


def found_where(backend: str, places: Any, search: PoseSearch, interpolation: Any) -> Poses:
    """Return where BODY goes if nodes at these places alone have a value, 2.5."""
    values = np.zeros((11, 11, 11))
    values[tuple(places.round().astype(int).T)] = 2.5
    field = unit_field(values, interpolation=interpolation)
    found: Poses = searcher(backend, field, search).best(cases.plain_ligands([BODY]))
    assert found.score.tolist() == [12.5]
    return found


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_optimum__a_body_finds_nodes_it_was_moved_to(backend: str, interpolation: Any) -> None:
    middle, pose, rotations = (5.0, 5.0, 5.0), 27, EulerRotations(90)
    assert rotations.is_first(np.array([pose]))[0]
    turned = BODY @ rotations.matrices(np.array([pose]))[0].T + middle
    search = PoseSearch(rotations, center=middle)
    assert found_where(backend, turned, search, interpolation).pose.tolist() == [pose]
    search = PoseSearch(IDENTITY, Shifts(1, 1), center=middle)
    poses = found_where(backend, np.add(BODY, (5, 6, 4)), search, interpolation)
    assert search.placements(poses.pose)[1].tolist() == [[0, 1, -1]]


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("outside", ["clamp", "zero", "penalty"])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_ties__go_to_the_lowest_index(backend: str, outside: Any, interpolation: Any) -> None:
    rng = np.random.default_rng(8)
    rules = {"outside": outside, "interpolation": interpolation}
    flat = unit_field(np.full((5, 5, 5), 0.1), **rules)
    body, alone = (rng.normal(0, 0.3, (atoms, 3)) + 2 for atoms in (7, 1))
    flat_search = searcher(backend, flat, PoseSearch(EulerRotations(30)))
    assert flat_search.best(cases.plain_ligands([body, alone])).pose.tolist() == [0, 0]
    lost = PoseSearch(EulerRotations(30), center=(1000.0, 0.0, 0.0))
    field = unit_field(rng.normal(size=(5, 5, 5)), **rules)
    poses = searcher(backend, field, lost).best(cases.plain_ligands([body]))
    if outside == "zero":
        assert (poses.pose.tolist(), poses.score.tolist()) == ([0], [0.0])
    cases.assert_right(backend_of("rotation", backend), field, cases.plain_ligands([body]), lost)


@pytest.mark.parametrize("backend", ALL)
def test_top__there_are_fewer_where_no_more_are_apart(backend: str) -> None:
    rng = np.random.default_rng(10)
    field, ligands = cases.random_field(rng), cases.random_ligands(rng, [10, 1])
    few = searcher(backend, field, PoseSearch(EulerRotations(90), top=99)).best(ligands)
    assert np.bincount(few.ligand).tolist() == [24, 24]
    apart = PoseSearch(EulerRotations(90), top=99, min_rmsd=1e-3)
    assert np.bincount(searcher(backend, field, apart).best(ligands).ligand).tolist() == [24, 1]


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("apart", [0.0, 0.7])
def test_top__poses_exactly_as_far_apart_as_asked_are_apart(backend: str, apart: float) -> None:
    """However their distances are rounded."""
    docking = searcher(backend, *cases.poses_on_the_border(apart))
    poses = docking.best(cases.random_ligands(np.random.default_rng(10), [12] * 20))
    assert np.bincount(poses.ligand).tolist() == [27 if apart else 5] * 20


@pytest.mark.parametrize("backend", ALL)
def test_nothing__to_search_gives_no_poses(backend: str) -> None:
    rng = np.random.default_rng(11)
    field, ligands = cases.random_field(rng), cases.random_ligands(rng, [3])
    docking = searcher(backend, field, PoseSearch(EulerRotations(90)))
    assert len(docking.best(ligands, range(5, 5))) == 0
    assert len(docking.best(ligands[0:0])) == 0
    assert len(docking.best(ligands, range(3, 4))) == 1


def test_energies__are_those_of_the_maps() -> None:
    rng = np.random.default_rng(12)
    *maps, electrostatics, desolvation = rng.normal(size=(4, 3, 3, 3)).astype(np.float32)
    maps = np.array(maps)
    types, charges = np.array([1, 0, 1, 0], np.int32), np.array([0.5, -0.25, 0, -1.5])
    channels, weights = energy_terms(types, charges, 2)
    values = energy_channels(maps, electrostatics, desolvation)[:, 1, 2, 0]
    energies = maps[types, 1, 2, 0] + charges * electrostatics[1, 2, 0]
    energies = energies + np.abs(charges) * desolvation[1, 2, 0]
    np.testing.assert_allclose((values[channels] * weights).sum(axis=1), -energies, rtol=1e-6)


@pytest.mark.parametrize(("change", "match"), [
    ({"values": np.full((1, 2, 2, 2), np.nan, np.float32)}, "not finite or beyond"),
    ({"values": np.full((1, 2, 2, 2), -np.inf, np.float32)}, "not finite or beyond"),
    ({"spacing": np.zeros(3)}, "spacing is .* is possible"),
    ({"origin": np.full(3, np.nan)}, "origin is not finite"),
])  # fmt: skip
def test_field__refuses_what_it_cannot_be(change: dict[str, Any], match: str) -> None:
    given = {"values": np.zeros((1, 3, 3, 3), np.float32), "origin": np.zeros(3)}
    with pytest.raises(ValueError, match=match):
        Field(**{"spacing": np.ones(3), **given, **change})


def test_search__refuses_more_poses_than_have_a_number() -> None:
    PoseSearch(EulerRotations(360 / 2**20))
    with pytest.raises(ValueError, match=r"\d+ poses; fewer than 2\^63 are possible"):
        PoseSearch(EulerRotations(1e-5))
    with pytest.raises(ValueError, match="fewer than 2"):
        PoseSearch(EulerRotations(0.01), Shifts(100, 0.1))


# ---- atoms outside of the grid, with AutoDock's penalty ---------------------------------------

CENTER, LENGTHS = np.array([11.0, -4.5, 7.0]), np.array([3.0, 4.0, 5.0])  # of the grid below, Å


@pytest.mark.emulated
@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_penalty__is_that_of_autodock(backend: str, interpolation: Any) -> None:
    """1000 kcal/mol/Å² × squared distance from the middle of the grid, in place of all terms."""
    ways = np.array([[0, 0, 1.0], [0, 0, 4.0], [-1.6, 0, 0], [9, -12, 20], [1.4, 1.9, 2.4]])
    charge = 0.5  # of every atom, which is the weight of its second term
    channels, weights = np.tile(np.array([0, 1], np.int32), (5, 1)), np.tile([1.0, charge], (5, 1))
    ligands = Ligands(CENTER + ways, np.arange(6), channels, weights)
    values = np.array([2, 0.25], np.float32)[:, None, None, None] + np.zeros((1, 7, 5, 11))
    place = (CENTER - LENGTHS / 2, LENGTHS / (6, 4, 10))
    field = Field(values.astype(np.float32), *place, interpolation, "penalty")
    search = PoseSearch(IDENTITY)
    inside = 2 + charge * 0.25
    expected = [inside, -16_000.0, -2_560.0, -625_000.0, inside]
    found = searcher(backend, field, search).best(ligands)
    np.testing.assert_allclose(found.score, expected, rtol=1e-12)

"""The search of a whole box for a band of poses, against brute force."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import rotation_cases as cases
from support.backends import DEVICES, GPUS, backend_of
from support.examples import examples
from support.rotation_cases import RULES, SEEDS

from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import EulerRotations, Shifts, near_uniform
from multigpu.kernels.rotation.types import Field, PoseSearch
from multigpu.kernels.rotation.whole_box import bounds, cpu


def searcher(backend: str, *given: Any) -> Any:
    return backend_of("rotation/whole_box", backend).BandSearcher(*given)


KINDS = st.sampled_from(["flat", "steep", "ties"])


def assert_band(backend: str, seed: int, *kind: str) -> None:
    case = cases.band_case(np.random.default_rng(seed), *kind)
    given = (case.field, case.search, case.width)
    expected = reference.band_poses(*given, case.bodies, case.ligand_of)
    cases.assert_same(searcher(backend, *given).best(case.bodies, case.ligand_of), expected)


@examples(150)
@given(SEEDS, st.tuples(*RULES, KINDS))
def test_band__is_that_of_brute_force(seed: int, kind: tuple[str, ...]) -> None:
    assert_band("cpu", seed, *kind)


@pytest.mark.parametrize("backend", GPUS)
@examples(15)
@given(SEEDS, st.tuples(*RULES, KINDS))
def test_band_of_a_gpu__is_that_of_brute_force(backend: str, seed: int, kind: Any) -> None:
    assert_band(backend, seed, *kind)


def smooth_pocket(rng: np.random.Generator) -> Field:
    """Return hollows and walls on 40 nodes an axis, as steep as those of energies."""
    x = np.arange(40)
    values = np.zeros((2, 40, 40, 40))
    for channel, (depth, width) in product(range(2), [(0.5, 5.0)] * 12 + [(-3e4, 0.8)] * 6):
        at = rng.uniform(0, 39, (3, 1))
        a, b, c = np.exp(-((x - at) ** 2) / (2 * width**2))
        values[channel] += depth * a[:, None, None] * b[:, None] * c
    return Field(values.astype(np.float32), np.zeros(3), np.full(3, 0.375), outside="penalty")


@pytest.mark.gpu
def test_band_of_a_gpu__is_the_cpus_in_a_large_box_for_several_threads() -> None:
    rng = np.random.default_rng(6)
    field = smooth_pocket(rng)
    bodies, ligand_of = (
        cases.conformers(rng, cases.random_ligands(rng, [24], 2, 2), 12, 2),
        np.arange(12) // 4,
    )
    search = PoseSearch(near_uniform(1000), Shifts(5.0, 0.5), (7.3, 7.3, 7.3), 60, 0.8)
    expected = cpu.BandSearcher(field, search, 3.0).best(bodies, ligand_of)
    assert len(expected) > 50
    found = searcher("cuda", field, search, 3.0)
    with ThreadPoolExecutor(4) as threads:
        for poses in threads.map(lambda _: found.best(bodies, ligand_of), range(8)):
            cases.assert_same(poses, expected)


@pytest.mark.parametrize("backend", DEVICES)
@examples(30)
@given(SEEDS, *RULES)
def test_band__on_borders(backend: str, seed: int, interpolation: str, outside: str) -> None:
    case = cases.hair_splitting_case(np.random.default_rng(seed), interpolation, outside)
    shifts = Shifts((1.0, 0.0, 1.0), 0.5)
    search = PoseSearch(EulerRotations(90), shifts, case.search.center, top=10**6)
    for width in (0.0, 3.0):
        given = (case.ligands, np.zeros(1, np.int64))
        expected = reference.band_poses(case.field, search, width, *given)
        cases.assert_same(searcher(backend, case.field, search, width).best(*given), expected)


@pytest.mark.parametrize("backend", DEVICES)
@pytest.mark.parametrize("apart", [0.0, 0.8])
def test_band__does_not_depend_on_how_many_poses_are_listed(
    backend: str, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a flat field every pose is in the band, and nearly all are dropped."""
    field = Field(np.zeros((1, 9, 9, 9), np.float32), np.zeros(3), np.full(3, 0.5))
    bodies = cases.random_ligands(np.random.default_rng(1), [5, 5])
    search = PoseSearch(near_uniform(40), Shifts(1.0, 0.5), top=60, min_rmsd=apart)
    one = np.zeros(2, np.int64)
    expected = reference.band_poses(field, search, 1.0, bodies, one)
    assert len(expected) > 20
    monkeypatch.setattr("multigpu.kernels.rotation.thinning.MOST_LISTED", 3)
    cases.assert_same(searcher(backend, field, search, 1.0).best(bodies, one), expected)


@pytest.mark.parametrize("backend", DEVICES)
def test_no_bodies__have_no_poses(backend: str) -> None:
    field = cases.random_field(np.random.default_rng(1))
    found = searcher(backend, field, PoseSearch(near_uniform(4)), 1.0)
    assert len(found.best(cases.plain_ligands([]), np.empty(0, np.int64))) == 0


@examples(40)
@given(SEEDS, *RULES)
def test_map__is_never_above_a_shortfall(seed: int, interpolation: str, outside: str) -> None:
    """At any place, turned and shifted as a pose may be."""
    rng = np.random.default_rng(seed)
    case = cases.band_case(rng, interpolation, outside, "steep")
    sizes = bounds.levels(case.field, case.search.shifts)
    kinds = bounds.kinds_of(case.field, case.search, case.bodies)
    maps = bounds.bound_maps(case.field, kinds, sizes)
    k = int(rng.integers(len(maps.tops)))
    places = rng.uniform(kinds.lowest[k], kinds.highest[k], (200, 3))
    terms = zip(kinds.channels[k].tolist(), kinds.weights[k], strict=True)
    score = sum(
        weight * reference.value(case.field, channel, places, term == 0)
        for term, (channel, weight) in enumerate(terms)
    )
    for number, level in enumerate(sizes):
        at = np.floor(places / level.strides).astype(np.int64) - maps.lows[number, k]
        begin, shape = maps.begins[number, k], maps.shapes[number, k]
        held = maps.values[begin : begin + shape.prod()].reshape(shape)
        short = maps.tops[k] - score
        assert (held[tuple(at.T)] <= short * (1 + 1e-5) + 1e-3).all()

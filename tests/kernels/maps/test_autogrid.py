"""Maps of receptors: as autogrid4 wrote or writes them, the same bytes on every device."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.autogrid import KINDS, PROGRAM, assert_close, autogrid, pdbqt_of, random_receptor
from support.backends import DEVICES, backend_of
from support.examples import examples

from multigpu.kernels.maps import GridBox, Receptor, compute_maps
from multigpu.kernels.maps.autogrid import TYPES

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
BONDING = ("C", "N", "NA", "NS", "OA", "OS", "S", "SA", "H", "HD", "HD", "HS")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", RECORDED)
def test_maps__are_those_that_autogrid_wrote(case: str, device: str) -> None:
    case_ = RECORDED[case]
    *numbers, types_of_atoms = zip(*(atom.split() for atom in case_["atoms"]), strict=True)
    x, y, z, charges = np.array(numbers, np.float64)
    receptor = Receptor(np.stack([x, y, z], axis=1), charges, types_of_atoms)
    box = GridBox(tuple(case_["center"]), tuple(case_["elements"]), case_["spacing"])
    expected = {name: np.array(each).reshape(box.shape) for name, each in case_["maps"].items()}
    types = [name for name in expected if name not in ("e", "d")]
    assert_close(backend_of("maps", device).compute_maps(receptor, box, types), expected)


@pytest.mark.process
@pytest.mark.skipif(PROGRAM is None, reason="autogrid4 is not installed")
@pytest.mark.parametrize("seed", range(8))
def test_maps__of_random_atoms_are_those_that_autogrid_writes(seed: int, tmp_path: Path) -> None:
    """More atoms than autogrid4 looks for bonds among; all roles in hydrogen bonds."""
    receptor = random_receptor(seed, *((70, 6.5) if seed % 2 else (16, 3.2)), BONDING)
    box = GridBox((0.1, -0.2, 0.3), (12, 10, 14), 0.7)
    expected = autogrid(tmp_path, pdbqt_of(receptor), box, KINDS[:12])
    assert_close(compute_maps(receptor, box, KINDS[:12]), expected)


@pytest.mark.parametrize("spacing", [0.2, 0.375, 1.0, 4.0])
def test_electrostatics__have_no_cutoff(spacing: float) -> None:
    rng = np.random.default_rng(1)
    places = rng.uniform(-40, 40, (3000, 3))
    charges = rng.uniform(-1, 1, 3000)
    box = GridBox((12.0, -9.0, 3.0), (19, 12, 9), spacing)
    points = np.stack(np.meshgrid(*box.axes, indexing="ij"), axis=-1).reshape(-1, 1, 3)
    r = np.sqrt(((points - places) ** 2).sum(axis=-1))
    entry = np.floor(r * 100) / 100
    dielectric = -8.5525 + 86.9525 / (1 + 7.7839 * np.exp(-0.003627 * 86.9525 * entry))
    dielectric[entry == 0] = 1.0
    plain = (332 * 0.1406 * charges / (np.maximum(r, 0.5) * dielectric)).sum(axis=1)
    got = compute_maps(Receptor(places, charges, ("C",) * 3000), box, [])["e"]
    np.testing.assert_allclose(got.ravel(), plain, rtol=1e-6, atol=0.003)


@given(
    seed=st.integers(0, 2**32 - 1),
    atoms=st.integers(1, 200),
    elements=st.tuples(*[st.integers(1, 9)] * 3),
    spacing=st.sampled_from([0.05, 0.375, 1.0, 3.0]),
    types=st.lists(st.sampled_from(KINDS), unique=True, max_size=3),
)
@examples(15)
@pytest.mark.parametrize("device", DEVICES[1:])
def test_maps__have_the_same_bytes_on_a_gpu(
    device: str, seed: int, atoms: int, elements: Any, spacing: float, types: list[str]
) -> None:
    rng = np.random.default_rng(seed)
    receptor = Receptor(
        rng.uniform(-1, 1, (atoms, 3)) * (1 + atoms / 40),
        rng.uniform(-0.5, 0.5, atoms),
        tuple(rng.choice(list(TYPES), atoms).tolist()),
    )
    box = GridBox((0.5, 1.0, -2.0), elements, spacing)
    got = backend_of("maps", device).compute_maps(receptor, box, types)
    for name, values in compute_maps(receptor, box, types).items():
        assert got[name].shape == box.shape
        assert got[name].tobytes() == values.tobytes()


@pytest.mark.parametrize(("types", "message"), [
    (("C", "Xx"), "ZN of HOH A 12: AutoDock 4.1 has no type 'Xx'"),
    (("C", "C"), "AutoDock 4.1 has no type 'Si' to make a map of"),
])  # fmt: skip
def test_unknown_type__is_an_error_that_names_it(types: tuple[str, str], message: str) -> None:
    names = ("C of GLY A 1", "ZN of HOH A 12")
    receptor = Receptor(np.eye(3)[:2], np.zeros(2), types, names)
    with pytest.raises(ValueError, match=message):
        compute_maps(receptor, GridBox((0, 0, 0), (2, 2, 2)), ["C", "Si"])

"""Generated ligands and pockets: the same bytes from the same seed, sensible molecules."""

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multigpu.cli import cli
from multigpu.errors import UsageError
from multigpu.formats.molecules.molecule import Molecule
from multigpu.formats.molecules.pockets import read_pocket
from multigpu.formats.molecules.registry import parse
from multigpu.formats.molecules.sdf import SDF
from multigpu.workloads.dock.simulate import BOND, ligands, pocket

MOST_BONDS = {"C": 4, "N": 3, "O": 2, "S": 2, "F": 1, "Cl": 1}
DIGEST = "a909e10d6d20a1b0"  # the same on every machine
WELLS = "a pocket needs 2 to 1000 points"


def made(count: int, fewest: int, most: int, seed: int = 1) -> bytes:
    out = io.BytesIO()
    ligands(out, count, fewest, most, seed)
    return out.getvalue()


def molecules(text: bytes) -> list[Molecule]:
    ends = SDF.find_ends(text, True)
    return [parse(text[a:b], "sdf") for a, b in zip([0, *ends], ends, strict=False)]


def test_ligands__are_the_same_bytes_from_the_same_seed() -> None:
    text = made(20, 5, 30)
    assert hashlib.sha256(text).hexdigest()[:16] == DIGEST
    assert made(30, 5, 30).startswith(text)
    assert made(20, 5, 30, seed=2) != text


def test_ligands__have_right_valences_and_bonds() -> None:
    found = molecules(made(50, 1, 40))
    assert [each.name for each in found] == [f"lig{i}" for i in range(50)]
    for each in found:
        assert 1 <= len(each.elements) <= 40
        np.testing.assert_allclose(each.positions.mean(axis=0), 0, atol=1e-4)
        bonds = np.zeros(len(each.elements), int)
        for a, b, order in each.bonds:
            length = np.sqrt(((each.positions[a] - each.positions[b]) ** 2).sum())
            assert (order, length) == (1, pytest.approx(BOND, abs=2e-4))
            bonds[[a, b]] += 1
        for element, count in zip(each.elements, bonds.tolist(), strict=True):
            assert count <= MOST_BONDS[element]


def test_pocket__is_read_as_it_was_made(tmp_path: Path) -> None:
    path = tmp_path / "pocket.npz"
    command = ["simulate", "pocket", "--points", "21", "--spacing", "0.5", "-o", str(path)]
    cli.main(command, standalone_mode=False)
    found = read_pocket(str(path))
    assert found.shape == (21, 21, 21)
    assert found.center.tolist() == [0, 0, 0]
    assert found.spacing.tolist() == [0.5, 0.5, 0.5]
    assert found.values.min() < 0 < found.values.max()
    first = path.read_bytes()
    cli.main(command, standalone_mode=False)
    assert path.read_bytes() == first


@pytest.mark.parametrize(("make", "quantities", "problem"), [
    (ligands, (-1, 1, 2, 1), "count is -1"),
    (ligands, (1 << 32, 1, 2, 1), "and less than 4,294,967,296"),
    (ligands, (1, 0, 2, 1), "atoms from 0 to 2: 1 to 900 are possible"),
    (ligands, (1, 3, 2, 1), "atoms from 3 to 2"),
    (ligands, (1, 3, 901, 1), "atoms from 3 to 901"),
    (ligands, (1, 3, 4, -1), "seed is -1"),
    *((pocket, given, WELLS) for given in ((1, 0.5, 3, 1), (1001, 0.5, 3, 1), (9, 0, 3, 1),
                                           (9, 0.5, 0, 1))),
    (pocket, (3, 1.0, 28, 1), "has no 28 wells"),
])  # fmt: skip
def test_quantities__that_cannot_be_are_refused(make: Any, quantities: Any, problem: str) -> None:
    out = io.BytesIO()
    with pytest.raises(UsageError, match=problem):
        make(out, *quantities)
    assert out.getvalue() == b""

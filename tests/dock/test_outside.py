"""Atoms outside of the grid: what they score by default, and where that is said."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.docked import Dock, table

import multigpu
from multigpu.formats.molecules.pockets import Pocket, read_pocket

BIOTIN = 18  # atoms


@pytest.fixture
def maps(golden: Path) -> str:
    return str(golden / "dock" / "real_1stp" / "1stp_protein.maps.fld")


@pytest.fixture
def biotin(golden: Path) -> str:
    return str(golden / "dock" / "real_1stp" / "ligand_turned.pdbqt")


def beyond(pocket: Pocket, positions: Any) -> Any:
    """bool[atoms]: whether they are outside of the grid."""
    return ((positions < pocket.origin) | (positions > pocket.end)).any(axis=1)


@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_autogrid__penalises_atoms_outside(maps: str, biotin: str, interpolation: str) -> None:
    """All atoms are outside: only the penalty is left."""
    far = (80.0, -7.5, -11.2)
    options: dict[str, Any] = {"center": far, "precision": 60, "gpus": "none"}
    (batch,) = multigpu.dock(biotin, maps, interpolation=interpolation, **options)
    assert batch.atoms_outside.tolist() == batch.atoms.tolist() == [BIOTIN]
    pocket = read_pocket(maps)
    expected = -1000 * ((batch.positions[0] - (pocket.origin + pocket.end) / 2) ** 2).sum()
    np.testing.assert_allclose(batch.score, [expected], rtol=1e-12)


def test_autogrid__finds_the_pose_with_the_fewest_atoms_outside(maps: str, biotin: str) -> None:
    """Clamped, the best pose keeps more atoms outside than it needs to."""
    pocket = read_pocket(maps)
    center = (float(pocket.end[0]) - 2.0, *((pocket.origin + pocket.end) / 2)[1:].tolist())
    options: dict[str, Any] = {"center": center, "precision": 30, "gpus": "none"}
    counts = {}
    for outside in (None, "penalty", "clamp"):
        (batch,) = multigpu.dock(biotin, maps, outside=outside, **options)
        counts[outside] = int(batch.atoms_outside[0])
        assert counts[outside] == beyond(pocket, batch.positions[0]).sum()
    assert counts[None] == counts["penalty"] < counts["clamp"]


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
def test_table__counts_atoms_outside_in_its_last_column(dock: Dock, several: bool) -> None:
    Path("some.xyz").write_text("2\na\nC 0 0 0\nC 99 0 0\n" * (40 if several else 1))
    assert dock("-o", "poses.xyz", "--scores", "scores.tsv", of="some.xyz") == 0
    rows = table("scores.tsv")
    assert list(rows[0])[-2:] == ["source", "atoms_outside"]
    assert {row["atoms_outside"] for row in rows} == {"1"}


def test_plain_grid__clamps_as_ever(dock: Dock) -> None:
    for name, options in (("usual", ()), ("clamp", ("--outside", "clamp"))):
        dock("-o", f"{name}.sdf", "--center", "7,7,7", *options)
    assert Path("usual.sdf").read_bytes() == Path("clamp.sdf").read_bytes()
    rows = table("usual.scores.tsv")
    assert {row["atoms_outside"] for row in rows} > {"0"}


def test_note__says_how_atoms_outside_score(
    dock: Dock, maps: str, biotin: str, caplog: pytest.LogCaptureFixture
) -> None:
    where = ("--center", "80,-7.5,-11.2")
    with caplog.at_level(logging.WARNING):
        dock("-o", "poses.pdbqt", *where, of=biotin, pocket=maps)
        dock("-o", "poses.pdbqt", *where, "--outside", "zero", of=biotin, pocket=maps)
    said = "have atoms outside of the grid, up to 18 (ligand_turned); these score"
    first, second = [message for message in caplog.messages if said in message]
    assert "-1,000 for each Å² from its middle: see the column atoms_outside" in first
    assert "score nothing:" in second


def test_note__is_not_there_where_all_best_poses_are_inside(
    dock: Dock, maps: str, biotin: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert dock("-o", "poses.pdbqt", of=biotin, pocket=maps) == 0
    assert caplog.messages == []
    assert table("poses.scores.tsv")[0]["atoms_outside"] == "0"

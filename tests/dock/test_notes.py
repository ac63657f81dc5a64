"""What the user probably did not mean is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.docked import COUNT, Dock, table

import multigpu
from multigpu.formats.molecules.pockets import Pocket, read_pocket

pytestmark = pytest.mark.process  # runs whole jobs


@pytest.mark.parametrize("kind", ["scores", "rounded", "turned", "walls"])
def test_grid__of_energies_is_noted(
    dock: Dock, library: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One whose best places are below 0, or which has high walls and shallow wells."""
    arrays = dict(np.load(library / "pocket.npz"))
    if kind == "turned":
        arrays["grid"] = -np.abs(arrays["grid"]) - 1
    if kind == "rounded":  # scores that a transform has left a little below 0
        arrays["grid"] = np.maximum(arrays["grid"], 0) - 1e-6
    if kind == "walls":
        arrays["grid"] = np.where(arrays["grid"] > 0, -arrays["grid"], 1e5)
    np.savez("p.npz", **arrays)
    assert dock("-o", "poses.sdf", "--center", "0,0,0", pocket="p.npz") == 0
    assert ("if they are energies, turn their sign" in caplog.text) is (kind in ("turned", "walls"))


def test_dock__notes_atoms_outside_the_grid(dock: Dock, caplog: pytest.LogCaptureFixture) -> None:
    dock("-o", "poses.sdf", "--center", "0,0,28.625")
    assert caplog.messages[-1].startswith(f"multigpu: the best poses of {COUNT} of {COUNT} ligands")
    assert "center" not in caplog.text
    Path("far.xyz").write_text("1\nnear\nC 0 0 0\n1\nfar\nC 18.625 0 0\n")
    dock("-o", "poses.sdf", of="far.xyz")
    assert "of 1 of 2 ligands have atoms outside of the grid, up to 1 (far)" in caplog.messages[-1]
    assert caplog.messages[-1].endswith("; --center 0,0,0 puts all in its middle")


@pytest.fixture
def maps(golden: Path) -> str:
    return str(golden / "dock" / "real_1stp" / "1stp_protein.maps.fld")


@pytest.fixture
def biotin(golden: Path) -> str:
    return str(golden / "dock" / "real_1stp" / "ligand_turned.pdbqt")


def beyond(pocket: Pocket, positions: Any) -> Any:
    """bool[atoms]: whether they are outside of the grid."""
    return ((positions < pocket.origin) | (positions > pocket.end)).any(axis=1)


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


def test_table__counts_atoms_outside_in_its_last_column(dock: Dock) -> None:
    Path("some.xyz").write_text("2\na\nC 0 0 0\nC 99 0 0\n" * 2)
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


def test_note__says_how_atoms_outside_score_where_there_are_some(
    dock: Dock, maps: str, biotin: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert dock("-o", "poses.pdbqt", of=biotin, pocket=maps) == 0
    assert caplog.messages == []
    assert table("poses.scores.tsv")[0]["atoms_outside"] == "0"
    said = "have atoms outside of the grid, up to 18 (ligand_turned); these score"
    for options, how in (
        ((), "-1,000 for each Å² from its middle"),
        (("--outside", "zero"), "nothing"),
    ):
        caplog.clear()
        dock("-o", "poses.pdbqt", "--center", "80,-7.5,-11.2", *options, of=biotin, pocket=maps)
        (note,) = [message for message in caplog.messages if said in message]
        assert f"{said} {how}: see the column atoms_outside" in note

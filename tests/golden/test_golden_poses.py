"""Poses of the redocking set are physically plausible, as PoseBusters checks it."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.docked import table

from multigpu.cli import cli
from multigpu.formats.molecules.pdbqt import PDBQT

pytestmark = pytest.mark.slow

# Of rigid poses: what no motion may change, and where they lie.
UNCHANGED = [
    "molecular_formula", "molecular_bonds", "tetrahedral_chirality", "double_bond_stereochemistry",
    "bond_lengths", "bond_angles", "internal_steric_clash", "aromatic_ring_flatness",
    "non-aromatic_ring_non-flatness", "double_bond_flatness",
]  # fmt: skip
PLACED = [
    "protein-ligand_maximum_distance", "minimum_distance_to_protein", "volume_overlap_with_protein",
]  # fmt: skip


@pytest.mark.parametrize("name", ["1hnn", "1lrh", "1p2y", "1yv3", "2bm2"])
def test_poses__pass_the_checks_of_posebusters(
    name: str, golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    posebusters = pytest.importorskip("posebusters")
    folder = golden / "redock" / name
    monkeypatch.chdir(tmp_path)
    Path("same.txt").write_text("1 0 0 0\n")
    crystal, receptor = str(folder / "crystal.pdbqt"), str(folder / "receptor.pdbqt.gz")
    facts = json.loads((folder / "case.json").read_text())
    sides = [count * facts["spacing"] for count in facts["elements"]]
    box = ",".join(f"{x:g}" for x in (*facts["center"], *sides))
    pocket = ["--receptor", receptor, "--box", box]
    dock(crystal, *pocket, "-o", "poses.sdf", "--top", "5")
    (maps,) = Path().rglob("*.maps.fld")  # which the first run has kept
    dock(crystal, "--pocket", str(maps), "--rotation-file", "same.txt", "-o", "crystal.sdf")
    Path("protein.pdb").write_text("".join(protein(receptor)))
    checks = posebusters.PoseBusters("redock")
    found = checks.bust("poses.sdf", "crystal.sdf", "protein.pdb")
    (given,) = checks.bust("crystal.sdf", "crystal.sdf", "protein.pdb")[UNCHANGED].values.tolist()
    assert len(found) == len(table("poses.scores.tsv"))
    assert found[UNCHANGED].values.tolist() == [given] * len(found)
    assert found[PLACED].iloc[0].all()


def dock(*arguments: Any) -> None:
    assert cli.main(["dock", *arguments, "--gpus", "none"], standalone_mode=False) == 0


def protein(path: str) -> Iterator[str]:
    """Yield lines of PDB, with elements instead of AutoDock's types."""
    with gzip.open(path) as file:
        receptor = PDBQT.parse(file.readlines())
    for row, element in zip(receptor.rows, receptor.elements, strict=True):
        yield f"{receptor.lines[row].decode()[:66]:76}{element:>2}\n"

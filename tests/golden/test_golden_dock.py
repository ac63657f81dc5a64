"""The golden docking cases through the real command: whole, in tiny chunks, on workers, on GPUs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.golden import DEVICES, cases
from support.rotation_cases import plain_ligands

from multigpu.cli import cli
from multigpu.formats.molecules.pockets import read_pocket
from multigpu.formats.molecules.registry import parse
from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import EulerRotations
from multigpu.kernels.rotation.types import Field, PoseSearch
from multigpu.workloads.dock import plan as dock_plan

REAL = "real_1stp"
PLAIN = [name for name in cases("dock/*/case.json") if name != REAL]


@dataclass(frozen=True)
class Case:
    """A golden case as files that the command reads."""

    facts: dict[str, Any]
    atoms: NDArray[np.float64]
    expected: NDArray[np.float64]
    command: tuple[str, ...]
    layout: str
    folder: Path

    def dock(self, *options: str, name: str = "poses") -> tuple[Path, NDArray[np.float64], float]:
        """Poses, atoms of the first one and its score as the command writes them."""
        path = self.folder / f"{name}.{self.layout}"
        status = cli.main([*self.command, "-o", str(path), *options], standalone_mode=False)
        assert status == 0
        scores = path.with_name(f"{name}.scores.tsv").read_text().splitlines()
        row = dict(zip(scores[0].split("\t"), scores[1].split("\t"), strict=True))
        return path, parse(path.read_bytes(), self.layout).positions, float(row["score"])


@pytest.fixture
def case(golden: Path, tmp_path: Path) -> Callable[[str], Case]:
    def build(name: str) -> Case:
        folder = golden / "dock" / name
        facts = json.loads((folder / "case.json").read_text())
        search = (
            "--precision", str(facts["precision_deg"]), "--interpolation", facts["interpolation"],
            "--outside", facts["outside"],
        )  # fmt: skip
        atoms = np.load(folder / "input.npz")["atoms"]
        expected = np.load(folder / "expected.npz")["atoms"]
        if name == REAL:
            ligand, pocket = folder / "ligand_turned.pdbqt", folder / "1stp_protein.maps.fld"
            command = ("dock", str(ligand), "--pocket", str(pocket), *search)
            return Case(facts, atoms, expected, command, "pdbqt", tmp_path)
        ligand = tmp_path / "ligand.xyz"
        rows = "".join(f"C {x!r} {y!r} {z!r}\n" for x, y, z in atoms.tolist())
        ligand.write_text(f"{len(atoms)}\n{name}\n{rows}")
        grid = (
            "--pocket", str(folder / "input.npz"), "--spacing", str(facts["spacing"]),
            "--origin", ",".join(map(str, facts["origin"])),
        )  # fmt: skip
        command = ("dock", str(ligand), *grid, *search)
        return Case(facts, atoms, expected, command, "xyz", tmp_path)

    return build


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PLAIN)
def test_dock__finds_it(case: Callable[[str], Case], name: str, device: tuple[str, ...]) -> None:
    given = case(name)
    _, atoms, score = given.dock(*device)
    assert score == pytest.approx(given.facts["best_score"], rel=1e-5)
    assert np.abs(atoms - given.expected).max() < 1e-3


@pytest.mark.parametrize("device", DEVICES)
def test_dock__turns_biotin_back(case: Callable[[str], Case], device: tuple[str, ...]) -> None:
    """Biotin comes within 0.41 Å of the crystal at 10°; three decimals of PDBQT need 5e-4."""
    given = case(REAL)
    _, atoms, score = given.dock(*device)
    assert score == pytest.approx(given.facts["best_score"], rel=1e-5)
    assert np.abs(atoms - given.expected).max() < 1e-3
    assert rmsd_to_crystal(given, atoms) == pytest.approx(given.facts["rmsd_to_crystal"], abs=5e-4)


def rmsd_to_crystal(given: Case, atoms: NDArray[np.float64]) -> float:
    folder = Path(given.command[1]).parent
    crystal = np.load(folder / "input.npz")["crystal"]
    return float(np.sqrt(((atoms - crystal) ** 2).sum(axis=1).mean()))


def test_dock__gives_the_score_of_the_plain_search(case: Callable[[str], Case]) -> None:
    given = case("few_atoms")
    _, _, score = given.dock("--precision", "45")
    pocket = read_pocket(given.command[3], tuple(given.facts["origin"]), given.facts["spacing"])
    field = Field(pocket.values, pocket.origin, pocket.spacing)
    search = PoseSearch(EulerRotations(45.0))
    found = reference.PoseSearcher(field, search).best(plain_ligands([given.atoms]))
    assert score == found.score[0]


@pytest.mark.parametrize("name", [*PLAIN, REAL])
def test_dock__cut_into_spans_of_poses_gives_the_same_bytes(
    case: Callable[[str], Case], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = case(name)
    whole, _, _ = given.dock("--gpus", "none", name="whole")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 997)
    summary = given.folder / "summary.json"
    cut, _, _ = given.dock("--gpus", "none", "--summary", str(summary), name="cut")
    assert cut.read_bytes() == whole.read_bytes()
    assert scores_of(cut) == scores_of(whole)
    facts = json.loads(summary.read_text())
    assert facts["chunks"]["run"] == -(-facts["poses_tried"] // 997)


def scores_of(poses: Path) -> bytes:
    return poses.with_name(f"{poses.stem}.scores.tsv").read_bytes()

"""Vina's types and torsions, and energies of its maps against the program `vina`."""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from support.golden import cases

import multigpu
from multigpu.formats.molecules import scoring
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.formats.molecules.registry import parse
from multigpu.formats.molecules.scoring import count_torsions, with_vina_types
from multigpu.kernels.maps import GridBox, Receptor
from multigpu.kernels.maps.vina import TORSION_WEIGHT, TYPES, compute_maps
from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import EulerRotations
from multigpu.kernels.rotation.types import Field, Ligands, PoseSearch

RECEPTOR = [
    ("C", 0, 0, 0), ("C", 1.5, 0, 0), ("OA", 2.2, 1.1, 0), ("HD", 3.1, 1.0, 0),
    ("N", -0.7, -1.2, 0),
    ("HD", -0.2, -2.1, 0), ("C", -2.1, -1.2, 0.1), ("C", -3.5, -1.3, 0.2), ("Zn", 5.5, -4, 1),
    ("SA", 4.5, 5, 0), ("NA", -5, 4, 0), ("A", -4, 5, 0), ("Cl", -4.5, -5.5, 0),
]  # fmt: skip
RECEPTOR_TYPES = "C_P C_P O_DA  N_D  C_P C_H Met_D S_P N_A C_P Cl_H"
LIGAND = [  # with its lines in between
    "ROOT", ("C", 0, 0.2, 3.7), "ENDROOT", "BRANCH   1   2", ("C", 1.4, 0.4, 3.9),
    ("F", 1.8, 1.6, 4.5), "BRANCH   2   4", ("OA", 2.2, -0.6, 3.2), ("HD", 2.6, -0.3, 2.35),
    "ENDBRANCH   2   4", "ENDBRANCH   1   2", "BRANCH   1   6", ("A", -0.8, 1.3, 4.3),
    ("NA", -2.1, 1, 4), "ENDBRANCH   1   6", "TORSDOF 3",
]  # fmt: skip
BOX = GridBox((0, 0, 3), (32, 32, 24))
INTERMOLECULAR, BINDING = -0.319, -0.279  # kcal/mol, of vina 1.2.3 with --score_only --no_refine
# Of the golden complexes, the same: the energy and the torsions by which it is divided.
COMPLEXES = {
    "1ac8": (-2.891, 0), "1hnn": (-7.645, 1.5), "1ig3": (-8.168, 5), "1mzc": (-11.333, 7.5),
    "1sq5": (-6.166, 7), "1t46": (-18.325, 6), "2wbg": (-9.806, 9), "5wlo": (-16.812, 9.5),
}  # fmt: skip
CLASHES = {"3drf"}  # Vina counts e > 0 of an atom as 1000 e / (1000 + e)
SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O", "CCC(=O)NCC#N", "CCOC(=O)N(C)CC=C", "CN(C)C(=O)CS(=O)(=O)NCC",
    "NC(=[NH2+])NCCC[C@H]([NH3+])C(=O)[O-]", "Cc1ccccc1C#Cc1ccc(Br)cc1CO", "FC(F)(F)c1ccsc1CCCl",
    "CCOP(=O)(O)OC[N+](=O)[O-]", "OCc1c[nH]c(n1)C(=O)N1CCOCC1", "CSCCI", "CC(=O)N1CCC[C@H]1C(=O)NC",
]  # fmt: skip


def pdbqt(atoms: list[tuple[str, float, float, float] | str]) -> bytes:
    lines, serial = [], 0
    for atom in atoms:
        if not isinstance(atom, str):
            kind, *place = atom
            serial += 1
            columns = "".join(f"{x:8.3f}" for x in place)
            atom = f"ATOM  {serial:5}  X   UNL     1    {columns}  1.00  0.00     0.000 {kind}"
        lines.append(f"{atom}\n")
    return "".join(lines).encode()


def receptor_of(molecule: Molecule) -> Receptor:
    return Receptor(molecule.positions, molecule.charges, tuple(molecule.types))


def energy(receptor: Receptor, molecule: Molecule, box: GridBox) -> tuple[float, float]:
    """Return the energy as it is docked, where the ligand lies, and its torsions."""
    types = tuple(TYPES[:16])
    maps = compute_maps(with_vina_types(receptor), box, types)
    values = scoring.score_channels(np.stack([maps[kind] for kind in types]), types)
    field = Field(values, box.origin, np.full(3, box.spacing), "linear", "penalty")
    _, channels, weights = scoring.atom_terms(molecule, types)
    body = Ligands(molecule.positions, np.array([0, len(weights)]), channels, weights)
    search = PoseSearch(EulerRotations(180))
    (score,) = reference.scores(field, body, 0, search, np.zeros(1, np.int64))
    return -score, count_torsions(molecule)


def by_vina(folder: Path, receptor: bytes, ligand: bytes, box: GridBox) -> tuple[float, float]:
    """Return the intermolecular energy and the energy of binding as the program prints them."""
    for name, content in (("receptor", receptor), ("ligand", ligand)):
        (folder / f"{name}.pdbqt").write_bytes(content)
    text = "vina --score_only --no_refine --receptor receptor.pdbqt --ligand ligand.pdbqt --cpu 1"
    for axis, middle, elements in zip("xyz", box.center, box.elements, strict=True):
        text += f" --center_{axis} {middle} --size_{axis} {elements * box.spacing}"
    command = f"{text} --spacing {box.spacing}".split()
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    found = [re.search(rf"{what} +: +(\S+)", out) for what in ("Final Inter.*", "of Binding")]
    inter, binding = (float(match[1]) for match in found if match)
    return inter, binding


def test_energy__of_a_docked_ligand_is_that_of_vina_divided_by_torsions(tmp_path: Path) -> None:
    molecule, receptor = parse(pdbqt(LIGAND), "pdbqt"), receptor_of(parse(pdbqt(RECEPTOR), "pdbqt"))
    assert with_vina_types(receptor).types == tuple(RECEPTOR_TYPES.split(" "))
    assert count_torsions(molecule) == 2.5
    for name, content in (("r.pdbqt", pdbqt(RECEPTOR)), ("l.pdbqt", pdbqt(LIGAND))):
        (tmp_path / name).write_bytes(content)
    box = (*BOX.center, *(BOX.spacing * np.array(BOX.elements)))
    pocket = multigpu.pocket(tmp_path / "r.pdbqt", box=box, scoring="vina", gpus="none")
    multigpu.write_pocket(tmp_path / "v.maps.fld", pocket)
    (tmp_path / "identity.txt").write_text("1 0 0 0")
    (batch,) = multigpu.dock(
        tmp_path / "l.pdbqt", tmp_path / "v.maps.fld", in_place=True, gpus="none",
        rotation_file=tmp_path / "identity.txt",
    )  # fmt: skip
    assert batch.score == pytest.approx([-BINDING], abs=1e-3)
    assert batch.score * (1 + TORSION_WEIGHT * 2.5) == pytest.approx([-INTERMOLECULAR], abs=1e-3)


@pytest.mark.golden
@pytest.mark.parametrize("name", COMPLEXES)
def test_energy__of_complexes_is_that_of_vina(golden: Path, name: str) -> None:
    expected, torsions = COMPLEXES[name]
    found, counted = energy(*complex_of(golden / "redock" / name))
    assert counted == torsions
    assert found * (1 + TORSION_WEIGHT * torsions) == pytest.approx(expected, abs=0.003)


@pytest.mark.slow
@pytest.mark.golden
@pytest.mark.skipif(shutil.which("vina") is None, reason="vina is not installed")
@pytest.mark.parametrize("name", sorted({*cases("redock/*/case.json")} - CLASHES))
def test_energy__is_that_of_the_program(golden: Path, tmp_path: Path, name: str) -> None:
    folder = golden / "redock" / name
    receptor, molecule, box = complex_of(folder)
    content = gzip.decompress((folder / "receptor.pdbqt.gz").read_bytes())
    inter, binding = by_vina(tmp_path, content, molecule.text, box)
    found, torsions = energy(receptor, molecule, box)
    assert found == pytest.approx(binding, abs=0.003)
    assert found * (1 + TORSION_WEIGHT * torsions) == pytest.approx(inter, abs=0.003)


def complex_of(folder: Path) -> tuple[Receptor, Molecule, GridBox]:
    """Return receptor, ligand as in the crystal, and box of a golden complex."""
    facts = json.loads((folder / "case.json").read_text())
    content = gzip.decompress((folder / "receptor.pdbqt.gz").read_bytes())
    receptor = receptor_of(parse(content, "pdbqt"))
    box = GridBox(tuple(facts["center"]), tuple(facts["elements"]), facts["spacing"])
    return receptor, parse((folder / "crystal.pdbqt").read_bytes(), "pdbqt"), box


@pytest.mark.parametrize("smiles", SMILES)
def test_types__and_torsions_of_sdf_are_those_of_meekos_pdbqt(smiles: str) -> None:
    meeko = pytest.importorskip("meeko", reason="meeko is not installed")
    from rdkit.Chem import AllChem

    graph = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMolecule(graph, randomSeed=7)
    text, _, _ = meeko.PDBQTWriterLegacy.write_string(meeko.MoleculePreparation().prepare(graph)[0])
    sdf, prepared = parse(Chem.MolToMolBlock(graph).encode(), "sdf"), parse(text.encode(), "pdbqt")
    assert count_torsions(sdf) == count_torsions(prepared)
    kinds = [np.bincount(scoring.atom_terms(each, TYPES).types + 1) for each in (sdf, prepared)]
    assert kinds[0][1:].tolist() == kinds[1][1:].tolist()


@pytest.mark.parametrize(
    ("kind", "maps", "message"),
    [("B", TYPES, "no map of atom type B: the pocket has C_H"), ("W", TYPES, "atom type W: "),
     ("OA", ("C_H", "N_A"), r"no map of atom type O_A: the pocket has C_H, N_A \(Vina's types\)")],
)  # fmt: skip
def test_types__that_vina_lacks_are_named(kind: str, maps: tuple[str, ...], message: str) -> None:
    with pytest.raises(MoleculeError, match=message):
        scoring.atom_terms(parse(pdbqt([(kind, 0, 0, 0)]), "pdbqt"), maps)


def test_types__of_opened_macrocycles_are_of_carbon_and_nothing() -> None:
    molecule = parse(pdbqt([("CG0", 0, 0, 0), ("G0", 1.5, 0, 0), ("NA", 0, 1.4, 0)]), "pdbqt")
    found = [*scoring.atom_terms(molecule, TYPES).types]
    assert [TYPES[i] if i >= 0 else "" for i in found] == ["C_P", "", "N_A"]

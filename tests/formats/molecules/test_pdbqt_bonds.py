"""PDBQT as AutoDock has it, and back: merged hydrogens, remarks with the molecule, bonds found."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from support.ligand_texts import PDBQT, plain, posed

from multigpu.formats.molecules import pdbqt_bonds
from multigpu.formats.molecules.autodock_types import types_for_maps
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.formats.molecules.poses import render, render_drawing
from multigpu.formats.molecules.registry import parse

TEXT = """
CC(=O)Oc1ccccc1C(=O)O CC(=O)Oc1ccccc1C(=O)[O-] Cn1cnc2c1c(=O)n(C)c(=O)n2C
OC(=O)CCCC[C@@H]1SC[C@@H]2NC(=O)N[C@H]12 CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O C[N+](C)(C)CC([O-])=O
NC(=[NH2+])NCCC[C@H]([NH3+])C(=O)[O-] O=[N+]([O-])c1ccccc1 Cc1ccc(cc1)S(=O)(=O)NC(=O)NC1CCCCC1
CN=[N+]=[N-] CC#CC C=CC=C c1ccc2[nH]ccc2c1 c1ccsc1 c1c[nH]cn1 c1c[nH]c[nH+]1 Cc1nnn[n-]1
COP(=O)([O-])[O-] OP(=O)(O)OC[C@H]1O[C@H]([C@H](O)[C@@H]1O)n1cnc2c1ncnc2N
CC12CCC3C(C1CCC2O)CCC4=CC(=O)CCC34C COc1cc2c(cc1OC)C(=O)C(CC1CCN(Cc3ccccc3)CC1)C2
Cc1cn(c(=O)[nH]c1=O)[C@H]1C[C@@H]([C@H](O1)CO)N=[N+]=[N-]
CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O C[S+](C)C CS(C)=O c1cc[n+]([O-])cc1 O=C1C=CC(=O)C=C1
Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(cc1)CN1CCN(CC1)C C1=CCCC1 BrC1=CC(=O)NC1=O
CCOC(=O)N=NC(=O)OCC
"""
SMILES = TEXT.split()
BIOTIN = SMILES[3]
REMARKS = ("REMARK SMILES", "REMARK H PARENT")


@cache
def embedded(smiles: str) -> Molecule:
    """Return a molecule with places that RDKit finds, which takes a while; not to be changed."""
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(molecule, randomSeed=7) == 0
    AllChem.UFFOptimizeMolecule(molecule)
    return parse(Chem.MolToMolBlock(molecule).encode(), "sdf")


def as_pdbqt(molecule: Molecule) -> str:
    return render(molecule, "x", "pdbqt", molecule.positions, {}).decode()


def as_smiles(text: str) -> str:
    return plain(Chem.MolToSmiles(Chem.MolFromMolBlock(posed(text.encode(), "pdbqt", "sdf"))))


def without_remarks(text: str) -> str:
    return "".join(line for line in text.splitlines(True) if not line.startswith(REMARKS))


# ---- written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)O", "C[NH2+]CCS", BIOTIN])
def test_pose__in_pdbqt_has_nonpolar_hydrogens_merged(smiles: str) -> None:
    """As for maps without H: the same types, charges and places."""
    molecule = embedded(smiles)
    pose = parse(as_pdbqt(molecule).encode(), "pdbqt")
    assert "H" not in pose.types
    merged = types_for_maps(molecule, ["A", "C", "N", "NA", "OA", "S", "SA", "HD"])
    kept = [i for i, kind in enumerate(merged.types) if kind]
    assert len(kept) < len(molecule.elements)
    assert pose.types == [merged.types[i] for i in kept]
    np.testing.assert_allclose(pose.charges, merged.charges[kept], atol=5e-4)
    np.testing.assert_allclose(pose.positions, molecule.positions[kept], atol=5e-4)


def test_pose__in_pdbqt_of_hydrogen_alone_keeps_it() -> None:
    assert parse(as_pdbqt(embedded("[H][H]")).encode(), "pdbqt").types == ["H", "H"]


@pytest.mark.parametrize("smiles", [*SMILES, "C[N+]#[C-]", "C/C=N/[H]"])
def test_pose__in_pdbqt_is_read_by_meeko(smiles: str, tmp_path: Path) -> None:
    """Its places stay, and the molecule is what it was, stereo included."""
    meeko = pytest.importorskip("meeko", reason="meeko is not installed")
    molecule = embedded(smiles)
    (tmp_path / "pose.pdbqt").write_text(as_pdbqt(molecule))
    read = meeko.PDBQTMolecule.from_file(str(tmp_path / "pose.pdbqt"))
    (found,) = meeko.RDKitMolCreate.from_pdbqt_mol(read)
    assert plain(Chem.MolToSmiles(found)) == plain(smiles)
    if set("@/") & set(smiles):
        assert Chem.MolToSmiles(Chem.RemoveHs(found)) == Chem.CanonSmiles(smiles)
    own = parse(as_pdbqt(molecule).encode(), "pdbqt")
    heavy = [i for i, element in enumerate(own.elements) if element != "H"]
    which = [atom.GetIdx() for atom in found.GetAtoms() if atom.GetSymbol() != "H"]
    places = found.GetConformer().GetPositions()[which]
    apart = np.sqrt(((places[:, None] - own.positions[None, heavy]) ** 2).sum(axis=2))
    assert apart.min(axis=1).max() < 1e-6


# ---- read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("smiles", [*SMILES, "C[N+]#[C-]"])
def test_bonds__are_those_of_the_remarks(smiles: str) -> None:
    assert as_smiles(as_pdbqt(embedded(smiles))) == plain(smiles)


@pytest.mark.parametrize("smiles", SMILES)
def test_bonds__without_remarks_follow_from_the_places(smiles: str) -> None:
    assert as_smiles(without_remarks(as_pdbqt(embedded(smiles)))) == plain(smiles)


@pytest.mark.parametrize("smiles", ["CC(=O)Oc1ccccc1C(=O)O", "C1CCCCCCCC(=O)NCCCC1", BIOTIN])
def test_bonds__of_what_meeko_prepared_are_those_it_had(smiles: str) -> None:
    """Of an opened macrocycle, too: its glue is left out, and the ring is closed."""
    meeko = pytest.importorskip("meeko", reason="meeko is not installed")
    given = Chem.MolFromMolBlock(embedded(smiles).text.decode(), removeHs=False)
    (setup,) = meeko.MoleculePreparation().prepare(given)
    text, done, _ = meeko.PDBQTWriterLegacy.write_string(setup)
    assert done
    assert (" G0" in text) == smiles.startswith("C1")
    assert as_smiles(text) == as_smiles(without_remarks(text)) == plain(smiles)


CRYSTALS = {  # ligands of the redocking set as they lie in crystals, with charges that sum up to 0
    "1hnn": "NS(=O)(=O)c1ccc2c(c1)C[NH2+]CC2",
    "1k3u": "O=C([O-])CC(NC(=O)Cc1c[nH]c2ccccc12)C(=O)[O-]",
    "1l7f": "CCC(CC)C(NC(C)=O)C1C(NC(N)=[NH2+])CC(C(=O)[O-])C1O",
    "1t46": "Cc1ccc(NC(=O)c2ccc(CN3CC[NH+](C)CC3)cc2)cc1Nc1nccc(-c2cccnc2)n1",
    "1ig3": "Cc1ncc(C[n+]2csc(CCO)c2C)c(N)n1",
    "2bsm": "CCNC(=O)c1n[nH]c(-c2cc(Cl)c(O)cc2O)c1-c1ccc(OC)cc1",
}


@pytest.mark.parametrize("name", CRYSTALS)
def test_bonds__of_crystals_follow_from_the_places(name: str, golden: Path) -> None:
    text = (golden / "redock" / name / "crystal.pdbqt").read_text()
    assert as_smiles(text) == plain(CRYSTALS[name])


def isonitrile() -> str:
    return without_remarks(as_pdbqt(embedded("C[N+]#[C-]")))


def test_bonds__that_do_not_follow_are_refused_and_drawn_as_unknown() -> None:
    molecule = parse(isonitrile().encode(), "pdbqt")
    for fmt in ("sdf", "pdb"):
        with pytest.raises(MoleculeError, match=r"bond orders do not follow .* as \.pdbqt"):
            render(molecule, "x", fmt, molecule.positions, {})
    pose = parse(render_drawing(molecule, "x", molecule.positions, {}), "sdf")
    assert pose.bonds == [(0, 1, 8), (1, 2, 8)]
    assert b"\nN " in render(molecule, "x", "xyz", molecule.positions, {})


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("SMILES C", "SMILES Q(", "RDKit does not read its REMARK SMILES"),
        ("SMILES C", "SMILES N", "its REMARK SMILES has other atoms than these"),
        ("SMILES C", "SMILES CC", "its REMARK SMILES has other atoms than these"),
        ("IDX 1 1", "IDX 1 77", "its REMARK SMILES IDX names atoms that are not there"),
        ("IDX 1 1", "IDX 1 x", "its REMARK SMILES IDX names atoms that are not there"),
        ("IDX 1 1", "IDX 1", "its REMARK SMILES IDX names atoms that are not there"),
        ("IDX 1 1", "IDX 9 1", "its REMARK SMILES has other atoms than these"),
        ("PARENT 2", "PARENT 7", "its REMARK SMILES IDX names atoms that are not there"),
    ],
)
def test_remarks__of_another_molecule_are_refused(old: str, new: str, problem: str) -> None:
    text = as_pdbqt(embedded("CO"))
    assert text.count(old) == 1
    with pytest.raises(MoleculeError, match=problem):
        as_smiles(text.replace(old, new))


def test_remarks__beside_atoms_without_numbers_are_refused() -> None:
    text = as_pdbqt(embedded("CO")).replace("HETATM    1 ", "HETATM***** ")
    with pytest.raises(MoleculeError, match="names atoms that are not there"):
        as_smiles(text)


def test_bonds__of_deuterium_are_those_of_hydrogen() -> None:
    """RDKit knows it as an isotope of that only."""
    text = PDBQT.replace(b" N\n", b" D\n").replace(b" HD\n", b" D\n")
    heavy_water = parse(text, "pdbqt")
    assert heavy_water.elements == ["D", "O", "D"]
    bonds = [(0, 1, 1), (1, 2, 1)]
    assert pdbqt_bonds._perceive_orders(heavy_water, bonds) == (bonds, {})


def test_remarks__are_short_lines() -> None:
    lines = as_pdbqt(embedded(SMILES[27])).splitlines()
    assert max(len(line) for line in lines if not line.startswith("REMARK SMILES C")) < 80
    assert sum(line.startswith("REMARK SMILES IDX") for line in lines) > 2


def test_hydrogens__of_pdbqt_that_are_not_merged_are_for_maps_without_them() -> None:
    molecule: Any = parse(as_pdbqt(embedded("CO")).encode(), "pdbqt")
    text = molecule.text.decode()
    (carbon,) = (line for line in text.splitlines(True) if line.rstrip().endswith(" C"))
    x, y, z = molecule.positions[0].tolist()
    row = f"HETATM    9  H   LIG A   1    {x:8.3f}{y:8.3f}{z + 1.09:8.3f}  1.00  0.00     0.125 H\n"
    found = types_for_maps(
        parse(text.replace(carbon, carbon + row).encode(), "pdbqt"), ["C", "OA", "HD"]
    )
    assert found.types == ["C", "", "OA", "HD"]
    assert found.charges[0] == pytest.approx(molecule.charges[0] + 0.125)


def test_charges__of_ammonium_in_pdbqt_are_read_by_rdkit() -> None:
    places = [(0, 0, 0), (0.6, 0.6, 0.6), (-0.6, -0.6, 0.6), (-0.6, 0.6, -0.6), (0.6, -0.6, -0.6)]
    row = "HETATM{:5d}  X   LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 {}\n"
    kinds = ("N", "HD", "HD", "HD", "HD")
    rows = [
        row.format(i, *at, kind) for i, (at, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    text = posed("".join(["ROOT\n", *rows, "ENDROOT\nTORSDOF 0\n"]).encode(), "pdbqt", "sdf")
    assert Chem.MolToSmiles(Chem.MolFromMolBlock(text)) == "[NH4+]"

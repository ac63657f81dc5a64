"""Bond orders and charges of PDBQT and MOL2, by what RDKit makes of poses in SDF."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rdkit import Chem
from support.ligand_texts import MOL2, PDBQT, mol2, plain, posed

from multigpu.formats.molecules import bond_orders
from multigpu.formats.molecules.autodock_types import types_for_maps
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import drawing_of, render
from multigpu.formats.molecules.registry import FORMATS, parse

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
MACROCYCLE = "C1CCCCCCCC(=O)NCCCC1"
SMILES = [*TEXT.split(), MACROCYCLE]


@cache
def prepared(smiles: str) -> str:
    """Return a molecule with places that RDKit finds, as Meeko writes it; hydrogens are merged."""
    meeko = pytest.importorskip("meeko", reason="meeko is not installed")
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(molecule, randomSeed=7) == 0
    AllChem.UFFOptimizeMolecule(molecule)
    (setup,) = meeko.MoleculePreparation().prepare(molecule)
    text, done, _ = meeko.PDBQTWriterLegacy.write_string(setup)
    assert done
    return str(text)


def as_smiles(text: str) -> str:
    return plain(Chem.MolToSmiles(Chem.MolFromMolBlock(posed(text.encode(), "pdbqt", "sdf"))))


def without_remarks(text: str) -> str:
    return "".join(line for line in text.splitlines(True) if not line.startswith("REMARK"))


@pytest.mark.parametrize("smiles", SMILES)
def test_bonds__are_those_of_the_remarks_and_follow_from_the_places(smiles: str) -> None:
    """Of an opened macrocycle, too: its glue is left out, and the ring is closed."""
    text = prepared(smiles)
    assert (" G0" in text) == (smiles == MACROCYCLE)
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


def test_bonds__that_do_not_follow_are_refused_and_drawn_as_unknown() -> None:
    text = prepared("C[N+]#[C-]")
    assert as_smiles(text) == "[C-]#[N+]C"
    molecule = parse(without_remarks(text).encode(), "pdbqt")
    with pytest.raises(MoleculeError, match=r"bond orders do not follow .* as \.pdbqt"):
        render(molecule, "x", "sdf", molecule.positions, {})
    assert drawing_of(molecule) == ([0, 1, 2], ["C", "N", "C"], [(0, 1, 8), (1, 2, 8)])


@pytest.mark.parametrize(("old", "new", "problem"), [
    ("SMILES C", "SMILES Q(", "RDKit does not read its REMARK SMILES"),
    ("SMILES C", "SMILES N", "its REMARK SMILES has other atoms than these"),
    ("SMILES C", "SMILES CC", "its REMARK SMILES has other atoms than these"),
    ("IDX 1 1", "IDX 1 77", "its REMARK SMILES IDX names atoms that are not there"),
    ("IDX 1 1", "IDX 1 x", "its REMARK SMILES IDX names atoms that are not there"),
    ("IDX 1 1", "IDX 1", "its REMARK SMILES IDX names atoms that are not there"),
    ("ATOM      1 ", "ATOM  ***** ", "names atoms that are not there"),
    ("IDX 1 1", "IDX 9 1", "its REMARK SMILES has other atoms than these"),
    ("PARENT 2", "PARENT 7", "its REMARK SMILES IDX names atoms that are not there"),
])  # fmt: skip
def test_remarks__of_another_molecule_are_refused(old: str, new: str, problem: str) -> None:
    text = prepared("CO")
    assert text.count(old) == 1
    with pytest.raises(MoleculeError, match=problem):
        as_smiles(text.replace(old, new))


def test_bonds__of_deuterium_are_those_of_hydrogen() -> None:
    """RDKit knows it as an isotope of that only."""
    text = PDBQT.replace(b" N\n", b" D\n").replace(b" HD\n", b" D\n")
    heavy_water = parse(text, "pdbqt")
    assert heavy_water.elements == ["D", "O", "D"]
    bonds = [(0, 1, 1), (1, 2, 1)]
    assert bond_orders._perceive_orders(heavy_water, bonds) == (bonds, {})


def test_hydrogens__of_pdbqt_that_are_not_merged_are_for_maps_without_them() -> None:
    molecule: Any = parse(prepared("CO").encode(), "pdbqt")
    text = molecule.text.decode()
    (carbon,) = (line for line in text.splitlines(True) if line.rstrip().endswith(" C"))
    x, y, z = molecule.positions[0].tolist()
    row = f"HETATM    9  H   LIG A   1    {x:8.3f}{y:8.3f}{z + 1.09:8.3f}  1.00  0.00     0.125 H\n"
    more = parse(text.replace(carbon, carbon + row).encode(), "pdbqt")
    found = types_for_maps(more, ["C", "OA", "HD"])
    assert found.types == ["C", "", "OA", "HD"]
    assert found.charges[0] == pytest.approx(molecule.charges[0] + 0.125)


def test_charges__of_ammonium_in_pdbqt_are_read_by_rdkit() -> None:
    places = [(0, 0, 0), (0.6, 0.6, 0.6), (-0.6, -0.6, 0.6), (-0.6, 0.6, -0.6), (0.6, -0.6, -0.6)]
    row = "HETATM{:5d}  X   LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 {}\n"
    rows = "".join(row.format(i, *at, "HD" if i else "N") for i, at in enumerate(places))
    text = posed(f"ROOT\n{rows}ENDROOT\nTORSDOF 0\n".encode(), "pdbqt", "sdf")
    assert Chem.MolToSmiles(Chem.MolFromMolBlock(text)) == "[NH4+]"


# ---- MOL2 ---------------------------------------------------------------------------------------

CHARGED = """
CC(=O)Oc1ccccc1C(=O)O CC(=O)[O-] CN=[N+]=[N-] C=[N+]=[N-] c1ccc(cc1)[N+]#N CC#[N+]C CC#[N+][O-]
O=[N+]([O-])c1ccccc1 CS(=O)(=O)[O-] COS(=O)(=O)[O-] CS(=O)[O-] CS(C)=O CS(=O)(=O)C CS(=O)(=O)N
CC(=O)[N-]S(C)(=O)=O COP(=O)([O-])[O-] COP(=O)(O)[O-] C[P+](C)(C)C NC(=[NH2+])NC CC(N)=[NH2+]
C[NH3+] C[N+](C)(C)C C[N+](C)(C)CC([O-])=O C[N+](C)(C)[O-] c1cc[n+]([O-])cc1 c1cc[nH+]cc1
C[n+]1ccccc1 c1c[nH]c[nH+]1 Cn1cc[n+](C)c1 Cc1nnn[n-]1 c1ccc2c(c1)[n-]nn2 c1cc[o+]cc1
c1ccc2[nH]ccc2c1 c1ccsc1 Oc1cc[nH]c(=O)c1 Cn1cnc2c1c(=O)n(C)c(=O)n2C c1cnc2c(n1)[nH]c1ccccc12
c1ccc2c(c1)ccc1ccccc12 C[S+](C)C C[O-] C[S-] c1ccccc1[O-] C[B-](F)(F)F [O-]C(=O)CC(=O)[O-] [NH4+]
"""
POLAR = """
OC(=O)CCCC[C@@H]1SC[C@@H]2NC(=O)N[C@H]12 NC(=[NH2+])NCCC[C@H]([NH3+])C(=O)[O-] c1c[nH]cn1 CN
"""
BARE = "CCO c1cc[nH]c1 O=[N+]([O-])c1ccccc1 CC(=O)NC C[N+](C)(C)C c1ccncc1"
BOND_WORDS = {"SINGLE": "1", "DOUBLE": "2", "TRIPLE": "3", "AROMATIC": "ar"}


def written(smiles: str, aromatic: bool, hydrogens: str = "all") -> bytes:
    """Return MOL2 as programs write it, with places that RDKit finds.

    aromatic: rings and groups that share a charge have bonds `ar`
    """
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(molecule, randomSeed=7) == 0
    if not aromatic:
        Chem.Kekulize(molecule, True)
    molecule = Chem.RWMol(molecule)
    for atom in [each for each in molecule.GetAtoms() if each.GetSymbol() == "H"]:
        is_polar = atom.GetNeighbors()[0].GetSymbol() != "C"
        if hydrogens == "none" or (hydrogens == "polar" and not is_polar):
            molecule.RemoveAtom(atom.GetIdx())
    types, bonds = [sybyl_type(atom) for atom in molecule.GetAtoms()], []
    for bond in molecule.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends = {types[a], types[b]}
        shared = "O.co2" in ends or ("C.cat" in ends and any(kind[:2] == "N." for kind in ends))
        word = "ar" if aromatic and shared else BOND_WORDS[str(bond.GetBondType())]
        bonds.append(f"{a + 1}-{b + 1}:{word}")
    places = molecule.GetConformer().GetPositions().round(4).tolist()
    return mol2(" ".join(types), " ".join(bonds), places=places)


def sybyl_type(atom: Any) -> str:
    symbol, near = str(atom.GetSymbol()), atom.GetNeighbors()
    if symbol == "C" and sum(other.GetSymbol() == "N" for other in near) == 3:
        return "C.cat"
    if symbol == "O" and atom.GetDegree() == 1 and near[0].GetSymbol() in ("C", "P", "S"):
        ends = [n for n in near[0].GetNeighbors() if n.GetSymbol() == "O" and n.GetDegree() == 1]
        if len(ends) > 1 and any(other.GetFormalCharge() for other in ends):
            return "O.co2"
    if symbol in ("C", "N", "O", "S") and atom.GetIsAromatic():
        return f"{symbol}.ar"
    if symbol == "N" and atom.GetDegree() == 4:
        return "N.4"
    return f"{symbol}.3" if symbol in ("C", "N", "O", "S", "P") else symbol


def of_mol2(text: bytes) -> str:
    return plain(Chem.MolToSmiles(Chem.MolFromMolBlock(posed(text, "mol2", "sdf"))))


@pytest.mark.parametrize("aromatic", [False, True], ids=["orders", "aromatic"])
@pytest.mark.parametrize(
    ("hydrogens", "text"), [("all", CHARGED), ("polar", POLAR), ("none", BARE)]
)
def test_mol2__is_the_molecule_in_any_words(hydrogens: str, text: str, aromatic: bool) -> None:
    """Charges in the file are all 0, as of programs that do not know them."""
    molecules = text.split()
    found = {smiles: of_mol2(written(smiles, aromatic, hydrogens)) for smiles in molecules}
    assert found == {smiles: plain(smiles) for smiles in molecules}


def test_mol2__keeps_the_bonds_of_aromatic_rings_and_the_order_of_all() -> None:
    text = written("c1ccccc1C(=O)NC", True)
    found = parse(posed(text, "mol2", "sdf").encode(), "sdf").bonds
    assert [order for *_, order in found].count(4) == 6
    assert [bond[:2] for bond in found] == [bond[:2] for bond in parse(text, "mol2").bonds]


def test_mol2__of_many_charges_takes_several_lines() -> None:
    """Also a large aromatic system is done in time."""
    lysines = posed(written(".".join(["C[NH3+]"] * 10), True), "mol2", "sdf")
    assert re.findall("^M  CHG...", lysines, re.MULTILINE) == ["M  CHG  8", "M  CHG  2"]
    rings = "c1ccc2cc3cc4cc5cc6cc7ccccc7cc6cc5cc4cc3cc2c1"
    assert of_mol2(written(rings, True)) == plain(rings)


ODD = [written("C[N+]#[C-]", False), mol2("C.3 O.3 H", "1-1 1-2 1-2"), mol2("Na Cl", "")]


@pytest.mark.parametrize("text", ODD, ids=["isonitrile", "bonds to itself and twice", "no bonds"])
def test_mol2__that_makes_no_sense_is_as_the_file_says(text: bytes) -> None:
    molecule = parse(text, "mol2")
    assert molecule.format.bond_graph(molecule) == (molecule.bonds, {})


def test_mol2__with_a_blank_name_has_none() -> None:
    assert parse(MOL2.replace(b"phenol-ish", b" "), "mol2").name == ""
    assert parse(MOL2.replace(b"phenol-ish", b"#5"), "mol2").name == "#5"
    assert FORMATS["mol2"].read_name(b"@<TRIPOS>MOLECULE\n") == ""
    assert FORMATS["mol2"].read_name(b"x\n") == ""

"""Formal charges of MOL2 in other formats, by what RDKit makes of them."""

import re
from typing import Any

import pytest
from rdkit import Chem, rdBase
from support.ligand_texts import MOL2, charges_in, mol2, plain, posed

from multigpu.formats.molecules.registry import FORMATS, parse

SMILES = """
CC(=O)Oc1ccccc1C(=O)O CC(=O)[O-] CN=[N+]=[N-] C=[N+]=[N-] [CH2-][N+]#N c1ccc(cc1)[N+]#N C[N+]#[C-]
CC#[N+]C CC#[N+][O-] O=[N+]([O-])c1ccccc1 [O-][N+](=O)[O-] CS(=O)(=O)[O-] COS(=O)(=O)[O-]
[O-]S(=O)(=O)[O-] CS(=O)[O-] CS(C)=O CS(=O)(=O)C CS(=O)(=O)N CC(=O)[N-]S(C)(=O)=O COP(=O)([O-])[O-]
COP(=O)(O)[O-] C[P+](C)(C)C NC(=[NH2+])NC CC(N)=[NH2+] C[NH3+] C[N+](C)(C)C C[N+](C)(C)CC([O-])=O
C[N+](C)(C)[O-] c1cc[n+]([O-])cc1 [O-][n+]1ccccc1C(=O)[O-] c1cc[nH+]cc1 C[n+]1ccccc1 c1c[nH]c[nH+]1
Cn1cc[n+](C)c1 Cc1nnn[n-]1 c1ccc2c(c1)[n-]nn2 c1cc[o+]cc1 c1ccc2[nH]ccc2c1 c1ccsc1 Oc1cc[nH]c(=O)c1
Cn1cnc2c1c(=O)n(C)c(=O)n2C c1cnc2c(n1)[nH]c1ccccc12 c1ccc2c(c1)ccc1ccccc12 C[S+](C)C C[O-] C[S-]
c1ccccc1[O-] C[B-](F)(F)F [O-]C(=O)CC(=O)[O-] [NH4+] [O-]Cl(=O)(=O)=O
"""
BOND_WORDS = {"SINGLE": "1", "DOUBLE": "2", "TRIPLE": "3", "AROMATIC": "ar"}


def written(smiles: str, aromatic: bool, charges: str) -> bytes:
    """As programs write it. aromatic: rings and groups that share a charge have bonds `ar`."""
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    if not aromatic:
        Chem.Kekulize(molecule, True)
    types = [sybyl_type(atom) for atom in molecule.GetAtoms()]
    bonds = []
    for bond in molecule.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends = {types[a], types[b]}
        guanidinium = "C.cat" in ends and any(kind.startswith("N.") for kind in ends)
        shared = aromatic and ("O.co2" in ends or guanidinium)
        word = "ar" if shared else BOND_WORDS[str(bond.GetBondType())]
        bonds.append(f"{a + 1}-{b + 1}:{word}")
    return mol2(" ".join(types), " ".join(bonds), column(molecule, charges))


def sybyl_type(atom: Any) -> str:
    symbol = str(atom.GetSymbol())
    if symbol == "C" and sum(n.GetSymbol() == "N" for n in atom.GetNeighbors()) == 3:
        return "C.cat"
    if symbol == "O" and atom.GetDegree() == 1 and shares(atom.GetNeighbors()[0]):
        return "O.co2"
    if symbol in ("C", "N", "O", "S") and atom.GetIsAromatic():
        return f"{symbol}.ar"
    if symbol == "N" and atom.GetDegree() == 4:
        return "N.4"
    return f"{symbol}.3" if symbol in ("C", "N", "O", "S", "P") else symbol


def shares(center: Any) -> bool:
    """Whether it has several oxygens at ends, and one of them a charge."""
    if center.GetSymbol() not in ("C", "P", "S", "Cl"):
        return False
    ends = [n for n in center.GetNeighbors() if n.GetSymbol() == "O" and n.GetDegree() == 1]
    return len(ends) > 1 and any(n.GetFormalCharge() for n in ends)


def column(molecule: Any, kind: str) -> list[float]:
    """Charges of the file: none, formal ones, or formal ones spread to the neighbours."""
    formal = [float(atom.GetFormalCharge()) for atom in molecule.GetAtoms()]
    if kind == "none":
        return [0.0] * len(formal)
    if kind == "formal":
        return formal
    spread = [0.0] * len(formal)
    for atom, charge in zip(molecule.GetAtoms(), formal, strict=True):
        near = [n.GetIdx() for n in atom.GetNeighbors()]
        spread[atom.GetIdx()] += charge * (0.6 if near else 1.0)
        for other in near:
            spread[other] += 0.4 * charge / len(near)
    return spread


def as_smiles(text: bytes) -> str | None:
    found = Chem.MolFromMolBlock(posed(text, "mol2", "sdf"))
    return None if found is None else plain(Chem.MolToSmiles(found))


@pytest.mark.parametrize("charges", ["none", "formal", "spread"])
@pytest.mark.parametrize("aromatic", [False, True], ids=["orders", "aromatic"])
def test_charges__are_those_of_the_molecule(aromatic: bool, charges: str) -> None:
    for smiles in SMILES.split():
        if "[nH]" in smiles and aromatic and rdBase.rdkitVersion < "2026":
            continue  # older RDKits cannot kekulize what they read back here
        assert as_smiles(written(smiles, aromatic, charges)) == plain(smiles)


AZIDE = "C.3 N.2 N.1 N.1 H H H", "1-5 1-6 1-7 "
NITRO = "C.3 N.pl3 O.2 O.2 H H H", "1-2 1-5 1-6 1-7 "
GUANIDINE = "C.cat N.pl3 N.pl3 N.pl3 H H H H H H", "1-2 1-3 1-4 2-5 2-6 3-7 3-8 4-9 4-10"
ALCOHOL = "C.3 O.3 H H H", "1-2 1-3 1-4 1-5"


@pytest.mark.parametrize(
    ("types", "bonds", "charges", "smiles"),
    [
        (NITRO[0], f"{NITRO[1]} 2-3:2 2-4:2", "", "C[N+](=O)[O-]"),
        (NITRO[0], f"{NITRO[1]} 2-3:ar 2-4:ar", "", "C[N+](=O)[O-]"),
        (AZIDE[0], f"{AZIDE[1]} 1-2 2-3:2 3-4:3", "", "CN=[N+]=[N-]"),
        (AZIDE[0], f"{AZIDE[1]} 1-2 2-3 3-4:3", "", "C[N-][N+]#N"),
        ("C.2 N.pl3 N.pl3 H H H H H", "1-2:ar 1-3:ar 1-4 2-5 2-6 3-7 3-8", "", "NC=[NH2+]"),
        (*GUANIDINE, "", "NC(N)=[NH2+]"),
        ("Cl O.co2 O.co2 O.co2 O.co2", "1-2 1-3 1-4 1-5", "", "[O-][Cl](=O)(=O)=O"),
        ("N.ar C.ar C.ar C.ar C.ar", "1-2:ar 2-3:ar 3-4:ar 4-5:ar 5-1:ar", "", "c1cc[nH]c1"),
        ("C.3 N.1 C.1", "1-2 2-3:3", "", "C[N+]#[C-]"),
        ("C.3 O.3", "1-2", "", "CO"), ("C.3 S.3", "1-2", "", "CS"),
        (*ALCOHOL, "-0.3 -0.7 0 0 0", "C[O-]"), ("Fe", "", "3.0", "[Fe+3]"),
    ],
)  # fmt: skip
def test_charges__follow_from_however_it_is_written(
    types: str, bonds: str, charges: str, smiles: str
) -> None:
    assert as_smiles(mol2(types, bonds, charges.split())) == plain(smiles)


@pytest.mark.parametrize(
    ("said", "smiles"),
    [
        ("1 1\ncharge 0\n", "OC=O"), ("2 1\ncharge -1\n", "O=C[O-]"),
        ("3 1\ncharge -1\n", "O=C[O-]"), ("3 1\ncharge -1\n4 1\ncharge 1\n", "O=C[O-]"),
        ("1 1\ncharge +-1\n", "OC=O"),
    ],
)  # fmt: skip
def test_charges__of_attributes_decide(said: str, smiles: str) -> None:
    """The oxygen with the minus has the single bond; what is no number is 0."""
    more = f"@<TRIPOS>UNITY_ATOM_ATTR\n{said}"
    assert as_smiles(mol2("C.2 O.3 O.2 H", "1-2:ar 1-3:ar 1-4", more=more)) == plain(smiles)


def test_aromatic_rings__keep_their_bonds() -> None:
    pose = parse(posed(written("c1ccccc1C", True, "none"), "mol2", "sdf").encode(), "sdf")
    assert [order for _, _, order in pose.bonds].count(4) == 6


def test_aromatic_system__that_is_large_is_done_in_time() -> None:
    """Rows of fused rings, with as many charges as there may be."""
    rings = "c1ccc2cc3cc4cc5cc6cc7ccccc7cc6cc5cc4cc3cc2c1"
    assert as_smiles(written(rings, True, "none")) == plain(rings)


def test_pose__keeps_the_orders_of_bonds_in_sdf() -> None:
    """Of a ring that is aromatic; V3000 says the same."""
    ring = "1-2:ar 2-3:ar 3-4:ar 4-5:ar 5-6:ar 6-1:ar"
    text = mol2("C.ar " * 6 + "C.2 O.2 C.1 N.1", f"{ring} 2-7 7-8:2 7-9 9-10:3 1-7:am")
    found = parse(posed(text, "mol2", "sdf").encode(), "sdf")
    wanted = [(i, (i + 1) % 6, 4) for i in range(6)]
    wanted += [(1, 6, 1), (6, 7, 2), (6, 8, 1), (8, 9, 3), (0, 6, 1)]
    assert found.bonds == parse(text, "mol2").bonds == wanted


@pytest.mark.parametrize(
    ("types", "bonds", "orders", "charges"),
    [
        ("C.3 C.2 O.co2 O.co2", "1-2 2-3:ar 4-2:ar", [1, 2, 1], {4: -1}),
        ("C.3 P.3 O.co2 O.co2 O.co2", "1-2 2-3:ar 2-4:ar 2-5:ar", [1, 2, 1, 1], {4: -1, 5: -1}),
        ("C.3 S.o2 O.co2 O.co2 O.co2", "1-2 2-3:ar 2-4:ar 2-5:ar", [1, 2, 2, 1], {5: -1}),
        ("N.4 H H H C.3", "1-2 1-3 1-4 1-5", [1, 1, 1, 1], {1: 1}),
        (GUANIDINE[0], GUANIDINE[1].replace("1-2 1-3 1-4", "1-2:ar 1-3:ar 1-4:ar"),
         [2, 1, 1, 1, 1, 1, 1, 1, 1], {2: 1}),
        ("C.3 O.3 H N.am", "1-2 2-3 1-4:am", [1, 1, 1], {}),
    ],
)  # fmt: skip
def test_charges__follow_from_types_and_valences(
    types: str, bonds: str, orders: list[int], charges: dict[int, int]
) -> None:
    text = posed(mol2(types, bonds), "mol2", "sdf")
    assert [order for _, _, order in parse(text.encode(), "sdf").bonds] == orders
    assert charges_in(text) == charges_in(text, sanitize=True) == charges


def test_charges__of_many_atoms_take_several_lines() -> None:
    types = " ".join(["N.4 C.3"] * 10)
    text = posed(mol2(types, " ".join(f"{i}-{i + 1}" for i in range(1, 20, 2))), "mol2", "sdf")
    assert re.findall("^M  CHG...", text, re.MULTILINE) == ["M  CHG  8", "M  CHG  2"]
    assert charges_in(text) == dict.fromkeys(range(1, 20, 2), 1)


METHOXIDE = mol2("C.3 O.3 H H H", "1-2 1-3 1-4 1-5", [-0.05, -0.95, 0, 0, 0])


@pytest.mark.parametrize(
    ("attributes", "charges"),
    [
        (b"", {1: -1}),
        (b"2 1\npartial -0.95\n", {1: -1}),
        (b"2 2\npartial -0.95\ncharge -1\n", {1: -1}),
        (b"2 1\ncharge 0\n", {}),
        (b"9 1\ncharge -1\n2 1\npartial 1\n", {1: -1}),
    ],
)
def test_mol2__attributes_change_what_they_name(attributes: bytes, charges: object) -> None:
    molecule = parse(METHOXIDE + b"@<TRIPOS>UNITY_ATOM_ATTR\n" + attributes, "mol2")
    assert molecule.format.bond_graph(molecule).charges == charges


def test_mol2__with_a_blank_name_has_none() -> None:
    assert parse(MOL2.replace(b"phenol-ish", b" "), "mol2").name == ""
    assert parse(MOL2.replace(b"phenol-ish", b"#5"), "mol2").name == "#5"
    assert FORMATS["mol2"].read_name(b"@<TRIPOS>MOLECULE\n") == ""
    assert FORMATS["mol2"].read_name(b"x\n") == ""

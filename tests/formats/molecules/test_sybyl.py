"""Formal charges of MOL2 in other formats, by what RDKit makes of them."""

from typing import Any

import pytest
from rdkit import Chem as chem
from rdkit import rdBase

from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import parse

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "CC(=O)[O-].[Na+]",
    "CN=[N+]=[N-]",
    "C=[N+]=[N-]",
    "[CH2-][N+]#N",
    "c1ccc(cc1)[N+]#N",
    "C[N+]#[C-]",
    "CC#[N+]C",
    "CC#[N+][O-]",
    "O=[N+]([O-])c1ccccc1",
    "[O-][N+](=O)[O-].[K+]",
    "CS(=O)(=O)[O-]",
    "COS(=O)(=O)[O-]",
    "[O-]S(=O)(=O)[O-].[Mg+2]",
    "CS(=O)[O-]",
    "CS(C)=O",
    "CS(=O)(=O)C",
    "CS(=O)(=O)N",
    "CC(=O)[N-]S(C)(=O)=O",
    "COP(=O)([O-])[O-]",
    "COP(=O)(O)[O-]",
    "C[P+](C)(C)C",
    "NC(=[NH2+])NC",
    "CC(N)=[NH2+]",
    "C[NH3+]",
    "C[N+](C)(C)C",
    "C[N+](C)(C)CC([O-])=O",
    "C[N+](C)(C)[O-]",
    "c1cc[n+]([O-])cc1",
    "[O-][n+]1ccccc1C(=O)[O-]",
    "c1cc[nH+]cc1",
    "C[n+]1ccccc1",
    "c1c[nH]c[nH+]1",
    "Cn1cc[n+](C)c1",
    "Cc1nnn[n-]1",
    "c1ccc2c(c1)[n-]nn2",
    "c1cc[o+]cc1",
    "c1ccc2[nH]ccc2c1",
    "c1ccsc1",
    "Oc1cc[nH]c(=O)c1",
    "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "c1cnc2c(n1)[nH]c1ccccc12",
    "c1ccc2c(c1)ccc1ccccc12",
    "C[S+](C)C",
    "C[O-].[Na+]",
    "C[S-].[K+]",
    "c1ccccc1[O-]",
    "C[B-](F)(F)F.[K+]",
    "[Ca+2].[O-]C(=O)CC(=O)[O-]",
    "[Zn+2].CC(=O)[O-].CC(=O)[O-]",
    "[K+].[Cl-]",
    "[NH4+].[Br-]",
    "[O-]Cl(=O)(=O)=O.[Na+]",
]
BOND_WORDS = {"SINGLE": "1", "DOUBLE": "2", "TRIPLE": "3", "AROMATIC": "ar"}


def plain(smiles: str) -> str:
    """As RDKit writes it, of the first resonance structure."""
    molecule = chem.MolFromSmiles(smiles)
    structures = [each for each in chem.ResonanceMolSupplier(molecule) if each is not None]
    return min(map(chem.MolToSmiles, [molecule, *structures]))


def mol2(smiles: str, aromatic: bool, charges: str) -> str:
    """As programs write it. aromatic: rings and groups that share a charge have bonds `ar`."""
    molecule = chem.AddHs(chem.MolFromSmiles(smiles))
    if not aromatic:
        chem.Kekulize(molecule, True)
    types = [sybyl_type(atom) for atom in molecule.GetAtoms()]
    rows = [
        f"{i} A{i} {2 * i} 0 0 {kind} 1 LIG {charge:.3f}\n"
        for i, (kind, charge) in enumerate(
            zip(types, column(molecule, charges), strict=True), 1
        )
    ]  # fmt: skip
    bonds = []
    for i, bond in enumerate(molecule.GetBonds(), 1):
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        shared = aromatic and (
            "O.co2" in (types[a], types[b]) or is_guanidinium(types[a], types[b])
        )
        word = "ar" if shared else BOND_WORDS[str(bond.GetBondType())]
        bonds.append(f"{i} {a + 1} {b + 1} {word}\n")
    head = f"@<TRIPOS>MOLECULE\nx\n{len(rows)} {len(bonds)}\nSMALL\nUSER_CHARGES\n\n"
    return f"{head}@<TRIPOS>ATOM\n{''.join(rows)}@<TRIPOS>BOND\n{''.join(bonds)}"


def is_guanidinium(*types: str) -> bool:
    return "C.cat" in types and any(kind.startswith("N.") for kind in types)


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


def as_smiles(text: str) -> str | None:
    molecule = parse(text.encode(), "mol2")
    pose = render(molecule, "x", "sdf", molecule.positions, {}).decode()
    found = chem.MolFromMolBlock(pose)
    return None if found is None else plain(chem.MolToSmiles(found))


@pytest.mark.parametrize("charges", ["none", "formal", "spread"])
@pytest.mark.parametrize("aromatic", [False, True], ids=["orders", "aromatic"])
def test_charges__are_those_of_the_molecule(aromatic: bool, charges: str) -> None:
    for smiles in SMILES:
        if "[nH]" in smiles and aromatic and rdBase.rdkitVersion < "2026":
            continue  # older RDKits cannot kekulize what they read back here
        assert as_smiles(mol2(smiles, aromatic, charges)) == plain(smiles)


def fragment(types: str, bonds: str, charges: str = "", more: str = "") -> str:
    """Atoms of these types, bonds as in `1-2:ar`, charges of the file or 0 each."""
    said = charges.split() or ["0"] * len(types.split())
    rows = [
        f"{i} A{i} {2 * i} 0 0 {kind} 1 LIG {charge}\n"
        for i, (kind, charge) in enumerate(zip(types.split(), said, strict=True), 1)
    ]
    joined = [
        f"{i} {bond.replace('-', ' ').replace(':', ' ')}\n"
        for i, bond in enumerate(bonds.split(), 1)
    ]
    head = f"@<TRIPOS>MOLECULE\nx\n{len(rows)} {len(joined)}\nSMALL\nUSER_CHARGES\n\n"
    return f"{head}@<TRIPOS>ATOM\n{''.join(rows)}{more}@<TRIPOS>BOND\n{''.join(joined)}"


def attributes(*said: tuple[int, int]) -> str:
    rows = "".join(f"{atom} 1\ncharge {charge}\n" for atom, charge in said)
    return f"@<TRIPOS>UNITY_ATOM_ATTR\n{rows}"


@pytest.mark.parametrize(
    ("types", "bonds", "smiles"),
    [
        ("C.3 N.pl3 O.2 O.2 H H H", "1-2:1 2-3:2 2-4:2 1-5:1 1-6:1 1-7:1", "C[N+](=O)[O-]"),
        ("C.3 N.pl3 O.2 O.2 H H H", "1-2:1 2-3:ar 2-4:ar 1-5:1 1-6:1 1-7:1", "C[N+](=O)[O-]"),
        ("C.3 N.2 N.1 N.1 H H H", "1-2:1 2-3:2 3-4:3 1-5:1 1-6:1 1-7:1", "CN=[N+]=[N-]"),
        ("C.3 N.2 N.1 N.1 H H H", "1-2:1 2-3:1 3-4:3 1-5:1 1-6:1 1-7:1", "C[N-][N+]#N"),
        ("C.2 N.pl3 N.pl3 H H H H H", "1-2:ar 1-3:ar 1-4:1 2-5:1 2-6:1 3-7:1 3-8:1", "NC=[NH2+]"),
        ("C.cat N.pl3 N.pl3 N.pl3 H H H H H H",
         "1-2:1 1-3:1 1-4:1 2-5:1 2-6:1 3-7:1 3-8:1 4-9:1 4-10:1", "NC(N)=[NH2+]"),
        ("Cl O.co2 O.co2 O.co2 O.co2", "1-2:1 1-3:1 1-4:1 1-5:1", "[O-][Cl](=O)(=O)=O"),
        ("N.ar C.ar C.ar C.ar C.ar", "1-2:ar 2-3:ar 3-4:ar 4-5:ar 5-1:ar", "c1cc[nH]c1"),
        ("C.3 N.1 C.1", "1-2:1 2-3:3", "C[N+]#[C-]"),
        ("C.3 O.3", "1-2:1", "CO"),
        ("C.3 S.3", "1-2:1", "CS"),
        ("Na Cl", "", "[Cl-].[Na+]"),
        ("Zn", "", "[Zn+2]"),
        ("Mg", "", "[Mg+2]"),
    ],
)  # fmt: skip
def test_charges__follow_from_however_it_is_written(types: str, bonds: str, smiles: str) -> None:
    assert as_smiles(fragment(types, bonds)) == plain(smiles)


@pytest.mark.parametrize(
    ("types", "bonds", "charges", "smiles"),
    [
        # A hydroxyl whose hydrogen is missing, and an alcoholate.
        ("C.3 O.3 H H H", "1-2:1 1-3:1 1-4:1 1-5:1", "0.3 -0.3 0 0 0", "CO"),
        ("C.3 O.3 H H H", "1-2:1 1-3:1 1-4:1 1-5:1", "-0.3 -0.7 0 0 0", "C[O-]"),
        ("C.3 S.3", "1-2:1", "-0.5 -0.5", "C[S-]"),
        ("C.2 O.co2 O.co2 C.3", "1-2:2 1-3:1 1-4:1", "0.4 -0.3 -0.2 0.1", "CC(=O)O"),
        ("C.2 O.co2 O.co2 C.3", "1-2:2 1-3:1 1-4:1", "0 -0.5 -0.5 0", "CC(=O)[O-]"),
        ("C.1 N.1 K", "1-2:3", "-1 0 1", "[C-]#N.[K+]"),
        ("Fe", "", "3.0", "[Fe+3]"),
        ("Fe", "", "0.2", "[Fe+2]"),
    ],
)
def test_charges__follow_from_those_of_the_file(
    types: str, bonds: str, charges: str, smiles: str
) -> None:
    assert as_smiles(fragment(types, bonds, charges)) == plain(smiles)


@pytest.mark.parametrize(
    ("said", "smiles"),
    [
        (((1, 0),), "OC=O"), (((2, -1),), "O=C[O-]"), (((3, -1),), "O=C[O-]"),
        (((3, -1), (4, 1)), "O=C[O-]"),
    ],
)  # fmt: skip
def test_charges__of_attributes_decide(said: tuple[tuple[int, int], ...], smiles: str) -> None:
    """The oxygen with the minus has the single bond."""
    text = fragment("C.2 O.3 O.2 H", "1-2:ar 1-3:ar 1-4:1", more=attributes(*said))
    assert as_smiles(text) == plain(smiles)


def test_charges__that_are_no_numbers_are_none() -> None:
    more = "@<TRIPOS>UNITY_ATOM_ATTR\n1 1\ncharge +-1\n"
    text = fragment("C.2 O.3 O.2 H", "1-2:ar 1-3:ar 1-4:1", more=more)
    assert as_smiles(text) == plain("OC=O")


@pytest.mark.slow
def test_aromatic_systems__too_large_to_be_laid_out_are_refused() -> None:
    atoms = 1900
    bonds = " ".join(f"{i}-{i % atoms + 1}:ar" for i in range(1, atoms + 1))
    with pytest.raises(MoleculeError, match="1,900 atoms are one aromatic system"):
        as_smiles(fragment("N.ar " + "C.ar " * (atoms - 1), bonds))


def test_aromatic_rings__keep_their_bonds() -> None:
    text = mol2("c1ccccc1C", aromatic=True, charges="none")
    molecule = parse(text.encode(), "mol2")
    pose = parse(render(molecule, "x", "sdf", molecule.positions, {}), "sdf")
    assert [order for _, _, order in pose.bonds].count(4) == 6


def test_aromatic_system__that_is_large_is_done_in_time() -> None:
    """Rows of fused rings, with as many charges as there may be."""
    rings = "c1ccc2cc3cc4cc5cc6cc7ccccc7cc6cc5cc4cc3cc2c1"
    assert as_smiles(mol2(rings, aromatic=True, charges="none")) == plain(rings)

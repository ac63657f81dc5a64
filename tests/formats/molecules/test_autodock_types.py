"""AutoDock's types of atoms, and their charges."""

from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem
from support.ligand_texts import MOL2, PDBQT, TEXTS

from multigpu.formats.molecules.autodock_types import types_for_maps, types_of
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import parse
from multigpu.formats.molecules.scoring import atom_terms


@pytest.mark.parametrize(("layout", "types", "charges"), [
    ("pdbqt", "N OA HD", [0.172, -0.648, 0.164]), ("mol2", "A NA OA HD", [0.1, -0.2, -0.4, 0.5]),
])  # fmt: skip
def test_types__are_those_of_the_file(layout: str, types: str, charges: list[float]) -> None:
    found = types_of(parse(TEXTS[layout], layout))
    assert (found.types, found.charges.tolist()) == (types.split(), charges)


@pytest.mark.parametrize(("layout", "text", "problem"), [
    ("mol2", MOL2.replace(b"USER_CHARGES", b"NO_CHARGES"), "NO_CHARGES"),
    *((layout, TEXTS[layout], f"{layout.upper()} has neither bond orders nor")
      for layout in ("pdb", "xyz")),
])  # fmt: skip
def test_types__need_bond_orders_and_charges(layout: str, text: bytes, problem: str) -> None:
    with pytest.raises(MoleculeError, match=problem):
        types_of(parse(text, layout))


SMILES = {
    "CC(=O)Nc1ccc(O)cc1": "C C OA N A A A A OA A A", "c1ccncc1": "A A A NA A A",
    "c1cc[nH]c1": "A A A N A", "CN(C)C": "C NA C C", "CC#N": "C C NA", "C[NH3+]": "C N",
    "CS(=O)(=O)N": "C S OA OA NA", "CSC": "C SA C", "c1ccsc1": "A A A S A",
    "ClC(F)Br": "Cl C F Br", "CP(=O)(O)O": "C P OA OA OA",
}  # fmt: skip


@pytest.mark.parametrize("smiles", SMILES)
def test_types__of_sdf_are_those_that_meeko_gives(smiles: str) -> None:
    """The table was written down from meeko 0.8; heavy atoms only."""
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    AllChem.EmbedMolecule(molecule, randomSeed=7)
    found = types_of(parse(Chem.MolToMolBlock(molecule).encode(), "sdf"))
    heavy = [t for t in found.types if t not in ("H", "HD")]
    assert " ".join(heavy) == SMILES[smiles]
    total = sum(atom.GetFormalCharge() for atom in molecule.GetAtoms())
    assert found.charges.sum() == pytest.approx(total, abs=1e-6)


def test_charges__of_sdf_hold_those_of_hydrogens_that_are_left_out() -> None:
    methanol = Chem.MolToMolBlock(Chem.MolFromSmiles("CO"))
    found = types_of(parse(methanol.encode(), "sdf"))
    assert found.charges.tolist() == pytest.approx([0.19, -0.19], abs=1e-3)


def test_maps__without_hydrogen_give_its_charge_to_the_carbon() -> None:
    text = MOL2.replace(b"3     3     4    1", b"3     1     4    1")
    found = types_for_maps(parse(text, "mol2"), ["A", "NA", "OA"])
    assert found.types == ["A", "NA", "OA", ""]
    assert found.charges.tolist() == [0.6, -0.2, -0.4, 0.0]


def test_maps__that_are_missing_are_named() -> None:
    with pytest.raises(MoleculeError, match="no map of atom type HD, OA: the pocket has C, N"):
        types_for_maps(parse(PDBQT, "pdbqt"), ["C", "N"])
    sodium = parse(PDBQT.replace(b" N\n", b" Na\n"), "pdbqt")  # which is no nitrogen
    with pytest.raises(MoleculeError, match="no map of atom type Na"):
        types_for_maps(sodium, ("NA", "OA", "HD"))


@pytest.mark.parametrize("charge", ["1000.5", "nan", "-1001"])
def test_types__a_charge_that_cannot_be_is_refused(charge: str) -> None:
    parsed = parse(PDBQT, "pdbqt")
    charges = np.array([float(charge), 0, 0])  # as after hydrogens were merged
    with pytest.raises(MoleculeError, match="atom 1 has a charge of"):
        atom_terms(replace(parsed, charges=charges), ["N", "OA", "HD"])


@pytest.mark.parametrize("type_and_map", [("Br", "BR"), ("BR", "Br"), ("CL", "Cl"), ("Zn", "ZN")])
def test_types__are_known_by_either_spelling(type_and_map: tuple[str, str]) -> None:
    kind, name = type_and_map
    text, maps = PDBQT.replace(b" N\n", f" {kind}\n".encode()), ("OA", name, "HD")
    assert types_for_maps(parse(text, "pdbqt"), maps).types == [name, "OA", "HD"]
    with pytest.raises(MoleculeError, match=f"no map of atom type {kind}: the pocket has OA"):
        types_for_maps(parse(text, "pdbqt"), ("OA", "HD"))

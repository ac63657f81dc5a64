"""Conformers by RDKit: how many, of which molecule, with which energies."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdForceFieldHelpers as fields
from support.ligand_texts import PDB, TEXTS

from multigpu.formats.molecules.conformers import NEAREST, canonical_smiles, make_conformers
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import parse

IBUPROFEN = b"CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)[O-].[Na+] (S)-ibuprofen\n"


def rdkit_molecule(record: bytes) -> Chem.Mol:
    return Chem.MolFromMolBlock(record.decode(), removeHs=False)


def test_conformers__are_of_the_largest_fragment_with_hydrogens_and_strains() -> None:
    made = make_conformers(IBUPROFEN, "smiles", 8)
    molecules = [*map(rdkit_molecule, made.records)]
    assert (len(molecules), made.left, made.atoms) == (8, 1, 32)
    smiles = {Chem.MolToSmiles(Chem.RemoveHs(molecule)) for molecule in molecules}
    assert smiles == {Chem.CanonSmiles("CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)[O-]")}
    assert {parse(record, "sdf").name for record in made.records} == {"(S)-ibuprofen"}
    energies = [
        fields.MMFFGetMoleculeForceField(each, fields.MMFFGetMoleculeProperties(each)).CalcEnergy()
        for each in molecules
    ]
    # Records have four decimals.
    assert np.allclose(np.array(energies) - min(energies), made.strains, atol=0.1)
    assert min(made.strains) == 0
    unknown = make_conformers(b"C[Si](C)(C)B(O)O", "smiles", 1)  # there are no parameters of it
    assert math.isnan(unknown.strains[0])


def test_conformers__follow_from_the_molecule_alone() -> None:
    with ThreadPoolExecutor(2) as threads:
        texts = [IBUPROFEN, IBUPROFEN, IBUPROFEN.replace(b"(S)-", b"other ")]
        one, two, other = threads.map(lambda text: make_conformers(text, "smiles", 3), texts)
    assert one == two
    unnamed, others = ([x.partition(b"\n")[2] for x in each.records] for each in (one, other))
    assert unnamed == others
    assert one.records == make_conformers(IBUPROFEN, "smiles", 8).records[:3]


def test_conformers__of_a_rigid_molecule_are_one() -> None:
    assert len(make_conformers(b"c1ccccc1", "smiles", 20).records) == 1
    made = make_conformers(b"CCO", "smiles", 20).records
    pairs = combinations([parse(each, "sdf").positions for each in made], 2)
    assert min(np.sqrt(((a - b) ** 2).sum(axis=1).mean()) for a, b in pairs) > NEAREST / 2


@pytest.mark.parametrize("layout", ["sdf", "mol2"])
def test_conformers__of_other_formats_keep_atoms_in_order_and_data_items(layout: str) -> None:
    text = TEXTS[layout]
    record = make_conformers(text, layout, 2).records[0]
    given, made = parse(text, layout), parse(record, "sdf")
    assert made.elements[: len(given.elements)] == given.elements
    assert "H" in made.elements[len(given.elements) :]
    assert (b"<vendor>" in record) == (b"<vendor>" in text)
    assert record.endswith(b"$$$$\n")


@pytest.mark.parametrize(("text", "layout", "problem"), [
    (b"c1ccccc2 x", "smiles", "RDKit does not read its SMILES 'c1ccccc2'"),
    (b"C[N](C)(C)(C)C x", "smiles", "Explicit valence for atom # 1 N, 5"),
    (b"[C@]12(F)[C@@H](C1)C2", "smiles", "finds no coordinates"),
    (b"\n", "smiles", "no atoms"),
    (b"C" * 9000, "smiles", "more than 5,000 characters"),
    (b"C" * 400, "smiles", "more than 500 atoms"),
    (PDB, "pdb", "PDB has no bond orders: give SDF, MOL2 or SMILES"),
])  # fmt: skip
def test_molecules__without_conformers_are_told_why(text: bytes, layout: str, problem: str) -> None:
    with pytest.raises(MoleculeError, match=problem):
        make_conformers(text, layout, 2)


def test_canonical_smiles__are_those_of_any_order_of_atoms() -> None:
    one, two = (canonical_smiles(text, "smiles") for text in (b"OCC a", b"C(O)C b"))
    assert one == two == canonical_smiles(make_conformers(b"CCO", "smiles", 1).records[0], "sdf")
    assert canonical_smiles(b"C(", "smiles") == canonical_smiles(PDB, "pdb") == ""

"""RMSD to a reference: symmetries, other molecules, other formats."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdMolAlign
from support.ligand_texts import PDBQT

from multigpu.formats.molecules.reference_poses import ReferencePose
from multigpu.formats.molecules.registry import parse


def embedded(smiles: str, count: int) -> Chem.Mol:
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMultipleConfs(molecule, count, randomSeed=7)
    return molecule


def of(text: str) -> ReferencePose:
    return ReferencePose(path="ref.sdf", molecule=parse(text.encode(), "sdf"))


@pytest.mark.parametrize(
    "smiles",
    ["OC(=O)c1ccccc1", "OS(=O)(=O)c1ccc(cc1)C(C)(C)C", "FC(F)(F)C(F)(F)F",
     "CCO", "NC(=N)NCc1ccccc1"],
)  # fmt: skip
def test_rmsd__is_that_of_rdkit_whatever_the_order_of_atoms(smiles: str) -> None:
    molecule = embedded(smiles, 2)
    order = np.random.default_rng(1).permutation(molecule.GetNumAtoms()).tolist()
    shuffled = Chem.RenumberAtoms(molecule, order)
    pose = parse(Chem.MolToMolBlock(shuffled, confId=1).encode(), "sdf")
    reference = of(Chem.MolToMolBlock(molecule, confId=0))
    a, b = (Chem.RemoveHs(each) for each in (shuffled, molecule))
    expected = rdMolAlign.CalcRMS(Chem.Mol(a, confId=1), Chem.Mol(b, confId=0))
    # Bond orders are not compared: N and NH of an amidine are one element with one bond, as in
    # RDKit, which evens out terminal groups.
    found = reference.rmsds(pose, [pose.positions, pose.positions + 9])
    assert found[0] == pytest.approx(expected, abs=2e-4)
    assert found[1] > 9


def test_reference__of_another_molecule_is_none_and_may_be_of_another_format() -> None:
    reference = of(Chem.MolToMolBlock(embedded("CCO", 1)))
    for smiles in ("COC", "CCCO", "CCN", "CC"):
        other = parse(Chem.MolToMolBlock(embedded(smiles, 1)).encode(), "sdf")
        assert np.isnan(reference.rmsds(other, [other.positions])).all()
    molecule = parse(PDBQT, "pdbqt")
    reference = ReferencePose(path="crystal.pdbqt", molecule=molecule)
    assert reference.rmsds(molecule, [molecule.positions]).tolist() == [0]

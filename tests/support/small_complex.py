"""A receptor of eleven residues with a ligand beside it, as a crystal structure in PDB."""

import numpy as np
from rdkit import Chem
from rdkit.Chem import AllChem

SEQUENCE, BIOTIN = "GSAWDTNKSYL", "OC(=O)CCCC[C@@H]1SC[C@@H]2NC(=O)N[C@H]12"
BESIDE = np.array([0.0, 0.0, 8.0])  # Å, from middle to middle


def small_complex() -> str:
    """Return atoms of a chain A, and HETATM of BTN, without hydrogens."""
    protein, ligand = map(_in_space, (Chem.MolFromSequence(SEQUENCE), Chem.MolFromSmiles(BIOTIN)))
    places = ligand.GetConformer()
    moved = places.GetPositions() - places.GetPositions().mean(axis=0) + BESIDE
    moved += protein.GetConformer().GetPositions().mean(axis=0)
    for atom, place in enumerate(moved.tolist()):
        places.SetAtomPosition(atom, place)
    chain = [line for line in _lines(protein) if line.startswith("ATOM")]
    biotin = [line.replace("UNL", "BTN") for line in _lines(ligand) if line.startswith("HETATM")]
    return "\n".join([*chain, "TER", *biotin, "END", ""])


def _in_space(molecule: Chem.Mol) -> Chem.Mol:
    molecule = Chem.AddHs(molecule)
    AllChem.EmbedMolecule(molecule, randomSeed=7)
    return Chem.RemoveHs(molecule)


def _lines(molecule: Chem.Mol) -> list[str]:
    without_bonds = 2
    lines: list[str] = Chem.MolToPDBBlock(molecule, flavor=without_bonds).splitlines()
    return lines

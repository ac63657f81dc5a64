"""A peptide as a receptor: PDB without hydrogens, and PDBQT as Meeko prepares it."""

from functools import lru_cache

from multigpu.formats.molecules.receptors import prepare

# A water, a zinc ion, and two ligands.
WATER = b"HETATM  901  O   HOH A 901       0.000   9.000   0.000  1.00  0.00           O\n"
ZINC = b"HETATM  902 ZN    ZN A 902       0.000   0.000   9.000  1.00  0.00          ZN\n"
FAR = b"HETATM  904  C1  ABC A 904      20.000   0.000   0.000  1.00  0.00           C\n"
LIGAND = b"HETATM  903  C1  XYZ A 903       7.000   7.000   7.000  1.00  0.00           C\n"


@lru_cache
def peptide() -> bytes:
    """Return ATOM lines of Ala-His-Gly-Ser-Asp-Ala, chain A, some 15 Å long."""
    from rdkit import Chem
    from rdkit.Chem import AllChem

    molecule = Chem.AddHs(Chem.MolFromSequence("AHGSDA"))
    assert AllChem.EmbedMolecule(molecule, randomSeed=7) == 0
    block = Chem.MolToPDBBlock(Chem.RemoveHs(molecule)).encode()
    return b"".join(line for line in block.splitlines(True) if line.startswith(b"ATOM"))


@lru_cache
def peptide_pdbqt() -> bytes:
    """Return the peptide with types and charges."""
    return b"".join(prepare("peptide.pdb", peptide(), False, (0, 0, 0))[0])

"""All formats of ligands. A new one is a module that ends with its `LigandFormat`, and one line."""

from dataclasses import replace

from multigpu.formats.molecules.bonds import fragments_of
from multigpu.formats.molecules.dlg import DLG
from multigpu.formats.molecules.fields import newline_of
from multigpu.formats.molecules.mol2 import MOL2
from multigpu.formats.molecules.molecule import LigandFormat, Molecule, check_molecule
from multigpu.formats.molecules.pdb import PDB
from multigpu.formats.molecules.pdbqt import PDBQT
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.molecules.smiles import SMILES
from multigpu.formats.molecules.xyz import XYZ

# The first one whose signature is in the content of a file has it, so special ones come first.
FORMATS: dict[str, LigandFormat] = {
    each.name: each for each in (MOL2, SDF, DLG, PDBQT, PDB, XYZ, SMILES)
}
POSE_FORMATS = [each for each in FORMATS.values() if each is not SMILES]
SUFFIXES = {suffix: each for each in POSE_FORMATS for suffix in each.suffixes}


def format_of_content(start: bytes) -> str:
    """Return the name of the format that the beginning of a file has; "" for none of these."""
    found = (name for name, each in FORMATS.items() if each.signature.search(start))
    return next(found, "")


def largest_fragment(molecule: Molecule) -> Molecule:
    """Return the molecule without the atoms that no bonds join to most of them: salts, waters."""
    largest, *others = fragments_of(molecule)
    if not others:
        return molecule
    text, newline = molecule.format.keep_atoms(molecule, largest), newline_of(molecule.lines[0])
    kept = [line + newline for line in b"".join(text).splitlines()]
    return replace(molecule.format.parse(kept), is_part=True)


def parse(text: bytes, layout: str) -> Molecule:
    """Return the molecule of a record. Raises MoleculeError that names the line, from 1."""
    return check_molecule(FORMATS[layout].parse(text.splitlines(keepends=True)))

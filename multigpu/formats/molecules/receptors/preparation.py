"""PDB and mmCIF to PDBQT, by Meeko: hydrogens, types and charges are those of its templates.

Meeko is told what to leave out, as it would ask a server for what it does not know: waters, and
residues without a template.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, first_line, several
from multigpu.formats.optional import quiet_rdkit
from multigpu.kernels.compiled.fragments import are_crowded

Place = NDArray[np.float64]  # x, y, z, Å
WATERS = {"HOH", "WAT", "DOD", "H2O", "TIP3"}
NOTES = (
    "of alternate locations the best occupied were taken",
    "left out, with distances from the middle of the box", "by Meeko's templates",
)  # fmt: skip
NO_LOCATION = "\0"  # of an atom that has no other
INSTALL = "needs Meeko: pip install 'multigpu[receptors]', or prepare PDBQT with it elsewhere"


def prepare(
    path: str, content: bytes, is_cif: bool, middle: Sequence[float]
) -> tuple[bytes, list[str]]:
    """Return the receptor as PDBQT, and what was left out, chosen or guessed, a sentence each.

    is_cif  whether the content is mmCIF; else it is PDB
    middle  of the pocket, Å: what was left out is named in the order of its distance from there

    Raises InputError where packages are missing, the file cannot be read, or nothing is left.
    """
    try:
        import gemmi
        import meeko
    except ImportError:
        raise InputError(path, f"a receptor in PDB or mmCIF {INSTALL}") from None
    try:
        structure = _read(gemmi, content, is_cif)
        templates = meeko.ResidueChemTemplates.create_from_defaults()
        known, place = {*templates.residue_templates, *templates.ambiguous}, np.array(middle)
        located, left = _clean(structure, known, place)
        if not structure[0].count_atom_sites():
            raise ValueError(f"nothing is left of it without {'; '.join(left)}: is it a receptor?")
        with _quiet():
            polymer = meeko.Polymer.from_pdb_string(
                structure.make_pdb_string(), templates, meeko.MoleculePreparation(),
                allow_bad_res=True,
            )  # fmt: skip
            text, _ = meeko.PDBQTWriterLegacy.write_string_from_polymer(polymer)
        incomplete, guessed = _guesses(polymer, place)
    except Exception as error:
        raise InputError(path, f"Meeko cannot prepare it: {first_line(error)}") from error
    if not text:
        raise InputError(path, "of no residue that Meeko knows it has all atoms: is it a receptor?")
    found = dict(zip(NOTES, (located, left + incomplete, guessed), strict=True))
    return text.encode(), [f"{what}: {'; '.join(parts)}" for what, parts in found.items() if parts]


def _read(gemmi: Any, content: bytes, is_cif: bool) -> Any:
    """Return the first model as gemmi has it, with names of chains that fit PDB."""
    if is_cif:
        block = gemmi.cif.read_string(content.decode("utf-8", "replace")).sole_block()
        structure = gemmi.make_structure_from_block(block)
    else:
        structure = gemmi.read_pdb_string(content)
    if not len(structure) or not structure[0].count_atom_sites():
        raise ValueError("it has no atoms")
    if are_crowded(np.array([site.atom.pos.tolist() for site in structure[0].all()])):
        raise ValueError("are its coordinates in nanometres? Multiply them by 10")
    while len(structure) > 1:
        del structure[1]
    structure.shorten_chain_names()
    structure.remove_empty_chains()
    return structure


def _clean(structure: Any, known: set[str], middle: Place) -> tuple[list[str], list[str]]:
    """Keep one location of each residue, and of the residues those with a template but waters.

    known: names of residues with a template

    Return the locations that were taken, and what was left out.
    """
    located, unknown, waters = [], [], 0
    for chain in structure[0]:
        for i in reversed(range(len(chain))):
            residue = chain[i]
            name = f"{residue.name} {chain.name} {residue.seqid}"
            if residue.name not in known or residue.name in WATERS:
                waters += residue.name in WATERS
                if residue.name not in WATERS:
                    unknown.append((name, [atom.pos.tolist() for atom in residue]))
                del chain[i]
            elif letter := _choose_location(residue):
                located.append(f"{name} {letter}")
    structure.remove_empty_chains()
    left = [f"{waters:,} {'water' if waters == 1 else 'waters'}"] if waters else []
    left += [f"residues that Meeko does not know ({_nearest(unknown, middle)})"] if unknown else []
    return [several(located[::-1])] if located else [], left


def _choose_location(residue: Any) -> str:
    """Keep the location whose atoms have the largest occupancy together; "" if there are no two."""
    occupied: Counter[str] = Counter()
    for atom in residue:
        occupied[atom.altloc] += round(100 * atom.occ) if atom.has_altloc() else 0
    best = occupied.most_common(1)[0][0]
    for i in reversed(range(len(residue))):
        if residue[i].altloc not in (best, NO_LOCATION):
            del residue[i]
        else:
            residue[i].altloc = NO_LOCATION
    occupied.pop(NO_LOCATION, None)
    return best if len(occupied) > 1 else ""


def _nearest(residues: Sequence[tuple[str, Any]], middle: Place) -> str:
    """Return the residues, each with its places, by their distances from the middle of a pocket."""
    far = {name: np.sqrt(((np.array(x) - middle) ** 2).sum(axis=1).min()) for name, x in residues}
    return several([f"{name} at {far[name]:.0f} Å" for name in sorted(far, key=far.__getitem__)])


def _guesses(polymer: Any, middle: Place) -> tuple[list[str], list[str]]:
    """Return what Meeko has left out, and what it has guessed."""
    incomplete, histidines, ions, bare = [], [], [], 0
    for key, monomer in polymer.monomers.items():
        name = f"{monomer.input_resname} {key.replace(':', ' ')}"
        elements = [atom.GetAtomicNum() for atom in monomer.raw_rdkit_mol.GetAtoms()]
        if monomer.rdkit_mol is None:
            incomplete.append((name, monomer.raw_rdkit_mol.GetConformer().GetPositions()))
        elif len(elements) == 1:
            charge = sum(atom.charge for atom in monomer.molsetup.atoms)
            ions.append(f"{name} {charge:+.3g}")
        elif 1 not in elements:
            bare += 1
            if monomer.input_resname == "HIS":
                histidines.append(f"{name} {monomer.residue_template_key[-3:]}")
    named = _nearest(incomplete, middle)
    left = f"residues that lack atoms, or have others than its templates ({named})"
    guessed = [f"hydrogens of {bare:,} residues"] if bare else []
    guessed += [f"where HIS has its hydrogen ({several(histidines)})"] if histidines else []
    guessed += [f"charges of ions ({several(ions)})"] if ions else []
    return [left] if incomplete else [], guessed


@contextmanager
def _quiet() -> Iterator[None]:
    """Have Meeko and RDKit print nothing: what they did is read from their results."""
    logger = logging.getLogger("meeko")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), quiet_rdkit():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)

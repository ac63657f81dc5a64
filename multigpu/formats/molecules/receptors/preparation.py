"""PDB and mmCIF to PDBQT, by Meeko: hydrogens, types and charges are those of its templates.

Meeko is told what to leave out, as it would ask a server for what it does not know: waters, and
residues without a template.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from multigpu.errors import InputError, first_line, several
from multigpu.formats.optional import quiet_rdkit
from multigpu.kernels.compiled.fragments import are_crowded

WATERS = {"HOH", "WAT", "DOD", "H2O", "TIP3"}
NO_LOCATION = "\0"  # of an atom that has no other
INSTALL = "needs Meeko: pip install 'multigpu[receptors]', or prepare PDBQT with it elsewhere"


def prepare(path: str, content: bytes, is_cif: bool) -> tuple[bytes, list[str]]:
    """Return the receptor as PDBQT, and what was left out, chosen or guessed, a sentence each.

    is_cif: whether the content is mmCIF; else it is PDB

    Raises InputError where packages are missing, the file cannot be read, or nothing is left.
    """
    try:
        import gemmi
        import meeko
    except ImportError:
        raise InputError(path, f"a receptor in PDB or mmCIF {INSTALL}") from None
    notes: list[str] = []
    try:
        structure = _read(gemmi, content, is_cif)
        templates = meeko.ResidueChemTemplates.create_from_defaults()
        known = {*templates.residue_templates, *templates.ambiguous}
        notes += _clean(structure, known)
        if not structure[0].count_atom_sites():
            raise ValueError(f"nothing is left of it ({'; '.join(notes)}): is it a receptor?")
        with _quiet():
            polymer = meeko.Polymer.from_pdb_string(
                structure.make_pdb_string(), templates, meeko.MoleculePreparation(),
                allow_bad_res=True,
            )  # fmt: skip
            text, _ = meeko.PDBQTWriterLegacy.write_string_from_polymer(polymer)
    except Exception as error:
        raise InputError(path, f"Meeko cannot prepare it: {first_line(error)}") from error
    if not text:
        raise InputError(path, "of no residue that Meeko knows it has all atoms: is it a receptor?")
    return text.encode(), [*notes, *_guesses(polymer)]


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


def _clean(structure: Any, known: set[str]) -> Iterator[str]:
    """Keep one location of each residue, and residues with a template but waters.

    known: names of residues with a template
    """
    located, unknown, waters = [], [], 0
    for chain in structure[0]:
        for i in reversed(range(len(chain))):
            residue = chain[i]
            name = f"{residue.name} {chain.name} {residue.seqid}"
            if residue.name not in known or residue.name in WATERS:
                waters += residue.name in WATERS
                unknown += [] if residue.name in WATERS else [name]
                del chain[i]
            elif letter := _choose_location(residue):
                located.append(f"{name} {letter}")
    structure.remove_empty_chains()
    if located:
        yield f"of alternate locations the best occupied were taken: {several(located[::-1])}"
    left = [f"{waters:,} waters"] if waters else []
    left += [f"residues that Meeko does not know: {several(unknown[::-1])}"] if unknown else []
    if left:
        yield f"left out: {'; '.join(left)}"


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


def _guesses(polymer: Any) -> Iterator[str]:
    """Yield what Meeko has left out and guessed."""
    found: dict[str, list[str]] = {"incomplete": [], "HIS": [], "metals": []}
    lacking = 0
    for key, monomer in polymer.monomers.items():
        chain, _, number = key.partition(":")
        name, template = f"{monomer.input_resname} {chain} {number}", monomer.residue_template_key
        raw = monomer.raw_rdkit_mol
        has_hydrogens = any(atom.GetAtomicNum() == 1 for atom in raw.GetAtoms())
        if monomer.rdkit_mol is None:
            found["incomplete"].append(name)
        elif raw.GetNumAtoms() == 1:
            charge = sum(atom.charge for atom in monomer.molsetup.atoms)
            found["metals"].append(f"{name} {charge:+.3g}")
        elif not has_hydrogens:
            lacking += 1
            if monomer.input_resname == "HIS":
                found["HIS"].append(f"{name} {template[-3:]}")
    if found["incomplete"]:
        yield (
            "left out whole: residues that lack atoms, or have others than Meeko's templates:"
            f" {several(found['incomplete'])}"
        )
    guessed = [f"hydrogens of {lacking:,} residues"] if lacking else []
    guessed += [f"where HIS has its hydrogen: {several(found['HIS'])}"] if found["HIS"] else []
    guessed += [f"charges of ions: {several(found['metals'])}"] if found["metals"] else []
    if guessed:
        yield f"by Meeko's templates: {'; '.join(guessed)}"


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

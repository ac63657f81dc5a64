"""PDB and mmCIF to PDBQT, by Meeko: hydrogens, types and charges are those of its templates.

Meeko is told what to leave out, as it would ask a server for what it does not know: waters, and
residues without a template. Of alternate locations gemmi keeps those of the largest occupancy.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from multigpu.errors import InputError, first_line, several
from multigpu.formats.optional import quiet_rdkit

WATERS = {"HOH", "WAT", "DOD", "H2O", "TIP3"}
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
        notes += [*_choose_locations(structure), *_leave_out(structure, known)]
        if not structure[0].count_atom_sites():
            raise ValueError(f"nothing is left of it ({'; '.join(notes)}): is it a receptor?")
        with _quiet():
            polymer = meeko.Polymer.from_pdb_string(
                structure.make_pdb_string(), templates, meeko.MoleculePreparation(),
                allow_bad_res=True,
            )  # fmt: skip
            text, _ = meeko.PDBQTWriterLegacy.write_string_from_polymer(polymer)
    except (RuntimeError, ValueError, IndexError, KeyError) as error:
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
    while len(structure) > 1:
        del structure[1]
    structure.shorten_chain_names()
    structure.remove_empty_chains()
    return structure


def _residues(structure: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield chain, residue and its name for messages: HIS A 87."""
    for chain in structure[0]:
        for residue in chain:
            yield chain, residue, f"{residue.name} {chain.name} {residue.seqid}"


def _choose_locations(structure: Any) -> Iterator[str]:
    """Keep of each residue the location whose atoms have the largest occupancy together."""
    chosen = []
    for _, residue, name in _residues(structure):
        occupied: Counter[str] = Counter()
        for atom in residue:
            if atom.has_altloc():
                occupied[atom.altloc] += round(100 * atom.occ)
        if not occupied:
            continue
        best = occupied.most_common(1)[0][0]
        for i in reversed(range(len(residue))):
            if residue[i].has_altloc() and residue[i].altloc != best:
                del residue[i]
        for atom in residue:
            atom.altloc = "\0"
        if len(occupied) > 1:
            chosen.append(f"{name} {best}")
    if chosen:
        yield f"of alternate locations the best occupied were taken: {several(chosen)}"


def _leave_out(structure: Any, known: set[str]) -> Iterator[str]:
    """Remove waters and residues without a template."""
    waters, unknown = 0, []
    for chain in structure[0]:
        for i in reversed(range(len(chain))):
            residue = chain[i]
            if residue.name in WATERS:
                waters += 1
            elif residue.name not in known:
                unknown.append(f"{residue.name} {chain.name} {residue.seqid}")
            else:
                continue
            del chain[i]
    structure.remove_empty_chains()
    left = [f"{waters:,} waters"] if waters else []
    left += [f"residues that Meeko does not know: {several(unknown[::-1])}"] if unknown else []
    if left:
        yield f"left out: {'; '.join(left)}"


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

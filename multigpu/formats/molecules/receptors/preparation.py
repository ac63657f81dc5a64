"""PDB and mmCIF to PDBQT, by Meeko: hydrogens, types and charges are those of its templates.

Meeko is not given what it would ask a server for: residues without a template. What it has changed
is seen by comparing the residues before and after.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from multigpu.errors import InputError, first_line, several
from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.pdbqt import CHARGE
from multigpu.formats.optional import quiet_rdkit

Residues = Mapping[str, Sequence[bytes]]  # lines of the atoms of each, by `residue_name`
NAMES = slice(17, 20), slice(21, 22), slice(22, 27)  # columns of a residue, its chain and number
WATERS = {"HOH", "WAT", "DOD", "H2O", "TIP"}
RING_HYDROGENS = {"HD1", "HE2"}  # of histidine
INSTALL = "needs Meeko: pip install 'multigpu[receptors]', or prepare PDBQT with it elsewhere"


def pdb_of(path: str, content: bytes, is_cif: bool) -> bytes:
    """Return the first model in PDB or mmCIF as PDB, with names of chains that fit.

    Raises InputError where packages are missing, or it cannot be read.
    """
    try:
        import gemmi
        import meeko  # noqa: F401  - for `prepare`
    except ImportError:
        raise InputError(path, f"a receptor in PDB or mmCIF {INSTALL}") from None
    try:
        if is_cif:
            block = gemmi.cif.read_string(content.decode("utf-8", "replace")).sole_block()
            structure = gemmi.make_structure_from_block(block)
        else:
            structure = gemmi.read_pdb_string(content)
    except Exception as error:
        raise InputError(path, f"it cannot be read: {first_line(error)}") from error
    structure.shorten_chain_names()
    del structure[1:]
    text: str = structure.make_pdb_string()
    return text.encode()


def prepare(
    path: str, lines: Sequence[bytes], middle: Sequence[float]
) -> tuple[list[bytes], list[str]]:
    """Return the lines of PDB as PDBQT, and what was left out or guessed, a sentence each.

    lines   of one model, without alternate locations
    middle  of the pocket, Å: what was left out is named in the order of its distance from there

    Raises InputError where Meeko refuses the atoms, or leaves none.
    """
    import meeko

    logging.getLogger("meeko").setLevel(logging.CRITICAL)
    before, text = _residues(lines), ""
    try:
        with quiet_rdkit(), warnings.catch_warnings(action="ignore"):
            templates = meeko.ResidueChemTemplates.create_from_defaults()
            known = {*templates.residue_templates, *templates.ambiguous} - WATERS
            kept = [
                line for name in before if name.partition(" ")[0] in known for line in before[name]
            ]
            if kept:
                polymer = meeko.Polymer.from_pdb_string(
                    b"".join(kept).decode(), templates, meeko.MoleculePreparation(),
                    allow_bad_res=True,
                )  # fmt: skip
                text, _ = meeko.PDBQTWriterLegacy.write_string_from_polymer(polymer)
    except Exception as error:
        raise InputError(path, f"Meeko cannot prepare it: {first_line(error)}") from error
    prepared = text.encode().splitlines(keepends=True)
    after = _residues(prepared)
    notes = [*_left_out(before, after, middle), *_guesses(before, after)]
    if not after:
        raise InputError(path, f"nothing can be prepared ({notes[0]}): is it a receptor?")
    return prepared, notes


def residue_name(line: bytes) -> str:
    """Return how a message names the residue of an atom: HIS A 87."""
    return " ".join(filter(None, (fields.decode(line[columns]) for columns in NAMES)))


def _residues(lines: Sequence[bytes]) -> Residues:
    found: dict[str, list[bytes]] = {}
    for row in pdb.atom_rows(lines):
        found.setdefault(residue_name(lines[row]), []).append(lines[row])
    return found


def _left_out(before: Residues, after: Residues, middle: Sequence[float]) -> list[str]:
    """Return a sentence on residues that are gone, the nearest first."""
    waters, distances = 0, {}
    for name in [each for each in before if each not in after]:
        if name.partition(" ")[0] in WATERS:
            waters += 1
            continue
        places = fields.parse_columns(before[name], range(len(before[name])), pdb.PLACE)
        distance = np.linalg.norm(places - middle, axis=1).min()
        distances[f"{name} at {distance:.0f} Å"] = distance
    left = [f"{waters:,} {'water' if waters == 1 else 'waters'}"] if waters else []
    if distances:
        nearest = several(sorted(distances, key=distances.__getitem__))
        left.append(f"residues without a template of Meeko, or that lack atoms of it ({nearest})")
    return [f"left out, with distances from the middle of the box: {'; '.join(left)}"] * bool(left)


def _guesses(before: Residues, after: Residues) -> list[str]:
    """Return a sentence on hydrogens and charges that the templates have and the file has not."""
    bare, histidines, ions = 0, [], []
    for name, lines in after.items():
        if len(lines) == 1:
            ions.append(f"{name} {float(lines[0][CHARGE]):+.3g}")
        elif not any(fields.decode(x[pdb.ELEMENT]) in ("H", "D") for x in before.get(name, ())):
            bare += 1
            if name.startswith("HIS"):
                atoms = {fields.decode(line[pdb.ATOM_NAME]) for line in lines}
                histidines.append(f"{name} {'+'.join(sorted(atoms & RING_HYDROGENS))}")
    guessed = [f"hydrogens of {bare:,} residues"] if bare else []
    guessed += [f"where HIS has its hydrogen ({several(histidines)})"] if histidines else []
    guessed += [f"charges of ions ({several(ions)})"] if ions else []
    return [f"by Meeko's templates: {'; '.join(guessed)}"] * bool(guessed)

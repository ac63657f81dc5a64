"""Receptors: files to atoms with AutoDock's types and charges, of which maps are made.

PDBQT says types and charges. Meeko makes it of PDB and mmCIF, with the hydrogens, types and charges
of its templates. It is not given what it would ask a server for: residues without a template. What
it has changed is seen by comparing the residues before and after.
"""

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.errors import InputError, first_line, several
from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.autodock_types import HYDROGENS
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.pdb import PDB
from multigpu.formats.molecules.pdbqt import CHARGE, PDBQT, TYPE
from multigpu.formats.molecules.registry import parse
from multigpu.formats.optional import quiet_rdkit
from multigpu.formats.storage.input_paths import expand_one, suffix_of
from multigpu.formats.storage.sources import (
    BYTE_ORDER_MARK,
    FileKind,
    inspect_source,
    refuse_utf_16,
)
from multigpu.kernels.maps import Receptor

CIF = "cif"
LAYOUTS = {suffix: each.name for each in (PDBQT, PDB) for suffix in each.suffixes}
LAYOUTS |= {".cif": CIF, ".mmcif": CIF}
CURE = "prepare it, as with `mk_prepare_receptor.py -i IN.pdb -o OUT -p`, or give its PDB"
Residues = Mapping[str, Sequence[bytes]]  # lines of the atoms of each, by `residue_name`
NAMES = slice(17, 20), slice(21, 22), slice(22, 27)  # columns of a residue, its chain and number
WATERS = {"HOH", "WAT", "DOD", "H2O", "TIP"}
HYDROGEN = re.compile(rb"^.{76} [HD]", re.MULTILINE)  # by its element
RING_HYDROGEN = re.compile(rb"^.{12} (HD1|HE2) ", re.MULTILINE)  # of histidine, by its name
INSTALL = "needs Meeko: pip install 'multigpu[receptors]', or prepare PDBQT with it elsewhere"


def _layout(path: str, start: bytes) -> str:
    refuse_utf_16(path, start)
    return LAYOUTS.get(suffix_of(Path(path).name, RECEPTORS), "")


RECEPTORS = FileKind(
    name="receptor",
    suffixes=tuple(LAYOUTS),
    layout=_layout,
    unknown="no receptor by its name (.pdbqt, .pdb, .ent, .cif, .mmcif)",
)


def read_receptor(
    path: str, middle: Sequence[float] = (0.0, 0.0, 0.0), needs_charges: bool = True
) -> tuple[Receptor, list[str]]:
    """Return a prepared receptor, and what was left out, chosen or guessed. Raises InputError.

    middle         of the pocket, Å
    needs_charges  whether its energies depend on charges
    """
    path = expand_one(path, RECEPTORS)
    source = inspect_source(path, RECEPTORS)
    content = source.content().removeprefix(BYTE_ORDER_MARK)
    if any(word in content for word in (b"\nROOT", b"\nTORSDOF")):
        raise InputError(path, "this is a ligand (it has ROOT or TORSDOF), and no receptor")
    if source.layout == PDBQT.name:
        lines, notes = _first_model(path, content)
    else:
        lines, notes = prepare(path, content, source.layout == CIF, middle)
    try:
        molecule = parse(b"".join(lines), PDBQT.name)
    except MoleculeError as error:
        raise InputError(path, f"{error}") from None
    if HYDROGENS.isdisjoint(molecule.types):
        raise InputError(path, f"it has no hydrogens (no atom of type HD): {CURE}")
    names = tuple(atom_label(molecule.lines[row]) for row in molecule.rows)
    _, firsts, places = np.unique(molecule.positions, True, True, axis=0)
    again = np.flatnonzero(firsts[places.ravel()] != np.arange(len(names)))
    if len(again):
        other = names[firsts[places.ravel()[again[0]]]]
        problem = f"{names[again[0]]} is at the place of {other}"
        raise InputError(path, f"{problem} ({len(again):,} such atoms): give each once")
    if needs_charges and not molecule.charges.any():
        raise InputError(path, f"it has no charges: all are 0: {CURE}")
    return Receptor(
        positions=molecule.positions,
        charges=molecule.charges,
        types=tuple(molecule.types),
        names=names,
    ), notes


def _first_model(path: str, content: bytes) -> tuple[list[bytes], list[str]]:
    """Return the lines of PDBQT's first model, and notes. Raises InputError for a cut last line."""
    last = content.rpartition(b"\n")[2]
    if last.startswith(pdb.ATOM_WORDS) and len(last) < TYPE.stop - 1:
        where = f"line {len(content.splitlines())}"
        raise InputError(path, "the file ends in the middle of an atom", where)
    ends = PDBQT.find_ends(content, True) or [len(content)]
    return _best_locations(content[: ends[0]], len(ends))


def _best_locations(content: bytes, models: int) -> tuple[list[bytes], list[str]]:
    """Return the lines with the best locations only, and notes. models: of the file."""
    notes = [f"of {models:,} models the first was taken"] if models > 1 else []
    lines = content.splitlines(keepends=True)
    others = sorted(pdb.other_locations(lines, pdb.atom_rows(lines)))
    if not others:
        return lines, notes
    residues = list(dict.fromkeys(residue_name(lines[row]) for row in others))
    for row in others:
        lines[row] = b""
    lines = [x[:16] + b" " + x[17:] if x.startswith(pdb.ATOM_WORDS) else x for x in lines]
    located = f"of alternate locations the best occupied were taken: {several(residues)}"
    return lines, [*notes, located]


def atom_label(line: bytes) -> str:
    """Return how a message names an atom: ND1 of HIS A 87."""
    return f"{fields.decode(line[pdb.ATOM_NAME])} of {residue_name(line)}"


def residue_name(line: bytes) -> str:
    """Return how a message names the residue of an atom: HIS A 87."""
    return " ".join(filter(None, (fields.decode(line[columns]) for columns in NAMES)))


def prepare(
    path: str, content: bytes, is_cif: bool, middle: Sequence[float]
) -> tuple[list[bytes], list[str]]:
    """Return PDB or mmCIF as lines of PDBQT, and what was left out or guessed. Raises InputError.

    middle: of the pocket, Å: what was left out is named in the order of its distance from there
    """
    try:
        import gemmi
        import meeko
    except ImportError:
        raise InputError(path, f"a receptor in PDB or mmCIF {INSTALL}") from None
    logging.getLogger("meeko").setLevel(logging.CRITICAL)
    try:
        if is_cif:
            block = gemmi.cif.read_string(content.decode("utf-8", "replace")).sole_block()
            structure = gemmi.make_structure_from_block(block)
        else:
            PDB.parse(content.splitlines(keepends=True))  # which names a line that is wrong
            structure = gemmi.read_pdb_string(content)
        models = len(structure)
        del structure[1:]
        structure.shorten_chain_names()
        lines, notes = _best_locations(structure.make_pdb_string().encode(), models)
        parse(b"".join(lines), PDB.name)  # which checks it
        before, text = _residues(lines), ""
        with quiet_rdkit(), warnings.catch_warnings(action="ignore"):
            templates = meeko.ResidueChemTemplates.create_from_defaults()
            known = {*templates.residue_templates, *templates.ambiguous} - WATERS
            names = [name for name in before if name.partition(" ")[0] in known]
            if kept := b"".join(line for name in names for line in before[name]):
                polymer = meeko.Polymer.from_pdb_string(
                    kept.decode(), templates, meeko.MoleculePreparation(), allow_bad_res=True
                )
                if untyped := _untyped(polymer):
                    raise MoleculeError(f"it has no atom type for {several(untyped)}")
                text, _ = meeko.PDBQTWriterLegacy.write_string_from_polymer(polymer)
    except Exception as error:
        raise InputError(path, f"Meeko cannot prepare it: {first_line(error)}") from error
    prepared = text.encode().splitlines(keepends=True)
    note = "; ".join(_changes(before, _residues(prepared), middle))
    if not prepared:
        raise InputError(path, f"nothing of it can be prepared: {note}: is it a receptor?")
    return prepared, [*notes, note] if note else notes


def _untyped(polymer: Any) -> list[str]:
    """Return the residues of a polymer of Meeko's with atoms that have no type."""
    return [
        f"{each.input_resname} {place.replace(':', ' ')}"
        for place, each in polymer.monomers.items()
        if each.molsetup and any(atom.atom_type is None for atom in each.molsetup.atoms)
    ]


def _residues(lines: Sequence[bytes]) -> Residues:
    found: dict[str, list[bytes]] = {}
    for row in pdb.atom_rows(lines):
        found.setdefault(residue_name(lines[row]), []).append(lines[row])
    return found


def _changes(before: Residues, after: Residues, middle: Sequence[float]) -> Iterator[str]:
    """Yield what is gone, the nearest first, and what the templates have and the file has not."""
    distances = {name: _distance(before[name], middle) for name in before if name not in after}
    gone = [
        f"{name} at {distances[name]:.0f} Å"
        for name in sorted(distances, key=distances.__getitem__)
    ]
    waters = [name for name in gone if name.partition(" ")[0] in WATERS]
    others = [name for name in gone if name not in waters]
    ions = {name: lines[0] for name, lines in after.items() if len(lines) == 1}
    bare = [x for x in after if x not in ions and not HYDROGEN.search(b"".join(before.get(x, ())))]
    rings = {name: RING_HYDROGEN.findall(b"".join(after[name])) for name in bare}
    found = {
        "waters left out": waters,
        "left out, as Meeko has no template or they lack atoms of it": others,
        "hydrogens added": bare,
        "those of histidines": [
            f"{x} {b'+'.join(rings[x]).decode()}" for x in bare if x.startswith("HIS")
        ],
        "charges of ions": [f"{x} {float(line[CHARGE]):+.3g}" for x, line in ions.items()],
    }
    yield from (f"{what}: {several(names)}" for what, names in found.items() if names)


def _distance(lines: Sequence[bytes], place: Sequence[float]) -> float:
    """Return how far the nearest atom is from a place, Å."""
    places = fields.parse_columns(lines, range(len(lines)), pdb.PLACE)
    return float(np.linalg.norm(places - place, axis=1).min())

"""The atoms of a receptor, from its file, and what every receptor is checked for."""

import re
from collections.abc import Sequence
from pathlib import Path

from multigpu.errors import InputError, several
from multigpu.formats.molecules import fields, pdb
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.pdbqt import PDBQT
from multigpu.formats.molecules.receptors.preparation import pdb_of, prepare, residue_name
from multigpu.formats.molecules.registry import SUFFIXES, parse
from multigpu.formats.storage.input_paths import expand, suffix_of
from multigpu.formats.storage.sources import FileKind, inspect_source
from multigpu.kernels.maps import Receptor

READ_BYTES = 4 << 20
LAYOUTS = {".pdbqt": "pdbqt", ".pdb": "pdb", ".ent": "pdb", ".cif": "cif", ".mmcif": "cif"}
MARKS = {  # in the content of files without these suffixes; the first that is found
    "cif": re.compile(rb"^(data_|_atom_site\.)", re.MULTILINE),
    "pdbqt": re.compile(rb"^(ATOM  |HETATM).{60} *[+-]?\d+\.\d+ +[A-Z]", re.MULTILINE),
    "pdb": pdb.ATOM,
}
HYDROGENS = {"H", "HD", "HS"}
CURE = "prepare it, as with `mk_prepare_receptor.py -i IN.pdb -o OUT -p`, or give its PDB"


def _layout(path: str, start: bytes) -> str:
    name = Path(path).name
    if suffix := suffix_of(name, RECEPTORS):
        return LAYOUTS[suffix]
    if other := next((s for s in SUFFIXES if s in name.lower()), ""):
        problem = f"{SUFFIXES[other].name.upper()} has ligands: a receptor is PDBQT, PDB or mmCIF"
        raise InputError(path, problem)
    return next((layout for layout, mark in MARKS.items() if mark.search(start)), "")


RECEPTORS = FileKind(
    name="receptor",
    suffixes=tuple(LAYOUTS),
    layout=_layout,
    unknown="no receptor by its name or content (.pdbqt, .pdb, .ent, .cif, .mmcif)",
)


def read_receptor(
    path: str, middle: Sequence[float] = (0.0, 0.0, 0.0), needs_charges: bool = True
) -> tuple[Receptor, list[str]]:
    """Return the receptor in a file, and what was left out, chosen or guessed, a sentence each.

    middle         of the pocket, Å
    needs_charges  whether its energies depend on charges

    Raises InputError for what is no receptor, and for one that was not prepared.
    """
    (path,) = expand([path], RECEPTORS)
    source = inspect_source(path, RECEPTORS)
    content = b"".join(block.tobytes() for block in source.blocks(READ_BYTES))
    if any(word in content for word in (b"\nROOT", b"\nTORSDOF")):
        raise InputError(path, "this is a ligand (it has ROOT or TORSDOF), and no receptor")
    is_prepared = source.layout == PDBQT.name
    if not is_prepared:
        content = pdb_of(path, content, source.layout == "cif")
    lines, located = _best_locations(content.splitlines(keepends=True))
    changed = ""
    try:
        if not is_prepared:
            parse(b"".join(lines), "pdb")  # which checks it
            lines, changed = prepare(path, lines, middle)
        molecule = parse(b"".join(lines), PDBQT.name)
    except MoleculeError as error:
        raise InputError(path, f"{error}") from None
    if HYDROGENS.isdisjoint(molecule.types):
        raise InputError(path, f"it has no hydrogens (no atom of type HD): {CURE}")
    if needs_charges and not molecule.charges.any():
        raise InputError(path, f"it has no charges: all are 0: {CURE}")
    return Receptor(
        positions=molecule.positions,
        charges=molecule.charges,
        types=tuple(molecule.types),
        names=tuple(atom_label(molecule.lines[row]) for row in molecule.rows),
    ), list(filter(None, (located, changed)))


def _best_locations(lines: list[bytes]) -> tuple[list[bytes], str]:
    """Return the lines with the best occupied of alternate locations only, and a note or ""."""
    others = pdb.other_locations(lines, pdb.atom_rows(lines))
    if not others:
        return lines, ""
    residues = list(dict.fromkeys(residue_name(lines[row]) for row in sorted(others)))
    note = f"of alternate locations the best occupied were taken: {several(residues)}"
    kept = [line for row, line in enumerate(lines) if row not in others]
    return [x[:16] + b" " + x[17:] if x.startswith(pdb.ATOM_WORDS) else x for x in kept], note


def atom_label(line: bytes) -> str:
    """Return how a message names an atom: ND1 of HIS A 87."""
    return f"{fields.decode(line[pdb.ATOM_NAME])} of {residue_name(line)}"

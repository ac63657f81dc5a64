"""The atoms of a receptor, from its file, and what every receptor is checked for."""

import re
from collections.abc import Sequence
from pathlib import Path

from multigpu.errors import InputError
from multigpu.formats.molecules import fields, pdb, pdbqt
from multigpu.formats.molecules.molecule import MoleculeError, check_molecule
from multigpu.formats.molecules.pdbqt import PDBQT
from multigpu.formats.molecules.receptors.preparation import prepare
from multigpu.formats.molecules.registry import SUFFIXES
from multigpu.formats.storage.input_paths import expand, suffix_of
from multigpu.formats.storage.sources import FileKind, inspect_source
from multigpu.kernels.maps import Receptor

READ_BYTES = 4 << 20
LAYOUTS = {".pdbqt": "pdbqt", ".pdb": "pdb", ".ent": "pdb", ".cif": "cif", ".mmcif": "cif"}
CIF = re.compile(rb"^(data_|_atom_site\.)", re.MULTILINE)
CHARGED = re.compile(rb"^(ATOM  |HETATM).{60} *[+-]?\d+\.\d+ +[A-Z]", re.MULTILINE)
LABEL = re.compile(rb"(.{4}).(.{3}).(.)(.{5})")  # of an atom: name, residue, chain, number
HYDROGENS = {"H", "HD", "HS"}


def _layout(path: str, start: bytes) -> str:
    name = Path(path).name
    if suffix := suffix_of(name, RECEPTORS):
        return LAYOUTS[suffix]
    if other := next((s for s in SUFFIXES if s in name.lower()), ""):
        problem = f"{SUFFIXES[other].name.upper()} has ligands: a receptor is PDBQT, PDB or mmCIF"
        raise InputError(path, problem)
    if CIF.search(start):
        return "cif"
    if CHARGED.search(start):
        return "pdbqt"
    return "pdb" if pdb.ATOM.search(start) else ""


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
    notes: list[str] = []
    if source.layout != PDBQT.name:
        content, notes = prepare(path, content, source.layout == "cif", middle)
    if any(word in content for word in (b"\nROOT", b"\nTORSDOF")):
        raise InputError(path, "this is a ligand (it has ROOT or TORSDOF), and no receptor")
    receptor, left_out = _read_pdbqt(path, content)
    _check_prepared(path, receptor, needs_charges)
    return receptor, notes + left_out


def _read_pdbqt(path: str, content: bytes) -> tuple[Receptor, list[str]]:
    """Return the atoms of a PDBQT, of alternate locations the best occupied ones, and a note."""
    lines = content.splitlines(keepends=True)
    rows = pdb.atom_rows(lines)
    others = pdb.other_locations(lines, rows)
    notes = [f"of alternate locations the best occupied were taken; {len(others):,} atoms left out"]
    try:
        molecule = check_molecule(
            pdbqt.parse([line for row, line in enumerate(lines) if row not in others])
        )
    except MoleculeError as error:
        raise InputError(path, f"{error}") from None
    receptor = Receptor(
        positions=molecule.positions,
        charges=molecule.charges,
        types=tuple(molecule.types),
        names=tuple(atom_label(molecule.lines[row]) for row in molecule.rows),
    )
    return receptor, notes if others else []


def atom_label(line: bytes) -> str:
    """Return how a message names an atom: ND1 of HIS A 87."""
    found = LABEL.match(line, pdb.ATOM_NAME.start)
    name, *place = map(fields.decode, found.groups()) if found else ("atom", "")
    return f"{name} of {' '.join(filter(None, place))}"


def _check_prepared(path: str, receptor: Receptor, needs_charges: bool) -> None:
    """Raise InputError for a receptor whose energies would mean nothing."""
    problem = ""
    if HYDROGENS.isdisjoint(receptor.types):
        problem = "it has no hydrogens (no atom of type HD)"
    elif needs_charges and not receptor.charges.any():
        problem = "it has no charges: all are 0"
    if problem:
        cure = "prepare it, as with `mk_prepare_receptor.py -i IN.pdb -o OUT -p`, or give its PDB"
        raise InputError(path, f"{problem}: {cure}")

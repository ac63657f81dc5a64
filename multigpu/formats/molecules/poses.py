"""Poses as text: the ligand's own record with new coordinates, or the molecule in SDF.

In its own format a record keeps all that stands in it. In SDF it keeps atoms, order, elements,
coordinates, bonds and charges. Notes on the pose go where the format has room for them: data items,
remarks, comments.
"""

from dataclasses import replace

from multigpu.errors import UsageError, quoted
from multigpu.formats.molecules.bonds import bonds_of
from multigpu.formats.molecules.elements import is_element
from multigpu.formats.molecules.molecule import (
    BondGraph,
    Molecule,
    MoleculeError,
    PoseNotes,
    Positions,
)
from multigpu.formats.molecules.registry import POSE_FORMATS, SUFFIXES
from multigpu.formats.molecules.sdf import SDF, build
from multigpu.formats.storage.suffixes import uncompressed_suffix

ANY_ORDER = 8  # of SDF's bonds


def format_of(path: str) -> str:
    """Return the format of a poses file by its suffix. Raises UsageError for another suffix."""
    suffix = uncompressed_suffix(path)
    if suffix in SUFFIXES and SUFFIXES[suffix].has_poses:
        return SUFFIXES[suffix].name
    *others, last = (each.suffixes[0] for each in POSE_FORMATS if each.has_poses)
    raise UsageError(f"{path}: poses are written as {', '.join(others)} or {last}, all in one")


def render(
    molecule: Molecule, name: str, fmt: str, positions: Positions, notes: PoseNotes
) -> bytes:
    """Return one pose. PDB and PDBQT are without the lines of MODEL and ENDMDL.

    name       of the ligand, where the record does not say one
    positions  float64[n, 3], Å
    notes      what to say about the pose, as text

    Raises MoleculeError where the format has no room for it: as for atoms that are no element,
    which stay as they are in their own format.
    """
    if fmt == molecule.format.name:
        return molecule.format.rewrite(molecule, name, positions, notes)
    if fmt != SDF.name:
        only = fmt.upper()
        raise MoleculeError(f"poses in {only} can be written of {only} only: choose .sdf")
    molecule, positions = _without_pseudo_atoms(molecule, positions)
    for number, symbol in enumerate(molecule.elements, 1):
        if not is_element(symbol):
            raise MoleculeError(
                f"atom {number} is {quoted(symbol)}, which is no element: its poses can be written"
                f" in its own format only, choose .{molecule.format.name}"
            )
    return build(molecule, name, positions, notes)


def render_drawing(molecule: Molecule, name: str, positions: Positions, notes: PoseNotes) -> bytes:
    """Return a pose in SDF to be drawn, whatever format was chosen; see `render`.

    Atoms that are no element are `*`, as SDF has them. Bonds of unknown order
    are drawn as such.
    """
    if molecule.format is SDF:
        return SDF.rewrite(molecule, name, positions, notes)
    molecule, positions = _without_pseudo_atoms(molecule, positions)
    try:
        return build(molecule, name, positions, notes)
    except MoleculeError:
        unknown = [(a, b, ANY_ORDER) for a, b, _ in bonds_of(molecule)]
        return build(molecule, name, positions, notes, BondGraph(unknown, {}))


def _without_pseudo_atoms(molecule: Molecule, positions: Positions) -> tuple[Molecule, Positions]:
    """Return a molecule without what only AutoDock has: glue of opened macrocycles, its waters."""
    pseudo = molecule.format.pseudo_types
    if pseudo.isdisjoint(molecule.types):
        return molecule, positions
    real = [i for i, kind in enumerate(molecule.types) if kind not in pseudo]
    kept = replace(
        molecule,
        rows=[molecule.rows[i] for i in real],
        positions=molecule.positions[real],
        elements=[molecule.elements[i] for i in real],
        types=[molecule.types[i] for i in real],
        charges=molecule.charges[real],
    )
    return kept, positions[real]

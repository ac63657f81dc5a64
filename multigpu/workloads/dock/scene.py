"""The pocket of a docking job in space: the best poses, the receptor around them, the surface."""

from collections.abc import Sequence

import numpy as np

from multigpu.errors import InputError, printable
from multigpu.formats.molecules.bonds import near_bonds
from multigpu.formats.molecules.molecule import Positions
from multigpu.formats.molecules.pdbqt import element_of_type
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.receptors import RECEPTORS, atom_label
from multigpu.formats.molecules.registry import FORMATS
from multigpu.formats.storage.sources import inspect_source
from multigpu.kernels.maps import Receptor
from multigpu.report.figures import DrawnMolecule, Scene, Surface

NEAR = 6.0  # Å: residues of the receptor with an atom nearer to a pose are drawn
GRID_POINTS = 200_000  # of the surface, at most: a larger grid is drawn coarser
SURFACE = 0.97  # quantile of the scores on the surface, which encloses the best 3 % of the volume
CARBON = ("C", "A", "C_H", "C_P")  # the map that is drawn: the first of these that is there
OF = " of "  # between an atom and its residue
TITLE = f"receptor, residues within {NEAR:g} Å"


def scene_of(pocket: Pocket, poses: Sequence[DrawnMolecule]) -> Scene:
    """Return poses in their pocket.

    A receptor that was not prepared here is that of the file which the maps name.
    """
    whole = pocket.prepared or _stored(pocket.receptor)
    around = [_around(whole, [each.positions for each in poses])] if whole else []
    return [*poses, *around, _surface(pocket)]


def _surface(pocket: Pocket) -> Surface:
    """Return the surface around the highest scores of a plain grid, or of the map of carbon."""
    values, what = pocket.values[0], "scores"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        # Maps of atom types are energies.
        values, what = -pocket.values[pocket.types.index(kind)], f"energies of {kind}"
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step]
    level = np.quantile(values, SURFACE)
    title = f"{1 - SURFACE:.0%} of the box with the best {what}"
    return Surface(title, values >= level, pocket.origin, pocket.spacing * step)


# ---- the receptor -----------------------------------------------------------------------------


def _around(receptor: Receptor, poses: Sequence[Positions]) -> DrawnMolecule:
    """Return the residues with an atom near a pose, and their bonds."""
    residues = [name.partition(OF)[2] for name in receptor.names]
    near = np.zeros(len(residues), np.bool_)
    for atom in np.concatenate([np.empty((0, 3)), *poses]):
        near |= ((receptor.positions - atom) ** 2).sum(axis=1) < NEAR * NEAR
    wanted = {residues[atom] for atom in np.flatnonzero(near).tolist()}
    kept = [atom for atom, residue in enumerate(residues) if residue in wanted]
    elements = [element_of_type(receptor.types[atom]) for atom in kept]
    labels = [printable(receptor.names[atom]) for atom in kept]
    places = receptor.positions[kept]
    bonds = near_bonds(elements, places)
    return DrawnMolecule(TITLE, elements, places, bonds, labels, is_thin=True)


def _stored(path: str) -> Receptor | None:
    """Return the atoms in a file of PDB or PDBQT; None where it has none, or is not there."""
    try:
        source = inspect_source(path, RECEPTORS)
        molecule = FORMATS[source.layout].parse(source.content().splitlines(keepends=True))
        return Receptor(
            positions=molecule.positions,
            charges=np.zeros(len(molecule.rows)),
            types=tuple(molecule.elements),
            names=tuple(atom_label(molecule.lines[row]) for row in molecule.rows),
        )
    except (InputError, ValueError, KeyError):  # mmCIF is read where maps are made
        return None

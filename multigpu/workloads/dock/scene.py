"""The pocket of a docking job in space: the best poses, the receptor around them, the surface."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, printable
from multigpu.formats.molecules.bonds import near_bonds
from multigpu.formats.molecules.fields import decode
from multigpu.formats.molecules.ligands import LIGANDS
from multigpu.formats.molecules.molecule import Molecule, MoleculeError
from multigpu.formats.molecules.pockets import Pocket
from multigpu.formats.molecules.registry import parse
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.storage.sources import inspect_source
from multigpu.report.space import DrawnMolecule, Scene, Surface
from multigpu.workloads.dock.parts import BestLigand

READ_BYTES = 16 << 20
NEAR = 6.0  # Å: residues of the receptor with an atom nearer to a pose are drawn
GRID_POINTS = 200_000  # of the surface, at most: a larger grid is drawn coarser
SURFACE = 0.97  # quantile of the scores on the surface, which encloses the best 3 % of the volume
CARBON = ("C", "A")  # the map of AutoGrid that is drawn: the first of these that is there
ATOM, RESIDUE = slice(12, 16), slice(17, 27)  # columns of an atom in PDB and PDBQT: names


def scene_of(pocket: Pocket, best: Sequence[BestLigand], titles: Sequence[Sequence[str]]) -> Scene:
    """Return the best poses in their pocket. titles: of the poses of each ligand."""
    models = [
        DrawnMolecule(title, molecule.elements, molecule.positions, molecule.bonds)
        for each, names in zip(best, titles, strict=True)
        for title, molecule in zip(names, map(_drawn, each.sdf), strict=True)
    ]
    around = _around(pocket.receptor, [each.positions for each in models])
    return Scene(models=models, around=around, surface=_surface(pocket))


def _drawn(sdf: bytes) -> Molecule:
    return SDF.parse(sdf.splitlines(keepends=True))


def _surface(pocket: Pocket) -> Surface:
    """Return the surface around the highest scores of a plain grid, or of AutoGrid's carbon."""
    values, what = pocket.values[0], "scores"
    if pocket.types:
        kind = next((name for name in CARBON if name in pocket.types), pocket.types[0])
        # AutoGrid's maps are energies.
        values, what = -pocket.values[pocket.types.index(kind)], f"energies of {kind}"
    step = max(1, int(np.ceil((values.size / GRID_POINTS) ** (1 / 3))))
    values = values[::step, ::step, ::step]
    level = np.quantile(values, SURFACE)
    title = f"{1 - SURFACE:.0%} of the box with the best {what}"
    return Surface(title, values >= level, pocket.origin, pocket.spacing * step)


# ---- the receptor -----------------------------------------------------------------------------


def _around(path: str, poses: Sequence[NDArray[np.float64]]) -> DrawnMolecule | None:
    """Return the residues of a receptor near poses; None where its file cannot be read."""
    receptor = _read_receptor(path)
    if receptor is None:
        return None
    residues = [receptor.lines[row][RESIDUE] for row in receptor.rows]
    near = np.zeros(len(residues), np.bool_)
    for pose in poses:
        for atom in pose:
            near |= ((receptor.positions - atom) ** 2).sum(axis=1) < NEAR * NEAR
    wanted = {residues[atom] for atom in np.flatnonzero(near).tolist()}
    kept = [atom for atom, residue in enumerate(residues) if residue in wanted]
    part = replace(
        receptor,
        rows=[receptor.rows[atom] for atom in kept],
        positions=receptor.positions[kept],
        elements=[receptor.elements[atom] for atom in kept],
    )
    title = f"receptor, residues within {NEAR:g} Å"
    return DrawnMolecule(title, part.elements, part.positions, near_bonds(part), [*_labels(part)])


def _read_receptor(path: str) -> Molecule | None:
    """Return the receptor in a file of PDB or PDBQT; None where there is none."""
    try:
        source = inspect_source(path, LIGANDS)
        if source.layout not in ("pdb", "pdbqt"):
            return None
        return parse(
            b"".join(block.tobytes() for block in source.blocks(READ_BYTES)), source.layout
        )
    except (InputError, MoleculeError):
        return None


def _labels(receptor: Molecule) -> Iterator[str]:
    """Yield the residue and the name of each atom: ASP A 189, OD1."""
    for row in receptor.rows:
        line = receptor.lines[row]
        residue = " ".join(decode(line[RESIDUE]).split())
        yield printable(f"{residue}, {decode(line[ATOM])}")

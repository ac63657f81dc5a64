"""The poses of a part as text: those of regular records in columns, others one by one."""

import numpy as np
from numpy.typing import NDArray

from multigpu.dock.ligands import LoadedLigands
from multigpu.formats.molecules.molecule import PoseNotes, Positions
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import COLUMN_FORMATS
from multigpu.formats.tables.batch import PoseBatch
from multigpu.formats.tables.columns import decimals, whole
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.rotation import Poses


def pose_texts(
    loaded: LoadedLigands, poses: Poses, rows: PoseBatch, positions: Positions, fmt: str
) -> Texts:
    """Return the text of each pose.

    rows       about the same poses
    positions  float64[atoms, 3] of all poses, Å
    fmt        format of the texts, `SAME` for that of each ligand
    """
    is_regular = ~np.isin(poses.ligand, list(loaded.molecules))
    regular = _regular_texts(loaded, poses.ligand[is_regular], rows, is_regular, positions)
    if is_regular.all() and regular.lengths.all():
        return regular
    texts, places, written = [], positions_by_row(rows, positions), iter(regular.each())
    for row, ligand in enumerate(poses.ligand.tolist()):
        text = next(written) if is_regular[row] else b""
        if not text:
            molecule, notes = loaded.molecule(ligand), notes_on_pose(rows, row)
            text = render(molecule, rows.ligand[row], fmt, places[row], notes)
        texts.append(text)
    return Texts.of(texts)


def _regular_texts(
    loaded: LoadedLigands, ligand: NDArray[np.int64], rows: PoseBatch,
    is_regular: NDArray[np.bool_], positions: Positions,
) -> Texts:  # fmt: skip
    """Return the texts of regular poses; empty where one has to be written alone."""
    if not len(ligand):
        return Texts.of([])
    columns = COLUMN_FORMATS[loaded.sources[ligand[0]].layout]
    notes = {
        "score": decimals(rows.score[is_regular], 6),
        "pose": whole(rows.pose[is_regular]),
        "rotation": whole(rows.rotation[is_regular]),
        "rmsd_to_input": decimals(rows.rmsd_to_input[is_regular], 4),
    }
    names = [
        "" if is_named else loaded.names[i]
        for i, is_named in zip(ligand.tolist(), loaded.is_named[ligand].tolist(), strict=True)
    ]
    atoms = rows.atoms.astype(np.int64)
    places = positions[np.repeat(is_regular, atoms)]
    return columns.write(loaded.texts.take(ligand), atoms[is_regular], places, names, notes)


def notes_on_pose(rows: PoseBatch, row: int) -> PoseNotes:
    """Return what a pose's text says about it; `_regular_texts` has the same for many."""
    return {
        "score": f"{rows.score[row]:.6f}",
        "pose": str(rows.pose[row]),
        "rotation": str(rows.rotation[row]),
        "rmsd_to_input": f"{rows.rmsd_to_input[row]:.4f}",
    }


def positions_by_row(rows: PoseBatch, positions: Positions) -> list[Positions]:
    """Return the positions of each pose."""
    return np.split(positions, np.cumsum(rows.atoms)[:-1])

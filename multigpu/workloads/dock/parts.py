"""Parts of a docking job: a worker returns them, and a journal keeps them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.ligands import LigandRecords
from multigpu.kernels.rotation.types import Poses
from multigpu.workloads.dock.plan import DockSpan
from multigpu.workloads.dock.rows import PoseBatch


@dataclass(frozen=True)
class Skipped:
    """A ligand that was not docked, and the reason. number: of the record in its file, from 1."""

    path: str
    number: int
    ligand: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestLigand:
    """A ligand with one of the highest scores, for the report."""

    ligand_index: int
    ligand: str
    scores: list[float]  # of its best poses, best first
    elements: list[str]  # of the atoms that are drawn
    bonds: NDArray[np.int64]  # int64[bonds, 3]: two of these atoms, and the order
    positions: NDArray[np.float64]  # float64[poses, atoms, 3], Å


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DockedLigands:
    """The part of a span that has whole ligands."""

    rows: PoseBatch  # of the poses
    pose_texts: list[bytes]  # the poses in the format that was asked for, if any
    skipped: list[Skipped]  # ligands that could not be docked
    without_hydrogens: int  # number of docked ligands that have none
    parts: int  # number of docked ligands of whose record other atoms were left out
    best: list[BestLigand]  # the ligands with the highest scores, for the report
    text_bytes: int  # of all records


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchedPoses:
    """The part of a span that has some of the poses of its ligands: the best of them."""

    span: DockSpan
    poses: Poses


DockPart = DockedLigands | SearchedPoses

# Classes that the journal of a docking job may hold.
PART_CLASSES = (
    DockedLigands,
    SearchedPoses,
    DockSpan,
    LigandRecords,
    Poses,
    PoseBatch,
    Skipped,
    BestLigand,
)

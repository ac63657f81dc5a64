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
    """A ligand with one of the highest scores, for the report.

    scores     of its best poses, best first
    elements   of the atoms that are drawn
    bonds      int64[bonds, 3]: two of these atoms, and the order
    positions  float64[poses, atoms, 3], Å
    """

    ligand_index: int
    ligand: str
    scores: list[float]
    elements: list[str]
    bonds: NDArray[np.int64]
    positions: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DockedLigands:
    """The part of a span that has whole ligands.

    rows          of the poses
    pose_texts    the poses in the format that was asked for, if any
    skipped       ligands that could not be docked
    without_hydrogens  number of docked ligands that have none
    parts         number of docked ligands of whose record other atoms were left out
    best          the ligands with the highest scores, for the report
    text_bytes    of all records
    """

    rows: PoseBatch
    pose_texts: list[bytes]
    skipped: list[Skipped]
    without_hydrogens: int
    parts: int
    best: list[BestLigand]
    text_bytes: int


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

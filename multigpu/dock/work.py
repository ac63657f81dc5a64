"""Docking as a workload: spans of ligands in, their best poses out.

A span has whole ligands and all poses. Where a search is so fine that one ligand takes long, its
poses are cut into spans instead, whose best are merged: the highest score, then the lowest index.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.dock.ligands import LigandLoader, LoadedLigands
from multigpu.dock.plan import DockSpan
from multigpu.dock.pose_texts import notes_on_pose, pose_texts, positions_by_row
from multigpu.dock.scores import Skipped, as_tsv
from multigpu.formats.molecules.ligands import LigandRecords, RecordBorder
from multigpu.formats.molecules.molecule import Positions
from multigpu.formats.molecules.poses import drawing
from multigpu.formats.storage.sources import Source
from multigpu.formats.tables.batch import PoseBatch
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.rotation import (
    EulerRotations,
    Field,
    Ligands,
    Poses,
    Search,
    atoms_of,
    placed,
    quaternions,
)
from multigpu.run.fitness import Expected, require


@dataclass(frozen=True, eq=False)
class Best:
    """One of the best ligands of a part, for the report: its best pose as SDF."""

    ligand_index: int
    ligand: str
    score: float
    sdf: bytes


@dataclass(frozen=True, eq=False)
class DockPart:
    """What is known of the ligands of a span.

    rows      of the poses
    lines     the rows as text for a table of scores, where that is wanted
    texts     of the poses in the format asked for, where one is
    names     of each docked ligand, and the layout of the file it came from
    counts    int64[ligands]: poses of each docked ligand
    outside   float64[ligands]: how far the centroid, or the given centre, is from the grid, Å
    best      the ligands with the highest scores, for a report
    behind    where the next ligands begin
    bare      how many of the ligands lack hydrogens
    """

    text_bytes: int
    rows: PoseBatch
    lines: bytes
    texts: Texts
    names: list[str]
    layouts: list[str]
    counts: NDArray[np.int64]
    skipped: list[Skipped]
    outside: NDArray[np.float64]
    best: list[Best]
    behind: RecordBorder
    bare: int = 0


@dataclass(frozen=True, eq=False)
class FoundPart:
    """The best poses in a span of them, to be merged with those of the spans around it."""

    span: DockSpan
    poses: Poses

    @property
    def behind(self) -> RecordBorder | None:
        """Where the next ligands begin; None while these have more poses."""
        return self.span.behind if self.span.last else None


Part = DockPart | FoundPart
PART_CLASSES = (  # what a journal of a docking run holds
    DockPart, FoundPart, DockSpan, LigandRecords, RecordBorder, Poses, PoseBatch, Skipped, Best,
    Texts,
)  # fmt: skip


ATOM_BYTES = 128  # of an atom on a device: its place, channels and weights


class Searcher(Protocol):
    """A backend of `multigpu.kernels.rotation`."""

    def best(self, ligands: Ligands, span: range | None = None) -> Poses: ...


@dataclass(eq=False)
class DockWorkload:
    """Everything a worker needs to know of a docking job.

    field   the pocket as the kernels see it; types: its maps, () for a plain grid
    fmt     format of the poses' text, `SAME` for that of the ligand; None: no text
    lines   whether the table of scores is text
    report  ligands of every part that are sent back for a report
    expected  of a worker that is not this process
    flat    whether drawings are docked as they are
    """

    key: str
    sources: Sequence[Source]
    field: Field
    types: tuple[str, ...]
    search: Search
    fmt: str | None = None
    lines: bool = False
    report: int = 0
    expected: Expected | None = None
    flat: bool = False

    def open(self, place: Place) -> "DockSession":
        require(self.expected, place)
        return DockSession(self, place)

    def name(self, span: DockSpan) -> str:
        first, last = span.records[0], span.records[-1]
        begin = f"{self.sources[first.source].path}, record {first.number}"
        poses = "" if span.whole else f", poses {span.poses[0]} to {span.poses[1]}"
        end = f"{self.sources[last.source].path}, record {last.last}"
        return begin + (f" to {end}" if end != begin else "") + poses

    def correct(self, span: DockSpan | None, part: Part) -> None:
        """Spans are cut at borders of records: there is nothing to correct."""

    # ---- ligands ------------------------------------------------------------------------------

    def load(self, span: DockSpan) -> LoadedLigands:
        """The ligands of a span; those that cannot be docked are skipped, with the reason."""
        loader = LigandLoader(
            sources=self.sources,
            types=self.types,
            fmt=self.fmt,
            search=self.search,
            report=self.report > 0,
            flat=self.flat,
        )
        return loader.load(span.records, span.first)

    # ---- their poses --------------------------------------------------------------------------

    def answer(self, span: DockSpan, loaded: LoadedLigands, poses: Poses) -> DockPart:
        """Rows, texts and what a report needs of the poses of its ligands."""
        positions = placed(loaded.ligands, self.search, poses)
        rows = self._rows(loaded, poses, positions)
        return DockPart(
            int(loaded.texts.lengths.sum()),
            rows,
            as_tsv(rows) if self.lines else b"",
            pose_texts(loaded, poses, rows, positions, self.fmt) if self.fmt else Texts.of([]),
            loaded.names,
            [source.layout for source in loaded.sources],
            np.bincount(poses.ligand, minlength=len(loaded.names)),
            loaded.skipped,
            self._outside(loaded),
            self._best(loaded, poses, rows, positions),
            span.behind,
            int(loaded.lacks_hydrogens.sum()),
        )

    def _rows(self, loaded: LoadedLigands, poses: Poses, positions: Positions) -> PoseBatch:
        """All about the poses; where their positions are in texts they are not here, too."""
        ligands, search, which = loaded.ligands, self.search, poses.ligand.tolist()
        matrices, shifts = search.placements(poses.pose)
        rotations = poses.pose // search.shifts.count
        rank = np.arange(len(poses)) - np.searchsorted(poses.ligand, poses.ligand) + 1
        return PoseBatch(
            [loaded.names[i] for i in which],
            [loaded.sources[i].path for i in which],
            loaded.index[poses.ligand],
            rank.astype(np.int32),
            rotations,
            poses.score,
            self._angles(rotations),
            quaternions(matrices) + 0.0,  # no -0.0
            search.targets(ligands)[poses.ligand] + shifts,
            _rmsds(ligands, poses, positions),
            ligands.sizes[poses.ligand].astype(np.int32),
            self._atoms_outside(ligands, poses, positions),
            np.empty((0, 3)) if self.fmt else positions,
        )

    def _angles(self, rotations: NDArray[np.int64]) -> NDArray[np.float64]:
        if isinstance(self.search.rotations, EulerRotations):
            return self.search.rotations.angles(rotations)
        return np.full((len(rotations), 3), np.nan)

    def _outside(self, loaded: LoadedLigands) -> NDArray[np.float64]:
        field, targets = self.field, self.search.targets(loaded.ligands)
        end = field.origin + field.spacing * (np.array(field.shape) - 1)
        beyond = np.maximum(np.maximum(field.origin - targets, targets - end), 0)
        distances: NDArray[np.float64] = np.sqrt((beyond**2).sum(axis=1))
        return distances

    def _atoms_outside(
        self, ligands: Ligands, poses: Poses, positions: Positions
    ) -> NDArray[np.int32]:
        """int32[poses]: how many atoms of each pose are beyond the points of the grid."""
        field = self.field
        end = field.origin + field.spacing * (np.array(field.shape) - 1)
        beyond = ((positions < field.origin) | (positions > end)).any(axis=1)
        pose_of = np.repeat(np.arange(len(poses)), ligands.sizes[poses.ligand])
        return np.bincount(pose_of[beyond], minlength=len(poses)).astype(np.int32)

    def _best(
        self, loaded: LoadedLigands, poses: Poses, rows: PoseBatch, positions: Positions
    ) -> list[Best]:
        first = np.flatnonzero(rows.pose == 1)
        order = first[np.argsort(-rows.score[first], kind="stable")][: self.report]
        of_row = positions_by_row(rows, positions) if len(order) else []
        found = []
        for row in order.tolist():
            ligand, name = int(poses.ligand[row]), rows.ligand[row]
            molecule, notes = loaded.molecule(ligand), notes_on_pose(rows, row)
            sdf = drawing(molecule, name, of_row[row], notes)
            found.append(Best(int(rows.ligand_index[row]), name, float(rows.score[row]), sdf))
        return found

    def merged(self, found: Sequence[FoundPart]) -> DockPart:
        """The part of ligands whose poses were searched in these spans, which are all of them."""
        span, poses = found[-1].span, Poses.joined([part.poses for part in found]).winners()
        return self.answer(span, self.load(span), poses)


def _rmsds(ligands: Ligands, poses: Poses, positions: Positions) -> NDArray[np.float64]:
    """float64[k], Å: from where each pose's ligand was."""
    if not len(poses):
        return np.empty(0)
    squares = ((ligands.positions[atoms_of(ligands, poses)] - positions) ** 2).sum(axis=1)
    sizes = ligands.sizes[poses.ligand]
    distances: NDArray[np.float64] = np.sqrt(
        np.add.reduceat(squares, np.cumsum(sizes) - sizes) / sizes
    )
    return distances


class DockSession:
    """Docking on one worker: the field on its device."""

    def __init__(self, workload: DockWorkload, place: Place) -> None:
        self.workload = workload
        self.searcher = _searcher(place, workload.field, workload.search)

    def load(self, span: DockSpan) -> tuple[DockSpan, LoadedLigands]:
        return span, self.workload.load(span)

    def compute(self, loaded: tuple[DockSpan, LoadedLigands]) -> Poses:
        span, ligands = loaded[0], loaded[1].ligands
        return self.searcher.best(ligands, range(*span.poses)) if len(ligands) else Poses.none()

    def need(self, loaded: tuple[DockSpan, LoadedLigands]) -> int:
        """The atoms; the searcher holds as many scores as there is room for."""
        return ATOM_BYTES * len(loaded[1].ligands.positions)

    def halves(
        self, loaded: tuple[DockSpan, LoadedLigands]
    ) -> tuple[tuple[DockSpan, LoadedLigands], ...]:
        """The first ligands, and the others."""
        span, whole = loaded
        middle = len(whole.ligands) // 2
        if not middle:
            return ()
        return (span, whole[:middle]), (span, whole[middle:])

    def joined(
        self, loaded: tuple[DockSpan, LoadedLigands],
        halves: Sequence[tuple[DockSpan, LoadedLigands]],
        computed: Sequence[Poses],
    ) -> Poses:  # fmt: skip
        (_, first), _ = halves
        return Poses.joined([computed[0], computed[1].moved(len(first.ligands))])

    def finish(self, loaded: tuple[DockSpan, LoadedLigands], poses: Poses) -> Part:
        span, ligands = loaded
        return self.workload.answer(span, ligands, poses) if span.whole else FoundPart(span, poses)

    def close(self) -> None:
        """The field goes with the session."""


def _searcher(place: Place, field: Field, search: Search) -> Searcher:
    searcher: Searcher
    if place.gpu is None:
        from multigpu.kernels.rotation import cpu

        searcher = cpu.Searcher(field, search)
        return searcher
    import cupy

    from multigpu.kernels.rotation import cuda

    with cupy.cuda.Device(place.gpu):
        searcher = cuda.Searcher(field, search)
        return searcher

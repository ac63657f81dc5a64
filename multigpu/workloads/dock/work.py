"""Docking as a worker does it: spans of ligands in, their best poses out.

A span has whole ligands with all their poses. Where one ligand takes long, because the search is so
fine, its poses are cut into spans instead. Their results are merged: the highest score wins, then
the lowest index.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from multigpu.cluster.engine.workload import Place, Session
from multigpu.formats.molecules.reference_poses import ReferencePose
from multigpu.formats.molecules.registry import pose_layout
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.rotation import (
    BandFinder,
    Field,
    Placements,
    PoseFinder,
    PoseRefiner,
    Poses,
    PoseSearch,
)
from multigpu.kernels.rotation.memory import MOST_SCORES
from multigpu.kernels.rotation.thinning import thin
from multigpu.run.fitness import Expected, require
from multigpu.workloads.dock.ligands import LigandLoader, LoadedLigands, lacks_hydrogens
from multigpu.workloads.dock.parts import DockedLigands, DockPart, SearchedPoses
from multigpu.workloads.dock.plan import DockSpan
from multigpu.workloads.dock.poses import DockedPoses
from multigpu.workloads.dock.rows import as_tsv
from multigpu.workloads.dock.search import WholeBox

ATOM_BYTES = 128  # of an atom on a device: its position, channels and weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DockChunk:
    """A span and its loaded ligands."""

    span: DockSpan
    loaded: LoadedLigands


class Step(Protocol):
    """One thing that is done with the poses of a chunk on a device."""

    def __call__(self, loaded: LoadedLigands, found: Placements) -> Placements:
        """Return placements of the ligands' bodies, from those that the step before has found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RefineStep:
    """Every pose is moved to the nearest place where it cannot get better."""

    refiner: PoseRefiner

    def __call__(self, loaded: LoadedLigands, found: Placements) -> Placements:
        return self.refiner.refine(loaded.bodies, found)


@dataclass(frozen=True, kw_only=True, eq=False)
class RankStep:
    """The best `top` poses of each ligand that are `min_rmsd` Å apart, or more, best first."""

    min_rmsd: float
    top: int

    def __call__(self, loaded: LoadedLigands, found: Placements) -> Placements:
        ligand = loaded.ligand_of[found.ligand]
        order = np.lexsort((found.pose, found.ligand, -found.score, ligand))
        found, ligand = found.take(order), ligand[order]
        borders = np.searchsorted(ligand, np.arange(len(loaded.firsts) + 1))
        kept = [np.empty(0, np.int64)]
        for rows in map(np.arange, borders[:-1], borders[1:]):
            apart = thin(loaded.bodies, found.take(rows), self.min_rmsd, self.top)
            kept.append(rows[apart])
        return found.take(np.concatenate(kept))


@dataclass(kw_only=True, eq=False)
class DockWorkload:
    """Everything that a worker needs to know of a docking job.

    loader       of its ligands
    field        the pocket as the kernels take it
    search       the poses that are tried
    whole        what becomes of them where they fill a box, else None
    reference    what poses are compared with
    report       best ligands of every part that are kept for a report
    score_lines  whether the table of scores is text
    expected     what a worker elsewhere must have; None: all workers are threads of this process
    scores       most that a chunk holds at a time on a GPU
    """

    key: str
    loader: LigandLoader
    field: Field
    search: PoseSearch
    whole: WholeBox | None = None
    reference: ReferencePose | None = None
    report: int = 0
    score_lines: bool = False
    expected: Expected | None = None
    scores: int = MOST_SCORES

    def open(self, place: Place) -> "DockSession":
        require(self.expected, place)
        return DockSession(self, place)

    def name(self, span: DockSpan) -> str:
        """Return the records and poses of a span, for messages."""
        first, last = span.records[0], span.records[-1]
        sources = self.loader.sources
        begin = f"{sources[first.source].path}, record {first.number}"
        poses = "" if self.is_whole(span) else f", poses {span.poses[0]} to {span.poses[1]}"
        end = f"{sources[last.source].path}, record {last.last}"
        return begin + (f" to {end}" if end != begin else "") + poses

    def is_whole(self, span: DockSpan) -> bool:
        """Whether a span has all poses of its ligands."""
        return span.poses == (0, self.search.stop)

    def correct(self, span: DockSpan | None, part: DockPart) -> None:
        """Return None: spans are cut at borders of records, so there is nothing to correct."""

    def load(self, span: DockSpan) -> LoadedLigands:
        return self.loader.load(span.records, span.first)

    @property
    def with_energies(self) -> bool:
        """Whether poses have columns of energies."""
        return self.whole is not None and bool(self.loader.types)

    def finish(self, loaded: LoadedLigands, found: Placements) -> DockedLigands:
        """Return the part of a span from all poses that were found for its ligands."""
        docked = DockedPoses(
            loaded=loaded,
            field=self.field,
            search=self.search,
            found=found,
            with_energies=self.with_energies,
            reference=self.reference,
        )
        rows, fmt, firsts = docked.rows, self.loader.pose_format, loaded.firsts.tolist()
        molecules = [loaded.molecules[i] for i in firsts if i in loaded.molecules]
        return DockedLigands(
            # The texts have the coordinates.
            rows=replace(rows, coordinates=np.empty((0, 3))) if fmt else rows,
            score_lines=as_tsv(rows, self.with_energies) if self.score_lines else b"",
            pose_texts=docked.texts(fmt) if fmt else Texts.of([]),
            names=[loaded.names[i] for i in firsts],
            layouts=[pose_layout(loaded.sources[i].layout) for i in firsts],
            pose_counts=np.bincount(docked.ligand, minlength=len(firsts)),
            outside=docked.centroid_distances,
            skipped=loaded.skipped,
            without_hydrogens=sum(map(lacks_hydrogens, molecules)),
            parts=sum(molecule.is_part for molecule in molecules),
            best=docked.best_ligands(self.report),
            text_bytes=loaded.text_bytes,
        )

    def merge(self, parts: Sequence[SearchedPoses]) -> DockedLigands:
        """Return the part of ligands from the parts of all spans of their poses."""
        loaded = self.load(parts[-1].span)
        found = Poses.joined([part.poses for part in parts]).winners()
        return self.finish(loaded, Placements.of(loaded.bodies, self.search, found))


class DockSession(Session[DockSpan, DockPart]):
    """Docking on one device, which holds the field."""

    def __init__(self, workload: DockWorkload, place: Place) -> None:
        self.workload = workload
        self._find = _open_search(place, workload)
        self.steps = tuple(_open_steps(place, workload))

    def load(self, span: DockSpan) -> DockChunk:
        return DockChunk(span=span, loaded=self.workload.load(span))

    def compute(self, chunk: DockChunk) -> Placements:
        loaded = chunk.loaded
        poses = self._find(chunk) if len(loaded) else Poses.none()
        found = Placements.of(loaded.bodies, self.workload.search, poses)
        for step in self.steps:
            found = step(loaded, found)
        return found

    def need(self, chunk: DockChunk) -> int:
        """Return the bytes of the atoms; scores take what memory is left."""
        return ATOM_BYTES * len(chunk.loaded.bodies.positions)

    def halves(self, chunk: DockChunk) -> tuple[DockChunk, ...]:
        """Return the chunk as two with half of the ligands each; nothing for one ligand."""
        loaded, firsts = chunk.loaded, chunk.loaded.firsts
        if len(firsts) < 2:
            return ()
        middle = int(firsts[len(firsts) // 2])
        return replace(chunk, loaded=loaded[:middle]), replace(chunk, loaded=loaded[middle:])

    def joined(
        self, chunk: DockChunk, halves: Sequence[DockChunk], computed: Sequence[Placements]
    ) -> Placements:
        """Return the poses of a chunk from those of its halves."""
        return Placements.joined(computed, [len(half.loaded.bodies) for half in halves])

    def finish(self, chunk: DockChunk, found: Placements) -> DockPart:
        if self.workload.is_whole(chunk.span):
            return self.workload.finish(chunk.loaded, found)
        return SearchedPoses(span=chunk.span, poses=Poses(found.ligand, found.pose, found.score))


# ---- backends: that of a device alone is imported, as CuPy is not on every machine ---------------


def _open_search(place: Place, workload: DockWorkload) -> Callable[[DockChunk], Poses]:
    """Return what finds the poses of a chunk."""
    field, search, whole = workload.field, workload.search, workload.whole
    finder: PoseFinder
    if whole is not None:
        band = _open_band(place, workload, whole)
        return lambda chunk: band.best(chunk.loaded.bodies, chunk.loaded.ligand_of)
    if place.gpu is None:
        from multigpu.kernels.rotation import cpu

        finder = cpu.PoseSearcher(field, search)
    else:
        import cupy

        from multigpu.kernels.rotation import cuda

        with cupy.cuda.Device(place.gpu):
            finder = cuda.PoseSearcher(field, search, workload.scores)
    return lambda chunk: finder.best(chunk.loaded.bodies, range(*chunk.span.poses))


def _open_band(place: Place, workload: DockWorkload, whole: WholeBox) -> BandFinder:
    about = workload.field, workload.search, whole.width
    if place.gpu is None:
        from multigpu.kernels.rotation.whole_box import cpu

        return cpu.BandSearcher(*about)
    import cupy

    from multigpu.kernels.rotation.whole_box import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.BandSearcher(*about)


def _open_steps(place: Place, workload: DockWorkload) -> Iterator[Step]:
    """Yield what follows the search."""
    if workload.whole is None or not workload.whole.refined:
        return
    yield RefineStep(refiner=_open_refiner(place, workload.field))
    yield RankStep(min_rmsd=workload.search.min_rmsd, top=workload.whole.top)


def _open_refiner(place: Place, field: Field) -> PoseRefiner:
    if place.gpu is None:
        from multigpu.kernels.rotation.refine import cpu

        return cpu.Refiner(field)
    import cupy

    from multigpu.kernels.rotation.refine import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.Refiner(field)

"""Docking as a worker does it: spans of ligands in, their best poses out.

A span has whole ligands with all their poses. Where one ligand takes long, because the search is so
fine, its poses are cut into spans instead. Their results are merged: the highest score wins, then
the lowest index.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from multigpu.cluster.engine.workload import Place, Session
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.rotation import Field, Placements, PoseFinder, Poses, PoseSearch
from multigpu.kernels.rotation.memory import MOST_SCORES
from multigpu.run.fitness import Expected, require
from multigpu.workloads.dock.ligands import LigandLoader, LoadedLigands, lacks_hydrogens
from multigpu.workloads.dock.parts import DockedLigands, DockPart, SearchedPoses
from multigpu.workloads.dock.plan import DockSpan
from multigpu.workloads.dock.poses import DockedPoses
from multigpu.workloads.dock.rows import as_tsv

ATOM_BYTES = 128  # of an atom on a device: its position, channels and weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DockChunk:
    """A span and its loaded ligands."""

    span: DockSpan
    loaded: LoadedLigands


class Step(Protocol):
    """One thing that is done with a chunk on a device."""

    def __call__(self, chunk: DockChunk, found: Poses) -> Poses:
        """Return the poses of the chunk's bodies, from those that the step before has found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SearchStep:
    """The search for the best of all poses: always the first step."""

    searcher: PoseFinder

    def __call__(self, chunk: DockChunk, found: Poses) -> Poses:
        return self.searcher.best(chunk.loaded.bodies, range(*chunk.span.poses))


@dataclass(kw_only=True, eq=False)
class DockWorkload:
    """Everything that a worker needs to know of a docking job.

    loader       of its ligands
    field        the pocket as the kernels take it
    search       the poses that are tried
    report       best ligands of every part that are kept for a report
    score_lines  whether the table of scores is text
    expected     what a worker elsewhere must have; None: all workers are threads of this process
    scores       most that a chunk holds at a time on a GPU
    """

    key: str
    loader: LigandLoader
    field: Field
    search: PoseSearch
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

    def finish(self, loaded: LoadedLigands, found: Poses) -> DockedLigands:
        """Return the part of a span from all poses that were found for its ligands."""
        placements = Placements.of(loaded.bodies, self.search, found)
        docked = DockedPoses(loaded=loaded, field=self.field, search=self.search, found=placements)
        rows, fmt = docked.rows, self.loader.pose_format
        return DockedLigands(
            # The texts have the coordinates.
            rows=replace(rows, coordinates=np.empty((0, 3))) if fmt else rows,
            score_lines=as_tsv(rows) if self.score_lines else b"",
            pose_texts=docked.texts(fmt) if fmt else Texts.of([]),
            names=loaded.names,
            layouts=[source.layout for source in loaded.sources],
            pose_counts=np.bincount(docked.record, minlength=len(loaded)),
            outside=docked.centroid_distances,
            skipped=loaded.skipped,
            without_hydrogens=sum(map(lacks_hydrogens, loaded.molecules.values())),
            parts=sum(molecule.is_part for molecule in loaded.molecules.values()),
            best=docked.best_ligands(self.report),
            text_bytes=int(loaded.texts.lengths.sum()),
        )

    def merge(self, parts: Sequence[SearchedPoses]) -> DockedLigands:
        """Return the part of ligands from the parts of all spans of their poses."""
        span, found = parts[-1].span, Poses.joined([part.poses for part in parts]).winners()
        return self.finish(self.load(span), found)


class DockSession(Session[DockSpan, DockPart]):
    """Docking on one device, which holds the field."""

    def __init__(self, workload: DockWorkload, place: Place) -> None:
        self.workload = workload
        self.steps: tuple[Step, ...] = (SearchStep(searcher=_open_searcher(place, workload)),)

    def load(self, span: DockSpan) -> DockChunk:
        return DockChunk(span=span, loaded=self.workload.load(span))

    def compute(self, chunk: DockChunk) -> Poses:
        found = Poses.none()
        for step in self.steps if len(chunk.loaded) else ():
            found = step(chunk, found)
        return found

    def need(self, chunk: DockChunk) -> int:
        """Return the bytes of the atoms; scores take what memory is left."""
        return ATOM_BYTES * len(chunk.loaded.bodies.positions)

    def halves(self, chunk: DockChunk) -> tuple[DockChunk, ...]:
        """Return the chunk as two with half of the records each; nothing for one record."""
        loaded = chunk.loaded
        middle = len(loaded) // 2
        if not middle:
            return ()
        return replace(chunk, loaded=loaded[:middle]), replace(chunk, loaded=loaded[middle:])

    def joined(
        self, chunk: DockChunk, halves: Sequence[DockChunk], computed: Sequence[Poses]
    ) -> Poses:
        """Return the poses of a chunk from those of its halves."""
        first, second = computed
        return Poses.joined([first, second.moved(len(halves[0].loaded.bodies))])

    def finish(self, chunk: DockChunk, found: Poses) -> DockPart:
        if self.workload.is_whole(chunk.span):
            return self.workload.finish(chunk.loaded, found)
        return SearchedPoses(span=chunk.span, poses=found)


def _open_searcher(place: Place, workload: DockWorkload) -> PoseFinder:
    """Return the backend of a device, which alone is imported: CuPy is not on every machine."""
    field, search = workload.field, workload.search
    if place.gpu is None:
        from multigpu.kernels.rotation import cpu

        return cpu.PoseSearcher(field, search)
    import cupy

    from multigpu.kernels.rotation import cuda

    with cupy.cuda.Device(place.gpu):
        return cuda.PoseSearcher(field, search, workload.scores)

"""Docking as a worker does it: spans of ligands in, their best poses out.

A span has whole ligands with all their poses. Where one ligand takes long, because the search is so
fine, its poses are cut into spans instead. Their results are merged: the highest score wins, then
the lowest index.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place, Session
from multigpu.formats.molecules.poses import ReferencePose
from multigpu.kernels.rotation.thinning import thin
from multigpu.kernels.rotation.types import (
    BandFinder,
    Field,
    Ligands,
    Placements,
    PoseFinder,
    PoseRefiner,
    Poses,
    PoseSearch,
)
from multigpu.run.fitness import Expected, require
from multigpu.workloads.dock.ligands import LigandLoader, LoadedLigands, lacks_hydrogens
from multigpu.workloads.dock.parts import DockedLigands, DockPart, SearchedPoses
from multigpu.workloads.dock.plan import DockSpan
from multigpu.workloads.dock.poses import DockedPoses
from multigpu.workloads.dock.search import WholeBox

ATOM_BYTES = 128  # of an atom on a device: its position, channels and weights


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DockChunk:
    """A span, its loaded ligands, and what is searched of them: all, or some after each other."""

    span: DockSpan
    loaded: LoadedLigands
    bodies: Ligands
    ligand_of: NDArray[np.int64]  # int64[bodies], from 0, ascending: the ligand of each body


@dataclass(kw_only=True, eq=False)
class DockWorkload:
    """Everything that a worker needs to know of a docking job."""

    key: str
    loader: LigandLoader  # of its ligands
    field: Field  # the pocket as the kernels take it
    search: PoseSearch  # the poses that are tried
    whole: WholeBox | None = None  # what becomes of them where they fill a box, else None
    reference: ReferencePose | None = None  # what poses are compared with
    report: int = 0  # best ligands of every part that are kept for a report
    expected: Expected | None = None  # what workers elsewhere must have; None: there are none

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
        docked = DockedPoses(workload=self, loaded=loaded, found=found)
        rows, fmt, firsts = docked.rows, self.loader.pose_format, loaded.firsts.tolist()
        molecules = [loaded.molecules[i] for i in firsts]
        return DockedLigands(
            # The texts have the coordinates.
            rows=replace(rows, coordinates=np.empty((0, 3))) if fmt else rows,
            pose_texts=docked.texts(fmt) if fmt else [],
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
        field, search, whole = workload.field, workload.search, workload.whole
        self._search: Callable[[DockChunk], Poses]
        self._refiner: PoseRefiner | None = None
        if whole is None:
            finder: PoseFinder = _kernels(place, "").PoseSearcher(field, search)
            self._search = lambda chunk: finder.best(chunk.bodies, range(*chunk.span.poses))
        else:
            boxes = _kernels(place, "whole_box.")
            band: BandFinder = boxes.BandSearcher(field, search, whole.width)
            self._search = lambda chunk: band.best(chunk.bodies, chunk.ligand_of)
            if whole.refined:
                self._refiner = _kernels(place, "refine.").Refiner(field)

    def load(self, span: DockSpan) -> DockChunk:
        loaded = self.workload.load(span)
        return DockChunk(span=span, loaded=loaded, bodies=loaded.bodies, ligand_of=loaded.ligand_of)

    def compute(self, chunk: DockChunk) -> Placements:
        poses = self._search(chunk) if len(chunk.bodies) else Poses.none()
        found, whole = Placements.of(chunk.bodies, self.workload.search, poses), self.workload.whole
        if self._refiner is None or whole is None or not len(found):
            return found
        refined = self._refiner.refine(chunk.bodies, found)
        return _ranked(chunk, refined, self.workload.search.min_rmsd, whole.top)

    def need(self, chunk: DockChunk) -> int:
        """Return the bytes of the atoms; the plan has room for scores."""
        return ATOM_BYTES * len(chunk.bodies.positions)

    def halves(self, chunk: DockChunk) -> tuple[DockChunk, ...]:
        """Return the chunk as two with half of the ligands each; nothing for one ligand."""
        bodies, ligand_of = chunk.bodies, chunk.ligand_of
        if not len(bodies) or not ligand_of[-1]:
            return ()
        half = (ligand_of[-1] + 1) // 2
        k = int(np.searchsorted(ligand_of, half))
        return (
            replace(chunk, bodies=bodies[:k], ligand_of=ligand_of[:k]),
            replace(chunk, bodies=bodies[k:], ligand_of=ligand_of[k:] - half),
        )

    def joined(
        self, chunk: DockChunk, halves: Sequence[DockChunk], computed: Sequence[Placements]
    ) -> Placements:
        """Return the poses of a chunk from those of its halves."""
        return Placements.joined(computed, [len(half.bodies) for half in halves])

    def finish(self, chunk: DockChunk, found: Placements) -> DockPart:
        if self.workload.is_whole(chunk.span):
            return self.workload.finish(chunk.loaded, found)
        return SearchedPoses(span=chunk.span, poses=Poses(found.ligand, found.pose, found.score))


def _ranked(chunk: DockChunk, found: Placements, min_rmsd: float, top: int) -> Placements:
    """Return the best `top` poses of each ligand that are `min_rmsd` Å apart, best first."""
    ligand = chunk.ligand_of[found.ligand]
    order = np.lexsort((found.pose, found.ligand, -found.score, ligand))
    kept = [
        rows[thin(chunk.bodies, found.take(rows), min_rmsd, top)]
        for rows in np.split(order, np.flatnonzero(np.diff(ligand[order])) + 1)
    ]
    return found.take(np.concatenate(kept))


def _kernels(place: Place, folder: str) -> Any:
    """Return the module of a device: CuPy, which one of them needs, is not on every machine."""
    name = "cpu" if place.gpu is None else "cuda"
    return import_module(f"multigpu.kernels.rotation.{folder}{name}")

"""Docking as a workload: spans of ligands in, their best poses out.

A span has whole ligands and all poses. Where a search is so fine that one ligand takes long, its
poses are cut into spans instead, whose best are merged: the highest score, then the lowest index.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cluster.workload import Place
from kernels.rotation import (
    EulerRotations,
    Field,
    Ligands,
    Poses,
    Search,
    energy_terms,
    placed,
    quaternions,
)
from multigpu.batch import PoseBatch
from multigpu.io.autodock import Atoms, atoms_for
from multigpu.io.inlets import STDIN
from multigpu.io.ligands import LIGANDS, Record, RecordsInFile, with_text
from multigpu.io.molecules import Molecule, MoleculeError, Positions, parse, title
from multigpu.io.poses import SAME, Facts, render, with_remarks
from multigpu.io.scores import Skipped, as_tsv, one_line
from multigpu.io.sources import Source, suffix_of
from multigpu.preflight import Expected, require
from multigpu.workloads.dock_plan import DockSpan


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
    texts     of each docked ligand, in order, its poses in the format asked for
    names     of each docked ligand, and the layout of the file it came from
    outside   float64[ligands]: how far the centroid, or the given centre, is from the grid, Å
    best      the ligands with the highest scores, for a report
    """

    text_bytes: int
    rows: PoseBatch
    lines: bytes
    texts: list[list[bytes]]
    names: list[str]
    layouts: list[str]
    skipped: list[Skipped]
    outside: NDArray[np.float64]
    best: list[Best]


@dataclass(frozen=True, eq=False)
class FoundPart:
    """The best poses in a span of them, to be merged with those of the spans around it."""

    span: DockSpan
    poses: Poses


Part = DockPart | FoundPart
PART_CLASSES = (  # what a journal of a docking run holds
    DockPart, FoundPart, DockSpan, Record, RecordsInFile, Poses, PoseBatch, Skipped, Best,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Entry:
    """A ligand that can be docked.

    index   in the whole input
    text    its record
    parsed  None for plain PDBQT, of which only the columns were read
    """

    index: int
    path: str
    name: str
    layout: str
    text: bytes
    parsed: Molecule | None

    @property
    def molecule(self) -> Molecule:
        return self.parsed or parse(self.text, self.layout)


@dataclass(frozen=True, eq=False)
class Loaded:
    """The ligands of a span, and the same ones as the kernels see them."""

    entries: list[Entry]
    ligands: Ligands
    skipped: list[Skipped]


SEVERAL = 64  # ligands of a span that are worth the time to load what reads them all at once
ATOM_BYTES = 128  # of an atom on a device: its place, channels and weights


class Searcher(Protocol):
    """A backend of `kernels.rotation`."""

    def best(self, ligands: Ligands, span: range | None = None) -> Poses: ...


@dataclass(eq=False)
class DockWorkload:
    """Everything a worker needs to know of a docking job.

    field   the pocket as the kernels see it; types: its maps, () for a plain grid
    fmt     format of the poses' text, `SAME` for that of the ligand; None: no text
    lines   whether the table of scores is text
    report  ligands of every part that are sent back for a report
    expected  of a worker that is not this process
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

    def open(self, place: Place) -> "DockSession":
        require(self.expected, place)
        return DockSession(self, place)

    def name(self, span: DockSpan) -> str:
        first, last = span.records[0], span.records[-1]
        begin = f"{self.sources[first.source].path}, record {first.number}"
        poses = "" if span.whole else f", poses {span.poses[0]} to {span.poses[1]}"
        end = f"{self.sources[last.source].path}, record {last.last}"
        return begin + (f" to {end}" if end != begin else "") + poses

    def correct(self, span: DockSpan, part: Part) -> None:
        """Spans are cut at borders of records: there is nothing to correct."""

    # ---- ligands ------------------------------------------------------------------------------

    def load(self, span: DockSpan) -> Loaded:
        """The ligands of a span; those that cannot be docked are skipped, with the reason."""
        entries: list[Entry] = []
        found: list[Atoms] = []
        skipped: list[Skipped] = []
        records = list(with_text(span.records, self.sources))
        read = zip(records, self._plain(records), strict=True)
        for index, (record, atoms) in enumerate(read, span.first):
            source, name, molecule = self.sources[record.source], self._name(record), None
            if atoms is None:
                try:
                    molecule = self._molecule(record, name)
                    atoms = atoms_for(molecule, self.types)
                except MoleculeError as error:
                    skipped.append(Skipped(source.path, record.number, name, str(error)))
                    continue
            entries.append(Entry(index, source.path, name, source.layout, record.text, molecule))
            found.append(atoms)
        return Loaded(entries, self._ligands(found), skipped)

    def _plain(self, records: Sequence[Record]) -> list[Atoms | None]:
        """The atoms of those that are plain PDBQT and stay so, if they are many."""
        found: list[Atoms | None] = [None] * len(records)
        several = [
            i for i, record in enumerate(records)
            if self.sources[record.source].layout == "pdbqt" and not record.error
        ]  # fmt: skip
        if len(several) >= SEVERAL and self.fmt in (None, SAME, "pdbqt"):
            from multigpu.io import pdbqt

            atoms = pdbqt.read([records[i].text for i in several], self.types)
            for i, each in zip(several, atoms, strict=True):
                found[i] = each
        return found

    def _name(self, record: Record) -> str:
        """What the record says, else the name of its file."""
        source = self.sources[record.source]
        if record.text and (name := one_line(title(record.text, source.layout))):
            return name
        path = source.path
        name = "ligand" if path == STDIN else PurePath(path).name
        if suffix := suffix_of(name, LIGANDS):
            name = name[: name.lower().rindex(suffix)]
        return name if record.number == 1 else f"{name}_{record.number}"

    def _molecule(self, record: Record, name: str) -> Molecule:
        if record.error:
            raise MoleculeError(record.error)
        molecule = parse(record.text, self.sources[record.source].layout)
        if self.fmt not in (None, SAME, molecule.layout):
            render(molecule, name, self.fmt, molecule.positions, {})  # can it be written?
        return molecule

    def _ligands(self, found: Sequence[Atoms]) -> Ligands:
        """As the kernels see them; in maps of AutoGrid, with channels and weights by type."""
        plain = Ligands.plain([atoms.positions for atoms in found])
        if not (self.types and found):
            return plain
        types = np.concatenate([atoms.types for atoms in found])
        charges = np.concatenate([atoms.charges for atoms in found])
        channels, weights = energy_terms(np.maximum(types, 0), charges, len(self.types))
        weights[types < 0] = 0
        return Ligands(plain.positions, plain.offsets, channels, weights)

    # ---- their poses --------------------------------------------------------------------------

    def answer(self, loaded: Loaded, poses: Poses) -> DockPart:
        """Rows, texts and what a report needs of the poses of these ligands."""
        positions = placed(loaded.ligands, self.search, poses)
        rows = self._rows(loaded, poses, positions)
        facts = _facts(rows)
        texts: list[list[bytes]] = [[] for _ in loaded.entries]
        if self.fmt is not None:
            ligands = poses.ligand.tolist()
            entries = [loaded.entries[i] for i in ligands]
            rendered = _texts(entries, positions, facts, self.fmt)
            for ligand, text in zip(ligands, rendered, strict=True):
                texts[ligand].append(text)
        size = sum(len(entry.text) for entry in loaded.entries)
        names = [entry.name for entry in loaded.entries]
        layouts = [entry.layout for entry in loaded.entries]
        best = self._best(loaded, rows, positions, poses, facts)
        return DockPart(
            size, rows, as_tsv(rows) if self.lines else b"", texts, names, layouts,
            loaded.skipped, self._outside(loaded), best,
        )  # fmt: skip

    def _rows(self, loaded: Loaded, poses: Poses, positions: Sequence[Positions]) -> PoseBatch:
        """All about the poses; where their positions are in texts they are not here, too."""
        ligands, search = loaded.ligands, self.search
        entries = [loaded.entries[i] for i in poses.ligand.tolist()]
        here = positions if self.fmt is None else ()
        matrices, shifts = search.placements(poses.pose)
        rotations = poses.pose // search.shifts.count
        rank = np.arange(len(poses)) - np.searchsorted(poses.ligand, poses.ligand) + 1
        return PoseBatch(
            [entry.name for entry in entries],
            [entry.path for entry in entries],
            np.array([entry.index for entry in entries], np.int64),
            rank.astype(np.int32),
            rotations,
            poses.score,
            self._angles(rotations),
            quaternions(matrices) + 0.0,  # no -0.0
            search.targets(ligands)[poses.ligand] + shifts,
            _rmsds(ligands, poses, positions),
            np.diff(ligands.offsets)[poses.ligand].astype(np.int32),
            np.concatenate([np.empty((0, 3)), *here]),
        )

    def _angles(self, rotations: NDArray[np.int64]) -> NDArray[np.float64]:
        if isinstance(self.search.rotations, EulerRotations):
            return self.search.rotations.angles(rotations)
        return np.full((len(rotations), 3), np.nan)

    def _outside(self, loaded: Loaded) -> NDArray[np.float64]:
        field, targets = self.field, self.search.targets(loaded.ligands)
        end = field.origin + field.spacing * (np.array(field.shape) - 1)
        beyond = np.maximum(np.maximum(field.origin - targets, targets - end), 0)
        distances: NDArray[np.float64] = np.sqrt((beyond**2).sum(axis=1))
        return distances

    def _best(
        self, loaded: Loaded, rows: PoseBatch, positions: Sequence[Positions], poses: Poses,
        facts: Sequence[Facts],
    ) -> list[Best]:  # fmt: skip
        first = np.flatnonzero(rows.pose == 1)
        order = first[np.argsort(-rows.score[first], kind="stable")][: self.report]
        found = []
        for row in order.tolist():
            entry = loaded.entries[poses.ligand[row]]
            sdf = render(entry.molecule, entry.name, "sdf", positions[row], facts[row])
            found.append(Best(entry.index, entry.name, float(rows.score[row]), sdf))
        return found

    def merged(self, found: Sequence[FoundPart]) -> DockPart:
        """The part of ligands whose poses were searched in these spans, which are all of them."""
        poses = Poses.joined([part.poses for part in found]).winners()
        return self.answer(self.load(found[-1].span), poses)


def _facts(rows: PoseBatch) -> list[Facts]:
    """What a pose's text says about it."""
    columns = zip(
        rows.score.tolist(), rows.pose.tolist(), rows.rotation.tolist(),
        rows.rmsd_to_input.tolist(), strict=True,
    )  # fmt: skip
    return [
        {
            "score": f"{score:.6f}", "pose": str(pose), "rotation": str(rotation),
            "rmsd_to_input": f"{rmsd:.4f}",
        }
        for score, pose, rotation, rmsd in columns
    ]  # fmt: skip


def _texts(
    entries: Sequence[Entry], positions: Sequence[Positions], facts: Sequence[Facts], fmt: str
) -> Iterator[bytes]:
    """The poses as text; all arguments have one for each."""
    moved = _moved(entries, positions)
    for entry, record, place, said in zip(entries, moved, positions, facts, strict=True):
        if record:
            yield with_remarks(record, entry.name, said)
        else:
            yield render(entry.molecule, entry.name, fmt, place, said)


def _moved(entries: Sequence[Entry], positions: Sequence[Positions]) -> list[bytes]:
    """Plain PDBQT with these positions, all of it at once; empty for what goes one by one."""
    found = [b""] * len(entries)
    plain = [row for row, entry in enumerate(entries) if not entry.parsed]
    if plain:
        from multigpu.io import pdbqt

        texts = pdbqt.moved([entries[i].text for i in plain], [positions[i] for i in plain])
        for row, text in zip(plain, texts, strict=True):
            found[row] = text
    return found


def _rmsds(ligands: Ligands, poses: Poses, positions: Sequence[Positions]) -> Positions:
    """float64[k], Å: from where each pose's ligand was."""
    if not positions:
        return np.empty(0)
    begins = ligands.offsets[poses.ligand]
    before = [ligands.positions[a : a + len(b)] for a, b in zip(begins, positions, strict=True)]
    squares = ((np.concatenate(before) - np.concatenate(positions)) ** 2).sum(axis=1)
    borders = np.cumsum([0, *map(len, positions)])
    sums = np.array([np.add.reduce(squares[a:b]) for a, b in pairwise(borders.tolist())])
    distances: NDArray[np.float64] = np.sqrt(sums / np.diff(borders))
    return distances


class DockSession:
    """Docking on one worker: the field on its device."""

    def __init__(self, workload: DockWorkload, place: Place) -> None:
        self.workload = workload
        self.searcher = _searcher(place, workload.field, workload.search)

    def load(self, span: DockSpan) -> tuple[DockSpan, Loaded]:
        return span, self.workload.load(span)

    def compute(self, loaded: tuple[DockSpan, Loaded]) -> Poses:
        span, ligands = loaded[0], loaded[1].ligands
        return self.searcher.best(ligands, range(*span.poses)) if len(ligands) else Poses.none()

    def need(self, loaded: tuple[DockSpan, Loaded]) -> int:
        """The atoms; the searcher holds as many scores as there is room for."""
        return ATOM_BYTES * len(loaded[1].ligands.positions)

    def halves(self, loaded: tuple[DockSpan, Loaded]) -> tuple[tuple[DockSpan, Loaded], ...]:
        """The first ligands, and the others."""
        span, whole = loaded
        middle = len(whole.ligands) // 2
        if not middle:
            return ()
        return tuple(
            (span, Loaded(whole.entries[part], whole.ligands[part], []))
            for part in (slice(middle), slice(middle, None))
        )

    def joined(
        self, loaded: tuple[DockSpan, Loaded], halves: Sequence[tuple[DockSpan, Loaded]],
        computed: Sequence[Poses],
    ) -> Poses:  # fmt: skip
        (_, first), _ = halves
        return Poses.joined([computed[0], computed[1].moved(len(first.ligands))])

    def finish(self, loaded: tuple[DockSpan, Loaded], poses: Poses) -> Part:
        span, ligands = loaded
        return self.workload.answer(ligands, poses) if span.whole else FoundPart(span, poses)

    def close(self) -> None:
        """The field goes with the session."""


def _searcher(place: Place, field: Field, search: Search) -> Searcher:
    searcher: Searcher
    if place.gpu is None:
        from kernels.rotation import cpu

        searcher = cpu.Searcher(field, search)
        return searcher
    import cupy

    from kernels.rotation import cuda

    with cupy.cuda.Device(place.gpu):
        searcher = cuda.Searcher(field, search)
        return searcher

"""Records of ligands to what a search takes: plain ones all at once, others one by one."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.dock.output.error_table import Skipped, one_line
from multigpu.dock.output.pose_files import MODELS
from multigpu.formats.molecules.autodock import Atoms, atoms_for
from multigpu.formats.molecules.ligand_checks import FLAT, is_drawn, lacks_hydrogens
from multigpu.formats.molecules.ligands import LIGANDS, Records
from multigpu.formats.molecules.molecules import Molecule, MoleculeError, Positions, parse, title
from multigpu.formats.molecules.poses import MOST_IN_PDB, MOST_IN_V2000, SAME, render
from multigpu.formats.storage.inlets import STDIN
from multigpu.formats.storage.sources import Source, suffix_of
from multigpu.formats.tables.texts import Texts, are_several, speakable
from multigpu.kernels.rotation import Ligands, Search, energy_terms

if TYPE_CHECKING:
    from multigpu.formats.molecules.plain import Plain

Indices = NDArray[np.int64]
NO_ROOM = (
    "its poses may reach {:,.0f} Å from the origin, and their coordinates fit up to {:,.0f} Å:"
    " move it with --center, or choose .xyz"
)


@dataclass(frozen=True, eq=False)
class Loaded:
    """Ligands that can be docked, and what was skipped.

    ligands  as the kernels see them
    index    int64[n]: of each in the whole input
    sources  of each
    names    of each
    texts    the record of each
    named    bool[n]: whether a plain record says its name, if an empty one
    parsed   the others, which are written one by one, by their number here
    bare     bool[n]: whether it lacks hydrogens
    """

    ligands: Ligands
    index: Indices
    sources: list[Source]
    names: list[str]
    texts: Texts
    named: NDArray[np.bool_]
    parsed: Mapping[int, Molecule]
    skipped: list[Skipped]
    bare: NDArray[np.bool_]

    def __getitem__(self, span: slice) -> "Loaded":
        """Consecutive ones; those that were skipped are in none."""
        inside = range(*span.indices(len(self.names)))
        parsed = {i - inside.start: each for i, each in self.parsed.items() if i in inside}
        return Loaded(
            self.ligands[span], self.index[span], self.sources[span], self.names[span],
            self.texts.take(span), self.named[span], parsed, [], self.bare[span],
        )  # fmt: skip

    def molecule(self, i: int) -> Molecule:
        return self.parsed.get(i) or parse(self.texts[i], self.sources[i].layout)


class _Read(NamedTuple):
    """Of all records at once: atoms and names of those that need not be read alone.

    named, plain  bool[n]: see `Loaded`; whether the record is written together with others
    bare          bool[n]: as of `Loaded`
    """

    atoms: Atoms
    names: list[str]
    named: NDArray[np.bool_]
    plain: NDArray[np.bool_]
    bare: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Loader:
    """What ligands are loaded for.

    types   the pocket's maps, () for a plain grid
    fmt     of the poses' text, None: no text
    search  which says where poses may be
    report  whether poses are written for a report, too: as SDF
    flat    whether drawings are docked as they are
    """

    sources: Sequence[Source]
    types: tuple[str, ...]
    fmt: str | None
    search: Search
    report: bool = False
    flat: bool = False

    def load(self, records: Sequence[Records], first: int) -> Loaded:
        """first: index of the first record in the whole input"""
        texts = Texts.joined([each.texts(self.sources) for each in records])
        sources = [self.sources[each.source] for each in records for _ in range(len(each))]
        numbers = [number for each in records for number in range(each.number, each.last + 1)]
        read, errors = self._read_plain(records, texts), _errors(records)
        names = [
            name or _file_name(source, number)
            for name, source, number in zip(read.names, sources, numbers, strict=True)
        ]
        others: dict[int, Atoms] = {}
        parsed: dict[int, Molecule] = {}
        reasons: dict[int, str] = {}
        for i in np.flatnonzero(read.atoms.sizes == 0).tolist():
            layout, text = sources[i].layout, texts[i]
            names[i] = (text and one_line(title(text, layout))) or names[i]
            try:
                molecule = self._molecule(text, layout, names[i], errors.get(i, ""))
                read.bare[i] = lacks_hydrogens(molecule)
                others[i] = atoms_for(molecule, self.types)
                if not read.plain[i]:
                    parsed[i] = molecule
            except MoleculeError as error:
                reasons[i] = str(error)
        atoms = _merged(read.atoms, others)
        bad = dict(self._drawn(atoms, sources, texts)) | dict(self._beyond(atoms, sources))
        atoms, reasons = _merged(atoms, dict.fromkeys(sorted(bad), _no_atoms(1))), reasons | bad
        docked = np.flatnonzero(atoms.sizes)
        which = docked.tolist()
        return Loaded(
            self._ligands(atoms, docked),
            docked + first,
            [sources[i] for i in which],
            [names[i] for i in which],
            texts.take(docked),
            read.named[docked],
            {k: parsed[i] for k, i in enumerate(which) if i in parsed},
            [
                Skipped(sources[i].path, numbers[i], names[i], reason)
                for i, reason in sorted(reasons.items())
            ],
            read.bare[docked],
        )

    def _read_plain(self, records: Sequence[Records], texts: Texts) -> "_Read":
        """What is plain and stays so, if it is much."""
        layout = self._layout(records[0])
        wanted = np.repeat(
            [self._layout(each) == layout and not each.error for each in records],
            [len(each) for each in records],
        )
        found = None
        if self.fmt in (None, SAME, layout) and are_several(wanted.sum()):
            found = self._plain(layout, texts, wanted)
        if found is None:
            nothing = np.zeros(len(texts), np.bool_)
            return _Read(_no_atoms(len(texts)), [""] * len(texts), nothing, nothing, nothing.copy())
        names = [one_line(each.decode("utf-8", "replace")) for each in _compact(found.names)]
        untyped = layout == "sdf" and self.types
        atoms = _no_atoms(len(texts)) if untyped else found.atoms
        return _Read(atoms, names, found.named, found.atoms.sizes > 0, found.bare)

    def _plain(self, layout: str, texts: Texts, wanted: NDArray[np.bool_]) -> "Plain | None":
        if layout == "pdbqt":
            from multigpu.formats.molecules import pdbqt

            return pdbqt.read(texts, wanted, self.types)
        if layout == "sdf":
            from multigpu.formats.molecules import sdf

            return sdf.read(texts, wanted)
        return None

    def _layout(self, records: Records) -> str:
        return self.sources[records.source].layout

    def _molecule(self, text: bytes, layout: str, name: str, error: str) -> Molecule:
        if error:
            raise MoleculeError(error)
        molecule = parse(text, layout)
        if self.fmt not in (None, SAME, molecule.layout):
            middle = molecule.positions.mean(axis=0)
            render(molecule, name, self.fmt, molecule.positions - middle, {})  # can it be written?
        return molecule

    def _drawn(
        self, atoms: Atoms, sources: Sequence[Source], texts: Texts
    ) -> Iterator[tuple[int, str]]:
        """The ligands that are drawings, and why they are not docked."""
        if self.flat:
            return
        docked = np.flatnonzero(atoms.sizes)
        if not len(docked):
            return
        z, begins = np.ascontiguousarray(atoms.positions[:, 2]), atoms.borders[docked]
        level = docked[np.minimum.reduceat(z, begins) == np.maximum.reduceat(z, begins)]
        for i in level.tolist():
            places = atoms[i : i + 1].positions
            if is_drawn(texts[i], sources[i].layout, places):
                yield i, FLAT.format(places[0, 2])

    def _beyond(self, atoms: Atoms, sources: Sequence[Source]) -> Iterator[tuple[int, str]]:
        """The ligands with poses so far out that their columns have no room for them, and why."""
        if self._farthest(atoms.positions) <= MOST_IN_PDB:
            return
        for i in np.flatnonzero(atoms.sizes).tolist():
            room = self._room(sources[i].layout)
            if (reach := self._reach(atoms[i : i + 1].positions)) > room:
                yield i, NO_ROOM.format(reach, room)

    def _farthest(self, places: Positions) -> float:
        """No pose of any ligand within these reaches farther: a ligand is as large as all of them
        at most. It spares looking at each."""
        most = max(places.max(initial=0), -places.min(initial=0))
        target = max([most, *map(abs, self.search.center or ())])
        return float(target + 2 * math.sqrt(3) * most + self.search.shifts.radius)

    def _reach(self, places: Positions) -> float:
        """How far from the origin an atom of these may come along an axis, Å."""
        middle = places.mean(axis=0)
        target = middle if self.search.center is None else np.array(self.search.center)
        radius = np.sqrt(((places - middle) ** 2).sum(axis=1)).max()
        return float(np.abs(target).max() + radius + self.search.shifts.radius)

    def _room(self, layout: str) -> float:
        """How far that may be for the columns it is written in."""
        fmt = layout if self.fmt == SAME else self.fmt
        room = MOST_IN_PDB if fmt in MODELS else math.inf
        is_sdf = layout == "sdf" and (fmt == "sdf" or self.report)
        return min(room, MOST_IN_V2000) if is_sdf else room

    def _ligands(self, atoms: Atoms, docked: Indices) -> Ligands:
        """As the kernels see them; in maps of AutoGrid, with channels and weights by type."""
        offsets = np.zeros(len(docked) + 1, np.int64)
        np.cumsum(atoms.sizes[docked], out=offsets[1:])
        if not self.types:
            channels = np.zeros((len(atoms.types), 1), np.int32)
            return Ligands(atoms.positions, offsets, channels, np.ones(channels.shape))
        types = np.maximum(atoms.types, 0)
        channels, weights = energy_terms(types, atoms.charges, len(self.types))
        weights[atoms.types < 0] = 0
        return Ligands(atoms.positions, offsets, channels, weights)


def _compact(names: Texts) -> list[bytes]:
    """They are few of the letters around them."""
    from multigpu.formats.tables.columns import glued

    return glued(names).each()


def _no_atoms(ligands: int) -> Atoms:
    none = np.empty(0)
    return Atoms(np.empty((0, 3)), none.astype(np.int32), none, np.zeros(ligands, np.int64))


def _errors(records: Sequence[Records]) -> dict[int, str]:
    """What is wrong with sources, by the number of the record that says so."""
    begins = accumulate(map(len, records), initial=0)
    return {i: each.error for i, each in zip(begins, records, strict=False) if each.error}


def _merged(plain: Atoms, others: Mapping[int, Atoms]) -> Atoms:
    """Those of the others in their places, where `plain` has none."""
    parts, begin = [], 0
    for i, each in others.items():
        parts += [plain[begin:i], each]
        begin = i + 1
    return Atoms.joined([*parts, plain[begin:]])


def _file_name(source: Source, number: int) -> str:
    """What a record is called that says no name."""
    name = "ligand" if source.path == STDIN else one_line(speakable(PurePath(source.path).name))
    if suffix := suffix_of(name, LIGANDS):
        name = name[: name.lower().rindex(suffix)]
    return name if number == 1 else f"{name}_{number}"

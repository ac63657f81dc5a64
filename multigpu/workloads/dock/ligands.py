"""Records of ligands to what a search takes."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, printable
from multigpu.formats.molecules.conformers import Conformers, make_conformers
from multigpu.formats.molecules.elements import HEAVY_HYDROGEN, is_heavy
from multigpu.formats.molecules.ligands import LIGANDS, MOLECULES, LigandRecords, read_records
from multigpu.formats.molecules.molecule import Molecule, MoleculeError, Positions
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import (
    FORMATS,
    largest_fragment,
    parse,
)
from multigpu.formats.molecules.scoring import AtomColumns, atom_columns, score_terms
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.names import name_problem
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.formats.storage.sources import Source, inspect_source
from multigpu.formats.storage.stored_streams import STDIN
from multigpu.formats.tables.texts import Texts, replace_undecodable
from multigpu.kernels.rotation import Ligands
from multigpu.workloads.dock.grouping import EACH_ALONE, Grouping
from multigpu.workloads.dock.options import DockOptions
from multigpu.workloads.dock.parts import Skipped
from multigpu.workloads.dock.rows import one_line

Indices = NDArray[np.int64]
RECEPTOR_ATOMS = 1_000  # and more are no ligand's
LARGE = "it has {:,} atoms: is it a receptor?"
RECEPTOR = f"{LARGE} {option('receptor')} makes maps of one"
FLAT = (
    "all its atoms have z = {:g}, so it is drawn in two dimensions: make 3D coordinates first, as"
    f" with `obabel IN -O OUT --gen3d`, or take it as it is with {option('allow_flat')}"
)


FRAGMENTS = "{} of its {} atoms are in other fragments"
STRANGER = (
    "it is no conformer of record {}, whose title or SMILES it has: their atoms differ in number,"
    " order or type; give it a title of its own"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedLigands:
    """Records of ligands that can be docked, their bodies, and what was skipped.

    A record is a body: a rigid arrangement of atoms. A ligand has one, or several: conformers.

    index            int64[records]: of each in the whole input
    sources, names   of each record
    molecules        of each record
    bodies           of the records, as the kernels see them
    ligand_of        int64[records]: the ligand of each, 0, 0, 1, … for instance
    heavy            int64[records]: atoms that are no hydrogen
    strains          float64[records], kcal/mol, of conformers that were made here, else NaN
    skipped          records that cannot be docked
    are_made         whether their places were made here
    text_bytes       of all records that were read
    """

    index: Indices
    sources: list[Source]
    names: list[str]
    molecules: list[Molecule]
    bodies: Ligands
    ligand_of: Indices
    heavy: Indices
    strains: NDArray[np.float64]
    skipped: list[Skipped]
    are_made: bool
    text_bytes: int

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.names)

    @property
    def firsts(self) -> Indices:
        """int64[ligands]: the first record of each."""
        return np.flatnonzero(np.diff(self.ligand_of, prepend=-1))


@dataclass(kw_only=True, eq=False)
class _SpanRecords:
    """The records of a span while they are read.

    index       int64[n]: of each in the whole input
    ligand      int64[n]: which of them are one ligand
    parts       bool[n]: whether atoms were left out of conformers
    strains     float64[n], kcal/mol: of conformers
    reasons     why records are skipped, by their number here
    names       of each, of its file where it says none
    atoms       of all; none of a record that is not read yet, or is skipped
    molecules   of records that were read, by their number here
    last        the last molecule that was read, and its atoms: the next may be its conformer
    """

    index: Indices
    ligand: Indices
    sources: list[Source]
    numbers: list[int]
    texts: Texts
    parts: NDArray[np.bool_]
    strains: NDArray[np.float64]
    reasons: dict[int, str]
    names: list[str] = field(default_factory=list)
    atoms: AtomColumns = field(default_factory=partial(AtomColumns.empty, 0))
    molecules: dict[int, Molecule] = field(default_factory=dict)
    last: tuple[Molecule, AtomColumns] | None = None

    def skip(self, reasons: Mapping[int, str]) -> None:
        """Skip records for these reasons."""
        self.atoms = self.atoms.replace(dict.fromkeys(sorted(reasons), AtomColumns.empty(1)))
        self.reasons |= reasons


@dataclass(frozen=True, kw_only=True, eq=False)
class LigandLoader:
    """Reader of the ligands of a job.

    types        atom types of the pocket's maps, () for a plain grid
    grouping     which records are one ligand
    pose_format  of the poses' text; None: no text
    """

    sources: Sequence[Source]
    types: tuple[str, ...]
    options: DockOptions = field(default_factory=DockOptions)
    grouping: Grouping = EACH_ALONE
    pose_format: str | None = None

    def load(self, records: Sequence[LigandRecords], first: int) -> LoadedLigands:
        """Return the ligands of records. first: index of the first record in the whole input."""
        batch = self._open(records, first)
        text_bytes = int(batch.texts.lengths.sum())
        if self.options.conformers:
            batch = self._make_conformers(batch)
        each = [AtomColumns.empty(0)]
        for i, (source, number) in enumerate(zip(batch.sources, batch.numbers, strict=True)):
            text = batch.texts[i]
            said = FORMATS[source.layout].read_name(text) if text else ""
            batch.names.append(one_line(said) or _file_name(source, number))
            atoms = AtomColumns.empty(1)
            try:
                if i not in batch.reasons:
                    atoms = self._read_one(batch, i)
            except MoleculeError as error:
                batch.reasons[i] = f"{error}"
            each.append(atoms)
        batch.atoms = AtomColumns.joined(each)
        batch.skip(dict(self._unfit(batch)))
        batch.skip(dict(_strangers(batch)))
        docked = np.flatnonzero(batch.atoms.sizes)
        ligand_of = np.unique(batch.ligand[docked], return_inverse=True)[1]
        firsts = docked[np.searchsorted(ligand_of, ligand_of)]
        return LoadedLigands(
            index=batch.index[docked],
            sources=[batch.sources[i] for i in docked.tolist()],
            names=[batch.names[i] for i in firsts.tolist()],
            molecules=[batch.molecules[i] for i in docked.tolist()],
            bodies=self._bodies(batch.atoms, docked),
            ligand_of=ligand_of,
            heavy=np.array(
                [sum(map(is_heavy, batch.molecules[i].elements)) for i in docked.tolist()], np.int64
            ),
            strains=batch.strains[docked],
            skipped=[
                Skipped(batch.sources[i].path, batch.numbers[i], batch.names[i], batch.reasons[i])
                for i in sorted(_first_skipped(batch))
            ],
            are_made=bool(self.options.conformers),
            text_bytes=text_bytes,
        )

    # ---- reading ------------------------------------------------------------------------------

    def _open(self, records: Sequence[LigandRecords], first: int) -> _SpanRecords:
        """Return the records before any of them is read."""
        texts = Texts.joined([each.texts for each in records])
        sources = [self.sources[each.source] for each in records for _ in range(len(each))]
        errors = [each.error for each in records for _ in range(len(each))]
        keys = (key for each in records for key in self.grouping.keys(each))
        return _SpanRecords(
            index=np.arange(first, first + len(texts)),
            ligand=self.grouping.number([*keys]),
            sources=sources,
            numbers=[n for each in records for n in range(each.number, each.last + 1)],
            texts=texts,
            parts=np.zeros(len(texts), np.bool_),
            strains=np.full(len(texts), np.nan),
            reasons={i: error for i, error in enumerate(errors) if error},
        )

    def _make_conformers(self, batch: _SpanRecords) -> _SpanRecords:
        """Return the conformers of each record, in SDF, or the record where it has none."""
        made = list(_threads().map(partial(self._conformers_of, batch), range(len(batch.texts))))
        of = np.repeat(np.arange(len(made)), [len(each.records) for each in made])
        whose = of.tolist()
        return _SpanRecords(
            index=batch.index[of],
            ligand=of,
            sources=[
                batch.sources[i] if made[i].error else replace(batch.sources[i], layout=SDF.name)
                for i in whose
            ],
            numbers=[batch.numbers[i] for i in whose],
            texts=Texts.of([text for each in made for text in each.records]),
            parts=np.array([made[i].left > 0 for i in whose], np.bool_),
            strains=np.concatenate([each.strains for each in made]),
            reasons={k: made[i].error for k, i in enumerate(whose) if made[i].error},
        )

    def _conformers_of(self, batch: _SpanRecords, i: int) -> Conformers:
        """Return the conformers of a record; the record itself where it has none."""
        text = batch.texts[i]
        try:
            if i in batch.reasons:
                raise MoleculeError(batch.reasons[i])
            made = make_conformers(text, batch.sources[i].layout, self.options.conformers or 0)
            if made.left and self.options.fragments == "skip":
                raise MoleculeError(FRAGMENTS.format(made.left, made.left + made.atoms))
        except MoleculeError as problem:
            return Conformers(records=[text], strains=[np.nan], error=f"{problem}")
        return made

    def _read_one(self, batch: _SpanRecords, i: int) -> AtomColumns:
        """Return the atoms of a record. Raises MoleculeError."""
        layout = batch.sources[i].layout
        whole = parse(batch.texts[i], layout)
        if self.types and len(whole.rows) > RECEPTOR_ATOMS:
            raise MoleculeError(RECEPTOR.format(len(whole.rows)))
        molecule = largest_fragment(whole)
        if molecule is not whole and self.options.fragments == "skip":
            left = len(whole.rows) - len(molecule.rows)
            raise MoleculeError(FRAGMENTS.format(left, len(whole.rows)))
        if self.pose_format not in (None, layout):
            # Raises MoleculeError where poses cannot be written in the format asked for.
            middle = molecule.positions.mean(axis=0)
            render(molecule, batch.names[i], self.pose_format, molecule.positions - middle, {})
        if batch.last and molecule.is_conformer_of(batch.last[0]):
            atoms = replace(batch.last[1], positions=molecule.positions)
        else:
            atoms = atom_columns(molecule, self.types)
        batch.last = molecule, atoms
        is_part = molecule.is_part or bool(batch.parts[i])
        batch.molecules[i] = replace(molecule, is_part=is_part)
        return atoms

    # ---- what is not docked -------------------------------------------------------------------

    def _unfit(self, batch: _SpanRecords) -> Iterator[tuple[int, str]]:
        """Yield the drawings, receptors and names that are refused, and why."""
        docked = np.flatnonzero(batch.atoms.sizes)
        if len(docked) and not self.options.allow_flat:
            z = np.ascontiguousarray(batch.atoms.positions[:, 2])
            begins = batch.atoms.borders[docked]
            level = docked[np.minimum.reduceat(z, begins) == np.maximum.reduceat(z, begins)]
            for i in level.tolist():
                places = batch.atoms[i : i + 1].positions
                if is_drawn(batch.texts[i], batch.sources[i].layout, places):
                    yield i, FLAT.format(places[0, 2])
        for i in np.flatnonzero(batch.atoms.sizes > RECEPTOR_ATOMS).tolist() if self.types else ():
            yield i, RECEPTOR.format(batch.atoms.sizes[i])
        for i, name in enumerate(batch.names):
            if problem := name_problem(name):
                batch.names[i] = printable(name)
                yield i, batch.reasons.get(i, problem)

    def _bodies(self, atoms: AtomColumns, docked: Indices) -> Ligands:
        """Return the body of each record."""
        offsets = np.zeros(len(docked) + 1, np.int64)
        np.cumsum(atoms.sizes[docked], out=offsets[1:])
        return Ligands(atoms.positions, offsets, *score_terms(atoms, self.types))


def _first_skipped(batch: _SpanRecords) -> Iterable[int]:
    """Return which records are skipped; of conformers that were made of one the first."""
    return {int(batch.index[i]): i for i in sorted(batch.reasons, reverse=True)}.values()


def _strangers(batch: _SpanRecords) -> Iterator[tuple[int, str]]:
    """Yield the records with other atoms than the first of their ligand, and why they are skipped.

    Conformers differ in places and charges only.
    """
    docked = np.flatnonzero(batch.atoms.sizes)
    firsts = docked[np.searchsorted(batch.ligand[docked], batch.ligand[docked])]
    later = docked != firsts
    for i, first in zip(docked[later].tolist(), firsts[later].tolist(), strict=True):
        kinds = batch.atoms[first : first + 1].types, batch.atoms[i : i + 1].types
        elements = [batch.molecules[k].elements for k in (first, i)]
        if not (np.array_equal(*kinds) and elements[0] == elements[1]):
            yield i, STRANGER.format(batch.numbers[first])


@cache
def _threads() -> ThreadPoolExecutor:
    """Return the threads of this process that make conformers, one for each core."""
    return ThreadPoolExecutor(len(os.sched_getaffinity(0)), "conformers")


def _file_name(source: Source, number: int) -> str:
    """Return what a record is called that says no name."""
    name = (
        "ligand"
        if source.path == STDIN
        else one_line(replace_undecodable(PurePath(source.path).name))
    )
    if suffix := suffix_of(name, MOLECULES):
        name = name[: name.lower().rindex(suffix)]
    return name if number == 1 else f"{name}_{number}"


# ---- ligands that were not prepared -----------------------------------------------------------


def is_drawn(text: bytes, layout: str, positions: Positions) -> bool:
    """Whether a record holds a drawing instead of coordinates in space.

    All z are the same there. SDF says whether it is 2D or 3D, which decides. Where it does not, and
    in MOL2, PDB and PDBQT, four atoms in such a plane are a drawing: a flat molecule in space lies
    askew, or says that it is 3D. In XYZ they are none: quantum chemistry lays flat molecules there.
    """
    z = positions[:, 2]
    return bool((z == z[0]).all()) and len(z) >= FORMATS[layout].fewest_flat_atoms(text)


def read_first(path: str) -> Molecule:
    """Return the first ligand of a file, which has a place in space. Raises InputError."""
    source = inspect_source(path, LIGANDS)
    first = next(read_records(0, source))[:1]
    loaded = LigandLoader(sources=[source], types=()).load([first], 0)
    for skipped in loaded.skipped:
        raise InputError(path, skipped.reason, "record 1")
    molecule = loaded.molecules[0]
    if len(molecule.rows) > RECEPTOR_ATOMS:
        raise InputError(path, LARGE.format(len(molecule.rows)), "record 1")
    return largest_fragment(molecule)


def lacks_hydrogens(molecule: Molecule) -> bool:
    """Whether a molecule has carbon and no hydrogen: nearly always they were left out.

    PDBQT has only polar ones, which a molecule need not have.
    """
    if molecule.format.has_polar_hydrogens_only:
        return False
    elements = set(molecule.elements)
    return "C" in elements and elements.isdisjoint({"H", *HEAVY_HYDROGEN})

"""Records of ligands to what a search takes."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, count
from pathlib import PurePath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, printable
from multigpu.formats.molecules.conformers import make_conformers
from multigpu.formats.molecules.elements import HEAVY_HYDROGEN
from multigpu.formats.molecules.ligands import LIGANDS, MOLECULES, LigandRecords, read_records
from multigpu.formats.molecules.molecule import Molecule, MoleculeError, Positions
from multigpu.formats.molecules.pdbqt import PDBQT
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, largest_fragment, parse
from multigpu.formats.molecules.regular_pdbqt import RegularRecord, read_regular
from multigpu.formats.molecules.scoring import NO_TERMS, AtomTerms, atom_terms, scoring_of
from multigpu.formats.molecules.sdf import SDF
from multigpu.formats.names import name_problem
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.formats.storage.sources import Source, inspect_source
from multigpu.formats.storage.stored_streams import STDIN
from multigpu.formats.tables.texts import replace_undecodable
from multigpu.kernels.rotation.types import Ligands
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
    """

    index: Indices  # int64[records]: of each in the whole input
    sources: list[Source]  # of each record
    names: list[str]  # of each record
    molecules: list[Molecule | RegularRecord]  # of each record, or what stands for a regular one
    bodies: Ligands  # of the records, as the kernels see them
    ligand_of: Indices  # int64[records]: the ligand of each, 0, 0, 1, … for instance
    strains: NDArray[np.float64]  # float64[records], kcal/mol: of conformers made here, else NaN
    skipped: list[Skipped]  # records that cannot be docked
    text_bytes: int  # of all records that were read

    def __len__(self) -> int:
        return len(self.names)

    @property
    def firsts(self) -> Indices:
        """int64[ligands]: the first record of each."""
        return np.flatnonzero(np.diff(self.ligand_of, prepend=-1))

    def molecule(self, record: int) -> Molecule:
        found = self.molecules[record]
        return found.molecule if isinstance(found, RegularRecord) else found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Record:
    """A record of a span before it is read."""

    index: int  # in the whole input
    ligand: int  # which records are one ligand
    source: Source
    number: int  # in its file, from 1
    text: bytes
    is_part: bool = False  # whether atoms were left out of a conformer
    strain: float = np.nan  # kcal/mol, of a conformer
    error: str = ""  # why it cannot be docked, "" where it may

    @property
    def name(self) -> str:
        """Name in the record, else of its file."""
        said = FORMATS[self.source.layout].read_name(self.text) if self.text else ""
        return one_line(said) or _file_name(self.source, self.number)


class _Read(NamedTuple):
    """A record that was read, and what its atoms score."""

    record: _Record
    name: str
    molecule: Molecule | RegularRecord
    terms: AtomTerms


@dataclass(frozen=True, kw_only=True, eq=False)
class LigandLoader:
    """Reader of the ligands of a job."""

    sources: Sequence[Source]
    types: tuple[str, ...]  # atom types of the pocket's maps, () for a plain grid
    options: DockOptions = field(default_factory=DockOptions)
    grouping: Grouping = EACH_ALONE  # which records are one ligand
    pose_format: str | None = None  # of the poses' text; None: no text

    def load(self, records: Sequence[LigandRecords], first: int) -> LoadedLigands:
        """Return the ligands of records. first: index of the first record in the whole input."""
        opened = self._open(records, first)
        text_bytes = sum(len(each.text) for each in opened)
        if self.options.conformers:
            made = _threads().map(self._conformers_of, opened)
            opened = [each for conformers in made for each in conformers]
        docked: list[_Read] = []
        firsts: dict[int, _Read] = {}  # of each ligand
        skipped: dict[int, Skipped] = {}  # by index; of conformers that were made of one the first
        last: _Read | None = None
        regular = self._read_regular(records, first)
        for record in opened:
            name = record.name
            problem = name_problem(name)
            try:
                if found := regular.get(record.index):
                    last = _Read(record, name, found, found.terms)
                else:
                    last = self._read(record, name, last)
                if problem:
                    raise MoleculeError(problem)
                places = last.molecule.positions
                if not self.options.allow_flat and is_drawn(
                    record.text, record.source.layout, places
                ):
                    raise MoleculeError(FLAT.format(places[0, 2]))
                _check_conformer(last, firsts.setdefault(record.ligand, last))
                docked.append(last)
            except MoleculeError as error:
                shown = printable(name) if problem else name
                reason = Skipped(record.source.path, record.number, shown, f"{error}")
                skipped.setdefault(record.index, reason)
        ligands = np.array([each.record.ligand for each in docked], np.int64)
        return LoadedLigands(
            index=np.array([each.record.index for each in docked], np.int64),
            sources=[each.record.source for each in docked],
            names=[firsts[each.record.ligand].name for each in docked],
            molecules=[each.molecule for each in docked],
            bodies=_bodies_of(docked),
            ligand_of=np.unique(ligands, return_inverse=True)[1],
            strains=np.array([each.record.strain for each in docked], float),
            skipped=[*skipped.values()],
            text_bytes=text_bytes,
        )

    def _open(self, records: Sequence[LigandRecords], first: int) -> list[_Record]:
        """Return the records before any of them is read."""
        keys = [key for some in records for key in self.grouping.keys(some)]
        indices, ligands = count(first), iter(self.grouping.number(keys).tolist())
        return [
            _Record(
                index=next(indices),
                ligand=next(ligands),
                source=self.sources[some.source],
                number=number,
                text=text,
                error=some.error,
            )
            for some in records
            for number, text in enumerate(some.texts.each(), some.number)
        ]

    def _conformers_of(self, record: _Record) -> list[_Record]:
        """Return the conformers of a record, in SDF, or the record where it has none."""
        if record.error:
            return [record]
        try:
            made = make_conformers(record.text, record.source.layout, self.options.conformers or 0)
            if made.left and self.options.fragments == "skip":
                raise MoleculeError(FRAGMENTS.format(made.left, made.left + made.atoms))
        except MoleculeError as problem:
            return [replace(record, error=f"{problem}")]
        record = replace(
            record, source=replace(record.source, layout=SDF.name), is_part=made.left > 0
        )
        each = zip(made.records, made.strains, strict=True)
        return [replace(record, text=text, strain=strain) for text, strain in each]

    def _read_regular(
        self, records: Sequence[LigandRecords], first: int
    ) -> dict[int, RegularRecord]:
        """Return the regular records of PDBQT, by their index, if poses keep that format.

        Vina's types depend on bonds, which only molecules have.
        """
        is_same = self.pose_format in (None, PDBQT.name) and not self.options.conformers
        if not is_same or scoring_of(self.types) == "vina":
            return {}
        begins = accumulate(map(len, records), initial=first)
        return {
            begin + i: record
            for some, begin in zip(records, begins, strict=False)
            if some.layout == PDBQT.name
            for i, record in read_regular(some.text, some.ends, self.types).items()
            if not (record.is_part and self.options.fragments == "skip")
        }

    def _read(self, record: _Record, name: str, last: _Read | None) -> _Read:
        """Return a record and what its atoms score. Raises MoleculeError.

        last: the one that was read before, of which it may be a conformer
        """
        if record.error:
            raise MoleculeError(record.error)
        layout = record.source.layout
        whole = parse(record.text, layout)
        if self.types and len(whole.rows) > RECEPTOR_ATOMS:
            raise MoleculeError(RECEPTOR.format(len(whole.rows)))
        molecule = largest_fragment(whole)
        if molecule is not whole and self.options.fragments == "skip":
            left = len(whole.rows) - len(molecule.rows)
            raise MoleculeError(FRAGMENTS.format(left, len(whole.rows)))
        if self.pose_format not in (None, layout):
            # Raises MoleculeError where poses cannot be written in the format asked for.
            middle = molecule.positions.mean(axis=0)
            render(molecule, name, self.pose_format, molecule.positions - middle, {})
        before = last.molecule if last else None
        if last and isinstance(before, Molecule) and molecule.is_conformer_of(before):
            terms = last.terms
        else:
            terms = atom_terms(molecule, self.types)
        molecule = replace(molecule, is_part=molecule.is_part or record.is_part)
        return _Read(record, name, molecule, terms)


def _bodies_of(docked: Sequence[_Read]) -> Ligands:
    """Return the records as the kernels see them."""
    places = [np.empty((0, 3)), *(each.molecule.positions for each in docked)]
    _, channels, weights = zip(*[each.terms for each in docked] or [NO_TERMS], strict=True)
    offsets = np.cumsum([*map(len, places)])
    return Ligands(
        np.concatenate(places), offsets, np.concatenate(channels), np.concatenate(weights)
    )


def _check_conformer(read: _Read, first: _Read) -> None:
    """Raise MoleculeError for a record with other atoms than the first of its ligand.

    Conformers differ in places and charges only.
    """
    if read is first:
        return
    same_types = np.array_equal(read.terms.types, first.terms.types)
    if not (same_types and read.molecule.elements == first.molecule.elements):
        raise MoleculeError(STRANGER.format(first.record.number))


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
    molecule = loaded.molecule(0)
    if len(molecule.rows) > RECEPTOR_ATOMS:
        raise InputError(path, LARGE.format(len(molecule.rows)), "record 1")
    return largest_fragment(molecule)


def lacks_hydrogens(molecule: Molecule | RegularRecord) -> bool:
    """Whether a molecule has carbon and no hydrogen: nearly always they were left out.

    PDBQT has only polar ones, which a molecule need not have.
    """
    if isinstance(molecule, RegularRecord) or molecule.format.has_polar_hydrogens_only:
        return False
    elements = set(molecule.elements)
    return "C" in elements and elements.isdisjoint({"H", *HEAVY_HYDROGEN})

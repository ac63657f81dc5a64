"""Records of ligands to what a search takes: regular ones in columns, others one by one.

`LigandLoader._read_columns` is the one place where it is decided which way a record goes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import option, printable
from multigpu.formats.molecules.autodock import atom_columns
from multigpu.formats.molecules.columns import AtomColumns, LigandColumns
from multigpu.formats.molecules.elements import HEAVY_HYDROGEN
from multigpu.formats.molecules.ligands import LIGANDS, LigandRecords
from multigpu.formats.molecules.molecule import Molecule, MoleculeError, Positions
from multigpu.formats.molecules.poses import SAME, render
from multigpu.formats.molecules.registry import (
    COLUMN_FORMATS,
    FORMATS,
    largest_fragment,
    parse,
    parse_conformer,
)
from multigpu.formats.names import name_problem
from multigpu.formats.storage.input_paths import suffix_of
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import STDIN
from multigpu.formats.tables.texts import Texts, replace_undecodable
from multigpu.kernels.rotation import Ligands, energy_terms
from multigpu.workloads.dock.options import Fragments
from multigpu.workloads.dock.parts import Skipped
from multigpu.workloads.dock.rows import one_line

Indices = NDArray[np.int64]
FLAT = (
    "all its atoms have z = {:g}, so it is drawn in two dimensions: make 3D coordinates first, as"
    f" with `obabel IN -O OUT --gen3d`, or take it as it is with {option('allow_flat')}"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedLigands:
    """Records of ligands that can be docked, their bodies, and what was skipped.

    A record is a body: a rigid arrangement of atoms. A ligand has one, or several: conformers.

    index            int64[records]: of each in the whole input
    sources, names   of each record
    texts            of each record
    templates        what a pose keeps of the text of each record that is regular
    is_named         bool[records]: whether the template says a name, if an empty one
    molecules        of the records that are not regular, by their number here
    bodies           of the records, as the kernels see them
    ligand_of        int64[records]: the ligand of each, 0, 0, 1, … for instance
    skipped          records that cannot be docked
    """

    index: Indices
    sources: list[Source]
    names: list[str]
    texts: Texts
    templates: Texts
    is_named: NDArray[np.bool_]
    molecules: Mapping[int, Molecule]
    bodies: Ligands
    ligand_of: Indices
    skipped: list[Skipped]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.names)

    def __getitem__(self, span: slice) -> "LoadedLigands":
        """Return consecutive records, without those that were skipped."""
        inside = range(*span.indices(len(self)))
        return LoadedLigands(
            index=self.index[span],
            sources=self.sources[span],
            names=self.names[span],
            texts=self.texts.take(span),
            templates=self.templates.take(span),
            is_named=self.is_named[span],
            molecules={k: self.molecules[i] for k, i in enumerate(inside) if i in self.molecules},
            bodies=self.bodies[span],
            ligand_of=self.ligand_of[span] - self.ligand_of[inside.start : inside.start + 1],
            skipped=[],
        )

    @property
    def firsts(self) -> Indices:
        """int64[ligands]: the first record of each."""
        return np.flatnonzero(np.diff(self.ligand_of, prepend=-1))

    def molecule(self, record: int) -> Molecule:
        """Return a record as an object."""
        return self.molecules.get(record) or parse(self.texts[record], self.sources[record].layout)


@dataclass(kw_only=True, eq=False)
class _SpanRecords:
    """The records of a span while they are read.

    columns     what was read at once
    atoms       of all; none of a record that is not read yet, or is skipped
    molecules   of records that are not regular, by their number here
    reasons     why records are skipped, by their number here
    last        the last molecule that was parsed, and its atoms: the next may be its conformer
    """

    sources: list[Source]
    numbers: list[int]
    names: list[str]
    texts: Texts
    columns: LigandColumns
    atoms: AtomColumns
    molecules: dict[int, Molecule] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    last: tuple[Molecule, AtomColumns] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LigandLoader:
    """Reader of the ligands of a job.

    types        atom types of the pocket's maps, () for a plain grid
    pose_format  of the poses' text, `SAME` for the format of each ligand; None: no text
    allow_flat   whether drawings are docked as they are
    fragments    what is done with a ligand of several: its largest is docked, or it is skipped
    """

    sources: Sequence[Source]
    types: tuple[str, ...]
    pose_format: str | None = None
    allow_flat: bool = False
    fragments: Fragments = "largest"

    def load(self, records: Sequence[LigandRecords], first: int) -> LoadedLigands:
        """Return the ligands of records. first: index of the first record in the whole input."""
        batch = self._read_columns(records)
        errors = [each.error for each in records for _ in range(len(each))]
        alone: dict[int, AtomColumns] = {}
        for i in np.flatnonzero(batch.atoms.sizes == 0).tolist():
            try:
                alone[i] = self._read_alone(batch, i, errors[i])
            except MoleculeError as error:
                batch.reasons[i] = f"{error}"
        batch.atoms = batch.atoms.replace(alone)
        unfit = dict(self._drawings(batch))
        for i, name in enumerate(batch.names):
            if problem := name_problem(name):
                unfit[i], batch.names[i] = batch.reasons.get(i, problem), printable(name)
        batch.atoms = batch.atoms.replace(dict.fromkeys(sorted(unfit), AtomColumns.empty(1)))
        batch.reasons |= unfit
        docked = np.flatnonzero(batch.atoms.sizes)
        return LoadedLigands(
            index=docked + first,
            sources=[batch.sources[i] for i in docked.tolist()],
            names=[batch.names[i] for i in docked.tolist()],
            texts=batch.texts.take(docked),
            templates=batch.columns.bodies.take(docked),
            is_named=batch.columns.is_named[docked],
            molecules={
                k: batch.molecules[i] for k, i in enumerate(docked.tolist()) if i in batch.molecules
            },
            bodies=self._bodies(batch.atoms, docked),
            ligand_of=np.arange(len(docked)),
            skipped=[
                Skipped(batch.sources[i].path, batch.numbers[i], batch.names[i], reason)
                for i, reason in sorted(batch.reasons.items())
            ],
        )

    # ---- reading ------------------------------------------------------------------------------

    def _read_columns(self, records: Sequence[LigandRecords]) -> _SpanRecords:
        """Read the regular records at once, unless poses go to another format.

        Those without atoms, which are not regular, are then read alone.
        """
        texts = Texts.joined([each.texts for each in records])
        sources = [self.sources[each.source] for each in records for _ in range(len(each))]
        numbers = [number for each in records for number in range(each.number, each.last + 1)]
        layout = records[0].layout
        columns = COLUMN_FORMATS.get(layout) if self.pose_format in (None, SAME, layout) else None
        found = columns.read(texts, self.types) if columns else LigandColumns.empty(len(texts))
        names = [one_line(name.decode("utf-8", "replace")) for name in found.names.each()]
        return _SpanRecords(
            sources=sources,
            numbers=numbers,
            names=[
                name or _file_name(source, number)
                for name, source, number in zip(names, sources, numbers, strict=True)
            ],
            texts=texts,
            columns=found,
            atoms=found.atoms,
        )

    def _read_alone(self, batch: _SpanRecords, i: int, error: str) -> AtomColumns:
        """Return the atoms of a record. Raises MoleculeError.

        error: what is wrong with its source
        """
        layout, text = batch.sources[i].layout, batch.texts[i]
        if text:
            batch.names[i] = one_line(FORMATS[layout].read_name(text)) or batch.names[i]
        if error:
            raise MoleculeError(error)
        if batch.last and (like := parse_conformer(batch.last[0], text, layout)):
            batch.molecules[i] = like
            return replace(batch.last[1], positions=like.positions)
        whole = parse(text, layout)
        molecule = largest_fragment(whole)
        if molecule is not whole and self.fragments == "skip":
            left = len(whole.rows) - len(molecule.rows)
            raise MoleculeError(f"{left} of its {len(whole.rows)} atoms are in other fragments")
        if self.pose_format not in (None, SAME, layout):
            # Raises MoleculeError where poses cannot be written in the format asked for.
            middle = molecule.positions.mean(axis=0)
            render(molecule, batch.names[i], self.pose_format, molecule.positions - middle, {})
        atoms = atom_columns(molecule, self.types)
        batch.molecules[i] = molecule
        batch.last = (molecule, atoms) if molecule is whole else None
        return atoms

    # ---- what is not docked -------------------------------------------------------------------

    def _drawings(self, batch: _SpanRecords) -> Iterator[tuple[int, str]]:
        """Yield the ligands that are drawings, and why they are not docked."""
        docked = np.flatnonzero(batch.atoms.sizes)
        if self.allow_flat or not len(docked):
            return
        z = np.ascontiguousarray(batch.atoms.positions[:, 2])
        begins = batch.atoms.borders[docked]
        level = docked[np.minimum.reduceat(z, begins) == np.maximum.reduceat(z, begins)]
        for i in level.tolist():
            places = batch.atoms[i : i + 1].positions
            if is_drawn(batch.texts[i], batch.sources[i].layout, places):
                yield i, FLAT.format(places[0, 2])

    def _bodies(self, atoms: AtomColumns, docked: Indices) -> Ligands:
        """Return the body of each record; for maps with channels and weights by atom type."""
        offsets = np.zeros(len(docked) + 1, np.int64)
        np.cumsum(atoms.sizes[docked], out=offsets[1:])
        if not self.types:
            channels = np.zeros((len(atoms.types), 1), np.int32)
            return Ligands(atoms.positions, offsets, channels, np.ones(channels.shape))
        types = np.maximum(atoms.types, 0)
        channels, weights = energy_terms(types, atoms.charges, len(self.types))
        weights[atoms.types < 0] = 0
        return Ligands(atoms.positions, offsets, channels, weights)


def _file_name(source: Source, number: int) -> str:
    """Return what a record is called that says no name."""
    name = (
        "ligand"
        if source.path == STDIN
        else one_line(replace_undecodable(PurePath(source.path).name))
    )
    if suffix := suffix_of(name, LIGANDS):
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


def lacks_hydrogens(molecule: Molecule) -> bool:
    """Whether a molecule has carbon and no hydrogen: nearly always they were left out.

    PDBQT has only polar ones, which a molecule need not have.
    """
    if molecule.format.has_polar_hydrogens_only:
        return False
    elements = set(molecule.elements)
    return "C" in elements and elements.isdisjoint({"H", *HEAVY_HYDROGEN})

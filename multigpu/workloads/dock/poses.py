"""Rows and texts of the best poses of some ligands."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.molecule import PoseNotes, Positions
from multigpu.formats.molecules.pdb import add_remarks
from multigpu.formats.molecules.poses import drawing_of, render
from multigpu.formats.molecules.regular_pdbqt import RegularRecord, move_regular
from multigpu.kernels.rotation.reference import value
from multigpu.kernels.rotation.rotations import EulerRotations, quaternions
from multigpu.kernels.rotation.types import Placements, atoms_of, placed
from multigpu.workloads.dock.ligands import LoadedLigands
from multigpu.workloads.dock.parts import BestLigand
from multigpu.workloads.dock.rows import NULLABLE, PoseBatch

if TYPE_CHECKING:
    from multigpu.workloads.dock.work import DockWorkload

DRAWN_POSES = 9  # of a ligand in a report, at most


@dataclass(frozen=True, kw_only=True, eq=False)
class DockedPoses:
    """The best poses of loaded ligands."""

    workload: "DockWorkload"  # what they were searched for
    loaded: LoadedLigands
    # of bodies, which are records: ligands in their order, the best pose of each first
    found: Placements

    @cached_property
    def ligand(self) -> NDArray[np.int64]:
        """int64[poses]: the ligand of each."""
        return self.loaded.ligand_of[self.found.ligand]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """int64[poses]: atoms of each."""
        return self.loaded.bodies.sizes[self.found.ligand]

    @cached_property
    def positions(self) -> Positions:
        """float64[atoms, 3], Å: the atoms of all poses, pose after pose."""
        return placed(self.loaded.bodies, self.found)

    @cached_property
    def rows(self) -> PoseBatch:
        found, loaded, record = self.found, self.loaded, self.found.ligand
        search = self.workload.search
        rotations = found.pose // search.shifts.count
        angles = np.full((len(found), 3), np.nan)
        if isinstance(search.rotations, EulerRotations):
            angles = search.rotations.angles(rotations)
        rank = np.arange(len(found)) - np.searchsorted(self.ligand, self.ligand) + 1
        first = loaded.firsts[self.ligand]
        heavy = np.array([each.heavy for each in loaded.molecules], np.int32)
        return PoseBatch(
            ligand=[loaded.names[i] for i in record.tolist()],
            source=[loaded.sources[i].path for i in record.tolist()],
            ligand_index=loaded.index[first],
            conformer=(record - first + 1).astype(np.int32),
            pose=rank.astype(np.int32),
            rotation=rotations,
            score=found.score,
            unrefined=found.unrefined,
            electrostatic=self._electrostatic(),
            angles=angles,
            quaternion=quaternions(found.matrix) + 0.0,  # no -0.0
            place=found.place,
            rmsd_to_input=self._rmsds(),
            rmsd_to_reference=self._rmsds_to_reference(),
            strain=loaded.strains[record],
            atoms=self.sizes.astype(np.int32),
            heavy=heavy[record],
            atoms_outside=self._atoms_outside(),
            coordinates=self.positions,
        )

    def _electrostatic(self) -> NDArray[np.float64]:
        """Return float64[poses], kcal/mol: of each pose; zeros for a grid of scores.

        Of the two channels of a charge, −(desolvation ± electrostatics), half of the difference.
        """
        bodies, field = self.loaded.bodies, self.workload.field
        channels = len(field.values)
        if bodies.channels.shape[1] == 1:
            return np.zeros(len(self.found))
        places = (self.positions - field.origin) / field.spacing
        plus, minus = (value(field, channels - k, places, first=False) for k in (2, 1))
        atoms = atoms_of(bodies, self.found)
        sign = np.where(bodies.channels[atoms, 1] == channels - 2, 1, -1)
        return self._sums(sign * bodies.weights[atoms, 1] * (minus - plus) / 2)

    def _rmsds(self) -> NDArray[np.float64]:
        """Return float64[poses], Å: the distance of each pose from its ligand as it was given."""
        if self.workload.loader.options.conformers:
            return np.full(len(self.found), np.nan)
        original = self.loaded.bodies.positions[atoms_of(self.loaded.bodies, self.found)]
        squares = ((original - self.positions) ** 2).sum(axis=1)
        return np.asarray(np.sqrt(self._sums(squares) / self.sizes))

    def _sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return float64[poses]: the sums over the atoms of each pose."""
        begins = np.cumsum(self.sizes) - self.sizes
        return np.add.reduceat(values, begins) if len(begins) else np.empty(0)

    def _rmsds_to_reference(self) -> NDArray[np.float64]:
        """Return float64[poses], Å; NaN without a reference, and for another molecule."""
        distances = np.full(len(self.found), np.nan)
        if self.workload.reference is None:
            return distances
        for record in np.unique(self.found.ligand).tolist():
            rows = np.flatnonzero(self.found.ligand == record)
            poses = [self._each[row] for row in rows.tolist()]
            distances[rows] = self.workload.reference.rmsds(self.loaded.molecule(record), poses)
        return distances

    def _atoms_outside(self) -> NDArray[np.int32]:
        """Return int32[poses]: how many atoms of each pose are outside of the grid."""
        low, last = self.workload.field.origin, np.array(self.workload.field.shape) - 1
        outside = (self.positions < low) | (
            self.positions > low + self.workload.field.spacing * last
        )
        pose_of = np.repeat(np.arange(len(self.found)), self.sizes)
        counts = np.bincount(pose_of[outside.any(axis=1)], minlength=len(self.found))
        return counts.astype(np.int32)

    def texts(self, fmt: str) -> list[bytes]:
        """Return the poses in a format: of regular records together, of others one by one."""
        records = self.found.ligand.tolist()
        regular = {
            row: each
            for row, record in enumerate(records)
            if isinstance(each := self.loaded.molecules[record], RegularRecord)
        }
        atoms = np.repeat(np.isin(np.arange(len(records)), [*regular]), self.sizes)
        bodies = move_regular([*regular.values()], self.positions[atoms])
        moved = dict(zip(regular, bodies, strict=True))
        return [
            add_remarks(body, name, notes)
            if (body := moved.get(row))
            else render(self.loaded.molecule(record), name, fmt, self._each[row], notes)
            for row, (record, name, notes) in enumerate(
                zip(records, self.rows.ligand, self._notes, strict=True)
            )
        ]

    def best_ligands(self, most: int) -> list[BestLigand]:
        """Return the ligands with the highest scores, best first, each with its best poses."""
        rows = self.rows
        first = np.flatnonzero(rows.pose == 1)
        best = first[np.argsort(-rows.score[first], kind="stable")][:most].tolist()
        return [self._best_ligand(row) for row in best]

    def _best_ligand(self, row: int) -> BestLigand:
        """Return the ligand whose best pose is in a row."""
        poses = np.flatnonzero(self.ligand == self.ligand[row])[:DRAWN_POSES].tolist()
        atoms, elements, bonds = drawing_of(self.loaded.molecule(int(self.found.ligand[row])))
        return BestLigand(
            ligand_index=int(self.rows.ligand_index[row]),
            ligand=self.rows.ligand[row],
            scores=self.rows.score[poses].tolist(),
            elements=elements,
            bonds=np.array(bonds, np.int64).reshape(-1, 3),
            positions=np.array([self._each[pose][atoms] for pose in poses]),
        )

    @cached_property
    def _each(self) -> list[Positions]:
        return np.split(self.positions, np.cumsum(self.sizes)[:-1]) if len(self.found) else []

    @cached_property
    def _notes(self) -> Sequence[PoseNotes]:
        rows = self.rows
        energies = {
            "energy": map("{:.6f}".format, (-rows.score).tolist()),
            "energy_unrefined": map("{:.6f}".format, (-rows.unrefined).tolist()),
        }
        conformers = {"conformer": map(str, rows.conformer.tolist())}
        texts = {
            **(energies if self.workload.with_energies else {}),
            **(conformers if self.workload.whole is not None else {}),
            "score": map("{:.6f}".format, rows.score.tolist()),
            "pose": map(str, rows.pose.tolist()),
            "rotation": map(str, rows.rotation.tolist()),
        }
        notes = [dict(zip(texts, each, strict=True)) for each in zip(*texts.values(), strict=True)]
        for name in NULLABLE:
            values = getattr(rows, name)
            for row in np.flatnonzero(np.isfinite(values)).tolist():
                notes[row][name] = f"{values[row]:.4f}"
        return notes

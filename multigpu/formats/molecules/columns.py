"""The atoms of ligands as columns, for the search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class AtomColumns:
    """The atoms of ligands, one ligand after the other.

    positions  float64[atoms, 3], Å
    types      int32[atoms]: index into the pocket's maps, -1 where an atom scores nothing
    charges    float64[atoms], e
    sizes      int64[n]: atoms of each ligand
    torsions   float64[n]: by which its energies are divided, as Vina's; else 0
    """

    positions: NDArray[np.float64]
    types: NDArray[np.int32]
    charges: NDArray[np.float64]
    sizes: NDArray[np.int64]
    torsions: NDArray[np.float64]

    @classmethod
    def untyped(cls, positions: NDArray[np.float64], sizes: NDArray[np.int64]) -> "AtomColumns":
        """Return atoms that all score as one, for a pocket that is one grid."""
        types, charges = np.zeros(len(positions), np.int32), np.zeros(len(positions))
        return cls(
            positions=positions,
            types=types,
            charges=charges,
            sizes=sizes,
            torsions=np.zeros(len(sizes)),
        )

    @classmethod
    def empty(cls, ligands: int) -> "AtomColumns":
        """Return ligands without atoms."""
        return cls.untyped(np.empty((0, 3)), np.zeros(ligands, np.int64))

    @classmethod
    def joined(cls, parts: Sequence["AtomColumns"]) -> "AtomColumns":
        """Return the ligands of all parts; there must be a part."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls)]
        return cls(**{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})

    def __getitem__(self, span: slice) -> "AtomColumns":
        """Return consecutive ligands."""
        first, last, _ = span.indices(len(self.sizes))
        atoms = slice(self.borders[first], self.borders[max(first, last)])
        return AtomColumns(
            positions=self.positions[atoms],
            types=self.types[atoms],
            charges=self.charges[atoms],
            sizes=self.sizes[first:last],
            torsions=self.torsions[first:last],
        )

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """int64[n + 1]: first atom of each ligand, and the number of all atoms."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    def replace(self, others: Mapping[int, "AtomColumns"]) -> "AtomColumns":
        """Return the ligands with others, of one each and in order, in these places."""
        parts, begin = [], 0
        for i, other in others.items():
            parts += [self[begin:i], other]
            begin = i + 1
        return AtomColumns.joined([*parts, self[begin:]])

"""One molecule of a file, and what is derived from it: bonds, types, notes on a pose.

Coordinates are in Å. Atoms keep their order; hydrogens are kept as given. Names, properties, bonds
and whatever else stands in a record survive, because a pose is written by putting new numbers into
the lines of its atoms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.fragments import CROWDED, are_crowded
from multigpu.kernels.rotation.types import FARTHEST, MOST_WEIGHT

if TYPE_CHECKING:
    from multigpu.formats.molecules.ligand_format import LigandFormat

AROMATIC, AMIDE = 4, 1  # bond orders

Positions = NDArray[np.float64]
Bond = tuple[int, int, int]  # two atoms from 0, and the order; 4: aromatic
FormalCharges = Mapping[int, int]  # of atoms from 0, e; those without are left out
PoseNotes = Mapping[str, str]  # what the text of a pose says about it, by name


class MoleculeError(ValueError):
    """Error in one molecule; the text says what is wrong, for its user."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Molecule:
    """One molecule of a file.

    format     the format of the file
    name       as the record says it; empty where it says none
    lines      of the record, with their ends
    rows       int[n]: in which line each atom stands
    positions  float64[n, 3], Å, within ±FARTHEST
    elements   symbols
    types      of MOL2 and PDBQT the file's own, SYBYL's and AutoDock's; else empty
    charges    float64[n], e, of MOL2 and PDBQT; else empty
    bonds      of SDF, MOL2 and the CONECT of PDB; else empty
    bonds_are_complete  whether atoms without bonds have none; else they get those to near atoms
    is_part    whether the file's record has other atoms, which are left out
    """

    format: "LigandFormat"
    name: str
    lines: list[bytes]
    rows: list[int]
    positions: Positions
    elements: list[str]
    types: list[str] = field(default_factory=list)
    charges: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    bonds: Sequence[Bond] = ()
    bonds_are_complete: bool = False
    is_part: bool = False

    @property
    def text(self) -> bytes:
        """The whole record."""
        return b"".join(self.lines)


class BondGraph(NamedTuple):
    """Bonds with orders that other programs understand, and the charges that go with them."""

    bonds: Sequence[Bond]
    charges: FormalCharges


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtomTypes:
    """AutoDock's view of a molecule.

    types    of each atom, "" where it scores nothing
    charges  float64[n], e
    """

    types: list[str]
    charges: NDArray[np.float64]


def check_molecule(molecule: Molecule) -> Molecule:
    """Return the molecule. Raises MoleculeError for numbers that no kernel takes."""
    if not molecule.rows:
        raise MoleculeError("it has no atoms")
    near = (np.abs(molecule.positions) <= FARTHEST).all(axis=1)
    if not near.all():
        atom = int(np.argmin(near))
        far = np.isfinite(molecule.positions[atom]).all()
        problem = f"beyond ±{FARTHEST:g} Å" if far else "not finite"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: the coordinates are {problem}")
    if are_crowded(molecule.positions):
        raise MoleculeError(
            f"most of its atoms have another within {CROWDED:g} Å: are its coordinates in"
            " nanometres? Multiply them by 10"
        )
    odd = ~(np.abs(molecule.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(np.argmax(odd))
        problem = f"atom {atom + 1} has a charge of {molecule.charges[atom]:g}"
        raise MoleculeError(f"line {molecule.rows[atom] + 1}: {problem}")
    return molecule

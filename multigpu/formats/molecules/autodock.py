"""AutoDock's atom types and charges of a molecule, for pockets of AutoGrid maps.

PDBQT files say both. Elsewhere these rules give the types:

    C   A where aromatic, else C
    H   HD on N, O and S, else H
    N   N where it carries a plus, or has three neighbours and shares its lone pair: in an aromatic
        ring, or beside an unsaturated or aromatic atom that is not S or P (amides, anilines,
        pyrroles); else NA
    O   OA
    S   SA with two neighbours outside of aromatic rings, else S (thiophenes, thiones, sulfones)
    all others are their element

These are the types that meeko gives, which prepares AutoDock's ligands today (compared on 25
molecules of all these groups).
Charges are Gasteiger's of RDKit for SDF and those of the file for MOL2, whose types follow from
SYBYL's. PDB and XYZ say nothing of bond orders, so they have neither.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules.bonds import bonds_of
from multigpu.formats.molecules.molecules import Bond, Molecule, MoleculeError, Positions
from multigpu.formats.optional import import_package
from multigpu.kernels.rotation.types import MOST_WEIGHT

POLAR = {"N", "O", "S"}  # whose hydrogens make hydrogen bonds
SYBYL_SHARING = {"N.am", "N.pl3", "N.4"}  # nitrogens that accept no hydrogen bond
SYBYL_OXIDIZED = {"S.o", "S.O", "S.o2", "S.O2"}
NO_CHARGES = b"NO_CHARGES"
NO_MAP = "no map of atom type"
# Meeko opens macrocycles to bend them: the two carbons of a broken bond are CG0 (then CG1, …), and
# each has a pseudo atom G0 where the other one belongs. Only that pair attracts each other; to the
# receptor a CG0 is a C, and a G0 is nothing.
OPENED = {f"CG{i}": "C" for i in range(10)}
GLUE = {f"G{i}" for i in range(100)}
WATER = "W"  # of hydrated docking: a pseudo atom with a map of its own
PSEUDO_TYPES = {*GLUE, WATER}
HYDRATED = "; W are waters of hydrated docking: make their map, or prepare the ligand without them"


@dataclass(frozen=True, eq=False)
class Typed:
    """types: one for each atom, "" where it scores nothing; charges: float64[n], e."""

    types: list[str]
    charges: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Atoms:
    """What a search needs to know of ligands, one after the other.

    positions  float64[atoms, 3], Å
    types      int32[atoms]: index into the pocket's maps, -1 where an atom scores nothing
    charges    float64[atoms], e
    sizes      int64[n]: atoms of each
    """

    positions: Positions
    types: NDArray[np.int32]
    charges: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @classmethod
    def joined(cls, parts: Sequence["Atoms"]) -> "Atoms":
        """The ligands of all parts; there must be one."""
        if len(parts) == 1:
            return parts[0]
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*map(np.concatenate, columns))

    def __getitem__(self, span: slice) -> "Atoms":
        """Consecutive ligands."""
        first, last, _ = span.indices(len(self.sizes))
        atoms = slice(self.borders[first], self.borders[max(first, last)])
        return Atoms(
            self.positions[atoms], self.types[atoms], self.charges[atoms], self.sizes[first:last]
        )

    @cached_property
    def borders(self) -> NDArray[np.int64]:
        """int64[n + 1]: where the atoms of each begin, and the end of the last."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])


def atoms_for(molecule: Molecule, maps: Sequence[str]) -> Atoms:
    """As `for_maps`; without maps there are neither types nor charges: all are 0."""
    count = len(molecule.positions)
    size = np.array([count], np.int64)
    if not maps:
        return Atoms(molecule.positions, np.zeros(count, np.int32), np.zeros(count), size)
    found, number = for_maps(molecule, maps), {name: i for i, name in enumerate(maps)}
    odd = ~(np.abs(found.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(odd.argmax())
        raise MoleculeError(f"atom {atom + 1} has a charge of {found.charges[atom]:g}")
    types = np.array([number.get(name, -1) for name in found.types], np.int32)
    return Atoms(molecule.positions, types, found.charges, size)


def typed(molecule: Molecule) -> Typed:
    """Types and charges by the rules above. Raises MoleculeError where there are none."""
    if molecule.layout == "pdbqt":
        assert molecule.charges is not None  # it was parsed
        return Typed(molecule.types, molecule.charges)
    if molecule.layout == "sdf":
        return _of_sdf(molecule)
    if molecule.layout == "mol2":
        return _of_mol2(molecule)
    raise MoleculeError(
        f"{molecule.layout.upper()} has neither bond orders nor charges, which AutoDock's atom"
        " types need: give SDF, MOL2 or PDBQT"
    )


def for_maps(molecule: Molecule, maps: Collection[str]) -> Typed:
    """As `typed`, for maps of these types.

    Without a map of H the hydrogens on carbon are merged into it, see `merged`. Raises
    MoleculeError that names types without map.
    """
    found = typed(molecule)
    if "H" not in maps:
        found = merged(molecule, found)
    found = _closed(found, maps)
    missing = sorted(set(found.types) - set(maps) - {""})
    if missing:
        there = ", ".join(maps)
        more = HYDRATED if WATER in missing else ""
        raise MoleculeError(f"{NO_MAP} {', '.join(missing)}: the pocket has {there}{more}")
    return found


def _closed(found: Typed, maps: Collection[str]) -> Typed:
    """With opened macrocycles as the receptor sees them, where there are no maps of their types."""
    if set(found.types) <= {*maps, ""}:
        return found
    aliases = {**OPENED, **dict.fromkeys(GLUE, "")}
    types = [kind if kind in maps else aliases.get(kind, kind) for kind in found.types]
    scored = np.array([bool(kind) for kind in types])
    return Typed(types, np.where(scored, found.charges, 0.0))


def merged(molecule: Molecule, found: Typed) -> Typed:
    """Without nonpolar hydrogens, which is how AutoDock's ligands are prepared.

    Those of type H score nothing and their charges go to the atoms they are bonded to, in PDBQT to
    the nearest ones.
    """
    if "H" not in found.types:
        return found
    charges, types = found.charges.copy(), list(found.types)
    for a, b in _directed(bonds_of(molecule)):
        if types[a] == "H" and molecule.elements[b] != "H":
            charges[b] += charges[a]
            charges[a], types[a] = 0.0, ""
    return replace(found, types=types, charges=charges)


def _directed(bonds: Sequence[Bond]) -> list[tuple[int, int]]:
    return [pair for a, b, _ in bonds for pair in ((a, b), (b, a))]


def _neighbours(molecule: Molecule) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in molecule.elements]
    for a, b in _directed(molecule.bonds):
        found[a].append(b)
    return found


# ---- SDF, by RDKit ----------------------------------------------------------------------------


def _of_sdf(molecule: Molecule) -> Typed:
    chem = import_package("rdkit.Chem", "atom types of SDF files")
    graph = _graph(chem, molecule)
    types = [_type(atom) for atom in graph.GetAtoms()]
    import_package("rdkit.Chem.rdPartialCharges", "charges").ComputeGasteigerCharges(graph)
    charges = np.array(
        [
            atom.GetDoubleProp("_GasteigerCharge") + atom.GetDoubleProp("_GasteigerHCharge")
            for atom in graph.GetAtoms()
        ]
    )
    if not np.isfinite(charges).all():
        symbols = {molecule.elements[i] for i in np.flatnonzero(~np.isfinite(charges)).tolist()}
        problem = f"Gasteiger's rules give no charges with {', '.join(sorted(symbols))}"
        raise MoleculeError(f"{problem}: give PDBQT with charges")
    return Typed(types, charges)


def _graph(chem: Any, molecule: Molecule) -> Any:
    """Raises MoleculeError with RDKit's reason where its chemistry makes no sense."""
    block = molecule.text.partition(b"M  END")[0] + b"M  END\n"
    with import_package("rdkit.rdBase", "atom types of SDF files").BlockLogs():
        graph = chem.MolFromMolBlock(block.decode("utf-8", "replace"), False, False)
        if graph is None:
            raise MoleculeError("RDKit does not read this molecule")
        try:
            chem.SanitizeMol(graph)
        except (ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise MoleculeError(f"its bonds make no sense: {reason}") from error
    if graph.GetNumAtoms() != len(molecule.elements):
        raise MoleculeError(f"RDKit finds {graph.GetNumAtoms()} atoms, not these")
    return graph


def _type(atom: Any) -> str:
    element = str(atom.GetSymbol())
    if element == "C":
        return "A" if atom.GetIsAromatic() else "C"
    if element == "H":
        return "HD" if any(n.GetSymbol() in POLAR for n in atom.GetNeighbors()) else "H"
    if element == "N":
        return "N" if _shares(atom) else "NA"
    if element == "S":
        return "SA" if atom.GetTotalDegree() == 2 and not atom.GetIsAromatic() else "S"
    return "OA" if element == "O" else element


def _shares(nitrogen: Any) -> bool:
    """Whether its lone pair is gone or taken by its neighbours."""
    if nitrogen.GetFormalCharge() > 0:
        return True
    if nitrogen.GetTotalDegree() < 3:
        return False
    return nitrogen.GetIsAromatic() or any(map(_unsaturated, nitrogen.GetNeighbors()))


def _unsaturated(atom: Any) -> bool:
    if atom.GetSymbol() in ("S", "P"):
        return False
    return atom.GetIsAromatic() or any(bond.GetBondTypeAsDouble() > 1 for bond in atom.GetBonds())


# ---- MOL2, by SYBYL's types -------------------------------------------------------------------


def _of_mol2(molecule: Molecule) -> Typed:
    assert molecule.charges is not None  # it was parsed
    if any(line.strip() == NO_CHARGES for line in molecule.lines[: molecule.rows[0]]):
        raise MoleculeError("its header says NO_CHARGES: an AutoGrid pocket needs them")
    neighbours = _neighbours(molecule)
    types = [_sybyl(molecule, i, neighbours[i]) for i in range(len(molecule.elements))]
    return Typed(types, molecule.charges)


def _sybyl(molecule: Molecule, i: int, neighbours: list[int]) -> str:
    element, name = molecule.elements[i], molecule.types[i]
    if element == "C":
        return "A" if name == "C.ar" else "C"
    if element == "H":
        return "HD" if any(molecule.elements[n] in POLAR for n in neighbours) else "H"
    if element == "N":
        shares = name in SYBYL_SHARING or (name == "N.ar" and len(neighbours) > 2)
        return "N" if shares else "NA"
    if element == "S":
        oxidized = name in SYBYL_OXIDIZED or len(neighbours) != 2
        return "S" if oxidized else "SA"
    return "OA" if element == "O" else element

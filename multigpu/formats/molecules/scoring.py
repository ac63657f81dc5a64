"""Differences of the scorings of pockets: plain grids, AutoDock 4's maps, and Vina's.

The atom types of a pocket's maps say which it is; a plain grid, as which all atoms score alike, has
none. Vina's types follow from AutoDock's (`autodock_types.py`) and the bonds:

    C        C_P beside an atom that is neither carbon nor hydrogen, else C_H
    N, O     D where a hydrogen HD is bonded, A where AutoDock's type accepts hydrogen bonds: N_P,
             N_D, N_A, N_DA and so on
    S, Se    S_P
    P        P_P
    F … I    F_H, Cl_H, Br_H, I_H
    Si, At   their element
    metals   Met_D
    H        none: hydrogens score nothing

Vina divides an energy by 1 + 0.05846 · torsions. An end of a rotatable bond counts one half, if it
is bonded to more than one heavy atom: a hydroxyl group is half a torsion.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.molecules import autodock_types, pdb, sdf
from multigpu.formats.molecules.autodock_types import (
    PSEUDO_TYPES,
    rdkit_molecule,
    require_maps,
    smarts,
    type_seen,
    types_in_file,
    types_of,
)
from multigpu.formats.molecules.bonds import bonds_of, near_bonds, neighbours_of
from multigpu.formats.molecules.elements import without_isotopes
from multigpu.formats.molecules.molecule import AtomTypes, Molecule, MoleculeError
from multigpu.formats.molecules.pdbqt import element_of_type
from multigpu.kernels.maps import Receptor
from multigpu.kernels.maps.vina import TORSION_WEIGHT, TYPES
from multigpu.kernels.rotation.types import MOST_WEIGHT, energy_channels, energy_terms

Scoring = Literal["grid", "autodock4", "vina"]
VINA_ONLY = {kind for kind in TYPES if "_" in kind}  # Si and At are AutoDock's, too
METALS = ("Mg", "Mn", "Zn", "Ca", "Fe", "Cu", "Na", "K", "Hg", "Co", "U", "Cd", "Ni")
PLAIN_TYPES = {
    "S": "S_P", "Se": "S_P", "P": "P_P", "F": "F_H", "Cl": "Cl_H", "Br": "Br_H", "I": "I_H",
    "Si": "Si", "At": "At", **dict.fromkeys(METALS, "Met_D"), "H": "",
}  # fmt: skip
DONATED, ACCEPTORS = "HD", {"NA", "NS", "OA", "OS"}  # AutoDock's types
# Rotatable bonds as Meeko has them: single, in no ring, none of whose ends is a methyl group or
# the like. A triple bond and those beside it turn as one.
END = "$([!#1;!#6;!D1]),$([#6](~[!#1])~[!#1])"
ROTATABLE = (f"[{END};!$(*#*)]-;!@[{END};!$(*#*)]", f"[{END}]-;!@[#6]#[#6]-;!@[{END}]")
# Amides and the like are stiff, unless the nitrogen has two groups that differ.
AMIDE = "[NX3]-[CX3]=[O,N,S]"


def vina_types(kinds: Sequence[str], neighbours: Sequence[Sequence[int]]) -> list[str]:
    """Return Vina's types, "" for what scores nothing.

    kinds       AutoDock's types, "" for what scores nothing
    neighbours  the atoms that each is bonded to

    What Vina has no type for keeps AutoDock's.
    """
    elements = [kind if kind in PSEUDO_TYPES else element_of_type(kind) for kind in kinds]
    types = []
    for kind, element, near in zip(kinds, elements, neighbours, strict=True):
        if element == "C":
            types.append("C_H" if {elements[i] for i in near} <= {"C", "H", ""} else "C_P")
        elif element in ("N", "O"):
            donor = "D" if any(kinds[i] == DONATED for i in near) else ""
            acceptor = "A" if kind in ACCEPTORS else ""
            types.append(f"{element}_{donor + acceptor or 'P'}")
        else:
            types.append(PLAIN_TYPES.get(element, kind))
    return types


def with_vina_types(receptor: Receptor) -> Receptor:
    """Return a receptor with Vina's types in place of AutoDock's; bonds follow from distances."""
    bonds = near_bonds([element_of_type(kind) for kind in receptor.types], receptor.positions)
    types = vina_types(receptor.types, neighbours_of(len(receptor), bonds))
    return replace(receptor, types=tuple(types))


def vina_types_for_maps(molecule: Molecule, maps: Sequence[str]) -> AtomTypes:
    """Return the types that score in these maps; Vina knows no charges. Raises MoleculeError."""
    kinds = [type_seen(kind, ("C",)) for kind in types_of(molecule).types]
    types = vina_types(kinds, neighbours_of(len(kinds), bonds_of(molecule)))
    require_maps(types, maps, " (Vina's types)")
    return AtomTypes(types=types, charges=np.zeros(len(types)))


def count_torsions(molecule: Molecule) -> float:
    """Return the torsions that Vina counts, a multiple of one half.

    Rotatable bonds are the branches of AutoDock's files; elsewhere they follow from the bonds.
    Raises MoleculeError where these make no sense.
    """
    elements = without_isotopes(molecule.elements)
    near = neighbours_of(len(elements), bonds_of(molecule))
    inner = [sum(elements[i] != "H" for i in each) > 1 for each in near]
    has_branches = molecule.format.atom_types is types_in_file
    bonds = _branches(molecule) if has_branches else _rotatable_bonds(molecule)
    return sum(inner[a] + inner[b] for a, b in bonds) / 2


def _branches(molecule: Molecule) -> Iterator[tuple[int, int]]:
    numbers = {molecule.lines[row][pdb.SERIAL].strip(): i for i, row in enumerate(molecule.rows)}
    for line in molecule.lines:
        ends = line.split()[1:3] if line.startswith(b"BRANCH") else []
        if len(ends) == 2 and numbers.keys() >= {*ends}:
            yield numbers[ends[0]], numbers[ends[1]]


def _rotatable_bonds(molecule: Molecule) -> set[tuple[int, ...]]:
    """Return the rotatable bonds by Meeko's rules; rings of macrocycles stay closed."""
    from rdkit.Chem import CanonicalRankAtoms

    is_sdf = molecule.format is sdf.SDF
    text = molecule.text if is_sdf else sdf.build(molecule, "", molecule.positions, {})
    graph = rdkit_molecule(molecule, text)
    bonds = {
        tuple(sorted((match[0], match[-1])))
        for pattern in ROTATABLE
        for match in graph.GetSubstructMatches(smarts(pattern))
    }
    ranks = CanonicalRankAtoms(graph, breakTies=False)
    for n, c, _ in graph.GetSubstructMatches(smarts(AMIDE)):
        sides = [atom for atom in graph.GetAtomWithIdx(n).GetNeighbors() if atom.GetIdx() != c]
        has_hydrogen = any(atom.GetAtomicNum() == 1 for atom in sides)
        if has_hydrogen or len({ranks[atom.GetIdx()] for atom in sides}) == 1:
            bonds.discard(tuple(sorted((n, c))))
    return bonds


class AtomTerms(NamedTuple):
    """Terms of atoms, which score the sum of weight × channel of `score_channels`.

    types     int32[atoms]: index into the pocket's maps, -1 where an atom scores nothing
    channels  int32[atoms, terms]
    weights   float64[atoms, terms]
    """

    types: NDArray[np.int32]
    channels: NDArray[np.int32]
    weights: NDArray[np.float64]


NO_TERMS = AtomTerms(np.empty(0, np.int32), np.empty((0, 1), np.int32), np.empty((0, 1)))


def scoring_of(types: Collection[str]) -> Scoring:
    """Return the scoring of a pocket by the atom types of its maps."""
    if not types:
        return "grid"
    return "autodock4" if VINA_ONLY.isdisjoint(types) else "vina"


def score_channels(values: NDArray[np.float32], types: Sequence[str]) -> NDArray[np.float32]:
    """Return a pocket's values as channels of scores, float32[channels, nx, ny, nz]."""
    if scoring_of(types) == "autodock4":
        return energy_channels(values[:-2], values[-2], values[-1])
    return -values if types else values


def atom_terms(molecule: Molecule, types: Sequence[str]) -> AtomTerms:
    """Return what the atoms of a molecule score in maps of these types, or in one grid without any.

    Vina divides the energy of a ligand by its torsions. The weights of its atoms are divided, so
    every score is the divided one. Raises MoleculeError.
    """
    if not types:
        return terms_of(np.zeros(len(molecule.positions), np.int32), molecule.charges, types)
    is_vina = scoring_of(types) == "vina"
    find = vina_types_for_maps if is_vina else autodock_types.types_for_maps
    found = find(molecule, types)
    odd = ~(np.abs(found.charges) <= MOST_WEIGHT)
    if odd.any():
        atom = int(odd.argmax())
        raise MoleculeError(f"atom {atom + 1} has a charge of {found.charges[atom]:g}")
    number = {name: i for i, name in enumerate(types)}
    kinds = np.array([number.get(kind, -1) for kind in found.types], np.int32)
    terms = terms_of(kinds, found.charges, types)
    if not is_vina:
        return terms
    divisor = 1 + TORSION_WEIGHT * count_torsions(molecule)
    weights = np.where(kinds < 0, 0, 1 / divisor)
    return AtomTerms(kinds, terms.channels[:, :1], weights[:, None])


def terms_of(
    kinds: NDArray[np.int32], charges: NDArray[np.float64], types: Sequence[str]
) -> AtomTerms:
    """Return what atoms score in AutoDock 4's maps or one grid. kinds: index of the type, or -1."""
    if not types:
        return AtomTerms(kinds, kinds[:, None], np.ones((len(kinds), 1)))
    channels, weights = energy_terms(np.maximum(kinds, 0), charges, len(types))
    weights[kinds < 0] = 0
    return AtomTerms(kinds, channels, weights)

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

These are Meeko's types (compared on 25 molecules of all these groups).
Charges are Gasteiger's of RDKit for SDF and those of the file for MOL2, whose types follow from
SYBYL's. PDB and XYZ say nothing of bond orders, so they have neither.
"""

from collections.abc import Collection
from functools import cache, lru_cache
from typing import Any

import numpy as np

from multigpu.formats.molecules.bonds import bonds_of, neighbours_of
from multigpu.formats.molecules.elements import without_isotopes
from multigpu.formats.molecules.molecule import AtomTypes, Molecule, MoleculeError
from multigpu.formats.optional import quiet_rdkit

HYDROGENS = {"H", "HD", "HS"}  # types
POLAR = {"N", "O", "S"}  # whose hydrogens make hydrogen bonds
SYBYL_SHARING = {"N.am", "N.pl3", "N.4"}  # nitrogens that accept no hydrogen bond
SYBYL_OXIDIZED = {"S.o", "S.O", "S.o2", "S.O2"}
# The same rules for RDKit: of the patterns that fit an atom the last gives its type.
PATTERNS = {
    "c": "A",
    "[#1]~[#7,#8,#16]": "HD",
    "[#7]": "NA",
    "[#7;+,+2,$([a;X3,X4]),$([X3,X4]~[!#15;!#16;a,$(*=*),$(*#*)])]": "N",
    "[#8]": "OA",
    "[S;X2]": "SA",
}
NO_CHARGES = b"NO_CHARGES"
MOST_RINGS = 1_000
# Meeko opens macrocycles to bend them: the two carbons of a broken bond are CG0 (then CG1, …), and
# each has a pseudo atom G0 where the other one belongs. Only that pair attracts each other; to the
# receptor a CG0 is a C, and a G0 is nothing.
OPENED = {f"CG{i}": "C" for i in range(10)}
GLUE = {f"G{i}" for i in range(100)}
# AutoGrid has the same parameters for either.
SPELLINGS = {name: name.upper() for name in ("Br", "Ca", "Cl", "Fe", "Mg", "Mn", "Zn")}
SEEN_AS = {  # what a type is to a receptor where it has no map of its own
    **OPENED, **dict.fromkeys(GLUE, ""), **SPELLINGS, **{b: a for a, b in SPELLINGS.items()},
}  # fmt: skip
WATER = "W"  # of hydrated docking: a pseudo atom with a map of its own
PSEUDO_TYPES = frozenset({*GLUE, WATER})
HYDRATED = "; W are waters of hydrated docking: make their map, or prepare the ligand without them"


def types_of(molecule: Molecule) -> AtomTypes:
    """Return types and charges by the rules above. Raises MoleculeError where there are none."""
    if molecule.format.atom_types is None:
        raise MoleculeError(
            f"{molecule.format.name.upper()} has neither bond orders nor charges, which AutoDock's"
            " atom types need: give SDF, MOL2 or PDBQT"
        )
    return molecule.format.atom_types(molecule)


def types_for_maps(molecule: Molecule, maps: Collection[str]) -> AtomTypes:
    """Return the types that score in these maps.

    Without a map of H the hydrogens on carbon are merged into it, see `merge_hydrogens`. Raises
    MoleculeError that names types without map.
    """
    found = types_of(molecule)
    if "H" not in maps:
        found = merge_hydrogens(molecule, found)
    types = [type_seen(kind, maps) for kind in found.types]
    require_maps(types, maps, HYDRATED if WATER in types else "")
    return AtomTypes(types=types, charges=np.where(np.array(types) == "", 0.0, found.charges))


def require_maps(types: Collection[str], maps: Collection[str], hint: str = "") -> None:
    """Raise MoleculeError that names the types without map, "" aside, and ends with a hint."""
    if missing := sorted({*types} - {*maps, ""}):
        names = ", ".join(maps)
        raise MoleculeError(
            f"no map of atom type {', '.join(missing)}: the pocket has {names}{hint}"
        )


def type_seen(kind: str, maps: Collection[str]) -> str:
    """Return what a type is to a receptor, see SEEN_AS: a map, "" for nothing, else the type."""
    seen = kind if kind in maps else SEEN_AS.get(kind, kind)
    return seen if seen in {*maps, ""} else kind


def merge_hydrogens(molecule: Molecule, found: AtomTypes) -> AtomTypes:
    """Return types without nonpolar hydrogens, which is how AutoDock's ligands are prepared.

    Those of type H score nothing and their charges go to the atoms they are bonded to, in PDBQT to
    the nearest ones.
    """
    if "H" not in found.types:
        return found
    charges, types = found.charges.copy(), list(found.types)
    for bond in bonds_of(molecule):
        for a, b in (bond[:2], bond[1::-1]):
            if types[a] == "H" and molecule.elements[b] != "H":
                charges[b] += charges[a]
                charges[a], types[a] = 0.0, ""
    return AtomTypes(types=types, charges=charges)


def types_in_file(molecule: Molecule) -> AtomTypes:
    return AtomTypes(types=molecule.types, charges=molecule.charges)


def types_by_rdkit(molecule: Molecule) -> AtomTypes:
    """Return types and Gasteiger's charges of a molecule of SDF. Raises MoleculeError."""
    from rdkit.Chem.rdPartialCharges import ComputeGasteigerCharges

    graph = rdkit_molecule(molecule, molecule.text)
    types = [str(atom.GetSymbol()) for atom in graph.GetAtoms()]
    most = len(types) + graph.GetNumBonds()
    for pattern, kind in PATTERNS.items():
        for match in graph.GetSubstructMatches(smarts(pattern), False, maxMatches=most):
            types[match[0]] = kind
    ComputeGasteigerCharges(graph)
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
    return AtomTypes(types=types, charges=charges)


@lru_cache(maxsize=8)  # types and torsions need the same, one after the other
def rdkit_molecule(molecule: Molecule, text: bytes) -> Any:
    """Return RDKit's molecule of a record, in SDF. Raises MoleculeError with RDKit's reason."""
    if len(molecule.bonds) - len(molecule.elements) >= MOST_RINGS:
        raise MoleculeError(f"it has more than {MOST_RINGS:,} rings, which take RDKit minutes")
    block = text.partition(b"M  END")[0] + b"M  END\n"
    with quiet_rdkit() as chem:
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


@cache
def smarts(pattern: str) -> Any:
    """Return RDKit's query of a pattern."""
    from rdkit.Chem import MolFromSmarts

    return MolFromSmarts(pattern)


def types_by_sybyl(molecule: Molecule) -> AtomTypes:
    """Return types that follow from those of a MOL2, and its charges. Raises MoleculeError."""
    if any(line.strip() == NO_CHARGES for line in molecule.lines[: molecule.rows[0]]):
        raise MoleculeError("its header says NO_CHARGES: an AutoGrid pocket needs them")
    elements = without_isotopes(molecule.elements)
    neighbours = neighbours_of(len(elements), molecule.bonds)
    types = [
        _type_by_sybyl(element, name, [elements[n] for n in near])
        for element, name, near in zip(elements, molecule.types, neighbours, strict=True)
    ]
    return AtomTypes(types=types, charges=molecule.charges)


def _type_by_sybyl(element: str, name: str, neighbours: list[str]) -> str:
    if element == "C":
        return "A" if name == "C.ar" else "C"
    if element == "H":
        return "H" if POLAR.isdisjoint(neighbours) else "HD"
    if element == "N":
        shares = name in SYBYL_SHARING or (name == "N.ar" and len(neighbours) > 2)
        return "N" if shares else "NA"
    if element == "S":
        oxidized = name in SYBYL_OXIDIZED or len(neighbours) != 2
        return "S" if oxidized else "SA"
    return "OA" if element == "O" else element

"""Poses as text: the ligand's own record with new coordinates, or the molecule in another format.

In its own format a record keeps all that stands in it. In another one it keeps atoms, order,
elements, coordinates, bonds and charges where both formats have them. Facts about the pose go
where the format has room for them: data items, remarks, comments.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

import numpy as np

from multigpu.errors import UsageError
from multigpu.io.autodock import typed
from multigpu.io.ligands import SUFFIXES
from multigpu.io.molecules import Bond, Molecule, MoleculeError, Positions, moved, pdb_name

SAME = "same"  # every ligand in the format it came in
LARGEST_V2000 = 999  # atoms or bonds
OUR_TAG = re.compile(rb"^>[^\n]*<multigpu_\w+>[^\n]*\n(?:[^\r\n]+\r?\n)*\r?\n?", re.MULTILINE)
OUR_COMMENT = b"# multigpu "
OUR_REMARK = b"REMARK multigpu "
MODEL_LINES = (b"MODEL ", b"MODEL\n", b"MODEL\r", b"ENDMDL", b"END ", b"END\n", b"END\r")
DROPPED = (*MODEL_LINES, OUR_REMARK)  # lines of PDB and PDBQT that a pose does not keep
# Covalent radii, Å: Cordero and others 2008 (doi:10.1039/b801115j). Where a file has no bonds, two
# atoms are bonded that are nearer than the sum of theirs and this tolerance.
RADII = {
    "H": 0.31, "B": 0.84, "C": 0.76, "N": 0.71, "O": 0.66, "F": 0.57, "Si": 1.11, "P": 1.07,
    "S": 1.05, "Cl": 1.02, "Se": 1.20, "Br": 1.20, "I": 1.39,
}  # fmt: skip
OTHER_RADIUS = 1.4
TOLERANCE = 0.4

Facts = Mapping[str, str]


def format_of(path: str) -> str:
    """The format of a poses file by its suffix. Raises UsageError for a name that has none."""
    if path == "-":
        return "sdf"
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    raise UsageError(
        f"{path}: poses are written as .sdf, .mol2, .pdb, .pdbqt or .xyz, or to a dir/"
    )


def render(
    molecule: Molecule, name: str, fmt: str, positions: Positions, facts: Facts
) -> bytes:  # fmt: skip
    """One pose. PDB and PDBQT are without the lines of MODEL and ENDMDL.

    name       of the ligand, where the record does not say one
    positions  float64[n, 3], Å
    facts      what to say about the pose, as text
    """
    if fmt in (SAME, molecule.layout):
        return REWRITERS[molecule.layout](molecule, moved(molecule, positions), name, facts)
    if fmt == "mol2":
        raise MoleculeError("poses in MOL2 can be written of MOL2 only: choose .sdf")
    return BUILDERS[fmt](molecule, name, positions, facts)


def _said(facts: Facts) -> bytes:
    return " ".join(f"{key} {value}" for key, value in facts.items()).encode()


# ---- the record itself ------------------------------------------------------------------------


def _rewrite_sdf(_: Molecule, lines: list[bytes], name: str, facts: Facts) -> bytes:
    newline = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
    lines[0] = lines[0] if lines[0].strip() else name.encode() + newline
    record = OUR_TAG.sub(b"", b"".join(lines)).partition(b"\n$$$$")[0].rstrip(b"\r\n")
    gap = newline if record.endswith(b"M  END") else newline * 2
    return record + gap + _data_items(facts, newline) + b"$$$$" + newline


def _data_items(facts: Facts, newline: bytes) -> bytes:
    return b"".join(
        f"> <multigpu_{key}>".encode() + newline + value.encode() + 2 * newline
        for key, value in facts.items()
    )


def _rewrite_mol2(_: Molecule, lines: list[bytes], __: str, facts: Facts) -> bytes:
    kept = [line for line in lines if not line.startswith(OUR_COMMENT)]
    return OUR_COMMENT + _said(facts) + b"\n" + _ended(b"".join(kept))


def _rewrite_pdb(_: Molecule, lines: list[bytes], name: str, facts: Facts) -> bytes:
    kept = [line for line in lines if not line.startswith(DROPPED) and line.strip() != b"END"]
    record = _ended(b"".join(kept))
    return remarks("" if pdb_name(record) else name, facts) + record


def remarks(name: str, facts: Facts) -> bytes:
    """What stands before a PDB or PDBQT: the facts, and the name if there is one."""
    head = f"REMARK  Name = {name}\n" if name else ""
    ours = OUR_REMARK.decode()
    return "".join([head, *(f"{ours}{key} {value}\n" for key, value in facts.items())]).encode()


def _rewrite_xyz(molecule: Molecule, lines: list[bytes], name: str, facts: Facts) -> bytes:
    lines[1] = _xyz_comment(molecule.name or name, facts)
    return _ended(b"".join(lines[: molecule.rows[-1] + 1]))


def _xyz_comment(name: str, facts: Facts) -> bytes:
    return " ".join([name, *(f"{key}={value}" for key, value in facts.items())]).encode() + b"\n"


def _ended(text: bytes) -> bytes:
    return text if text.endswith(b"\n") else text + b"\n"


REWRITERS: dict[str, Callable[[Molecule, list[bytes], str, Facts], bytes]] = {
    "sdf": _rewrite_sdf,
    "mol2": _rewrite_mol2,
    "pdb": _rewrite_pdb,
    "pdbqt": _rewrite_pdb,
    "xyz": _rewrite_xyz,
}


# ---- another format ---------------------------------------------------------------------------


def bonds_of(molecule: Molecule) -> Sequence[Bond]:
    """Those of the file; without any, single ones between atoms that are near enough."""
    if molecule.bonds:
        return molecule.bonds
    radii = np.array([RADII.get(element, OTHER_RADIUS) for element in molecule.elements])
    bonds = []
    for a, place in enumerate(molecule.positions):
        apart = np.sqrt(((molecule.positions[a + 1 :] - place) ** 2).sum(axis=1))
        near = np.flatnonzero(apart < radii[a] + radii[a + 1 :] + TOLERANCE) + a + 1
        bonds += [
            (a, b, 1) for b in near.tolist()
            if not molecule.elements[a] == molecule.elements[b] == "H"
        ]  # fmt: skip
    return bonds


def _build_sdf(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    bonds = bonds_of(molecule)
    head = f"{molecule.name or name}\n  multigpu          3D\n\n"
    large = max(len(molecule.elements), len(bonds)) > LARGEST_V2000
    table = (_v3000 if large else _v2000)(molecule.elements, positions, bonds)
    return f"{head}{table}M  END\n".encode() + _data_items(facts, b"\n") + b"$$$$\n"


def _v2000(elements: Sequence[str], positions: Positions, bonds: Sequence[Bond]) -> str:
    counts = f"{len(elements):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"
    atoms = [
        f"{x:10.4f}{y:10.4f}{z:10.4f} {element:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"
        for element, (x, y, z) in zip(elements, positions.tolist(), strict=True)
    ]
    return "".join([counts, *atoms, *(f"{a + 1:3d}{b + 1:3d}{o:3d}  0\n" for a, b, o in bonds)])


def _v3000(elements: Sequence[str], positions: Positions, bonds: Sequence[Bond]) -> str:
    atoms = [
        f"M  V30 {i} {element} {x:.6f} {y:.6f} {z:.6f} 0\n"
        for i, (element, (x, y, z)) in enumerate(zip(elements, positions.tolist(), strict=True), 1)
    ]
    joined = [f"M  V30 {i} {o} {a + 1} {b + 1}\n" for i, (a, b, o) in enumerate(bonds, 1)]
    return "".join(
        [
            "  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n",
            f"M  V30 COUNTS {len(elements)} {len(bonds)} 0 0 0\nM  V30 BEGIN ATOM\n", *atoms,
            "M  V30 END ATOM\nM  V30 BEGIN BOND\n", *joined,
            "M  V30 END BOND\nM  V30 END CTAB\n",
        ]
    )  # fmt: skip


def _build_pdb(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    lines = [f"{line}\n" for line in _pdb_atoms(molecule, positions, "          {element:>2}")]
    partners: dict[int, list[int]] = {}
    for a, b, _ in bonds_of(molecule):
        partners.setdefault(a, []).append(b + 1)
        partners.setdefault(b, []).append(a + 1)
    for a, found in sorted(partners.items()):
        for at in range(0, len(found), 4):
            row = "".join(f"{b:5d}" for b in found[at : at + 4])
            lines.append(f"CONECT{a + 1:5d}{row}\n")
    return remarks(molecule.name or name, facts) + "".join(lines).encode()


def _build_pdbqt(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    """Rigid: one root without torsions."""
    found = typed(molecule)
    atoms = _pdb_atoms(molecule, positions, "")
    lines = [
        f"{line}    {charge:6.3f} {kind:<2}\n"
        for line, charge, kind in zip(atoms, found.charges.tolist(), found.types, strict=True)
    ]
    root = "".join(["ROOT\n", *lines, "ENDROOT\nTORSDOF 0\n"])
    return remarks(molecule.name or name, facts) + root.encode()


def _pdb_atoms(molecule: Molecule, positions: Positions, tail: str) -> list[str]:
    """The atoms' lines up to the temperature factor, and `tail`."""
    counts: dict[str, int] = {}
    lines = []
    for i, (element, (x, y, z)) in enumerate(
        zip(molecule.elements, positions.tolist(), strict=True), 1
    ):
        counts[element] = counts.get(element, 0) + 1
        atom = f"{element.upper():>2}{counts[element]}"[:4]
        lines.append(
            f"HETATM{i % 100000:5d} {atom:<4} LIG A   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
            + tail.format(element=element.upper())
        )
    return lines


def _build_xyz(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    atoms = [
        f"{element:<2} {x:14.6f} {y:14.6f} {z:14.6f}\n"
        for element, (x, y, z) in zip(molecule.elements, positions.tolist(), strict=True)
    ]
    head = f"{len(atoms)}\n".encode() + _xyz_comment(molecule.name or name, facts)
    return head + "".join(atoms).encode()


BUILDERS: dict[str, Callable[[Molecule, str, Positions, Facts], bytes]] = {
    "sdf": _build_sdf,
    "pdb": _build_pdb,
    "pdbqt": _build_pdbqt,
    "xyz": _build_xyz,
}

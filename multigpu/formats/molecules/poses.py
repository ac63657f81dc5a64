"""Poses as text: the ligand's own record with new coordinates, or the molecule in another format.

In its own format a record keeps all that stands in it. In another one it keeps atoms, order,
elements, coordinates, bonds and charges where both formats have them. Facts about the pose go
where the format has room for them: data items, remarks, comments.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from multigpu.errors import UsageError, quoted
from multigpu.formats.molecules.autodock import PSEUDO_TYPES, merged, typed
from multigpu.formats.molecules.bonds import Charges, Joined, bonds_of, joined
from multigpu.formats.molecules.ligands import SUFFIXES
from multigpu.formats.molecules.molecules import (
    AROMATIC,
    Bond,
    Molecule,
    MoleculeError,
    Positions,
    fitted,
    is_element,
    mol2_head,
    moved,
    pdb_name,
)
from multigpu.formats.molecules.pdbqt_bonds import remarks_of

SAME = "same"  # every ligand in the format it came in
LARGEST_V2000 = 999  # atoms or bonds
MOST_IN_V2000 = 99_999_999.0  # Å, below and above 0: what fits the columns of a coordinate
MOST_IN_PDB = 999_999.0
CHARGES_A_LINE, MOST_CHARGE = 8, 9
NO_ELEMENT = "*"  # of SDF
ANY_ORDER = 8  # of SDF's bonds
OUR_TAG = re.compile(rb"^>[^\n]*<multigpu_\w+>[^\n]*\n(?:[^\r\n]+\r?\n)*\r?\n?", re.MULTILINE)
OUR_COMMENT = b"# multigpu "
OUR_REMARK = b"REMARK multigpu "
MODEL_LINES = (b"MODEL ", b"MODEL\n", b"MODEL\r", b"ENDMDL", b"END ", b"END\n", b"END\r")
DROPPED = (*MODEL_LINES, OUR_REMARK)  # lines of PDB and PDBQT that a pose does not keep
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

    Raises MoleculeError where the format has no room for it: as for atoms that are no element,
    which stay as they are in their own format.
    """
    if fmt in (SAME, molecule.layout):
        return REWRITERS[molecule.layout](molecule, moved(molecule, positions), name, facts)
    if fmt == "mol2":
        raise MoleculeError("poses in MOL2 can be written of MOL2 only: choose .sdf")
    molecule, positions = _without_pseudo_atoms(molecule, positions)
    _check_elements(molecule)
    return BUILDERS[fmt](molecule, name, positions, facts)


def drawing(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    """A pose in SDF to be drawn, whatever format was chosen; see `render`.

    Atoms that are no element are `*`, as SDF has them. Bonds whose orders cannot be told are drawn
    as such.
    """
    if molecule.layout == "sdf":
        return render(molecule, name, SAME, positions, facts)
    molecule, positions = _without_pseudo_atoms(molecule, positions)
    try:
        return _build_sdf(molecule, name, positions, facts)
    except MoleculeError:
        unknown = [(a, b, ANY_ORDER) for a, b, _ in bonds_of(molecule)]
        return _sdf_of(molecule, name, positions, facts, Joined(unknown, {}))


def _without_pseudo_atoms(molecule: Molecule, positions: Positions) -> tuple[Molecule, Positions]:
    """Without those that only AutoDock has: glue of opened macrocycles, waters that it adds."""
    if molecule.layout != "pdbqt" or PSEUDO_TYPES.isdisjoint(molecule.types):
        return molecule, positions
    real = [i for i, kind in enumerate(molecule.types) if kind not in PSEUDO_TYPES]
    assert molecule.charges is not None  # it was parsed
    less = replace(
        molecule, rows=[molecule.rows[i] for i in real], positions=molecule.positions[real],
        elements=[molecule.elements[i] for i in real], types=[molecule.types[i] for i in real],
        charges=molecule.charges[real],
    )  # fmt: skip
    return less, positions[real]


def _check_elements(molecule: Molecule) -> None:
    for number, symbol in enumerate(molecule.elements, 1):
        if not is_element(symbol):
            raise MoleculeError(
                f"atom {number} is {quoted(symbol)}, which is no element: its poses can be written"
                f" in its own format only, choose .{molecule.layout}"
            )


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


def _rewrite_mol2(_: Molecule, lines: list[bytes], name: str, facts: Facts) -> bytes:
    for row in mol2_head(lines)[:1]:
        newline = b"\r\n" if lines[row].endswith(b"\r\n") else b"\n"
        lines[row] = lines[row] if lines[row].strip() else name.encode() + newline
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
    first, last = molecule.rows[0], molecule.rows[-1]
    lines[first - 1] = _xyz_comment(molecule.name or name, facts)
    return _ended(b"".join(lines[first - 2 : last + 1]))


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


def _build_sdf(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    return _sdf_of(molecule, name, positions, facts, joined(molecule))


def _sdf_of(
    molecule: Molecule, name: str, positions: Positions, facts: Facts, graph: Joined
) -> bytes:
    bonds, charges = graph
    head = f"{molecule.name or name}\n  multigpu          3D\n\n"
    large = max(len(molecule.elements), len(bonds)) > LARGEST_V2000
    wide = abs(positions).max() > MOST_IN_V2000
    elements = [each if is_element(each) else NO_ELEMENT for each in molecule.elements]
    table = (_v3000 if large or wide else _v2000)(elements, positions, bonds, charges)
    return f"{head}{table}M  END\n".encode() + _data_items(facts, b"\n") + b"$$$$\n"


def _v2000(
    elements: Sequence[str], positions: Positions, bonds: Sequence[Bond], charges: Charges
) -> str:
    counts = f"{len(elements):3d}{len(bonds):3d}  0  0  0  0  0  0  0  0999 V2000\n"
    atoms = [
        "".join([fitted(number, 10, 4) for number in place])
        + f" {element:<3} 0  0  0  0  0  0  0  0  0  0  0  0\n"
        for element, place in zip(elements, positions.tolist(), strict=True)
    ]
    lines = [counts, *atoms, *(f"{a + 1:3d}{b + 1:3d}{o:3d}  0\n" for a, b, o in bonds)]
    said = [f" {atom + 1:3d} {charge:3d}" for atom, charge in sorted(charges.items())]
    for at in range(0, len(said), CHARGES_A_LINE):
        some = said[at : at + CHARGES_A_LINE]
        lines.append(f"M  CHG{len(some):3d}{''.join(some)}\n")
    return "".join(lines)


def _v3000(
    elements: Sequence[str], positions: Positions, bonds: Sequence[Bond], charges: Charges
) -> str:
    said = {atom: f" CHG={charge}" for atom, charge in charges.items()}
    atoms = [
        f"M  V30 {i + 1} {element} {x:.6f} {y:.6f} {z:.6f} 0{said.get(i, '')}\n"
        for i, (element, (x, y, z)) in enumerate(zip(elements, positions.tolist(), strict=True))
    ]
    rows = [f"M  V30 {i} {o} {a + 1} {b + 1}\n" for i, (a, b, o) in enumerate(bonds, 1)]
    return "".join(
        [
            "  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n",
            f"M  V30 COUNTS {len(elements)} {len(bonds)} 0 0 0\nM  V30 BEGIN ATOM\n", *atoms,
            "M  V30 END ATOM\nM  V30 BEGIN BOND\n", *rows,
            "M  V30 END BOND\nM  V30 END CTAB\n",
        ]
    )  # fmt: skip


def _build_pdb(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    bonds, charges = joined(molecule)
    atoms = _pdb_atoms(molecule.elements, positions)
    lines = [
        f"{line}          {element.upper():>2}{_pdb_charge(charges.get(i, 0))}\n"
        for i, (line, element) in enumerate(zip(atoms, molecule.elements, strict=True))
    ]
    lines += _conect(bonds)
    return remarks(molecule.name or name, facts) + "".join(lines).encode()


def _pdb_charge(charge: int) -> str:
    """Columns 79 and 80; empty where there is none, or it has no room."""
    sign = "-" if charge < 0 else "+"
    return f"{abs(charge)}{sign}" if 0 < abs(charge) <= MOST_CHARGE else ""


def _conect(bonds: Sequence[Bond]) -> list[str]:
    """A double bond repeats the partner, a triple one does twice; an aromatic one is said once."""
    partners: dict[int, list[int]] = {}
    for a, b, order in bonds:
        times = 1 if order >= AROMATIC else order
        partners.setdefault(a, []).extend([b + 1] * times)
        partners.setdefault(b, []).extend([a + 1] * times)
    lines = []
    for a, found in sorted(partners.items()):
        for at in range(0, len(found), 4):
            row = "".join(f"{b:5d}" for b in found[at : at + 4])
            lines.append(f"CONECT{a + 1:5d}{row}\n")
    return lines


def _build_pdbqt(molecule: Molecule, name: str, positions: Positions, facts: Facts) -> bytes:
    """Rigid: one root without torsions. Nonpolar hydrogens are merged into their carbons."""
    found = merged(molecule, typed(molecule))
    kept = [i for i, kind in enumerate(found.types) if kind]
    atoms = _pdb_atoms([molecule.elements[i] for i in kept], positions[kept])
    lines = [
        f"{line}{fitted(found.charges[i], 10, 3)} {found.types[i]:<2}\n"
        for i, line in zip(kept, atoms, strict=True)
    ]
    block = _build_sdf(molecule, name, molecule.positions, {})
    said = remarks_of(block, {row: serial for serial, row in enumerate(kept, 1)})
    root = "".join([*(f"{line}\n" for line in said), "ROOT\n", *lines, "ENDROOT\nTORSDOF 0\n"])
    return remarks(molecule.name or name, facts) + root.encode()


def _pdb_atoms(elements: Sequence[str], positions: Positions) -> list[str]:
    """The atoms' lines up to the temperature factor."""
    counts: dict[str, int] = {}
    lines = []
    for i, (element, place) in enumerate(zip(elements, positions.tolist(), strict=True), 1):
        counts[element] = counts.get(element, 0) + 1
        atom = f"{element.upper():>2}{counts[element]}"[:4]
        x, y, z = [fitted(number, 8, 3) for number in place]
        lines.append(f"HETATM{i % 100000:5d} {atom:<4} LIG A   1    {x}{y}{z}  1.00  0.00")
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

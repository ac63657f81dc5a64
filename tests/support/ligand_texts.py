"""A small ligand in each format, and helpers for texts of ligands."""

import re
from collections.abc import Sequence

from rdkit import Chem

from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import parse

ETHANOL = b"""ethanol
  test              3D

  4  3  0  0  0  0  0  0  0  0999 V2000
   -0.8883    0.1670   -0.0273 C   0  0  0  0  0  0  0  0  0  0  0  0
    0.4658   -0.5116   -0.0368 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.4311    0.3229    0.5867 O   0  0  0  0  0  0  0  0  0  0  0  0
    1.5211    1.1229   -0.0433 H   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
  3  4  1  0
M  END
> <vendor>
A-17

$$$$
"""
V3000 = b"""big
  test              3D

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 2 1 0 0 0
M  V30 BEGIN ATOM
M  V30 7 C -1.5 0.25 3 0 -
M  V30 CFG=1
M  V30 9 O 1.0 0.5 2.0 0
M  V30 END ATOM
M  V30 BEGIN BOND
M  V30 1 2 7 9
M  V30 END BOND
M  V30 END CTAB
M  END
$$$$
"""
MOL2 = b"""# a comment
@<TRIPOS>MOLECULE
phenol-ish
 4 3 1 0 0
SMALL
USER_CHARGES

@<TRIPOS>ATOM
      1 C1         -0.8883    0.1670   -0.0273 C.ar      1 LIG1        0.1000
      2 N1          0.4658   -0.5116   -0.0368 N.ar      1 LIG1       -0.2000
      3 O1          1.4311    0.3229    0.5867 O.3       1 LIG1       -0.4000
      4 H1          1.5211    1.1229   -0.0433 H         1 LIG1        0.5000
@<TRIPOS>BOND
     1     1     2   ar
     2     1     3    1
     3     3     4    1
"""
PDB = b"""REMARK  Name = water
ATOM      1  O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O
HETATM    2 CL   LIG A   1      -1.500   2.250   3.125  1.00  0.00          CL
HETATM    3 1HB  LIG A   1      -1.500   2.250   4.125  1.00  0.00
CONECT    1    2
END
"""
PDBQT = b"""REMARK  Name = thing
ROOT
HETATM    1  C11 BTN A 300       9.051   4.576 -14.459  1.00 21.57     0.172 N
HETATM    2  O11 BTN A 300       8.147   5.373 -14.172  1.00 21.65    -0.648 OA
HETATM    3  H1  BTN A 300       8.697   3.498 -15.132  1.00 22.67     0.164 HD
ENDROOT
TORSDOF 0
"""
XYZ = b"3\nwater-like\nO 0.0 0.1 0.25\nH   1.5 -2.0 3\n  17 1e0 2 3 extra\n"
# As AutoDock logs a docked pose, after lines of other matters and before a histogram.
DLG = b"AutoDock 4.2\nINPUT-LIGAND-PDBQT: " + b"".join(
    b"DOCKED: " + line for line in (b"MODEL        1\n" + PDBQT + b"ENDMDL\n").splitlines(True)
)
TEXTS = {
    "sdf": ETHANOL, "mol2": MOL2, "pdb": PDB, "pdbqt": PDBQT, "xyz": XYZ,
}  # fmt: skip
# Records that follow each other in a file.
MANY = {
    "sdf": [ETHANOL, V3000, ETHANOL.replace(b"\n", b"\r\n"), b"\n" + ETHANOL[8:]],
    "mol2": [MOL2, MOL2.replace(b"# a comment\n", b""), MOL2, b"\n##########  Name: 4\n" + MOL2],
    "pdb": [b"MODEL %8d\n" % number + PDB[:-4] + b"ENDMDL\n" for number in (1, 2)],
    "pdbqt": [b"MODEL 1\n" + PDBQT + b"ENDMDL\n"] * 3,
    "xyz": [XYZ, b"1\n\nC 1 2 3\n", XYZ],
}  # fmt: skip


def mol2(
    types: str, bonds: str, charges: Sequence[float | str] = (),
    places: Sequence[Sequence[float]] = (),
) -> bytes:  # fmt: skip
    """Return bonds as in `1-2:ar`, or single ones; uncharged atoms in a row, if not said."""
    kinds = types.split()
    said = charges or ["0"] * len(kinds)
    where = places or [(1.5 * i, 0, 0) for i in range(len(kinds))]
    atoms = [
        f"{i} A{i} {x} {y} {z} {kind} 1 LIG {charge}\n"
        for i, (kind, charge, (x, y, z)) in enumerate(zip(kinds, said, where, strict=True), 1)
    ]
    rows = [re.sub("[-:]", " ", bond if ":" in bond else f"{bond}:1") for bond in bonds.split()]
    joined = "".join(f"{i} {row}\n" for i, row in enumerate(rows, 1))
    head = f"@<TRIPOS>MOLECULE\nx\n{len(atoms)} {len(rows)}\nSMALL\nUSER_CHARGES\n\n"
    return f"{head}@<TRIPOS>ATOM\n{''.join(atoms)}@<TRIPOS>BOND\n{joined}".encode()


def posed(text: bytes, layout: str, fmt: str = "") -> str:
    """A record as a pose where it lies."""
    molecule = parse(text, layout)
    return render(molecule, "x", fmt or layout, molecule.positions, {}).decode()


def plain(smiles: str) -> str:
    """Return RDKit's SMILES of the first resonance structure, without stereo."""
    flat = Chem.MolFromSmiles(Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False))
    structures = [flat, *Chem.ResonanceMolSupplier(flat)]
    return min(Chem.MolToSmiles(each, isomericSmiles=False) for each in structures if each)


def charges_in(sdf: str, sanitize: bool = False) -> dict[int, int]:
    """Charges of atoms, from 1. sanitize: as RDKit understands them."""
    molecule = Chem.MolFromMolBlock(sdf, sanitize, False)
    assert molecule is not None, "RDKit makes no sense of it"
    charges = {atom.GetIdx() + 1: atom.GetFormalCharge() for atom in molecule.GetAtoms()}
    return {atom: charge for atom, charge in charges.items() if charge}

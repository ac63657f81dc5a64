"""Bonds and formal charges in another format, and what PDB says between its atoms."""

import re
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from support.ligand_texts import mol2, posed

from multigpu.formats.molecules.fields import format_number
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import parse

ROW = "HETATM{:5d} {:<4}{}LIG A   1    {:8.3f}{:8.3f}{:8.3f}{:>6}  0.00          {:>2}{}\n"
ACID = """acid
  test

  4  3  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 C   0  0
    1.2000    0.0000    0.0000 O   0  0
   -0.6000    1.1000    0.0000 O   0  5
   -0.8000   -1.2000    0.0000 C   0  0
  1  2  2  0
  1  3  1  0
  1  4  3  0
M  END
$$$$
"""
GUANIDINIUM = "C.cat N.pl3 N.pl3 N.pl3 H H H H H H"
CHARGED = b"    0.100 C"
ARMS = "1-2 1-3 1-4 2-5 2-6 3-7 3-8 4-9 4-10"


def pdb(*atoms: tuple[Any, ...], more: str = "") -> bytes:
    return ("".join(ROW.format(*atom) for atom in atoms) + more).encode()


def charges_in(sdf: str) -> dict[int, int]:
    """Of atoms, from 1."""
    atoms = Chem.MolFromMolBlock(sdf, sanitize=False, removeHs=False).GetAtoms()
    return {atom.GetIdx() + 1: e for atom in atoms if (e := atom.GetFormalCharge())}


def ends_in(pdb: str) -> list[str]:
    """Elements and charges, the last columns of atoms."""
    return [line[76:] for line in pdb.splitlines() if line.startswith("HETATM")]


# ---- another format ---------------------------------------------------------------------------


def test_pose__keeps_the_orders_of_bonds_in_sdf() -> None:
    """Of a ring that is aromatic; V3000 says the same."""
    ring = "1-2:ar 2-3:ar 3-4:ar 4-5:ar 5-6:ar 6-1:ar"
    text = mol2("C.ar " * 6 + "C.2 O.2 C.1 N.1", f"{ring} 2-7 7-8:2 7-9 9-10:3 1-7:am")
    found = parse(posed(text, "mol2", "sdf").encode(), "sdf")
    wanted = [(i, (i + 1) % 6, 4) for i in range(6)]
    wanted += [(1, 6, 1), (6, 7, 2), (6, 8, 1), (8, 9, 3), (0, 6, 1)]
    assert found.bonds == parse(text, "mol2").bonds == wanted


def test_pose__keeps_bonds_and_charges_of_sdf_in_pdb() -> None:
    text = posed(ACID.encode(), "sdf", "pdb")
    assert re.findall(r"^CONECT.*$", text, re.MULTILINE) == [
        "CONECT    1    2    2    3    4", "CONECT    1    4    4", "CONECT    2    1    1",
        "CONECT    3    1", "CONECT    4    1    1    1",
    ]  # fmt: skip
    assert ends_in(text) == [" C", " O", " O1-", " C"]
    assert parse(text.encode(), "pdb").bonds == parse(ACID.encode(), "sdf").bonds


def test_pose__has_the_charges_that_an_sdf_says_last() -> None:
    text = ACID.replace("M  END", "M  CHG  1   1   2\nM  END")
    assert ends_in(posed(text.encode(), "sdf", "pdb")) == [" C2+", " O", " O", " C"]


@pytest.mark.parametrize(
    "atoms",
    [
        "M  V30 1 N 0 0 0 0 CHG=1\nM  V30 2 O 1 0 0 0 CHG=-1 RAD=1\n",
        "M  V30 1 N 0 0 0 0 -\nM  V30 CHG=1\nM  V30 2 O 1 0 0 0 RAD=1-\nM  V30  CHG=-1\n",
        "M  V30 1 N 0 -\nM  V30 0 0 0 -\nM  V30 CHG=1\nM  V30 2 O 1 0 0 0 CH-\nM  V30 G=-1\n",
    ],
    ids=["one line", "two lines", "three lines"],
)
def test_pose__has_the_charges_of_v3000(atoms: str) -> None:
    text = (
        "x\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
        "M  V30 COUNTS 2 0 0 0 0\nM  V30 BEGIN ATOM\n"
        f"{atoms}M  V30 END ATOM\nM  V30 END CTAB\nM  END\n$$$$\n"
    )
    for again in (text, posed(text.encode(), "sdf")):
        assert ends_in(posed(again.encode(), "sdf", "pdb")) == [" N1+", " O1-"]
        assert charges_in(again) == {1: 1, 2: -1}


@pytest.mark.parametrize(
    ("types", "bonds", "orders", "charges"),
    [
        ("C.3 C.2 O.co2 O.co2", "1-2 2-3:ar 4-2:ar", [1, 2, 1], {4: -1}),
        ("C.3 C.2 O.co2 O.co2", "1-2 2-3:1 2-4:2", [1, 1, 2], {3: -1}),
        ("C.3 P.3 O.co2 O.co2 O.co2", "1-2 2-3:ar 2-4:ar 2-5:ar", [1, 2, 1, 1], {4: -1, 5: -1}),
        ("C.3 S.o2 O.co2 O.co2 O.co2", "1-2 2-3:ar 2-4:ar 2-5:ar", [1, 2, 2, 1], {5: -1}),
        ("C.3 N.pl3 O.2 O.2", "1-2 2-3:2 2-4:1", [1, 2, 1], {2: 1, 4: -1}),
        ("N.4 H H H C.3", "1-2 1-3 1-4 1-5", [1, 1, 1, 1], {1: 1}),
        ("N.4 C.3", "1-2", [1], {1: 1}),
        (GUANIDINIUM, ARMS.replace("1-2 1-3 1-4", "1-2:ar 1-3:ar 1-4:ar"),
         [2, 1, 1, 1, 1, 1, 1, 1, 1], {2: 1}),
        ("C.3 O.3 H N.am", "1-2 2-3 1-4:am", [1, 1, 1], {}),
    ],
)  # fmt: skip
def test_charges__follow_from_types_and_valences(
    types: str, bonds: str, orders: list[int], charges: dict[int, int]
) -> None:
    text = posed(mol2(types, bonds), "mol2", "sdf")
    assert [order for _, _, order in parse(text.encode(), "sdf").bonds] == orders
    assert charges_in(text) == charges
    assert Chem.MolFromMolBlock(text, removeHs=False), "RDKit makes no sense of it"


def test_charges__of_many_atoms_take_several_lines() -> None:
    types = " ".join(["N.4 C.3"] * 10)
    text = posed(mol2(types, " ".join(f"{i}-{i + 1}" for i in range(1, 20, 2))), "mol2", "sdf")
    assert re.findall("^M  CHG...", text, re.MULTILINE) == ["M  CHG  8", "M  CHG  2"]
    assert charges_in(text) == dict.fromkeys(range(1, 20, 2), 1)


def test_charges__of_ammonium_in_pdbqt_are_read_by_rdkit() -> None:
    places = [(0, 0, 0), (0.6, 0.6, 0.6), (-0.6, -0.6, 0.6), (-0.6, 0.6, -0.6), (0.6, -0.6, -0.6)]
    row = "HETATM{:5d}  X   LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 {}\n"
    kinds = ("N", "HD", "HD", "HD", "HD")
    rows = [
        row.format(i, *at, kind) for i, (at, kind) in enumerate(zip(places, kinds, strict=True))
    ]
    text = posed("".join(["ROOT\n", *rows, "ENDROOT\nTORSDOF 0\n"]).encode(), "pdbqt", "sdf")
    assert Chem.MolToSmiles(Chem.MolFromMolBlock(text)) == "[NH4+]"


# ---- what PDB says ----------------------------------------------------------------------------


def test_pdb__has_the_bonds_of_conect_and_others_by_distance() -> None:
    atoms = [(i, f" C{i}", " ", 1.4 * i, 0, 0, "1.00", "C", "") for i in (1, 2, 3, 4)]
    text = pdb(*atoms, more="CONECT    1    2    2\nCONECT    2    1    1   99\nCONECT    7    1\n")
    assert parse(text, "pdb").bonds == [(0, 1, 2)]
    found = parse(posed(text, "pdb", "sdf").encode(), "sdf")
    assert found.bonds == [(0, 1, 2), (1, 2, 1), (2, 3, 1)]
    assert "CONECT    1    2    2\n" in posed(text, "pdb")


def test_pdb__has_one_location_of_each_residue() -> None:
    """That with the largest occupancy of its atoms together; of atoms without others, too."""
    atoms = [
        (1, " C1", "A", 0, 0, 0, "0.40", "C", ""), (2, " C1", "B", 1, 0, 0, "0.60", "C", ""),
        (3, " O1", " ", 2, 0, 0, "0.10", "O", ""), (4, " N1", "A", 3, 0, 0, "0.50", "N", ""),
        (5, " N1", "B", 4, 0, 0, "0.50", "N", ""), (6, " F1", "A", 5, 0, 0, "0.10", "F", ""),
    ]  # fmt: skip
    more = "ANISOU    1  C1 ALIG A   1      1\nANISOU    2  C1 BLIG A   1      1\n"
    text = pdb(*atoms, more=more)
    molecule = parse(text, "pdb")
    assert molecule.positions[:, 0].tolist() == [1, 2, 4]
    pose = posed(text, "pdb")
    assert [line[6:11].strip() for line in pose.splitlines() if line[:3] in ("HET", "ANI")] == [
        "2", "3", "5", "2",
    ]  # fmt: skip
    assert parse(pose.encode(), "pdb").positions.tolist() == molecule.positions.tolist()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("CONECT    1    3", ""),
        ("CONECT    3    1", ""),
        ("CONECT    3    1    2", "CONECT    3    2"),
        ("CONECT    3    2    1    4    1", "CONECT    3    2    4"),
        ("CONECT    3    2    4    4", "CONECT    3    2    4    4"),
        ("CONECT    3    2    1              4", "CONECT    3    2                   4"),
        ("CONECT   99    1    2", "CONECT   99    2"),
        ("CONECT    5    3", "CONECT    5    3"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pdb__has_no_conect_of_the_places_that_are_not_taken(
    said: str, kept: str, end: str
) -> None:
    """Atom 1 is dropped; of two atoms with number 5 one stays."""
    atoms = [
        (1, " C1", "A", 0, 0, 0, "0.40", "C", ""), (2, " C1", "B", 1, 0, 0, "0.60", "C", ""),
        (3, " O1", " ", 2, 0, 0, "1.00", "O", ""), (4, " N1", " ", 3, 0, 0, "1.00", "N", ""),
        (5, " N2", "A", 4, 0, 0, "0.50", "N", ""), (5, " N2", "B", 5, 0, 0, "0.50", "N", ""),
    ]  # fmt: skip
    pose = posed(pdb(*atoms, more=said + end), "pdb")
    assert [line for line in pose.splitlines(True) if "CONECT" in line] == [kept + end] * bool(kept)
    assert posed(pose.encode(), "pdb") == pose


def test_pdb__charges_reach_sdf() -> None:
    text = pdb((1, "CA", " ", 0, 0, 0, "1.00", "CA", "2+"), (2, " O", " ", 9, 0, 0, "", "O", "1-"))
    assert charges_in(posed(text, "pdb", "sdf")) == {1: 2, 2: -1}


@pytest.mark.parametrize(
    ("name", "element"),
    [
        ("HG11", "H"), ("HE21", "H"), ("HO3'", "H"), ("1HB ", "H"), (" HG ", "H"), ("HG  ", "Hg"),
        ("CL  ", "Cl"), (" CA ", "C"), ("CA  ", "Ca"), ("2H5'", "H"), ("CL11", "Cl"),
    ],
)  # fmt: skip
def test_pdb__elements_follow_from_names(name: str, element: str) -> None:
    assert parse(pdb((1, name, " ", 0, 0, 0, "", "", "")), "pdb").elements == [element]


# ---- coordinates in columns -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.5, "   1.500"), (-999.9994, "-999.999"), (-999.9996, "-1000.00"),
        (12345.678, "12345.68"), (-123456.5, "-123456."), (999999.4, "999999.4"),
        (9999999.0, "9999999."), (-0.0, "  -0.000"),
    ],
)  # fmt: skip
def test_number__has_as_many_decimals_as_its_columns_hold(number: float, text: str) -> None:
    assert format_number(number, 8, 3) == text


@pytest.mark.parametrize("number", [-999999.7, 1e7])
def test_number__that_does_not_fit_is_refused(number: float) -> None:
    with pytest.raises(MoleculeError, match="does not fit the 8 columns"):
        format_number(number, 8, 3)


@pytest.mark.parametrize("fmt", ["sdf", "pdb", "pdbqt"])
@pytest.mark.parametrize("layout", ["mol2", "sdf", "pdb", "pdbqt"])
def test_pose__far_out_is_read_where_it_was_written(layout: str, fmt: str) -> None:
    """Columns do not run into each other."""
    if layout == "pdb" and fmt == "pdbqt":
        pytest.skip("PDB has no charges")
    text = {
        "mol2": mol2("C.3 O.2", "1-2:2"),
        "sdf": ACID.replace("1  4  3", "1  4  1").encode(),
        "pdb": pdb((1, " C", " ", 0, 0, 0, "1.00", "C", "")),
        "pdbqt": pdb((1, " C", " ", 0, 0, 0, "1.00", "C", "")).replace(10 * b" " + b"C", CHARGED),
    }[layout]  # fmt: skip
    molecule = parse(text, layout)
    for far in (-1234.5678, 98765.4321, -98765.4):
        places = molecule.positions + np.array([far, -far, far])
        again = parse(render(molecule, "x", fmt, places, {}), fmt)
        np.testing.assert_allclose(again.positions, places, atol=0.51)
        assert again.elements == molecule.elements

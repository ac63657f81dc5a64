"""What PDB says, and poses in it: bonds, locations, elements, charges."""

from typing import Any

import pytest
from support.ligand_texts import PDB, charges_in, posed

from multigpu.formats.molecules.registry import parse

ROW = "HETATM{:5d} {:<4}{}LIG A   1    {:8.3f}{:8.3f}{:8.3f}{:>6}  0.00          {:>2}{}\n"


def pdb(*atoms: tuple[Any, ...], more: str = "") -> bytes:
    return ("".join(ROW.format(*atom) for atom in atoms) + more).encode()


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
    lines = [line for line in pose.splitlines() if line[:3] in ("HET", "ANI")]
    assert [line[6:11].strip() for line in lines] == ["2", "3", "5", "2"]
    assert parse(pose.encode(), "pdb").positions.tolist() == molecule.positions.tolist()


@pytest.mark.parametrize(("said", "is_kept"), [
    ("CONECT    1    3", False), ("CONECT    3    2    1    4    1", False),
    ("CONECT    3    2    4", True), ("CONECT   99    2", True),
    ("CONECT    5    3", True),
])  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pdb__has_no_conect_of_places_not_taken(said: str, is_kept: bool, end: str) -> None:
    """Atom 1 is dropped; of two atoms with number 5 one stays."""
    atoms = [
        (1, " C1", "A", 0, 0, 0, "0.40", "C", ""), (2, " C1", "B", 1, 0, 0, "0.60", "C", ""),
        (3, " O1", " ", 2, 0, 0, "1.00", "O", ""), (4, " N1", " ", 3, 0, 0, "1.00", "N", ""),
        (5, " N2", "A", 4, 0, 0, "0.50", "N", ""), (5, " N2", "B", 5, 0, 0, "0.50", "N", ""),
    ]  # fmt: skip
    pose = posed(pdb(*atoms, more=said + end), "pdb")
    assert ("CONECT" in pose) == is_kept
    assert posed(pose.encode(), "pdb") == pose


def test_pdb__charges_reach_sdf() -> None:
    text = pdb((1, "CA", " ", 0, 0, 0, "1.00", "CA", "2+"), (2, " O", " ", 9, 0, 0, "", "O", "1-"))
    assert charges_in(posed(text, "pdb", "sdf")) == {1: 2, 2: -1}


@pytest.mark.parametrize(("name", "element"), [
    ("HG11", "H"), ("HE21", "H"), ("HO3'", "H"), ("1HB ", "H"), (" HG ", "H"), ("HG  ", "Hg"),
    ("CL  ", "Cl"), (" CA ", "C"), ("CA  ", "Ca"), ("2H5'", "H"), ("CL11", "Cl"),
])  # fmt: skip
def test_pdb__elements_follow_from_names(name: str, element: str) -> None:
    assert parse(pdb((1, name, " ", 0, 0, 0, "", "", "")), "pdb").elements == [element]


def test_pdb__an_element_of_other_digits_is_no_number() -> None:
    line = PDB.replace(b"           O\n", "          ²\n".encode())
    assert parse(line, "pdb").elements[0] == "²"

"""What is in a ligand's record: atoms, places, bonds; or what is wrong with it."""

import numpy as np
import pytest
from rdkit import Chem
from support.ligand_texts import ETHANOL, MOL2, PDB, PDBQT, V3000, XYZ

from multigpu.formats.molecules.elements import is_element
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import SAME, render
from multigpu.formats.molecules.registry import FORMATS, parse


@pytest.mark.parametrize(
    ("text", "layout", "name", "elements", "first", "bonds"),
    [
        (ETHANOL, "sdf", "ethanol", "C C O H", (-0.8883, 0.1670, -0.0273), 3),
        (V3000, "sdf", "big", "C O", (-1.5, 0.25, 3), 1),
        (MOL2, "mol2", "phenol-ish", "C N O H", (-0.8883, 0.1670, -0.0273), 3),
        (PDB, "pdb", "water", "O Cl H", (1, 2, 3), 1),
        (PDBQT, "pdbqt", "thing", "N O H", (9.051, 4.576, -14.459), 0),
        (XYZ, "xyz", "water-like", "O H Cl", (0, 0.1, 0.25), 0),
    ],
)
def test_parse__gives_atoms_in_their_order(
    text: bytes, layout: str, name: str, elements: str, first: tuple[float, ...], bonds: int
) -> None:
    molecule = parse(text, layout)
    assert molecule.name == name
    assert " ".join(molecule.elements) == elements
    assert molecule.positions[0].tolist() == list(first)
    assert len(molecule.bonds) == bonds


@pytest.mark.parametrize(
    ("layout", "text", "problem"),
    [
        ("sdf", ETHANOL[:200], "it ends at line 6, before the last of 4 atoms and 3 bonds"),
        ("sdf", ETHANOL.replace(b"  4  3", b"  x  3"), "line 4: '  x   3' should be whole numbers"),
        ("sdf", ETHANOL.replace(b"0.4658", b"0.x658"), "line 6: the coordinates .* cannot be read"),
        ("sdf", ETHANOL.replace(b"0.4658", b"   nan"), "line 6: the coordinates are not finite"),
        ("sdf", ETHANOL.replace(b"0.4658", b"2e99  "), "line 6: .* are beyond ±100000 Å"),
        ("sdf", ETHANOL.replace(b"  2  3  1", b"  2  9  1"), "line 10: a bond between .* 2 and 9"),
        ("sdf", ETHANOL.replace(b"M  END", b""), "before its 'M  END'"),
        ("sdf", b"only\n", "it ends at line 1, before its counts line"),
        ("sdf", ETHANOL.replace(b"  4  3", b"  0  0"), "it has no atoms"),
        ("sdf", V3000.replace(b"7 9\n", b"7 8\n"), "line 13: a bond between atoms 1 and 0 of 2"),
        ("mol2", MOL2.replace(b" 4 3 1", b" 5 3 1"), "it has 4 atoms where its header says 5"),
        ("mol2", MOL2.replace(b"O.3  ", b"     ").replace(b"1 LIG1       -0.4000", b""),
         "line 11: an atom needs"),
        ("mol2", b"@<TRIPOS>MOLECULE\nx\n", "it has no atoms"),
        ("pdb", PDB.replace(b"2.000", b"2.0.0"), "line 2: the coordinates .* cannot be read"),
        ("pdbqt", PDBQT.replace(b"OA\n", b"\n"), "line 4: the atom has no AutoDock type"),
        ("pdbqt", PDBQT.replace(b"-0.648", b"      "), "line 4: the charge"),
        ("xyz", XYZ[:40], "it ends at line 4, before the last of 3 atoms"),
        ("xyz", XYZ.replace(b" 3\n", b"\n"), "line 4: an atom needs a symbol and a place"),
        ("xyz", b"many\n", "line 1: 'many' should be whole numbers"),
        ("xyz", XYZ.replace(b"3\n", b"-2147483649\n", 1), "line 1: there cannot be -2147483649"),
        ("mol2", MOL2.replace(b"0.1000", b"inf   "), "line 9: atom 1 has a charge of inf"),
        ("mol2", MOL2.replace(b"-0.2000", b"-1e308 "), r"line 10: atom 2 has a charge of -1e\+308"),
        ("pdbqt", PDBQT.replace(b" 0.172", b"   nan"), "line 3: atom 1 has a charge of nan"),
        ("pdbqt", PDBQT.replace(b" 0.172", b"1000.5"), "line 3: atom 1 has a charge of 1000.5"),
        ("pdbqt", PDBQT.replace(b" 0.172", b" -1001"), "line 3: atom 1 has a charge of -1001"),
        ("sdf", ETHANOL.replace(b"  4  3", b"-10-10"), "no numbers of atoms and bonds"),
        ("sdf", b"\n" + ETHANOL, "^line 5 is its counts line.*blank lines before"),
        ("sdf", b"\n\n\n" + ETHANOL, "^line 7 is its counts line.*blank lines before"),
        ("mol2", MOL2.replace(b" 4 3 1", b"9" * 5000 + b" 3 1"), "4 atoms where its header says 9"),
        ("mol2", MOL2.replace(b"phenol-ish\n 4", b"\n 5"), "4 atoms where its header says 5"),
        ("mol2", MOL2.replace(b" C1  ", b" C 1 ").replace(b"  1 LIG1        0.1000", b""),
         "line 9: the type of the atom is '-0.0273': is there a"),
        ("xyz", b"2\na\nC 0 0 0\n", "^it ends at line 3, before the last of 2 atoms$"),
        ("xyz", b"1\na\nC 0 0 0\nC 1 0 0\n",
         "^line 4: there is more than the 1 atoms it says; its 4 lin"),
        ("xyz", b"\n1\na\nC 0 x 0\nb\nc\n",
         "^line 4: the coord.*; its 5 lines, up to .* are not read$"),
        ("xyz", b"what\nis\nit\n", "^line 1: 'what' should be whole numbers; its 3 lines"),
        ("xyz", b"\n \n", "^line 1: '' should be whole numbers"),
    ],
)  # fmt: skip
def test_parse__says_what_is_wrong_and_where(layout: str, text: bytes, problem: str) -> None:
    with pytest.raises(MoleculeError, match=problem):
        parse(text, layout)


def test_parse__an_element_of_other_digits_is_no_number() -> None:
    line = PDB.replace(b"           O\n", "          ²\n".encode())
    assert parse(line, "pdb").elements[0] == "²"


# ---- names ------------------------------------------------------------------------------------


def test_mol2__with_a_blank_name_has_none() -> None:
    assert parse(MOL2.replace(b"phenol-ish", b" "), "mol2").name == ""
    assert parse(MOL2.replace(b"phenol-ish", b"#5"), "mol2").name == "#5"
    assert FORMATS["mol2"].read_name(b"@<TRIPOS>MOLECULE\n") == ""
    assert FORMATS["mol2"].read_name(b"x\n") == ""


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        (b"a score=1 of mine", "a score=1 of mine"),
        (b"a score=1 pose=2", "a score=1 pose=2"),
        (b"a score=1.5 pose=1 rotation=7 rmsd_to_input=0.5 and more",
         "a score=1.5 pose=1 rotation=7 rmsd_to_input=0.5 and more"),
        (b"a score=x score=-1.500000 pose=1 rotation=7 rmsd_to_input=0.5000", "a score=x"),
        (b" score=-1.500000 pose=1 rotation=7 rmsd_to_input=0.5000", ""),
    ],
)  # fmt: skip
def test_xyz__is_called_like_its_comment_without_the_facts_of_a_pose(
    comment: bytes, name: str
) -> None:
    assert parse(XYZ.replace(b"water-like", comment), "xyz").name == name


# ---- elements ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "element"),
    [
        ("C1", "C"), ("FE2", "Fe"), ("cl12", "Cl"), ("17", "Cl"), ("6", "C"), ("0", "0"),
        ("999", "999"), ("D", "D"), ("Bq", "Bq"), ("Bq1", "Bq"), ("C1A", "C1a"),
    ],
)  # fmt: skip
def test_xyz__labels_may_be_numbered(label: str, element: str) -> None:
    assert parse(f"1\n\n{label} 0 0 0\n".encode(), "xyz").elements == [element]


def test_pdbqt__carbons_of_an_open_macrocycle_are_carbon() -> None:
    for number in range(4):
        text = PDBQT.replace(b" OA\n", b" CG%d\n" % number).replace(b" HD\n", b" G%d\n" % number)
        molecule = parse(text, "pdbqt")
        assert molecule.elements == ["N", "C", f"G{number}"]
        assert molecule.types == ["N", f"CG{number}", f"G{number}"]


@pytest.mark.parametrize(
    ("symbol", "known"),
    [
        ("C", True), ("Cl", True), ("CL", True), ("D", True), ("T", True), ("", False),
        ("*", False),
        ("6", False), ("G0", False), ("Cg0", False), ("Lp", False), ("Du", False), ("²", False),
    ],
)  # fmt: skip
def test_element__is_in_the_periodic_table(symbol: str, known: bool) -> None:
    assert is_element(symbol) == known


# ---- lines of V3000 that go on ----------------------------------------------------------------

CONTINUED = [
    pytest.param(b"0 -\nM  V30 CFG=1", id="nothing of the place"),
    pytest.param(b"0-\nM  V30  CFG=1", id="behind a word"),
    pytest.param(b"0 CFG-\nM  V30 =-\nM  V30 1", id="within a word"),
]
BROKEN = [
    pytest.param(b"-1.5 -\nM  V30 0.25 3 0 CFG=1", id="the rest of the place"),
    pytest.param(b"-\nM  V30 -1.5 0.25 3 0 CFG=1", id="all of the place"),
    pytest.param(b"-1.5 0.2-\nM  V30 5 3 0 CFG=1", id="within a number"),
    pytest.param(b"-1.5 0.25 -\nM  V30 -\nM  V30 3 0 -\nM  V30 CFG=1", id="several lines"),
    pytest.param(b"-1.5 0.25 3-\nM  V30  0 CFG=1", id="perhaps the last number"),
]


@pytest.mark.parametrize("new", CONTINUED)
def test_v3000__lines_that_go_on_keep_their_bytes(new: bytes) -> None:
    text = V3000.replace(b"0 -\nM  V30 CFG=1", new)
    assert parse(text, "sdf").positions.tolist() == [[-1.5, 0.25, 3], [1, 0.5, 2]]
    assert parse(text, "sdf").text == text


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
@pytest.mark.parametrize("new", BROKEN)
def test_v3000__places_that_go_on_are_read_and_gathered(new: bytes, ends: bytes) -> None:
    text = V3000.replace(b"-1.5 0.25 3 0 -\nM  V30 CFG=1", new).replace(b"\n", ends)
    molecule = parse(text, "sdf")
    assert molecule.positions.tolist() == [[-1.5, 0.25, 3], [1, 0.5, 2]]
    assert molecule.bonds == parse(V3000, "sdf").bonds
    pose = render(molecule, "", SAME, np.array([[1.0, 2, 3], [4, 5, 6]]), {})
    assert b"M  V30 7 C 1.000000 2.000000 3.000000" in pose
    assert pose.count(b"\n") == pose.count(ends)
    again = parse(pose, "sdf")
    assert again.positions.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (again.bonds, again.elements) == (molecule.bonds, molecule.elements)
    assert (b"CFG=1" in pose) == (b"CFG=1" in new)
    read = Chem.MolFromMolBlock(pose.partition(b"$$$$")[0].decode(), False, False)
    assert read.GetConformer().GetPositions().tolist() == [[1, 2, 3], [4, 5, 6]]


def test_v3000__a_place_that_goes_on_with_nothing_behind_it_is_one_line() -> None:
    whole = V3000.replace(b"3 0 -\nM  V30 CFG=1", b"3")
    assert parse(whole.replace(b" 3\n", b" -\nM  V30 3\n"), "sdf").text == whole


def test_v3000__bonds_go_on_in_other_lines() -> None:
    text = V3000.replace(b"1 2 7 9", b"1 2 -\nM  V30 7 9")
    assert parse(text, "sdf").bonds == parse(V3000, "sdf").bonds


def test_v3000__that_ends_within_a_line_says_so() -> None:
    with pytest.raises(MoleculeError, match=r"^it ends at line 8, before its 'M  END'$"):
        parse(V3000.partition(b"M  V30 CFG=1")[0], "sdf")

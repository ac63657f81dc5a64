"""What SDF says, of V2000 and of V3000: ends, blocks, charges, lines that continue."""

import numpy as np
import pytest
from rdkit import Chem
from support.ligand_texts import ETHANOL, V3000, charges_in, posed

from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse


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
        graph = parse(again.encode(), "sdf").formal
        assert graph == {0: 1, 1: -1}
        assert charges_in(again) == {1: 1, 2: -1}


@pytest.mark.parametrize("value", [b"$$$$ 5 per mg", b"$$$$x", b"$$$$$"])
def test_sdf__ends_where_the_line_is_dollars_alone(value: bytes) -> None:
    record = ETHANOL.replace(b"A-17", value)
    for text in (record + record, (record + record).replace(b"\n", b"\r\n")):
        assert FORMATS["sdf"].find_ends(text, False) == [len(text) // 2, len(text)]
    molecule = parse(record, "sdf")
    pose = render(molecule, "", "sdf", molecule.positions, {"score": "1"})
    assert b"\n" + value + b"\n\n> <multigpu_score>\n1\n\n$$$$\n" in pose


def test_sdf__blanks_after_the_dollars_are_nothing() -> None:
    text = ETHANOL[:-1] + b"  \n"
    assert FORMATS["sdf"].find_ends(text * 2, False) == [len(text), 2 * len(text)]
    molecule = parse(text, "sdf")
    assert render(molecule, "", "sdf", molecule.positions, {}).count(b"$$$$") == 1


def test_v2000__radicals_supersede_the_charges_of_the_atoms() -> None:
    text = ETHANOL.replace(b"O   0  0", b"O   0  5")
    molecule = parse(text, "sdf")
    assert molecule.format.bond_graph(molecule).charges == {2: -1}
    for line, charges in ((b"M  RAD  1   1   2\n", {}), (b"M  CHG  1   1   1\n", {0: 1})):
        molecule = parse(text.replace(b"M  END", line + b"M  END"), "sdf")
        assert molecule.format.bond_graph(molecule).charges == charges
        molecule = parse(text.replace(b"A-17", line.rstrip()), "sdf")  # data say nothing
        assert molecule.format.bond_graph(molecule).charges == {2: -1}


@pytest.mark.parametrize("block", [b"RGROUP 1", b"TEMPLATE"])
def test_v3000__atoms_of_other_blocks_are_not_of_the_molecule(block: bytes) -> None:
    inner = V3000.partition(b"999 V3000\n")[2].partition(b"M  END")[0].replace(b" 7 ", b" 9 ")
    more = b"M  V30 BEGIN %b\n%bM  V30 END %b\n" % (block, inner, block.split()[0])
    plain, molecule = parse(V3000, "sdf"), parse(V3000.replace(b"M  END", more + b"M  END"), "sdf")
    assert molecule.positions.tolist() == plain.positions.tolist()
    assert (molecule.elements, molecule.bonds) == (plain.elements, plain.bonds)


def test_sdf__symbols_have_their_usual_capitals() -> None:
    assert parse(ETHANOL.replace(b" O  ", b" BR "), "sdf").elements == ["C", "C", "Br", "H"]
    assert parse(V3000.replace(b" O ", b" CL "), "sdf").elements == ["C", "Cl"]


CONTINUED = [
    pytest.param(b"0 -\nM  V30 CFG=1", id="nothing of the place"),
    pytest.param(b"0-\nM  V30  CFG=1", id="behind a word"),
    pytest.param(b"0 CFG-\nM  V30 =-\nM  V30 1", id="within a word"),
]


BROKEN = [
    pytest.param(b"-1.5 -\nM  V30 0.25 3 0 CFG=1", id="the rest of the place"),
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
    pose = render(molecule, "", "sdf", np.array([[1.0, 2, 3], [4, 5, 6]]), {})
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


# ---- conformers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "is_conformer"),
    [
        (b"-0.8883", b" 1.5000", True), (b"ethanol", b"other", True), (b"A-17", b"B-4", True),
        (b"  1  2  1  0", b"  1  2  1  6", True), (b"  1  2  1  0", b"  1  2  2  0", False),
        (b" O   0", b" S   0", False), (b" O   0  0", b" O   0  3", False),
        (b"M  END", b"M  CHG  1   3   1\nM  END", False),
    ],
)  # fmt: skip
def test_conformer__has_the_same_atoms_bonds_and_charges(
    old: bytes, new: bytes, is_conformer: bool
) -> None:
    other = parse(ETHANOL.replace(old, new), "sdf")
    assert other.is_conformer_of(parse(ETHANOL, "sdf")) == is_conformer

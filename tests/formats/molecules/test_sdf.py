"""What SDF says, of V2000 and of V3000: ends, blocks, charges, lines that continue."""

import numpy as np
import pytest
from support.ligand_texts import ETHANOL, V3000, charges_in, posed

from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse


@pytest.mark.parametrize("atoms", [
    "M  V30 1 N 0 0 0 0 CHG=1\nM  V30 2 O 1 0 0 0 CHG=-1 RAD=1\n",
    "M  V30 1 N 0 0 0 0 -\nM  V30 CHG=1\nM  V30 2 O 1 0 0 0 RAD=1-\nM  V30  CHG=-1\n",
    "M  V30 1 N 0 -\nM  V30 0 0 0 -\nM  V30 CHG=1\nM  V30 2 O 1 0 0 0 CH-\nM  V30 G=-1\n",
], ids=["one line", "two lines", "three lines"])  # fmt: skip
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


def test_sdf__blanks_after_the_dollars_are_nothing_and_symbols_have_usual_capitals() -> None:
    text = ETHANOL[:-1] + b"  \n"
    assert FORMATS["sdf"].find_ends(text * 2, False) == [len(text), 2 * len(text)]
    molecule = parse(text, "sdf")
    assert render(molecule, "", "sdf", molecule.positions, {}).count(b"$$$$") == 1
    assert parse(ETHANOL.replace(b" O  ", b" BR "), "sdf").elements == ["C", "C", "Br", "H"]
    assert parse(V3000.replace(b" O ", b" CL "), "sdf").elements == ["C", "Cl"]


def test_v2000__radicals_supersede_the_charges_of_the_atoms() -> None:
    text = ETHANOL.replace(b"O   0  0", b"O   0  5")
    radical, charge = b"M  RAD  1   1   2\n", b"M  CHG  1   1   1\n"
    for changed, charges in (
        (text, {2: -1}),
        (text.replace(b"M  END", radical + b"M  END"), {}),
        (text.replace(b"M  END", charge + b"M  END"), {0: 1}),
        (text.replace(b"A-17", radical.rstrip()), {2: -1}),  # data say nothing
        (text.replace(b"A-17", charge.rstrip()), {2: -1}),
    ):
        molecule = parse(changed, "sdf")
        assert molecule.format.bond_graph(molecule).charges == charges


@pytest.mark.parametrize("block", [b"RGROUP 1", b"TEMPLATE"])
def test_v3000__with_blocks_of_other_molecules_is_refused(block: bytes) -> None:
    inner = V3000.partition(b"999 V3000\n")[2].partition(b"M  END")[0].replace(b" 7 ", b" 9 ")
    more = b"M  V30 BEGIN %b\n%bM  V30 END %b\n" % (block, inner, block.split()[0])
    with pytest.raises(MoleculeError, match="RDKit does not read its table of V3000"):
        parse(V3000.replace(b"M  END", more + b"M  END"), "sdf")


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_v3000__is_written_as_v2000(end: bytes) -> None:
    text = V3000.replace(b"M  END\n", b"M  END\n> <id>\n5\n\n").replace(b"\n", end)
    molecule = parse(text, "sdf")
    pose = render(molecule, "", "sdf", np.array([[1.0, 2, 3], [4, 5, 6]]), {"score": "1"})
    assert pose.count(b"\n") == pose.count(end)
    assert b"V2000" in pose
    assert end.join([b"> <id>", b"5", b"", b"> <multigpu_score>", b"1", b"", b"$$$$"]) in pose
    again = parse(pose, "sdf")
    assert again.positions.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert (again.name, again.bonds, again.elements) == ("big", [(0, 1, 2)], ["C", "O"])


@pytest.mark.parametrize(("old", "new", "is_conformer"), [
    (b"-0.8883", b" 1.5000", True), (b"ethanol", b"other", True), (b"A-17", b"B-4", True),
    (b"  1  2  1  0", b"  1  2  1  6", True), (b"  1  2  1  0", b"  1  2  2  0", False),
    (b" O   0", b" S   0", False), (b" O   0  0", b" O   0  3", False),
    (b"M  END", b"M  CHG  1   3   1\nM  END", False),
])  # fmt: skip
def test_conformer__has_the_same_bonds(old: bytes, new: bytes, is_conformer: bool) -> None:
    other = parse(ETHANOL.replace(old, new), "sdf")
    assert other.is_conformer_of(parse(ETHANOL, "sdf")) == is_conformer

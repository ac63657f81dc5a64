"""SDF in columns: the same as one by one, or left to that."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from support.examples import trials
from support.ligand_texts import is_clear

from multigpu.formats.molecules import sdf
from multigpu.formats.molecules.columns import LigandColumns, Positions, write_poses
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.sdf import COORDINATES
from multigpu.workloads.dock.ligands import lacks_hydrogens

REGULAR = b"""ethanol
  test              3D

  4  3  0  0  0  0  0  0  0  0999 V2000
   -0.8883    0.1670   -0.0273 C   0  0  0  0  0  0  0  0  0  0  0  0
    0.4658   -0.5116-9999.9999 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.4311   +0.3229   -0.0000 O   0  0  0  0  0  0  0  0  0  0  0  0
     1.521    1.1229    .0433  H   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
  3  4  1  0
M  END
> <vendor>
A-17

$$$$
"""
FACTS = {"score": "1.500000", "pose": "1"}
ODD = [
    pytest.param(b"V2000", b"V3000", id="V3000"),
    pytest.param(b" V2000", b"", id="no version"),
    pytest.param(b"V2000", b"V2000 V3000", id="two versions"),
    pytest.param(b"  4  3", b"-10-10", id="negative numbers"),
    pytest.param(b"  4  3", b"  5  3", id="more atoms"),
    pytest.param(b"  4  3", b"  3  3", id="fewer atoms"),
    pytest.param(b"  4  3", b"  0  0", id="no atoms"),
    pytest.param(b"  4  3", b" 4   3", id="number to the left"),
    pytest.param(b"  4  3", b" +4  3", id="plus"),
    pytest.param(b"  4  3", b" 4.  3", id="point"),
    pytest.param(b"  4  3", b"  4 -3", id="negative"),
    pytest.param(b"  4  3", b"  4   ", id="no number of bonds"),
    pytest.param(b"  4  3", b"004003", id="zeros"),
    pytest.param(b"   -0.8883", b"       nan", id="nan"),
    pytest.param(b"   -0.8883", b"      1e-3", id="exponent"),
    pytest.param(b"   -0.8883", b"   -0_8883", id="underscore"),
    pytest.param(b"   -0.8883", b"   -0.88 3", id="blank in a number"),
    pytest.param(b"   -0.8883", b"9999999999", id="far"),
    pytest.param(b"   -0.8883", b"1000000000", id="farthest"),
    pytest.param(b"   -0.8883", b"          ", id="no number"),
    pytest.param(b" H   0", b" F   0", id="no hydrogen"),
    pytest.param(b" H   0", b" D   0", id="deuterium"),
    pytest.param(b" H   0", b"  H  0", id="hydrogen to the right"),
    pytest.param(b" H   0", b" He  0", id="helium"),
    pytest.param(b" H   0", b"H    0", id="hydrogen in the first column"),
    pytest.param(b" H   0", b"      ", id="no symbol"),
    pytest.param(b"  1  2  1", b"  1  5  1", id="bond to nothing"),
    pytest.param(b"  1  2  1", b"  0  2  1", id="bond from nothing"),
    pytest.param(b"  1  2  1", b"  1  2  x", id="another bond"),
    pytest.param(b"  1  2  1", b"  1  2", id="bond without order"),
    pytest.param(b"M  END\n", b"", id="no end"),
    pytest.param(b"M  END\n", b"M  CHG  1   3  -1\nM  END\n", id="charge"),
    pytest.param(b"M  END\n> <vendor>\nA-17\n\n", b"M  END\n", id="no data"),
    pytest.param(b"M  END\n> <vendor>\nA-17\n\n", b"M  END\n\n\n", id="blank lines at the end"),
    pytest.param(b"$$$$\n", b"", id="no last line"),
    pytest.param(b"$$$$\n", b"$$$$", id="no newline"),
    pytest.param(b"$$$$\n", b"$$$$ more\n\n", id="more behind it"),
    pytest.param(b"<vendor>", b"<multigpu_score>", id="data of ours"),
    pytest.param(b"> <vendor>", b">  12 <multigpu_pose> x", id="data of ours, numbered"),
    pytest.param(b"A-17", b"<multigpu_score>", id="our words as data"),
    pytest.param(b"ethanol", b"", id="no title"),
    pytest.param(b"ethanol", b"   ", id="blank title"),
    pytest.param(b"ethanol", b"  a  b ", id="blanks in the title"),
    pytest.param(b"ethanol", "Äthanol".encode(), id="UTF-8"),
    pytest.param(b"ethanol", b"\xff", id="no UTF-8"),
    pytest.param(b"ethanol", b"> <multigpu_score>", id="data as title"),
    pytest.param(b"ethanol", b"$$$$", id="end as title"),
    pytest.param(b"  test ", b"$$$$ ", id="end as second line"),
    pytest.param(b"\n", b"\r\n", id="CRLF"),
    pytest.param(b"\n", b"\r", id="CR"),
    pytest.param(b"  test", b"\ttest", id="tab"),
    pytest.param(REGULAR, b"", id="nothing"),
    pytest.param(REGULAR, b"\n\n", id="two lines"),
    pytest.param(REGULAR, b"\n\n\n\n\n", id="five lines"),
]


def read(*texts: bytes) -> LigandColumns:
    return sdf.read_columns(Texts.of(texts))


def posed(texts: Sequence[bytes], places: Sequence[Positions], *names: str) -> list[bytes]:
    """With the places; a name goes where there is none."""
    sizes = np.array([len(each) for each in places])
    frames = [sdf.frame(name, FACTS) for name in names or [""] * len(texts)]
    bodies = read(*texts).bodies
    return write_poses(frames, bodies, sizes, np.concatenate(places), COORDINATES).each()


def assert_same_as_alone(text: bytes) -> bool:
    """Return whether a record is regular; then it is the same as one by one."""
    neighbours = [REGULAR, text, REGULAR]
    found = read(*neighbours)
    size = found.atoms.sizes.tolist()
    assert size[0] == size[2] == 4
    if not size[1]:
        return False
    molecule, atoms = parse(text, "sdf"), found.atoms[1:2]
    assert atoms.positions.tobytes() == molecule.positions.tobytes()  # −0 is not 0
    assert found.names[1].decode("utf-8", "replace").strip() == FORMATS["sdf"].read_name(text)
    assert found.lacks_hydrogens[1] == lacks_hydrogens(molecule)
    places = molecule.positions[:, ::-1] / 3 - 0.00005
    some = [found.atoms[:1].positions, places, found.atoms[2:].positions]
    first, pose, last = posed(neighbours, some, "", "" if found.is_named[1] else "name", "")
    assert first == last == render(parse(REGULAR, "sdf"), "", "sdf", some[0], FACTS)
    if pose:
        assert pose == render(molecule, "name", "sdf", places, FACTS)
    else:
        assert not all(is_clear(number, 10, 4) for number in places.ravel().tolist())
    return True


def test_regular__is_the_same_as_one_by_one() -> None:
    assert assert_same_as_alone(REGULAR)


@pytest.mark.parametrize(("old", "new"), ODD)
def test_odd__is_the_same_as_one_by_one_or_left_to_that(old: bytes, new: bytes) -> None:
    assert old in REGULAR
    assert_same_as_alone(REGULAR.replace(old, new, -1 if old == b"\n" else 1))


def test_letters__that_are_changed_at_random_change_the_same() -> None:
    chance = random.Random(1)
    regular, count = 0, trials(5000)
    for _ in range(count):
        text = bytearray(REGULAR)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(b" \n\r-+.0123456789CDEMNV<>$x\xe9")
        regular += assert_same_as_alone(bytes(text))
    assert count / 50 < regular < count - count / 50


def test_records__that_are_cut_anywhere_are_the_same_or_left_to_one_by_one() -> None:
    for size in range(len(REGULAR)):
        assert_same_as_alone(REGULAR[:size])


@pytest.mark.parametrize("far", [99999.99996, -9999.99996, 1e9, -1e9])
def test_coordinates__that_are_too_long_are_left_to_one_by_one(far: float) -> None:
    places = read(REGULAR).atoms.positions
    moved = places.copy()
    moved[1, 1] = far
    first, second, third = posed([REGULAR] * 3, [places, moved, places])
    assert second == b""
    assert first == third != b""


@pytest.mark.parametrize(
    ("symbol", "bare"),
    [(b"H ", False), (b"D ", False), (b"T ", False), (b"F ", True), (b"He", True), (b"  ", True)],
)
def test_hydrogens__are_missing_where_there_is_carbon_and_none(symbol: bytes, bare: bool) -> None:
    text = REGULAR.replace(b" H  ", b" " + symbol + b" ")
    assert read(text).lacks_hydrogens.tolist() == [bare]
    assert not read(text.replace(b" C ", b" Cl")).lacks_hydrogens


def test_regular__is_what_reads_well_alone() -> None:
    """Nothing that is wrong counts as regular: its reason would not be reported."""
    for old, new in (param.values for param in ODD):
        text = REGULAR.replace(old, new, -1 if old == b"\n" else 1)
        try:
            parse(text, "sdf")
        except (MoleculeError, IndexError):
            assert not read(REGULAR, text).atoms.sizes[1]

"""PDBQT in columns: the same as one by one, or left to that."""

import random
import struct
from collections.abc import Sequence

import numpy as np
import pytest
from support.examples import trials
from support.ligand_texts import is_clear

from multigpu.formats.molecules import pdbqt
from multigpu.formats.molecules.autodock import atom_columns
from multigpu.formats.molecules.columns import LigandColumns, Positions, write_poses
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.pdbqt import COORDINATES

LINES = [
    b"MODEL        1",
    b"REMARK multigpu score 1.0",
    b"REMARK  Name = thing",
    b"ROOT",
    b"HETATM    1  C11 BTN A 300     9999.99  -0.000-999.999  1.00 21.57     0.172 N",
    b"ATOM      2  O11 BTN A 300     9998.9     .576-998.9    1.00 21.65    -0.648 OA",
    b"HETATM    3  H1  BTN A 300     9999.5   +0.698-999.9    1.00 22.67    -.1640 HD ",
    b"ENDROOT",
    b"TORSDOF 0",
    b"",
    b"ENDMDL",
]
REGULAR = b"\n".join(LINES) + b"\n"
MAPS = ("C", "N", "OA", "HD")
FACTS = {"score": "1.500000", "pose": "1"}
ODD = [
    pytest.param(b"-999.999", b"     nan", id="nan"),
    pytest.param(b"-999.999", b"    -1e3", id="exponent"),
    pytest.param(b"-999.999", b"-9_9.999", id="underscore"),
    pytest.param(b"  -0.000", b" -0. 000", id="blank in a number"),
    pytest.param(b"    .576", b"   .5.76", id="two points"),
    pytest.param(b"    .576", b"   --.57", id="two signs"),
    pytest.param(b"    .576", b"       .", id="no digit"),
    pytest.param(b"    .576", b"        ", id="no number"),
    pytest.param(b"    .576", b"   5.576", id="two fragments"),
    pytest.param(b"ENDROOT", b"BEGIN_RES SER A 1", id="a side chain"),
    pytest.param(b"-0.648", b"      ", id="no charge"),
    pytest.param(b"    -0.648 OA", b"    1000.5 OA", id="a charge that cannot be"),
    pytest.param(b"-0.648 OA", b"-0.648", id="short line"),
    pytest.param(b"-0.648 OA", b"-0.648   ", id="no type"),
    pytest.param(b"-0.648 OA", b"-0.648 C", id="another type"),
    pytest.param(b"-0.648 OA", b"-0.648 OAX", id="a longer type"),
    pytest.param(b"-0.648 OA", b"-0.648 O A", id="blank in a type"),
    pytest.param(b"-0.648 OA", "-0.648 Oé".encode(), id="a type in UTF-8"),
    pytest.param(b"-0.648 OA", b"-0.648 Xx", id="a type without map"),
    pytest.param(b"ENDROOT", b"\tENDROOT", id="tab"),
    pytest.param(b"ENDROOT", b" END", id="blank at the start"),
    pytest.param(b"ENDROOT", b"END", id="END inside"),
    pytest.param(b"ENDROOT", b"END  ROOT", id="END and more"),
    pytest.param(b"ENDROOT", b"MODEL", id="MODEL alone"),
    pytest.param(b"ENDROOT", b"MODELS", id="MODELS"),
    pytest.param(b"ENDROOT", b"ATOM", id="ATOM alone"),
    pytest.param(b"ENDROOT", b"ATOM  ", id="an atom of blanks"),
    pytest.param(b"ENDROOT", "Ångström".encode(), id="UTF-8"),
    pytest.param(b"\n", b"\r\n", id="CRLF"),
    pytest.param(b"\n", b"\r", id="CR"),
    pytest.param(b"ENDMDL\n", b"ENDMDL", id="no last newline"),
    pytest.param(b"ENDMDL\n", b"MODEL", id="no last newline behind MODEL"),
    pytest.param(b"HETATM", b"HETAT ", id="fewer atoms"),
    pytest.param(b"REMARK  Name", b"REMARK  Nome", id="no name"),
    pytest.param(b"REMARK  Name = thing", b"REMARK multigpu Name = thing", id="name of ours"),
    pytest.param(b"REMARK  Name = thing", b"XREMARK Name = thing", id="name elsewhere"),
    pytest.param(REGULAR, b"", id="nothing"),
    pytest.param(REGULAR, b"\n", id="one line"),
]


def bits(numbers: np.ndarray) -> bytes:
    """So that −0 is not 0."""
    return struct.pack(f"{numbers.size}d", *numbers.ravel())


def read(*texts: bytes, maps: tuple[str, ...] = MAPS) -> LigandColumns:
    return pdbqt.read_columns(Texts.of(texts), maps)


def posed(
    texts: Sequence[bytes], places: Sequence[Positions], *names: str, maps: tuple[str, ...] = MAPS
) -> list[bytes]:
    """With the places; a name goes where there is none."""
    sizes = np.array([len(each) for each in places])
    frames = [pdbqt.frame(name, FACTS) for name in names or [""] * len(texts)]
    bodies = read(*texts, maps=maps).bodies
    return write_poses(frames, bodies, sizes, np.concatenate(places), COORDINATES).each()


def assert_same_as_alone(text: bytes, maps: tuple[str, ...]) -> bool:
    """Return whether a record is regular; then it is the same as one by one."""
    neighbours = [REGULAR, text, REGULAR]
    found = read(*neighbours, maps=maps)
    size = found.atoms.sizes.tolist()
    assert size[0] == size[2] == 3
    if not size[1]:
        return False
    molecule, atoms = parse(text, "pdbqt"), found.atoms[1:2]
    wanted = atom_columns(molecule, maps)
    assert bits(atoms.positions) == bits(wanted.positions)
    assert bits(atoms.charges) == bits(molecule.charges)
    assert atoms.types.tolist() == wanted.types.tolist()
    assert found.names[1].decode("utf-8", "replace").strip() == FORMATS["pdbqt"].read_name(text)
    places = molecule.positions[:, ::-1] / 3 - 0.0005
    name = "" if found.is_named[1] else "name"
    some = [found.atoms[:1].positions, places, found.atoms[2:].positions]
    _, pose, _ = posed(neighbours, some, "", name, "", maps=maps)
    if pose:
        assert pose == render(molecule, "name", "pdbqt", places, FACTS)
    else:
        assert not all(is_clear(number, 8, 3) for number in places.ravel().tolist())
    return True


@pytest.mark.parametrize("maps", [MAPS, ()], ids=["maps", "no maps"])
def test_regular__is_the_same_as_one_by_one(maps: tuple[str, ...]) -> None:
    assert assert_same_as_alone(REGULAR, maps)


@pytest.mark.parametrize("maps", [MAPS, ()], ids=["maps", "no maps"])
@pytest.mark.parametrize(("old", "new"), ODD)
def test_odd__is_the_same_as_one_by_one_or_left_to_that(
    old: bytes, new: bytes, maps: tuple[str, ...]
) -> None:
    assert old in REGULAR
    assert_same_as_alone(REGULAR.replace(old, new), maps)


@pytest.mark.parametrize("maps", [MAPS, ()], ids=["maps", "no maps"])
def test_letters__that_are_changed_at_random_change_the_same(maps: tuple[str, ...]) -> None:
    chance = random.Random(1)
    regular, count = 0, trials(3000)
    for _ in range(count):
        text = bytearray(REGULAR)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(b" \n\r-+.0123456789ACDEHMNORTx\xe9")
        regular += assert_same_as_alone(bytes(text), maps)
    assert count / 30 < regular < count - count / 30


def test_coordinates__are_rounded_as_python_rounds_or_left_to_that() -> None:
    chance = np.random.default_rng(2)
    ties = np.arange(-2001, 2001) / 2000  # halves of thousandths, exact or just beside
    exact = chance.integers(-(10**6), 10**6, 3000) / 16 + 0.0625  # x.0625 and so on: true ties
    spread = chance.uniform(-999, 9999, 3000)
    few = np.array([0.0, -0.0, 5e-324, -1e-300, 0.0005, -0.0004, 9999.9994, -999.9994, 1 / 3, 0.5])
    values = np.concatenate(
        [ties, np.nextafter(ties, 9), np.nextafter(ties, -9), exact, spread, few]
    )
    values = values[(values > -999.9995) & (values < 9999.9995)]
    places = np.zeros((len(values), 3, 3))
    places[:, 1, 1] = values
    found = posed([REGULAR] * len(values), list(places))
    for text, value in zip(found, values.tolist(), strict=True):
        assert text or not is_clear(value, 8, 3)
        atom = text[text.find(b"ATOM  ") :]
        assert not text or atom[38:46] == b"%8.3f" % value
    assert 1000 < found.count(b"") < len(found) / 2


@pytest.mark.parametrize("far", [9999.9996, -999.9996, 1e9, -1e9, 123456.0])
def test_coordinates__that_are_too_long_are_left_to_one_by_one(far: float) -> None:
    atoms = read(REGULAR).atoms
    places = atoms.positions.copy()
    places[1, 1] = far
    first, second, third = posed([REGULAR] * 3, [atoms.positions, places, atoms.positions])
    assert second == b""
    assert first == third != b""


def test_names__of_maps_that_are_too_long_fit_no_type() -> None:
    assert read(REGULAR, maps=("OA", "HD", "N", "LONG")).atoms.sizes == 3
    assert read(REGULAR.replace(b"OA", b"NG"), maps=("HD", "N", "LONG")).atoms.sizes == 0


def test_nothing__is_nothing() -> None:
    assert len(read().atoms.sizes) == 0

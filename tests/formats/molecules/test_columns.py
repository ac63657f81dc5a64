"""Regular records in columns: the same as one by one, or left to that."""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import trials
from support.ligand_texts import is_clear

from multigpu.formats.molecules import pdb, pdbqt
from multigpu.formats.molecules.columns import LigandColumns
from multigpu.formats.molecules.molecule import MoleculeError, Positions
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.molecules.scoring import atom_columns
from multigpu.formats.tables.texts import Texts
from multigpu.kernels.compiled.text.pdbqt import DECIMALS, PLACE, WIDTH

FACTS = {"score": "1.500000", "pose": "1"}
PDBQT = b"""MODEL        1
REMARK multigpu score 1.0
REMARK  Name = thing
ROOT
HETATM    1  C11 BTN A 300     9999.99  -0.000-999.999  1.00 21.57     0.172 N
ATOM      2  O11 BTN A 300     9998.9     .576-998.9    1.00 21.65    -0.648 OA
HETATM    3  H1  BTN A 300     9999.5   +0.698-999.9    1.00 22.67    -.1640 HD\x20
ENDROOT
TORSDOF 0

ENDMDL
"""
# What is replaced in a regular record, and by what: numbers, counts, symbols, lines, names, ends.
ODD_PDBQT = {
    b"-999.999": [b"     nan", b"    -1e3", b"-9_9.999"], b"  -0.000": [b" -0. 000"],
    # The last of these is far from the others: two fragments.
    b"    .576": [b"   .5.76", b"   --.57", b"       .", b"        ", b"   5.576"],
    b"-0.648": [b"      "], b"    -0.648 OA": [b"    1000.5 OA"],
    b"-0.648 OA": [b"-0.648", b"-0.648   ", b"-0.648 C", b"-0.648 OAX", b"-0.648 O A",
                   "-0.648 Oé".encode(), b"-0.648 Xx"],
    b"ENDROOT": [b"BEGIN_RES SER A 1", b"\tENDROOT", b" END", b"END", b"END  ROOT", b"MODEL",
                 b"MODELS", b"ATOM", b"ATOM  ", "Ångström".encode()],
    b"\n": [b"\r\n", b"\r"], b"ENDMDL\n": [b"ENDMDL", b"MODEL"], b"HETATM": [b"HETAT "],
    b"REMARK  Name": [b"REMARK  Nome"],
    b"REMARK  Name = thing": [b"REMARK multigpu Name = thing", b"XREMARK Name = thing"],
    PDBQT: [b"", b"\n"],
}  # fmt: skip


LETTERS = b" \n\r-+.0123456789ACDEHMNORTx\xe9"  # what single letters are changed to at random


@dataclass(frozen=True)
class Case:
    """The regular record, read for a pocket with these maps."""

    maps: tuple[str, ...] = ()

    def read(self, *texts: bytes) -> LigandColumns:
        return pdbqt.read_columns(Texts.of(texts), self.maps)

    def posed(
        self, texts: Sequence[bytes], places: Sequence[Positions], *names: str
    ) -> list[bytes]:
        """With the places; a name goes where there is none."""
        sizes = np.array([len(each) for each in places])
        heads = Texts.of([pdb.remarks(name, FACTS) for name in names or [""] * len(texts)])
        bodies = self.read(*texts).bodies
        return pdbqt.write_poses(heads, bodies, sizes, np.concatenate(places)).each()

    def is_same_as_alone(self, text: bytes) -> bool:
        """Return whether a record is regular; then it is the same as one by one."""
        neighbours = [PDBQT, text, PDBQT]
        found = self.read(*neighbours)
        first, size, last = found.atoms.sizes.tolist()
        assert first == last > 0
        if not size:
            return False
        molecule, atoms = parse(text, "pdbqt"), found.atoms[1:2]
        assert bits(atoms.positions) == bits(molecule.positions)
        assert bits(atoms.charges) == bits(molecule.charges)
        assert atoms.types.tolist() == atom_columns(molecule, self.maps).types.tolist()
        name = found.names[1].decode("utf-8", "replace").strip()
        assert name == FORMATS["pdbqt"].read_name(text)
        places = molecule.positions[:, ::-1] / 3 - 0.5 * 10.0**-DECIMALS
        some = [found.atoms[:1].positions, places, found.atoms[2:].positions]
        name = "" if found.is_named[1] else "name"
        before, pose, after = self.posed(neighbours, some, "", name, "")
        assert before == after == render(parse(PDBQT, "pdbqt"), "", "pdbqt", some[0], FACTS)
        if pose:
            assert pose == render(molecule, "name", "pdbqt", places, FACTS)
        else:  # a coordinate does not fit, or is near the middle between two last digits
            assert not all(is_clear(x, WIDTH, DECIMALS) for x in places.ravel().tolist())
        return True


CASE = Case(("C", "N", "OA", "HD"))
CASES = pytest.mark.parametrize("case", [CASE, Case()], ids=["maps", "no maps"])


def changed() -> list[bytes]:
    """The regular record with everything that is odd, one at a time."""
    assert all(old in PDBQT for old in ODD_PDBQT)
    return [PDBQT.replace(old, new) for old, news in ODD_PDBQT.items() for new in news]


def bits(numbers: NDArray[np.float64]) -> bytes:
    """So that −0 is not 0."""
    return struct.pack(f"{numbers.size}d", *numbers.ravel())


@CASES
def test_records__are_the_same_as_one_by_one_or_left_to_that(case: Case) -> None:
    assert case.is_same_as_alone(PDBQT)
    for text in (*changed(), *(PDBQT[:size] for size in range(len(PDBQT)))):
        case.is_same_as_alone(text)


@CASES
def test_letters__that_are_changed_at_random_change_the_same(case: Case) -> None:
    chance = random.Random(1)
    regular, count = 0, trials(4000)
    for _ in range(count):
        text = bytearray(PDBQT)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(LETTERS)
        regular += case.is_same_as_alone(bytes(text))
    assert count / 30 < regular < count - count / 30


def test_regular__is_what_reads_well_alone() -> None:
    """Nothing that is wrong counts as regular: its reason would not be reported."""
    for text in changed():
        try:
            parse(text, "pdbqt")
        except (MoleculeError, IndexError):
            assert not CASE.read(PDBQT, text).atoms.sizes[1]


def test_coordinates__are_rounded_as_python_rounds_or_left_to_that() -> None:
    chance = np.random.default_rng(2)
    column, width, decimals = PLACE, WIDTH, DECIMALS
    last = 10.0**-decimals
    ties = np.arange(-2001, 2001) * (last / 2)  # halves of the last digit, or just beside
    exact = chance.integers(-(10**6), 10**6, 3000) / 16 + 0.03125  # true ties
    most, least = 10.0 ** (width - decimals - 1), 10.0 ** (width - decimals - 2)
    spread = chance.uniform(-least, most, 3000)
    few = np.array(
        [0.0, -0.0, 5e-324, -1e-300, last / 2, -0.4 * last, most - 0.6 * last, 0.6 * last - least,
         1 / 3, 0.5]
    )  # fmt: skip
    values = np.concatenate(
        [ties, np.nextafter(ties, 9), np.nextafter(ties, -9), exact, spread, few]
    )
    values = values[(values > last / 2 - least) & (values < most - last / 2)]
    atoms = CASE.read(PDBQT).atoms
    places = np.zeros((len(values), *atoms.positions.shape))
    places[:, 1, 1] = values
    found = CASE.posed([PDBQT] * len(values), list(places))
    for text, value in zip(found, values.tolist(), strict=True):
        assert text or not is_clear(value, width, decimals)
        if text:
            pose = FORMATS["pdbqt"].parse(text.splitlines(keepends=True))
            written = pose.lines[pose.rows[1]][column + width : column + 2 * width]
            assert written == b"%*.*f" % (width, decimals, value)
    assert 1000 < found.count(b"") < len(found) / 2


@pytest.mark.parametrize("far", [9999.9996, -999.9996, 1e9, -1e9, 123456.0])
def test_coordinates__that_are_too_long_are_left_to_one_by_one(far: float) -> None:
    places = CASE.read(PDBQT).atoms.positions
    moved = places.copy()
    moved[1, 1] = far
    first, second, third = CASE.posed([PDBQT] * 3, [places, moved, places])
    assert second == b""
    assert first == third != b""


@CASES
def test_nothing__is_nothing(case: Case) -> None:
    assert len(case.read().atoms.sizes) == 0


def test_names__of_maps_that_are_too_long_fit_no_type() -> None:
    assert Case(("OA", "HD", "N", "LONG")).read(PDBQT).atoms.sizes == 3
    strange = PDBQT.replace(b"OA", b"NG")
    assert pdbqt.read_columns(Texts.of([strange]), ("HD", "N", "LONG")).atoms.sizes == 0

"""Regular records in columns: the same as one by one, or left to that."""

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray
from support.examples import trials
from support.ligand_texts import is_clear

from multigpu.formats.molecules import pdbqt
from multigpu.formats.molecules.autodock import atom_columns
from multigpu.formats.molecules.columns import LigandColumns, write_poses
from multigpu.formats.molecules.molecule import MoleculeError, Positions
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import COLUMN_FORMATS, FORMATS, parse
from multigpu.formats.tables.texts import Texts
from multigpu.workloads.dock.ligands import lacks_hydrogens

FACTS = {"score": "1.500000", "pose": "1"}
SDF = b"""ethanol
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
DATA = b"M  END\n> <vendor>\nA-17\n\n"
# What is replaced in a regular record, and by what: numbers, counts, symbols, lines, names, ends.
ODD_SDF = {
    b"V2000": [b"V3000", b"V2000 V3000"], b" V2000": [b""],
    b"  4  3": [b"-10-10", b"  5  3", b"  3  3", b"  0  0", b" 4   3", b" +4  3", b" 4.  3",
                b"  4 -3", b"  4   ", b"004003"],
    b"   -0.8883": [b"       nan", b"      1e-3", b"   -0_8883", b"   -0.88 3", b"9999999999",
                    b"1000000000", b"          "],
    b" H   0": [b" F   0", b" D   0", b" T   0", b"  H  0", b" He  0", b"H    0", b"      "],
    b" C   0": [b" Cl  0"],
    b"  1  2  1": [b"  1  5  1", b"  0  2  1", b"  1  2  x", b"  1  2"],
    b"M  END\n": [b"", b"M  CHG  1   3  -1\nM  END\n"],
    DATA: [b"M  END\n", b"M  END\n\n\n"],
    b"$$$$\n": [b"", b"$$$$", b"$$$$ more\n\n"],
    b"<vendor>": [b"<multigpu_score>"], b"> <vendor>": [b">  12 <multigpu_pose> x"],
    b"A-17": [b"<multigpu_score>"],
    b"ethanol": [b"", b"   ", b"  a  b ", "Äthanol".encode(), b"\xff", b"> <multigpu_score>",
                 b"$$$$"],
    b"  test ": [b"$$$$ "], b"  test": [b"\ttest"], b"\n": [b"\r\n", b"\r"],
    SDF: [b"", b"\n\n", b"\n\n\n\n\n"],
}  # fmt: skip
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


@dataclass(frozen=True, kw_only=True)
class Case:
    """A format with its regular record.

    odd      what is replaced in the record, and by what
    maps     of the pocket
    letters  what single letters are changed to at random
    """

    layout: str
    regular: bytes
    odd: dict[bytes, list[bytes]]
    maps: tuple[str, ...]
    letters: bytes

    def read(self, *texts: bytes) -> LigandColumns:
        return COLUMN_FORMATS[self.layout].read(Texts.of(texts), self.maps)

    def posed(
        self, texts: Sequence[bytes], places: Sequence[Positions], *names: str
    ) -> list[bytes]:
        """With the places; a name goes where there is none."""
        columns, sizes = COLUMN_FORMATS[self.layout], np.array([len(each) for each in places])
        frames = [columns.frame(name, FACTS) for name in names or [""] * len(texts)]
        bodies = self.read(*texts).bodies
        return write_poses(frames, bodies, sizes, np.concatenate(places), columns.places).each()

    def is_clear(self, places: Positions) -> bool:
        """Whether every coordinate fits, and is not near the middle between two last digits."""
        width, decimals = COLUMN_FORMATS[self.layout].places[3:]
        return all(is_clear(number, width, decimals) for number in places.ravel().tolist())

    def changed(self) -> list[bytes]:
        """The regular record with everything that is odd, one at a time."""
        found = []
        for old, news in self.odd.items():
            assert old in self.regular
            count = -1 if old == b"\n" or self.layout == "pdbqt" else 1
            found += [self.regular.replace(old, new, count) for new in news]
        return found

    def is_same_as_alone(self, text: bytes) -> bool:
        """Return whether a record is regular; then it is the same as one by one."""
        neighbours = [self.regular, text, self.regular]
        found = self.read(*neighbours)
        first, size, last = found.atoms.sizes.tolist()
        assert first == last > 0
        if not size:
            return False
        molecule, atoms = parse(text, self.layout), found.atoms[1:2]
        assert bits(atoms.positions) == bits(molecule.positions)
        if self.layout == "pdbqt":
            assert bits(atoms.charges) == bits(molecule.charges)
            assert atoms.types.tolist() == atom_columns(molecule, self.maps).types.tolist()
        name = found.names[1].decode("utf-8", "replace").strip()
        assert name == FORMATS[self.layout].read_name(text)
        assert found.lacks_hydrogens[1] == lacks_hydrogens(molecule)
        last_digit = 10.0 ** -COLUMN_FORMATS[self.layout].places.decimals
        places = molecule.positions[:, ::-1] / 3 - 0.5 * last_digit
        some = [found.atoms[:1].positions, places, found.atoms[2:].positions]
        name = "" if found.is_named[1] else "name"
        before, pose, after = self.posed(neighbours, some, "", name, "")
        regular = parse(self.regular, self.layout)
        assert before == after == render(regular, "", self.layout, some[0], FACTS)
        if pose:
            assert pose == render(molecule, "name", self.layout, places, FACTS)
        else:
            assert not self.is_clear(places)
        return True


CASE_SDF = Case(
    layout="sdf", regular=SDF, odd=ODD_SDF, maps=(), letters=b" \n\r-+.0123456789ACDEHMNOV$><\xe9"
)
typed = partial(
    Case, layout="pdbqt", regular=PDBQT, odd=ODD_PDBQT,
    letters=b" \n\r-+.0123456789ACDEHMNORTx\xe9",
)  # fmt: skip
CASE_PDBQT = typed(maps=("C", "N", "OA", "HD"))
CASES = pytest.mark.parametrize(
    "case", [CASE_SDF, CASE_PDBQT, typed(maps=())], ids=["sdf", "pdbqt", "pdbqt without maps"]
)


def bits(numbers: NDArray[np.float64]) -> bytes:
    """So that −0 is not 0."""
    return struct.pack(f"{numbers.size}d", *numbers.ravel())


@CASES
def test_records__are_the_same_as_one_by_one_or_left_to_that(case: Case) -> None:
    assert case.is_same_as_alone(case.regular)
    cut = [case.regular[:size] for size in range(len(case.regular))]
    for text in (*case.changed(), *cut):
        case.is_same_as_alone(text)


@CASES
def test_letters__that_are_changed_at_random_change_the_same(case: Case) -> None:
    chance = random.Random(1)
    regular, count = 0, trials(4000)
    for _ in range(count):
        text = bytearray(case.regular)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice(case.letters)
        regular += case.is_same_as_alone(bytes(text))
    assert count / 30 < regular < count - count / 30


def test_regular__is_what_reads_well_alone() -> None:
    """Nothing that is wrong counts as regular: its reason would not be reported."""
    for case in (CASE_SDF, CASE_PDBQT):
        for text in case.changed():
            try:
                parse(text, case.layout)
            except (MoleculeError, IndexError):
                assert not case.read(case.regular, text).atoms.sizes[1]


@pytest.mark.parametrize("case", [CASE_SDF, CASE_PDBQT], ids=["sdf", "pdbqt"])
def test_coordinates__are_rounded_as_python_rounds_or_left_to_that(case: Case) -> None:
    chance = np.random.default_rng(2)
    _, _, column, width, decimals = COLUMN_FORMATS[case.layout].places
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
    atoms = case.read(case.regular).atoms
    places = np.zeros((len(values), *atoms.positions.shape))
    places[:, 1, 1] = values
    found = case.posed([case.regular] * len(values), list(places))
    for text, value in zip(found, values.tolist(), strict=True):
        assert text or not is_clear(value, width, decimals)
        if text:
            pose = FORMATS[case.layout].parse(text.splitlines(keepends=True))
            written = pose.lines[pose.rows[1]][column + width : column + 2 * width]
            assert written == b"%*.*f" % (width, decimals, value)
    assert 1000 < found.count(b"") < len(found) / 2


@pytest.mark.parametrize(
    ("case", "far"),
    [(CASE_PDBQT, far) for far in (9999.9996, -999.9996, 1e9, -1e9, 123456.0)]
    + [(CASE_SDF, far) for far in (99999.99996, -9999.99996, 1e9, -1e9)],
)
def test_coordinates__that_are_too_long_are_left_to_one_by_one(case: Case, far: float) -> None:
    places = case.read(case.regular).atoms.positions
    moved = places.copy()
    moved[1, 1] = far
    first, second, third = case.posed([case.regular] * 3, [places, moved, places])
    assert second == b""
    assert first == third != b""


@CASES
def test_nothing__is_nothing(case: Case) -> None:
    assert len(case.read().atoms.sizes) == 0


def test_names__of_maps_that_are_too_long_fit_no_type() -> None:
    assert typed(maps=("OA", "HD", "N", "LONG")).read(PDBQT).atoms.sizes == 3
    strange = PDBQT.replace(b"OA", b"NG")
    assert pdbqt.read_columns(Texts.of([strange]), ("HD", "N", "LONG")).atoms.sizes == 0

"""Regular records of PDBQT: the same as one by one, or left to that."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.examples import examples

from multigpu.formats.molecules.decimals import read_decimals, write_decimals
from multigpu.formats.molecules.pdb import add_remarks
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import largest_fragment, parse
from multigpu.formats.molecules.regular_pdbqt import RegularRecord, move_regular, read_regular
from multigpu.formats.molecules.scoring import atom_terms

NOTES = {"score": "1.500000", "pose": "1"}
PDBQT = b"""MODEL        1
REMARK multigpu score 1.0
REMARK  Name = thing
ROOT
HETATM    1  C11 BTN A 300     999.999  -0.000-999.999  1.00 21.57     0.172 N
ATOM      2  O11 BTN A 300     998.900   0.576-998.900  1.00 21.65    -0.648 OA
ENDROOT
BRANCH   2   3
ATOM      3  H1  BTN A 300     999.500   0.698-999.900  1.00 22.67    +0.164 HD\x20
ATOM      4  CL  BTN A 300     990.000   0.698-999.900  1.00 22.67     0.000 Cl
ENDBRANCH   2   3
TORSDOF 1
ENDMDL
"""
# What is replaced in a regular record, and by what: numbers, counts, types, lines, names, ends.
CHANGES = [
    (old, new)
    for old, news in {
        b"-999.999": [b"     nan", b"    -1e3", b"-9_9.999", b"-999.99 ", b"9999.999", b"+999.999"],
        b"  -0.000": [b" -0. 000", b" --0.000", b" +-0.000", b"  +0.000", b"+  0.000"],
        b"   0.576": [b"   .576 ", b"    .576", b"  00.576", b"       .", b"        ", b"   9.576"],
        b" -0.648 OA": [b"        OA", b" 1000.5 OA", b"1000.500 OA", b" -0.648", b" -0.648   "],
        b"-0.648 OA": [b"-0.648 C", b"-0.648 OAX", b"-0.648 O A", "-0.648 Oé".encode(),
                       b"-0.648 Xx", b"-0.648 W", b"-0.648 H", b"-0.648 G0", b"-0.648 OA  more"],
        b"ENDROOT": [b"BEGIN_RES SER A 1", b"\tENDROOT", b" END", b"END", b"END  ROOT", b"MODEL",
                     b"MODELS", b"ATOM", b"ATOM  ", b"REMARK multigpu", "Ångström".encode()],
        b"\n": [b"\r\n", b"\r", b"\n\n"],
        b"ENDMDL\n": [b"ENDMDL", b"MODEL", b""], b"HETATM": [b"HETAT ", b" ATOM "],
        b"REMARK  Name": [b"REMARK  Nome"],
        b"REMARK  Name = thing": [b"REMARK multigpu Name = thing", b"REMARK Name = "],
        PDBQT: [b"", b"\n", PDBQT * 2],
    }.items()
    for new in news
]  # fmt: skip
MAPS = ("C", "N", "OA", "HD", "CL", "W")
LETTERS = [bytes([letter]) for letter in b" \n\r-+.0123456789ACDEHMNORTx\xe9"]
edits = st.lists(st.tuples(st.integers(0, len(PDBQT) - 1), st.sampled_from(LETTERS)), max_size=3)


def bits(numbers: NDArray[np.float64]) -> bytes:
    """So that −0 is not 0."""
    return numbers.astype(float).tobytes()


def read(texts: list[bytes], maps: tuple[str, ...]) -> dict[int, RegularRecord]:
    return read_regular(b"".join(texts), np.cumsum([*map(len, texts)], dtype=np.int64), maps)


def is_same_as_alone(text: bytes, maps: tuple[str, ...]) -> bool:
    """Return whether a record is regular; then it is the same as one by one."""
    found = read([PDBQT, text, PDBQT], maps)
    assert {0, 2} <= {*found}
    assert bits(found[0].positions) == bits(found[2].positions)
    if 1 not in found:
        return False
    record, whole = found[1], parse(text, "pdbqt")
    molecule = largest_fragment(whole)
    assert bits(record.positions) == bits(molecule.positions)
    for ours, theirs in zip(record.terms, atom_terms(molecule, maps), strict=True):
        assert np.array_equal(ours, theirs)
    assert (record.heavy, record.is_part) == (molecule.heavy, molecule.is_part)
    assert (record.elements, record.molecule.types) == (molecule.elements, molecule.types)
    places = [found[0].positions, molecule.positions[:, ::-1] / 3 - 0.4995, found[2].positions]
    first, moved, last = move_regular([found[0], record, found[2]], np.concatenate(places))
    pose = render(molecule, "name", "pdbqt", places[1], NOTES)
    assert add_remarks(moved, "name", NOTES) == pose if moved else True
    before = render(largest_fragment(parse(PDBQT, "pdbqt")), "", "pdbqt", places[0], NOTES)
    assert add_remarks(first, "", NOTES) == add_remarks(last, "", NOTES) == before
    return True


@pytest.mark.parametrize("maps", [MAPS, ()])
def test_records__are_the_same_as_one_by_one_or_left_to_that(maps: tuple[str, ...]) -> None:
    assert is_same_as_alone(PDBQT, maps)
    assert all(old in PDBQT for old, _ in CHANGES)
    regular = sum(is_same_as_alone(PDBQT.replace(*change), maps) for change in CHANGES)
    assert len(CHANGES) / 5 < regular < len(CHANGES) / 2
    for size in range(len(PDBQT)):
        is_same_as_alone(PDBQT[:size], maps)


@examples(500)
@given(st.sampled_from(CHANGES), edits, st.sampled_from([MAPS, ()]))
def test_letters__that_are_changed_change_the_same(
    change: tuple[bytes, bytes], some: list[tuple[int, bytes]], maps: tuple[str, ...]
) -> None:
    text = PDBQT
    for at, letter in some:
        text = text[:at] + letter + text[at + 1 :]
    is_same_as_alone(text, maps)
    is_same_as_alone(text.replace(*change), maps)


@examples(500)
@given(st.floats(-1e4, 1e5) | st.integers(-(10**8), 10**8).map(lambda n: n / 16000))
@example(-0.0)
@example(9999.9995)
@example(-999.9995)
def test_decimals__are_those_of_python_or_left_to_that(number: float) -> None:
    texts, fits = write_decimals(np.array([number, number / 1024]), 8)
    for column, fit, value in zip(texts.T, fits, (number, number / 1024), strict=True):
        text = b"%8.3f" % value
        assert not fit or column.tobytes() == text
        letters = np.frombuffer(text, np.uint8)[None]
        is_wide = len(text) > 8
        assert is_wide or bits(read_decimals(letters)) == bits(np.array([float(text)]))


def test_records__of_no_atoms_are_none() -> None:
    assert read([], MAPS) == read([b"REMARK\n"], ()) == {}
    assert move_regular([], np.empty((0, 3))) == []

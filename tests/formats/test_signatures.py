"""Signature files to names and letters."""

import sys
from pathlib import Path

import pytest

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import read_signatures


def test_read_signatures__wrapped_lines_carriage_returns_and_lower_case(tmp_path: Path) -> None:
    path = tmp_path / "some.fasta"
    path.write_bytes(b"\n>one words\r\nACGT\r\nryn\r\n\r\n>two\nTT")
    found = read_signatures([str(path)])
    assert list(found.names) == [b"one", b"two"]
    assert [letters.tobytes() for letters in found.letters] == [b"ACGTryn", b"TT"]


def test_read_signatures__several_files_in_order_and_repeated_names(tmp_path: Path) -> None:
    for name, base in (("b.fa", "A"), ("a.fa", "C")):
        (tmp_path / name).write_text(f">same\n{base}\n")
    found = read_signatures([str(tmp_path / "b.fa"), str(tmp_path / "a.fa")])
    assert list(found.names) == [b"same", b"same"]
    assert [letters.tobytes() for letters in found.letters] == [b"A", b"C"]


@pytest.mark.parametrize(("text", "message"), [
    (b"", "is empty"),
    (b"hello\n", "neither FASTA nor a table or list of sequences"),
    *((b">one\nACGT\n>two%b" % rest, "record 'two': the signature has no base")
      for rest in (b"\n>three\nA\n", b"\n\r\n\r\n", b"")),
    (b">a\nAC\n>b\n>c\nA*\n", "record 'b'"),
    (b">a\nAC\n>b\nA*\n>c\n", "record 'b'"),
    (b">one\nAC\nGJT\n", r"record 'one', position 3 \(from 0\): 'J' is not a base"),
    (b">one\nAC GT\n", r"record 'one', position 2 \(from 0\): ' ' is not a base"),
    (b">one\nAC*T\n", r"record 'one', position 2 \(from 0\): '\*' is not a base"),
    (b"@one\nAC\n+\nII\n@two\nACG\n+\nII\n", "record 'two' at byte 13: the sequence has 3"),
    (b"@one\nACGT\nIIII\n", "record 'one' at byte 0: the record is cut off"),
])  # fmt: skip
def test_read_signatures__what_is_wrong_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "some.fasta"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_signatures([str(path)])


def test_read_signatures__inosine_is_n_and_its_signatures_are_known(tmp_path: Path) -> None:
    path = tmp_path / "some.fasta"
    path.write_bytes(b">a\nAIiC\n>b\nAC\n>c\nI\n")
    found = read_signatures([str(path)])
    assert [letters.tobytes() for letters in found.letters] == [b"ANNC", b"AC", b"N"]
    assert found.with_inosine == (b"a", b"c")


def test_read_signatures__many_cost_no_call_for_each(tmp_path: Path) -> None:
    path = tmp_path / "many.fasta"
    path.write_text("".join(f">k{i}\nACGTTGCA\n" for i in range(5000)))
    read_signatures([str(path)])  # whatever is loaded at first
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    found = read_signatures([str(path)])
    sys.setprofile(None)
    assert calls < 2500
    assert (found.names[4321], found.letters[4321].tobytes()) == (b"k4321", b"ACGTTGCA")
    assert list(found.names)[-2:] == found.names[4998:] == [b"k4998", b"k4999"]

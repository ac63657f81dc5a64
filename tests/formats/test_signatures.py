"""Signature files to names and letters."""

import sys

import pytest
from support.stored import Store

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import read_signatures


@pytest.mark.parametrize(("text", "names", "letters", "inosine"), [
    (b"\n>one words\r\nACGT\r\nryn\r\n\r\n>two\nTT", [b"one", b"two"], [b"ACGTryn", b"TT"], ()),
    (b">a\nAIiC\n>b\nAC\n>c\nI\n", [b"a", b"b", b"c"], [b"ANNC", b"AC", b"N"], (b"a", b"c")),
], ids=["wrapped", "inosine"])  # fmt: skip
def test_read_signatures__names_and_letters(
    store: Store, text: bytes, names: list[bytes], letters: list[bytes], inosine: tuple[bytes, ...]
) -> None:
    found = read_signatures([store(text)])
    assert list(found.names) == names
    assert [each.tobytes() for each in found.letters] == letters
    assert found.with_inosine == inosine


def test_read_signatures__several_files_in_order_and_repeated_names(store: Store) -> None:
    found = read_signatures([store(b">same\nA\n", "b.fa"), store(b">same\nC\n", "a.fa")])
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
def test_read_signatures__what_is_wrong_is_named(store: Store, text: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_signatures([store(text)])


def test_read_signatures__many_cost_no_call_for_each(store: Store) -> None:
    path = store(b"".join(b">k%d\nACGTTGCA\n" % i for i in range(5000)))
    read_signatures([path])  # whatever is loaded at first
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    found = read_signatures([path])
    sys.setprofile(None)
    assert calls < 2500
    assert (found.names[4321], found.letters[4321].tobytes()) == (b"k4321", b"ACGTTGCA")
    assert list(found.names)[-2:] == found.names[4998:] == [b"k4998", b"k4999"]

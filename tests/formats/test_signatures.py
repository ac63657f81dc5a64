"""Signature files to names and letters."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.scanned import signatures_named

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.writers import render, to_arrow


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"ACGT\n", "neither FASTQ nor FASTA"),
        (b">one\nACGT\n>two\n>three\nA\n", "record 'two': the signature has no base"),
        (b">one\nAC*T\n", r"record 'one', position 2 \(from 0\): '\*' is not a base"),
        (b"@one\nAC\n+\nII\n@two\nACG\n+\nII\n", "record 'two' at byte 13: the sequence has 3"),
        (b"@one\nACGT\nIIII\n", "record 'one' at byte 0: the record is cut off"),
    ],
)
def test_read_signatures__what_is_wrong_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "some.fasta"
    path.write_bytes(text)
    with pytest.raises(InputError, match=message):
        read_signatures([str(path)])


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


def test_read_signatures__first_of_several_mistakes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some.fasta"
    for text, name in ((">a\nAC\n>b\n>c\nA*\n", "b"), (">a\nAC\n>b\nA*\n>c\n", "b")):
        path.write_text(text)
        with pytest.raises(InputError, match=f"record '{name}'"):
            read_signatures([str(path)])


class Counted(list[bytes]):
    """Names, and how many of them were taken."""

    taken = 0

    def __getitem__(self, i: Any) -> Any:
        self.taken += 1
        return super().__getitem__(i)

    def __iter__(self) -> Iterator[bytes]:
        raise AssertionError("all names are taken")


@pytest.mark.parametrize("fmt", ["tsv", "text", "bed", "jsonl", "sam", "paf", "arrow"])
def test_rows__take_the_names_that_occur_and_no_others(fmt: str) -> None:
    """Decoding all of a million took far longer than the rows."""
    names = Counted(b"k%d" % i for i in range(1000))
    which = np.array([7, 500, 7], np.int32)
    start = np.zeros(3, np.int64)
    columns: dict[str, Any] = {
        "sample_index": start, "sample": [b"s"] * 3, "signature": which, "start": start,
        "end": start + 4, "reverse": np.zeros(3, bool), "score": np.full(3, 30.0),
        "ambiguous": np.zeros(3, np.int32), "errors": np.zeros(3, np.int32),
        "sample_length": start + 9, "cigar": [b"4="] * 3,
    }  # fmt: skip
    batch = replace(Batch.empty(), **columns)
    if fmt == "arrow":
        assert to_arrow(batch, names)["signature"].to_pylist() == ["k7", "k500", "k7"]
    else:
        signatures = replace(signatures_named([b""] * 1000), names=names)
        lines = render(batch, signatures, fmt).splitlines()
        assert [line.count(b"k7") for line in lines] == [1, 0, 1]
    assert names.taken == 2

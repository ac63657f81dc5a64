"""Plain FASTQ read in one go: what the parser of all FASTQ says, or nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from multigpu.formats.sequences import plain_fastq, records
from multigpu.formats.sequences.records import BASES, LENGTH, NAME, NAME_END, QUALITY, Fault

LOW = 33
SMALLEST = 24  # bytes of a block; headers here are shorter

Record = tuple[bytes, bytes, int]  # name, bases, where the qualities begin


@contextmanager
def opened(text: bytes) -> Iterator[int]:
    """A descriptor of a file that holds the text."""
    file = os.memfd_create("samples")
    try:
        os.write(file, text)
        yield file
    finally:
        os.close(file)


def plainly(text: bytes, begin: int, border: int, size: int) -> tuple[list[Record], int] | None:
    letters = np.empty(len(text), np.uint8)
    with opened(text) as file:
        found = plain_fastq.read(file, begin, border, LOW, letters, size)
    if found is None:
        return None
    table, stop = found
    return rows(text, table, letters), stop


def generally(text: bytes, begin: int, border: int) -> tuple[list[Record], int] | None:
    """As `records.parse` does it; None where something is wrong."""
    raw = np.frombuffer(text, np.uint8).copy()
    parsed = records.parse(raw, begin, border, "fastq", final=True, offset=LOW)
    if parsed.fault is not Fault.NONE:
        return None
    return rows(text, parsed.table, raw), parsed.stop


def rows(text: bytes, table: NDArray[np.int64], letters: NDArray[np.uint8]) -> list[Record]:
    return [
        (
            text[row[NAME] : row[NAME_END]],
            letters[row[BASES] : row[BASES] + row[LENGTH]].tobytes(),
            int(row[QUALITY]),
        )
        for row in table
    ]


@st.composite
def plain_records(draw: st.DrawFn) -> list[bytes]:
    """Records of four lines; the last may lack its line end."""
    out = []
    for number in range(draw(st.integers(1, 5))):
        bases = bytes(draw(st.lists(st.sampled_from(b"ACGTNacgt"), max_size=60)))
        values = st.lists(st.sampled_from(b"@+!~I>5"), min_size=len(bases), max_size=len(bases))
        comment = draw(st.sampled_from([b"", b" a b", b"\tx", b" >@+"]))
        plus = draw(st.sampled_from([b"+", b"+r", b"+@ +"]))
        lines = [b"@r%d" % number + comment, bases, plus, bytes(draw(values))]
        out.append(b"".join(line + b"\n" for line in lines))
    if draw(st.booleans()) and bases:
        out[-1] = out[-1][:-1]
    return out


@settings(max_examples=300)
@given(plain_records(), st.integers(SMALLEST, 90), st.data())
def test_read__gives_all_records_that_begin_before_the_border(
    whole: list[bytes], size: int, data: st.DataObject
) -> None:
    begins = np.cumsum([0, *map(len, whole)]).tolist()
    text = b"".join(whole)
    begin = data.draw(st.sampled_from(begins[:-1]))
    border = data.draw(st.integers(begin + 1, len(text)))
    found = plainly(text, begin, border, size)
    assert found == generally(text, begin, border)
    assert found is not None
    inside = [at for at in begins[:-1] if begin <= at < border]
    assert len(found[0]) == len(inside)
    assert found[1] == begins[begins.index(inside[-1]) + 1]


@settings(max_examples=500)
@given(plain_records(), st.integers(SMALLEST, 90), st.data())
def test_read__says_nothing_of_what_is_not_plain(
    whole: list[bytes], size: int, data: st.DataObject
) -> None:
    text = bytearray(b"".join(whole))
    at = data.draw(st.integers(0, len(text) - 1))
    odd = data.draw(st.sampled_from([b"", b"\n", b"\r", b"\r\n", b"@", b"+", b" ", b"A", b"\x7f"]))
    text[at : at + data.draw(st.integers(0, 3))] = odd
    changed = bytes(text)
    found = plainly(changed, 0, max(1, len(changed)), size)
    assert found is None or found == generally(changed, 0, max(1, len(changed)))


@pytest.mark.parametrize(
    "text",
    [
        b"@r\nAC\nGT\n+\nII\nII\n",
        b"@r\r\nAC\r\n+\r\nII\r\n",
        b"@r\nAC\r\n+\nII\n",
        b"\n@r\nAC\n+\nII\n",
        b"@r\nAC\n+\nII\n\n",
        b"@r\n+\n",
        b"@r\nAC\n+\nI\n",
        b"@r\nAC\n+\nIII\n",
        b"@r\nAC\n+\nI \n",
        b"@r\nAC\n+\nI",
        b"@r\nAC\n+",
        b"@r\nAC",
        b"@r",
        b"r\nAC\n+\nII\n",
        b"@" + 300 * b"r" + b"\nAC\n+\nII\n",
    ],
)
def test_read__leaves_to_others_what_is_not_plain(text: bytes) -> None:
    assert plainly(text, 0, len(text), 200) is None


def test_read__leaves_to_others_what_has_too_little_room() -> None:
    with opened(b"@r\nACGT\n+\nIIII\n") as file:
        assert plain_fastq.read(file, 0, 15, LOW, np.empty(4, np.uint8)) is not None
        assert plain_fastq.read(file, 0, 15, LOW, np.empty(3, np.uint8)) is None


@settings(max_examples=300)
@given(plain_records(), st.integers(1, 90), st.data())
def test_first_record__is_that_of_the_whole_text(
    whole: list[bytes], size: int, data: st.DataObject
) -> None:
    text = b"".join(whole)
    begin = data.draw(st.integers(0, len(text) - 1))
    newline = text.find(b"\n", begin)
    raw = np.frombuffer(text, np.uint8).copy()
    expected = records.first_record(raw, newline + 1) if newline >= 0 else -1
    with opened(text) as file:
        assert plain_fastq.first_record(file, begin, len(text), size) == expected


@settings(max_examples=100)
@given(st.binary(max_size=300), st.data())
def test_sums__are_exact(content: bytes, data: st.DataObject) -> None:
    borders = st.integers(0, len(content))
    windows = data.draw(st.lists(st.tuples(borders, borders).map(sorted), max_size=5))
    starts = np.array([begin for begin, _ in windows], np.int64)
    lengths = np.array([end - begin for begin, end in windows], np.int64)
    with opened(content) as file:
        found = plain_fastq.sums(file, starts, lengths)
    assert found.tolist() == [sum(content[begin:end]) for begin, end in windows]


@settings(max_examples=100)
@given(st.binary(max_size=300), st.data())
def test_gather__lays_windows_one_after_the_other(content: bytes, data: st.DataObject) -> None:
    borders = st.integers(0, len(content) + 3)
    windows = data.draw(st.lists(st.tuples(borders, borders).map(sorted), max_size=5))
    begins = np.array([begin for begin, _ in windows], np.int64)
    ends = np.array([end for _, end in windows], np.int64)
    out = np.empty(int((ends - begins).sum()), np.uint8)
    with opened(content) as file:
        whole = plain_fastq.gather(file, begins, ends, out)
    assert whole == all(end <= len(content) or begin == end for begin, end in windows)
    if whole:
        assert out.tobytes() == b"".join(content[begin:end] for begin, end in windows)


def test_sums__of_windows_longer_than_a_block() -> None:
    content = bytes(range(256)) * 4096
    assert len(content) > 2 * plain_fastq.BLOCK
    with opened(content) as file:
        found = plain_fastq.sums(file, np.array([1, 5]), np.array([len(content) - 1, 10]))
    assert found.tolist() == [sum(content[1:]), sum(content[5:15])]


def test_sums__of_a_file_that_has_become_shorter() -> None:
    with opened(b"abc") as file:
        found = plain_fastq.sums(file, np.array([0, 1]), np.array([3, 3]))
    assert found.tolist() == [sum(b"abc"), -1]

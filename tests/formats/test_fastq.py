"""FASTQ read from a file a block at a time: what the parser says of the whole text."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.sequence_texts import FASTQ, Record, array, buffers, opened, parse, slices, texts

from multigpu import InputError
from multigpu.formats.sequences import fastq
from multigpu.formats.sequences.pieces import Pieces, TextInFile
from multigpu.formats.sequences.records import describe
from multigpu.formats.sequences.sequence_format import BLOCK
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.records import BASES, LENGTH, NAME, NAME_END, Fault

OFFSET = 33
FOUR_LINES = [name for name in FASTQ if "wrapped" not in name and "blank" not in name]


def source_of(text: bytes) -> Source:
    return Source("reads.fq", len(text), "none", "fastq")


def read(text: bytes, begin: int, border: int, block: int) -> tuple[list[Record], int, str]:
    """The records of a span, where it stops, and what is wrong there."""
    with opened(text) as file:
        found = read_span(file, source_of(text), begin, border, block)
        return rows_of(f"/proc/self/fd/{file}", found), found.stop, str(found.error)


def read_span(file: int, source: Source, begin: int, border: int, block: int = BLOCK) -> Pieces:
    span = FileSpan(0, 0, begin, border, exact=True)
    return fastq.read_range(file, source, span, 0, OFFSET, buffers(), block)


def rows_of(path: str, found: Pieces) -> list[Record]:
    """Names from the file, bases from the letters, and the qualities, each summed alone."""
    text = TextInFile(path)
    out: list[Record] = []
    names = text.windows(found.table[:, NAME], found.table[:, NAME_END]) if len(found.table) else []
    for number, (name, row) in enumerate(zip(names, found.table, strict=True)):
        length = int(row[LENGTH])
        each = np.arange(length)
        windows = np.full(length, number), each, each + 1
        means = text.mean_qualities(found.table, windows, 0)
        bases = found.letters[row[BASES] : row[BASES] + length].tobytes()
        out.append((name, bases, bytes(means.astype(int).tolist())))
    return out


def parsed(text: bytes, begin: int, border: int) -> tuple[list[Record], int, str]:
    """The same by the parser, of the whole text in memory."""
    raw = array(text)
    found = parse(raw, "fastq")
    error = describe("reads.fq", b"@", raw, found, 0, OFFSET)
    starts = found.table[:, NAME] - 1
    inside = replace(found, table=found.table[(starts >= begin) & (starts < border)])
    return slices(raw, inside), min([*starts[starts >= border].tolist(), found.stop]), str(error)


def begins_of(text: bytes) -> list[int]:
    found = parse(array(text), "fastq")
    assert found.fault is Fault.NONE
    return [int(row[NAME]) - 1 for row in found.table]


@examples(300)
@given(texts("fastq"), st.integers(1, 90), st.data())
def test_read__gives_all_before_the_border(text: bytes, block: int, data: st.DataObject) -> None:
    begin = data.draw(st.sampled_from(begins_of(text)))
    border = data.draw(st.integers(begin + 1, len(text)))
    assert read(text, begin, border, block) == parsed(text, begin, border)
    at, removed = data.draw(st.integers(0, len(text) - 1)), data.draw(st.integers(0, 3))
    odd = data.draw(st.sampled_from([b"", b"\n", b"\r", b"\r\n", b"@", b"+", b" ", b"A", b"\x7f"]))
    damaged = text[:at] + odd + text[at + removed :]
    stop = max(1, len(damaged))
    assert read(damaged, 0, stop, block) == parsed(damaged, 0, stop)


def test_read__of_more_records_than_a_table_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastq, "ROWS", 16)
    text = b"".join(b"@r%d\nAC\n+\nI5\n" % number for number in range(1000))
    with opened(text) as file:
        found = read_span(file, source_of(text), 0, len(text))
    assert (len(found.table), found.letters.tobytes()) == (1000, 1000 * b"AC")


def test_read__of_records_longer_than_blocks_and_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastq, "LAST_RECORD_BYTES", 2)
    long = b"@long\n" + 500 * b"ACGT\n" + b"+\n" + 250 * b"IIIIIII5\n"
    text = b"@a\nA\n+\nI\n" + long + b"@b\nC\n+\nI\n"
    for border in (1, 20, len(text)):
        assert read(text, 0, border, 16) == parsed(text, 0, border)


def test_read__of_a_file_that_has_become_longer_or_shorter() -> None:
    """A record looked for after a border may begin after the end that the file had."""
    text = b"@a\nACGT\n+\nIIII\n"
    with opened(3 * text) as file:
        border, begin = len(text) + 2, 2 * len(text)
        found = read_span(file, source_of((2 * text)[:border]), begin, border)
    assert (len(found.table), found.error) == (0, None)
    message = f"was cut while it was read: it ends at byte {len(text)}"
    with opened(text) as file, pytest.raises(InputError, match=message):
        read_span(file, source_of(text + text), 0, 2)


@pytest.mark.parametrize("block", [1, 7, 1000])
@pytest.mark.parametrize("name", FOUR_LINES)
def test_first_record__after_any_cut_is_where_the_span_before_stops(name: str, block: int) -> None:
    """As a worker looks for it: after the line that holds the byte before the span."""
    text = FASTQ[name]
    with opened(text) as file:
        for start in range(1, len(text)):
            guess = fastq.find_first_record(file, start - 1, len(text), block)
            stop = parsed(text, 0, start)[1]
            assert guess == (stop if stop < len(text) else -1)


@examples(100)
@given(st.binary(min_size=1, max_size=300), st.data())
def test_windows__are_those_of_the_file(content: bytes, data: st.DataObject) -> None:
    borders = st.integers(0, len(content) + 3)
    windows = data.draw(st.lists(st.tuples(borders, borders).map(sorted), min_size=1, max_size=5))
    begins, ends = np.array(windows, np.int64).T.copy()
    with opened(content) as file:
        text = TextInFile(f"/proc/self/fd/{file}")
        if all(end <= len(content) or begin == end for begin, end in windows):
            assert text.windows(begins, ends) == [content[a:b] for a, b in windows]
        else:
            with pytest.raises(InputError, match="was cut while it was read"):
                text.windows(begins, ends)


def test_mean_qualities__of_a_file_that_has_become_shorter() -> None:
    text = FASTQ["plain"]
    table = parse(array(text), "fastq").table
    with opened(text[:-3]) as file:
        shorter = TextInFile(f"/proc/self/fd/{file}")
        one = np.array([0]), np.array([1]), np.array([3])
        assert shorter.mean_qualities(table, one, 0).tolist() == [73.0]
        with pytest.raises(InputError, match="was cut while it was read"):
            shorter.mean_qualities(table, (np.array([0, 1]), np.array([0, 0]), np.array([2, 2])), 0)

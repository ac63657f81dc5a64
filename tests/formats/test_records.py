"""Record borders: the records of the whole, wherever the bytes are cut."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.sequence_texts import FASTA, FASTQ, Record, any_text, array, parse, slices, texts

from multigpu.formats.sequences import fasta, fastq
from multigpu.kernels.compiled.text import LONGEST_NAME
from multigpu.kernels.compiled.text.records import COLUMNS, LENGTH, Fault, mean_qualities


class Plain(NamedTuple):
    """The good records, where the first bad one begins (or the end), and whether there is one."""

    records: list[Record]
    stop: int
    bad: bool


def plain_parse(text: bytes, layout: str, offset: int = 33) -> Plain:
    found = Plain([], blank_end(text, 0), False)
    read = plain_fastq if layout == "fastq" else plain_fasta
    while found.stop < len(text):
        record, stop = read(text, found.stop, offset)
        if record is None:
            return Plain(found.records, found.stop, True)
        found = Plain([*found.records, record], stop, False)
    return found


def blank_end(text: bytes, at: int) -> int:
    return len(text) - len(text[at:].lstrip())


def line_at(text: bytes, at: int) -> tuple[bytes, int]:
    """The line without its end, and where the next one begins."""
    end = text.find(b"\n", at)
    stop = len(text) if end < 0 else end
    return text[at:stop].removesuffix(b"\r"), min(stop + 1, len(text))


def name_of(header: bytes) -> bytes:
    return header[1:].replace(b"\t", b" ").split(b" ")[0]


def is_refused(header: bytes) -> bool:
    return any(byte < 32 or byte == 127 for byte in name_of(header))


def plain_fasta(text: bytes, at: int, _: int) -> tuple[Record | None, int]:
    header, at = line_at(text, at)
    if not header.startswith(b">") or is_refused(header):
        return None, at
    bases = b""
    while at < len(text) and text[at : at + 1] != b">":
        line, at = line_at(text, at)
        bases += line.rstrip()
    return (name_of(header), bases, None), at


def plain_fastq(text: bytes, at: int, offset: int) -> tuple[Record | None, int]:
    header, at = line_at(text, at)
    bases, quality, lines = b"", b"", 0
    while at < len(text) and text[at : at + 1] not in (b"+", b"@"):
        line, at = line_at(text, at)
        bases, lines = bases + line, lines + 1
    if not header.startswith(b"@") or text[at : at + 1] != b"+":
        return None, at
    plus, at = line_at(text, at)
    quality, at = line_at(text, at)
    several = lines > 1
    while at < len(text) and len(quality) < len(bases):
        line, at = line_at(text, at)
        quality, several = quality + line, True
    if len(quality) != len(bases) or any(not offset <= byte <= 126 for byte in quality):
        return None, at
    if several and lines <= 1 and at < len(text) and text[at] not in b"@ \t\v\f\r\n":
        return None, at
    if is_refused(header) or name_of(plus) not in (b"", name_of(header)):
        return None, at
    return (name_of(header), bases, quality), blank_end(text, at)


def whole(text: bytes, layout: str) -> list[Record]:
    """The records of a good text."""
    records, *end = plain_parse(text, layout)
    assert end == [len(text), False]
    return records


def test_plain_parser__reads_what_anybody_would_read() -> None:
    wrapped = [(b"r1", b"ACGTA", b"I" * 5), (b"r2", b"AC", b"II")]
    assert whole(FASTQ["wrapped, crlf"], "fastq") == wrapped
    assert whole(FASTA["blank lines"], "fasta") == [(b"r1", b"ACGT", None), (b"r2", b"AC", None)]
    assert whole(FASTQ["no names"], "fastq") == [(b"", b"ACGT", b"IIII"), (b"", b"AC", b"II")]


@examples(500)
@given(any_text(), st.data())
def test_parse__of_damage_stops_there(given_text: tuple[str, bytes], data: st.DataObject) -> None:
    layout, text = given_text
    at, removed = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    letters = [b"", b"\n", b"@", b"+", b">", b"\r", b"A", b"\x7f", b"\n@\n"]
    text = text[:at] + data.draw(st.sampled_from(letters)) + text[at + removed :]
    raw = array(text)
    parsed, plain = parse(raw, layout), plain_parse(text, layout)
    assert slices(raw, parsed) == plain.records
    assert (parsed.stop, parsed.fault is not Fault.NONE) == (plain.stop, plain.bad)


def test_parse__of_more_records_than_tables_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fasta, fastq):
        monkeypatch.setattr(module, "ROWS", 16)
    for layout, record in (("fastq", b"@r%d\nAC\n+\nII\n"), ("fasta", b">r%d\nAC\n")):
        raw = array(b"".join(record % number for number in range(1000)))
        found = slices(raw, parse(raw, layout))
        assert [name for name, _, _ in found] == [b"r%d" % number for number in range(1000)]


@examples(300)
@given(any_text(), st.integers(1, 200))
def test_parse__of_a_stream_in_blocks_of_any_size_gives_every_record_once(
    given_text: tuple[str, bytes], size: int
) -> None:
    layout, text = given_text
    found, left = [], array(b"")
    for at in range(0, len(text), size):
        block = np.concatenate([left, array(text[at : at + size])])
        parsed = parse(block, layout, final=False)
        assert parsed.fault in (Fault.NONE, Fault.INCOMPLETE)
        found += slices(block, parsed)
        left = block[parsed.stop :]
    parsed = parse(left, layout)
    assert (parsed.fault, parsed.stop) == (Fault.NONE, len(left))
    assert found + slices(left, parsed) == whole(text, layout)


GOOD = b"@r1\nACGT\n+\nIIII\n"
AT = len(GOOD)


@pytest.mark.parametrize(("text", "fault", "qualities"), [
    (b"+\nII\n", Fault.NO_HEADER, 0),
    (b"@r2\nAC\nGT\n@r3\nA\n+\nI\n", Fault.NO_PLUS, 0),
    (b"@r2\n@r3\nA\n+\nI\n", Fault.NO_PLUS, 0),
    (b"@r2\nAC\n+\n", Fault.LENGTHS, 0),
    (b"@r2\nAC\r\n+\r\nI\r\n", Fault.LENGTHS, 1),
    (b"@r2\nAC\nGT\n+\nIII\nIIII\n", Fault.LENGTHS, 7),
    (b"@r2\nAC\nGT\n+\nIII\n", Fault.LENGTHS, 3),
    (b"@r2\nACG\n+\nI\rI\n", Fault.QUALITY, 0),
    (b"@r2\nAC\nGT\n+\nII\nI\x1f\n", Fault.QUALITY, 0),
    (b"@r2\nACGT\n+\nI\n@r3\nAA\n+\nI\n", Fault.LENGTHS, 1),
    (b"@r2\nACGT\n+\nI\nI\n\nI I\n", Fault.LENGTHS, 1),
    (b"@r2 x\nAC\n+r3 x\nII\n", Fault.OTHER_NAME, 0),
    (b"@r2\nAC\n+r22\nII\n", Fault.OTHER_NAME, 0),
    (b"@r2\nAC\n+r\r\nII\n", Fault.OTHER_NAME, 0),
    (b"@\nAC\n+r2\nI\n", Fault.OTHER_NAME, 0),
    (b"@r2\x1b[1m\nAC\n+\nII\n", Fault.NAME, 0),
    (b"@r2\xc2\x9b\nAC\n+\nII\n", Fault.NAME, 0),
    (b"@" + LONGEST_NAME * b"r" + b"r\nAC\n+\nII\n", Fault.NAME, 0),
    (b"@r2\nAC\n+\nI", Fault.INCOMPLETE, 0),
    (b"@r2\nAC\n+", Fault.INCOMPLETE, 0),
    (b"@", Fault.INCOMPLETE, 0),
])  # fmt: skip
def test_fault__stops_and_keeps_those_before(text: bytes, fault: Fault, qualities: int) -> None:
    raw = array(GOOD + text)
    parsed = parse(raw, "fastq")
    assert (parsed.fault, parsed.stop, parsed.qualities) == (fault, AT, qualities)
    assert slices(raw, parsed) == [(b"r1", b"ACGT", b"IIII")]


def test_names__of_every_letter_but_control_characters_are_read() -> None:
    name = "é€😀".encode() + b"\xff\x80" + (LONGEST_NAME - 11) * b"~"
    for layout, text in (("fastq", b"@%s x\nAC\n+%s\nII\n"), ("fasta", b">%s x\nAC\n")):
        raw = array(text.replace(b"%s", name))
        parsed = parse(raw, layout)
        assert [record[0] for record in slices(raw, parsed)] == [name]


def test_parse__of_fasta_that_begins_with_a_carriage_return_or_without_a_header() -> None:
    raw = array(b"\r>r1\nAC\n>r2\nG\n")
    assert slices(raw, parse(raw, "fasta")) == [(b"r1", b"AC", None), (b"r2", b"G", None)]
    parsed = parse(array(b"\nACGT\n>r1\nAC\n"), "fasta")
    assert (parsed.fault, parsed.stop, len(parsed.table)) == (Fault.NO_HEADER, 1, 0)


@pytest.mark.parametrize("offset", [33, 64])
def test_quality__of_the_whole_range_is_good_and_what_is_beside_it_is_not(offset: int) -> None:
    for value in {*range(256)} - {*b"\n\r"}:
        raw = array(b"@r\nACG\n+\n~" + bytes([value]) + b"~\n")
        fault = Fault.NONE if offset <= value <= 126 else Fault.QUALITY
        assert parse(raw, "fastq", offset=offset).fault is fault


@examples(200)
@given(texts("fastq"), st.data())
def test_mean_qualities__are_exact_sums_divided_once(text: bytes, data: st.DataObject) -> None:
    raw = array(text)
    parsed = parse(raw, "fastq")
    qualities = [quality or b"" for _, _, quality in slices(raw, parsed)]
    record = data.draw(st.lists(st.integers(0, len(qualities) - 1), max_size=5))
    # Ends may lie beyond the last base, up to the start.
    begins = [data.draw(st.integers(0, len(qualities[r]))) for r in record]
    ends = [
        data.draw(st.integers(begin, len(qualities[r]) + begin))
        for r, begin in zip(record, begins, strict=True)
    ]
    means = np.empty(len(record))
    windows = np.array(record, np.int32), np.array(begins, np.int64), np.array(ends, np.int64)
    assert mean_qualities(-1, raw, parsed.table, *windows, 33, means) == -1
    letters = [(2 * qualities[r])[a:b] for r, a, b in zip(record, begins, ends, strict=True)]
    expected = [(sum(each) - 33 * len(each)) / len(each) if each else np.nan for each in letters]
    assert np.array_equal(means, expected, equal_nan=True)


def test_mean_qualities__of_records_without_qualities_are_nan() -> None:
    raw, means = array(b">r\nACGT\n"), np.zeros(1)
    window = np.zeros(1, np.int32), np.array([1]), np.array([3])
    assert mean_qualities(-1, raw, parse(raw, "fasta").table, *window, 33, means) == -1
    assert np.isnan(means).all()


def test_mean_qualities__of_a_long_window_do_not_overflow() -> None:
    raw = np.full(20_000_000, 126, np.uint8)
    means, table = np.empty(1), np.zeros((1, COLUMNS), np.int64)
    table[0, LENGTH] = len(raw)
    window = np.zeros(1, np.int32), np.array([0]), np.array([len(raw)])
    assert mean_qualities(-1, raw, table, *window, 0, means) == -1
    assert means.tolist() == [126.0]

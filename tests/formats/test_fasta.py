"""FASTA read from a file in spans and blocks: the records of the whole, wherever it is cut."""

import re
from itertools import product

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from support.examples import examples
from support.sequence_texts import FASTA, Record, array, buffers, opened, parse, slices, texts

from multigpu import InputError
from multigpu.formats.sequences import fasta
from multigpu.formats.sequences.pieces import Pieces, TextInFile
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.records import BASES, LENGTH, NAME, NAME_END, QUALITY

LONG = b">" + 40 * b"x" + b" one\nACGT\n>" + 30 * b"y" + b"\r\nAC\r\nGT\r\n>z" + 50 * b" "
MARKS = st.lists(st.sampled_from([b"A", b"\n", b"\r", b">", b" ", b"\n>"]), max_size=40)
COMMENT = b">r\nAC\n>0123456789 A " + 20 * b"ACGT" + b"\nGT\n>s " + 30 * b"A"


def whole(text: bytes) -> list[Record]:
    """The records, by the parser of bytes in memory."""
    raw = array(text)
    return slices(raw, parse(raw, "fasta"))


def read(
    file: int, text: bytes, begin: int, border: int, overlap: int = 0, block: int = 64,
    exact: bool = False,
) -> Pieces:  # fmt: skip
    source = Source("samples.fa", len(text), "none", "fasta")
    span = FileSpan(0, 0, begin, border, exact)
    return fasta.read_range(file, source, span, overlap, 33, buffers(), block)


def rows_of(file: int, found: Pieces) -> list[Record]:
    """Names from the file, and bases from the letters."""
    text, table = TextInFile(f"/proc/self/fd/{file}"), found.table
    assert (table[:, QUALITY] == -1).all()
    assert table[:, LENGTH].sum() == len(found.letters)
    names = text.windows(table[:, NAME], table[:, NAME_END]) if len(table) else []
    bases = [found.letters[at : at + n].tobytes() for at, n in table[:, [BASES, LENGTH]].tolist()]
    return [(name, letters, None) for name, letters in zip(names, bases, strict=True)]


def joined(text: bytes, cuts: list[int], overlap: int, block: int) -> list[Record]:
    """The records put together from the pieces of the spans between the cuts."""
    found: list[Record] = []
    expected = [bases for _, bases, _ in whole(text)]
    with opened(text) as file:
        for begin, border in zip([0, *cuts], [*cuts, len(text)], strict=True):
            if begin == border:
                continue
            pieces = read(file, text, begin, border, overlap, block)
            assert pieces.error is None
            rows = rows_of(file, pieces)
            for number, (name, bases, _) in enumerate(rows):
                is_last = number + 1 == len(rows)
                inside = len(bases) - (pieces.beyond if is_last else 0)
                before = b""
                if number == 0 and pieces.lead:
                    assert name == b""
                    if not found:
                        assert bases == b""  # blank lines before the first record
                        continue
                    name, before, _ = found.pop()
                beyond = expected[len(found)][len(before) + inside :]
                assert bases[inside:] == (beyond[:overlap] if is_last else b"")
                found.append((name, before + bases[:inside], None))
    return found


@pytest.mark.parametrize("text", [*FASTA.values(), LONG], ids=[*FASTA, "long headers"])
def test_pieces__of_two_spans_and_of_tiny_ones_are_the_records_of_the_whole(text: bytes) -> None:
    borders = [[border] for border in range(len(text) + 1)]
    tiny = [list(range(size, len(text), size)) for size in (1, 2, 3, 5)]
    for cuts, overlap, block in product([*borders, *tiny], (0, 2, 9, 100), (2, 5, 1000)):
        assert joined(text, cuts, overlap, block) == whole(text), (cuts, overlap, block)


@examples(500)
@given(
    text=st.one_of(texts("fasta"), MARKS.map(lambda letters: b">r\n" + b"".join(letters))),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    overlap=st.integers(0, 30),
    block=st.integers(2, 90),
)
@example(text=b">r0\r\nA\r\nC\r\n", cuts=[6, 7], overlap=1, block=2)
@example(text=b">r\n\r\r\r\rA", cuts=[1], overlap=3, block=2)
def test_pieces__of_any_spans_and_blocks_are_the_records_of_the_whole(
    text: bytes, cuts: list[int], overlap: int, block: int
) -> None:
    assume(re.search(rb">[^\n ]*\r(?!\n|$)", text) is None)  # names that are refused
    inside = sorted(cut for cut in cuts if cut <= len(text))
    assert joined(text, inside, overlap, block) == whole(text)


def test_pieces__of_more_records_than_a_table_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasta, "ROWS", 16)
    text = b"".join(b">r%d\nAC\n" % number for number in range(1000))
    assert joined(text, [4000], 3, 50) == whole(text)


@pytest.mark.parametrize("size", range(1, 30))
def test_pieces__of_a_header_of_any_length(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """The span before knows where it ends: read again from there, all records are right."""
    monkeypatch.setattr(fasta, "LOOK_BACK", 8)
    reached = 0
    bases: dict[bytes, bytes] = {}
    with opened(COMMENT) as file:
        for begin in range(0, len(COMMENT), size):
            border = min(begin + size, len(COMMENT))
            found = read(file, COMMENT, begin, border, 2)
            is_empty = reached >= border and not len(found.table)
            if found.begin != reached and not is_empty:
                found = read(file, COMMENT, reached, border, 2, exact=True)
            if found.begin == reached:
                reached = found.stop
            for number, (name, letters, _) in enumerate(rows_of(file, found)):
                name = name or list(bases)[-1]
                last = number + 1 == len(found.table)
                inside = letters[: len(letters) - (found.beyond if last else 0)]
                bases[name] = bases.get(name, b"") + inside
    assert bases == {b"r": b"AC", b"0123456789": b"GT", b"s": b""}
    assert reached == len(COMMENT)


def test_pieces__of_a_name_that_is_refused() -> None:
    for name, problem in ((b"a\x1b[2J", "the control character '\\x1b'"), (5000 * b"a", "more")):
        text = b">r1\nAC\n>" + name + b"\nGT\n"
        with opened(text) as file:
            for block in (4, 1000, 10_000):
                found = read(file, text, 0, len(text), block=block)
                assert rows_of(file, found) == [(b"r1", b"AC", None)]
                assert f"at byte 7: the name has {problem}" in str(found.error)


@pytest.mark.parametrize("blank", [b"", b"\n", b"\r\n\n"])
def test_pieces__of_a_file_that_begins_without_a_header(blank: bytes) -> None:
    text = blank + b"ACGT\n>r1\nAC\n"
    with opened(text) as file:
        error = read(file, text, 0, len(text)).error
    assert f"{error}" == f"samples.fa: byte {len(blank)}: a record should begin with '>' here"


@pytest.mark.parametrize("begin", [0, 1, 4, 8, 12, 20])
def test_pieces__of_a_file_that_has_become_shorter(begin: int) -> None:
    text = b">r1 one\nACGT\n"
    message = f"was cut while it was read: it ends at byte {len(text)}, not at 40"
    with opened(text) as file, pytest.raises(InputError, match=message):
        read(file, text + 27 * b"A", begin, 30)


def test_pieces__of_blank_lines_alone_are_none() -> None:
    text = b"\n\r\n\n"
    with opened(text) as file:
        found = read(file, text, 0, len(text), block=2)
    sizes = (len(found.table), len(found.letters), found.beyond)
    assert (sizes, found.lead, found.error) == ((0, 0, 0), False, None)

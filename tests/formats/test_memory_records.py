"""Records in memory as text of FASTQ or FASTA."""

from collections.abc import Iterator
from types import SimpleNamespace as Namespace
from typing import Any

import pyarrow as pa
import pytest
from support.sequence_texts import Fields, fields_of

from multigpu.errors import InputError
from multigpu.formats.sequences.memory_records import records_or_paths


def blocks_of(given: Any, size: int = 1000) -> list[list[Fields]]:
    """Return the fields of the records in each block; raise the error of the last one."""
    records = records_or_paths(given, "samples")
    return [fields_of(block) for block in records.spans(0, size, 33)]


def test_blocks__are_of_whole_records() -> None:
    records = [("one words", b"ACGT"), ("two\tmore\n", "TT"), ("é", ""), ("d", "A")]
    named = [(b"one", b"ACGT"), (b"two", b"TT"), ("é".encode(), b""), (b"d", b"A")]
    found = [(*record, b"") for record in named]
    assert [record for block in blocks_of(records) for record in block] == found
    assert blocks_of(records, 1) == [[record] for record in found]
    assert len(blocks_of(records * 100, 400)) < 40
    scored = blocks_of([("one", "AC", b"I@"), ("two", "AC", None)], 1)
    assert scored == [[(b"one", b"AC", b"I@")], [(b"two", b"AC", b"")]]


def test_text__is_fasta_where_the_first_record_has_no_quality() -> None:
    records = records_or_paths([("one", "AC", None), ("two words", "GT", "II")], "samples")
    assert b"".join(block.tobytes() for block in records.blocks(9)) == b">one\nAC\n>two\nGT\n"
    records = records_or_paths([("one", "AC", "II"), ("two words", "GT", "I5")], "samples")
    expected = b"@one\nAC\n+\nII\n@two\nGT\n+\nI5\n"
    assert b"".join(block.tobytes() for block in records.blocks(9)) == expected


EXPECTED = r"record 2 \(from 0\): expected \(name, sequence, quality\) as text; got"


@pytest.mark.parametrize(("record", "problem"), [
    (("", "AC", "II"), r"record 2 \(from 0\): the name is empty"),
    ((" x", "AC", "II"), r"record 2 \(from 0\): the name is empty"),
    (("x\n@y", "AC", "II"), r"record 'x\\n@y': the name has the control character '\\n'.*"),
    (("x", "AC", "I"), "record 'x': the sequence has 2 bases, the quality has 1 characters"),
    (("x", "A\nC", "III"), r"record 'x': '\\n' at position 1 \(from 0\) is not a base"),
    (("x", ">C", "II"), r"record 'x': '>' at position 0 \(from 0\) is not a base"),
    (("x", "AC", "I "), r"record 'x': ' ' at position 1 \(from 0\) is no quality from .* 33"),
    ((0, "AC", "II"), rf"{EXPECTED} \(0, 'AC', 'II'\)"),
    ((5, "AC", "II"), rf"{EXPECTED} \(5, 'AC', 'II'\)"),
    (("\ud800", "AC", "II"), rf"{EXPECTED} \('\\ud800', 'AC', 'II'\)"),
    (("x", "AC"), rf"{EXPECTED} \('x', 'AC'\)"),
    ("xyz", rf"{EXPECTED} 'xyz'"),
])  # fmt: skip
def test_record__that_is_wrong_is_named(record: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^samples: {problem}$"):
        blocks_of([("good", "A", "I"), ("bare", "A", None), record])


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (("x\0", "AC", "II"), r"'x\\x00': the name has the control character '\\x00'.*"),
        (("x", "A\0", "II"), r"'x': '\\x00' at position 1 \(from 0\) is not a base"),
        (("x", "AC", "I\0"), r"'x': '\\x00' at position 1 \(from 0\) is no quality from .* 33"),
        (("x", "AC", "\0"), "'x': the sequence has 2 bases, the quality has 1 characters"),
    ],
)
def test_record__with_a_nul_is_named(record: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^samples: record {problem}$"):
        blocks_of([("good", "A", "I"), record, ("good", "A", "I")])


@pytest.mark.parametrize("other", ["x", b"x", "caf\xe9 1", "\udce9"])
@pytest.mark.parametrize("quality", [("II",), (b"II",), (None,), ()])
def test_records__of_any_kinds_of_text_are_as_in_files(other: Any, quality: Any) -> None:
    raw = other if isinstance(other, bytes) else other.encode("utf-8", "surrogateescape")
    values = [each if isinstance(each, bytes) else (each or "").encode() for each in quality]
    [found] = blocks_of([("a\tb c", "AC", *quality), (other, b"GT", *quality)] * 2, 1 << 20)
    expected = [(b"a", b"AC", *(values or [b""])), (raw.split()[0], b"GT", *(values or [b""]))]
    assert found == expected * 2
    [found] = blocks_of([("a\tb c", "AC", *quality), (other, "GT", *quality)] * 2, 1 << 20)
    assert found == expected * 2


@pytest.mark.parametrize("record", [(), ("x",)])
def test_first_record__that_is_wrong_is_named(record: Any) -> None:
    with pytest.raises(InputError, match=r"record 0 \(from 0\): expected \(name, sequence\) as te"):
        blocks_of([record])


def bio(name: str, bases: str, letters: dict[str, list[int]]) -> Namespace:
    """Return what has the attributes of a Bio.SeqRecord; bytes() makes its bases of a Bio.Seq."""
    return Namespace(id=name, seq=bases.encode(), letter_annotations=letters)


TEXTS = [("one", "ACGT", "II5I"), ("two", "NN", "##")]
TWO = [tuple(text.encode() for text in record) for record in TEXTS]
BARE = [(*record[:2], b"") for record in TWO]


def arrow(kind: Any, *columns: str) -> pa.Table:
    texts = dict(zip(("name", "sequence", "quality"), zip(*TEXTS, strict=True), strict=True))
    # A table whose columns are slices, in several chunks.
    parts = [pa.table({name: ["x", texts[name][n], "y"] for name in columns}) for n in (0, 1)]
    table = pa.concat_tables([part.slice(1, 1) for part in parts])
    return table.cast(pa.schema([(name, kind) for name in columns]))


@pytest.mark.parametrize(("given", "expected"), [
    ([Namespace(name=f"{name} comment", sequence=bases, qualities=values)
      for name, bases, values in TEXTS], TWO),
    ([Namespace(name=name, sequence=bases, qualities=None) for name, bases, _ in TEXTS], BARE),
    ([Namespace(name=name, sequence=bases, quality=values)
      for name, bases, values in TEXTS], TWO),
    ([bio(name, bases, {"phred_quality": [ord(value) - 33 for value in values]})
      for name, bases, values in TEXTS], TWO),
    ([bio(name, bases, {}) for name, bases, _ in TEXTS], BARE),
    *((arrow(kind, "quality", "name", "sequence"), TWO)
      for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary())),
    (arrow(pa.string(), "name", "sequence"), BARE),
    (arrow(pa.dictionary(pa.int32(), pa.string()), "name", "sequence"), BARE),
    (pa.table({"name": ["one", "two"], "sequence": ["ACGT", "NN"],
               "quality": ["II5I", None]}), [TWO[0], BARE[1]]),
])  # fmt: skip
@pytest.mark.parametrize("size", [1, 1000])
def test_records__are_read_by_their_attributes(given: Any, expected: list[Any], size: int) -> None:
    assert [record for block in blocks_of(given, size) for record in block] == expected


def test_records__that_share_one_object_are_read_when_they_are_taken() -> None:
    """As those of pysam.FastxFile(persist=False)."""

    def records() -> Iterator[Namespace]:
        shared = Namespace(name="", sequence="", quality=None)
        for shared.name, shared.sequence, shared.quality in TEXTS:
            yield shared

    assert [record for block in blocks_of(records()) for record in block] == TWO


@pytest.mark.parametrize(("table", "problem"), [
    (pa.table({"id": ["a"], "sequence": ["AC"]}), "the table has no column name: id, .*"),
    (pa.table({"name": [1], "sequence": ["AC"]}), "the column name must have text; .* int64"),
    (pa.table({"name": ["a", None], "sequence": ["A", "C"]}), ".*1 .*: the name is empty"),
    (pa.table({"name": ["a", "b"], "sequence": ["A", None]}), "the column sequence has nulls: 1"),
])  # fmt: skip
def test_table__without_texts_is_refused(table: pa.Table, problem: str) -> None:
    with pytest.raises(InputError, match=f"^samples: {problem}$"):
        blocks_of(table)

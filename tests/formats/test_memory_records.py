"""Records in memory as text of FASTQ or FASTA."""

from typing import Any

import pytest

from multigpu.errors import InputError
from multigpu.formats.sequences.memory_records import records_or_paths


def blocks_of(given: Any, size: int = 1000) -> list[list[tuple[bytes, bytes, bytes]]]:
    """Return the fields of the records in each block; raise the error of the last one."""
    records, _ = records_or_paths(given, "samples")
    assert records
    blocks = []
    for block in records.spans(0, size, 33):
        if block.error:
            raise block.error
        raw = block.raw.tobytes()
        blocks.append([
            (raw[name:end], raw[at : at + n], raw[quality : quality + n] if quality >= 0 else b"")
            for name, end, at, n, quality, _ in block.parsed.table.tolist()
        ])  # fmt: skip
    return blocks


def test_blocks__are_of_whole_records() -> None:
    records = [("one words", b"ACGT"), ("two\tmore\n", "TT"), ("café", ""), ("d", "A")]
    found = [(b"one", b"ACGT", b""), (b"two", b"TT", b""), ("café".encode(), b"", b"")]
    found.append((b"d", b"A", b""))
    assert [record for block in blocks_of(records) for record in block] == found
    assert blocks_of(records, 1) == [[record] for record in found]
    assert len(blocks_of(records * 100, 400)) < 40
    assert blocks_of([("one", "AC", b"I@"), ("two", "AC", None)], 1) == [
        [(b"one", b"AC", b"I@")], [(b"two", b"AC", b"")],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (("", "AC", "II"), r"record 1 \(from 0\): the name is empty"),
        ((" x", "AC", "II"), r"record 1 \(from 0\): the name is empty"),
        (("x\n@y", "AC", "II"), r"record 'x\\n@y': the name has the control character '\\n'.*"),
        (("x", "AC", "I"), "record 'x': the sequence has 2 bases, the quality has 1 characters"),
        (("x", "AC", "I "), r"record 'x': ' ' at position 1 \(from 0\) is no quality from .* 33"),
        ((5, "AC", "II"), r"record 1 \(from 0\): .* must be text, str or bytes"),
        (("\ud800", "AC", "II"), r"record '\\ud800': .* must be text, str or bytes"),
        (("x", "AC"), r"record 1 \(from 0\): expected \(name, sequence, quality\); got .*"),
        ("xyz", r"record 1 \(from 0\): expected \(name, sequence, quality\); got 'xyz'"),
    ],
)
def test_record__that_is_wrong_is_named(record: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^samples: {problem}$"):
        blocks_of([("good", "A", "I"), record])

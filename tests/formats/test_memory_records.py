"""Records in memory as text of FASTQ or FASTA."""

from typing import Any

import pytest

from multigpu.errors import InputError
from multigpu.formats.sequences.memory_records import MemoryRecords


def text_of(records: list[Any], size: int = 1000) -> list[bytes]:
    layout = "fastq" if len(records[0]) > 2 else "fasta"
    given = MemoryRecords("samples", iter(records), layout)
    return [block.tobytes() for block in given.blocks(size)]


def test_blocks__are_of_whole_records() -> None:
    records = [("one words", b"ACGT"), (b"two\tmore\n", "TT"), ("caf\u00e9", "")]
    text = [b">one\nACGT\n", b">two\nTT\n", ">caf\u00e9\n\n".encode()]
    assert text_of(records) == [b"".join(text)]
    assert text_of(records, 1) == text
    assert text_of([("one", "AC", b"I@")]) == [b"@one\nAC\n+\nI@\n"]


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (("", "AC", "II"), r"record 1 \(from 0\): the name is empty"),
        ((" x", "AC", "II"), "record ' x': the name is empty"),
        (("x\n@y", "AC", "II"), r"record 'x\\n@y': the name has the control character '\\n'.*"),
        (("x", "AC", "I"), "record 'x': the sequence has 2 bases, the quality has 1 characters"),
        (("x", "A\nC", "III"), r"record 'x': '\\n' at position 1 \(from 0\) is not a base"),
        (("x", ">C", "II"), r"record 'x': '>' at position 0 \(from 0\) is not a base"),
        (("x", "AC", "I "), r"record 'x': ' ' at position 1 \(from 0\) is no quality"),
        ((5, "AC", "II"), r"record 1 \(from 0\): .* must be text, str or bytes"),
        (("x", "AC", None), "record 'x': .* must be text, str or bytes"),
        (("\ud800", "AC", "II"), r"record '\\ud800': .* must be text, str or bytes"),
        (("x", "AC"), r"record 1 \(from 0\): expected \(name, sequence, quality\); got .*"),
        ("xyz", r"record 1 \(from 0\): expected \(name, sequence, quality\); got 'xyz'"),
    ],
)
def test_record__that_is_wrong_is_named(record: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^samples: {problem}$"):
        text_of([("good", "A", "I"), record])

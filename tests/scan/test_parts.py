"""Parts that a journal may hold: what would be read beyond the records is refused."""

from typing import Any

import numpy as np
import pytest

from multigpu import UsageError
from multigpu.cluster.engine.journal import Codec
from multigpu.formats.sequences.pieces import TextInMemory
from multigpu.workloads.scan.parts import JOURNAL_CLASSES, ExtractedRecords
from multigpu.workloads.scan.sink import RecordTexts

TEXT = np.frombuffer(b"@a\nAC\n+\nII\n@b\nGT\n+\nII", np.uint8)
BORDERS = np.array([0, 11]), np.array([11, 21])
TEXTS = RecordTexts(text=TextInMemory(TEXT), borders=lambda: BORDERS)


def fields(**other: Any) -> dict[str, Any]:
    """Return two records that go to one file, with N over a base of the second."""
    usual = {
        "files": np.array([3]), "borders": np.array([0, 2]), "records": np.array([1, 0], np.int32),
        "kept": np.empty((0, 2), np.int64), "masked": np.array([[1, 0, 1]]),
    }  # fmt: skip
    return {**usual, **other}


def test_records__are_read_again_after_a_journal_had_them() -> None:
    codec = Codec(JOURNAL_CLASSES)
    again = codec.unpack(codec.pack(ExtractedRecords(**fields()))).read(TEXTS)
    assert [(n, bytes(text)) for n, text in again.pieces()] == [
        (3, b"@b\nGT\n+\nII\n@a\nNC\n+\nII\n")
    ]


@pytest.mark.parametrize("other", [
    {"records": np.array([1, 0])},
    {"records": np.array([[1, 0]], np.int32)},
    {"records": np.array([1, -1], np.int32)},
    {"borders": np.array([0, 3])},
    {"borders": np.array([0, 1, 2])},
    {"borders": np.array([-1, 2])},
    {"files": np.array([3.0])},
    {"masked": np.array([[2, 0, 1]])},
    {"masked": np.array([[-1, 0, 1]])},
    {"masked": np.array([[1, 0]])},
    {"kept": np.zeros((3, 2), np.int64)},
])  # fmt: skip
def test_records__that_are_not_there_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"records count from 0| records"):
        ExtractedRecords(**fields(**other))


def test_records__beyond_the_text_are_refused_when_they_are_read() -> None:
    found = ExtractedRecords(**fields(records=np.array([0, 2], np.int32)))
    with pytest.raises(UsageError, match="names records beyond the 2 that are there; start over"):
        found.read(TEXTS)

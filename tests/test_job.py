"""What all jobs share: when a journal stays."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import multigpu
from cluster.events import Event
from multigpu.errors import Failure

READS = "".join(f"@read{n}\nACGTACGTTTGA\n+\nIIIIIIIIIIII\n" for n in range(200))


@pytest.fixture
def scan(tmp_path: Path) -> Any:
    (tmp_path / "reads.fq").write_text(READS)
    (tmp_path / "signatures.fa").write_text(">s\nGTTTGA\n")

    def make() -> Any:
        return multigpu.scan(
            tmp_path / "reads.fq", tmp_path / "signatures.fa", gpus="none", max_chunk_bytes=500,
            journal=tmp_path / "journal", resume=True,
        )  # fmt: skip

    return make


def failing(event: Event) -> None:
    if event.name == "planned":
        raise Failure("the scheduler does not answer")


def test_resume__that_fails_before_the_first_part_was_read_keeps_the_journal(
    scan: Any, tmp_path: Path
) -> None:
    rows = iter(scan())
    assert len(list(islice(rows, 3))) == 3
    rows.close()
    before = (tmp_path / "journal").read_bytes()
    again = scan()
    again._job.listeners.append(failing)
    with pytest.raises(Failure, match="does not answer"):
        list(again)
    assert (tmp_path / "journal").read_bytes() == before
    assert scan().to_table().num_rows == 200
    assert not (tmp_path / "journal").exists()


def test_run__that_fails_before_it_began_leaves_no_journal(scan: Any, tmp_path: Path) -> None:
    first = scan()
    first._job.listeners.append(failing)
    with pytest.raises(Failure, match="does not answer"):
        list(first)
    assert not (tmp_path / "journal").exists()

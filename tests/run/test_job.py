"""What all jobs share: when a journal stays, how many chunks are in progress."""

import errno
import gzip
import math
import os
import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import multigpu
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.engine.events import Event
from multigpu.cnv.options import COPY_NUMBER_LANES
from multigpu.dock.options import DockOptions, docking_lanes
from multigpu.errors import Failure, InputError, Unreadable
from multigpu.formats.sequences import fastq
from multigpu.formats.storage import sources
from multigpu.run.job import KEPT, deployment
from multigpu.run.options import MOST, RunOptions
from multigpu.scan.options import SCAN_LANES, SCAN_RATE, scan_lanes

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


@pytest.mark.parametrize("processes", [0, 2])
def test_resume__threads_at_hand_compute_while_the_journal_is_read(
    tmp_path: Path, processes: int
) -> None:
    """Worker processes may take as long to come as it takes."""
    (tmp_path / "reads.fq").write_text(READS)
    (tmp_path / "signatures.fa").write_text(">s\nGTTTGA\n")

    def make() -> Any:
        return multigpu.scan(
            tmp_path / "reads.fq", tmp_path / "signatures.fa", gpus="none", max_chunk_bytes=500,
            journal=tmp_path / "journal", resume=True, processes=processes, threads=2,
        )  # fmt: skip

    rows = iter(make())
    assert len(list(islice(rows, 9))) == 9
    rows.close()
    told: list[str] = []
    again = make()
    again._job.listeners.append(lambda event: told.append(event.name))
    assert again.to_table().num_rows == 200
    assert told.count("resumed") >= 9
    first, last_resumed = told.index("started"), len(told) - told[::-1].index("resumed") - 1
    assert (first < told.index("resumed")) == (not processes)
    assert (first > last_resumed) == bool(processes)


def test_run__that_fails_before_it_began_leaves_no_journal(scan: Any, tmp_path: Path) -> None:
    first = scan()
    first._job.listeners.append(failing)
    with pytest.raises(Failure, match="does not answer"):
        list(first)
    assert not (tmp_path / "journal").exists()


def test_input__that_cannot_be_read_for_a_while_costs_no_journal(
    scan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, real = iter(scan()), sources.fill
    assert len(list(islice(rows, 3))) == 3
    with monkeypatch.context() as patch:
        patch.setattr(fastq, "read_records", stale)
        with pytest.raises(Unreadable, match="cannot be read: stale file handle"):
            list(rows)
    assert (tmp_path / "journal").exists()
    assert sources.fill is real
    assert scan().to_table().num_rows == 200


def stale(*_: object, **__: object) -> int:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


@pytest.fixture
def compressed(tmp_path: Path) -> Any:
    """A scan of a file that is opened once, and looked at again when all is computed."""
    (tmp_path / "reads.fq.gz").write_bytes(gzip.compress(READS.encode()))
    (tmp_path / "signatures.fa").write_text(">s\nGTTTGA\n")

    def make() -> Any:
        return multigpu.scan(
            tmp_path / "reads.fq.gz", tmp_path / "signatures.fa", gpus="none", max_chunk_bytes=500,
            journal=tmp_path / "journal", resume=True,
        )  # fmt: skip

    return make


def test_input__that_cannot_be_read_when_all_is_computed_costs_no_journal(
    compressed: Any, tmp_path: Path
) -> None:
    rows = iter(compressed())
    assert len(list(islice(rows, 3))) == 3
    (tmp_path / "reads.fq.gz").rename(tmp_path / "away")
    with pytest.raises(Unreadable, match=r"reads\.fq\.gz: cannot be read: there is no such file$"):
        list(rows)
    (tmp_path / "away").rename(tmp_path / "reads.fq.gz")
    again = compressed()
    assert again.to_table().num_rows == 200
    assert again._job.stats.resumed == again._job.stats.chunks > 3


def rewritten(path: Path) -> None:
    path.write_bytes(gzip.compress(READS[:-1].encode()))


@pytest.mark.parametrize("change", [rewritten, Path.mkdir], ids=["file", "folder"])
def test_input__that_is_another_one_when_all_is_computed_ends_the_journal(
    compressed: Any, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    rows = iter(compressed())
    next(rows)
    (tmp_path / "reads.fq.gz").unlink()
    change(tmp_path / "reads.fq.gz")
    with pytest.raises(InputError, match=r"reads\.fq\.gz: was changed while it was read$"):
        list(rows)
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("other", [None, b"of another run"])
def test_journal__that_somebody_took_away_is_not_said_to_be_kept(
    scan: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, other: bytes | None
) -> None:
    rows = iter(scan())
    next(rows)
    (tmp_path / "journal").unlink()
    if other:
        (tmp_path / "journal").write_bytes(other)
    rows.close()
    assert caplog.messages == []
    assert (tmp_path / "journal").exists() == bool(other)


def test_journal__that_stays_is_said_to_be_kept(
    scan: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rows = iter(scan())
    next(rows)
    rows.close()
    assert caplog.messages == [KEPT]


def test_pipe__as_input_has_no_journal(scan: Any, tmp_path: Path) -> None:
    """What comes through it the next time may be something else, and nobody could tell."""
    reads = (tmp_path / "reads.fq").read_bytes()
    (tmp_path / "reads.fq").unlink()
    os.mkfifo(tmp_path / "reads.fq")
    writer = threading.Thread(target=(tmp_path / "reads.fq").write_bytes, args=(reads,))
    writer.start()
    found = scan()
    rows = iter(found)
    assert len(next(rows)) > 0
    assert not (tmp_path / "journal").exists()
    assert sum(map(len, rows)) > 0
    writer.join()


@pytest.mark.parametrize(
    ("gpus", "scan", "docking", "copy_numbers"),
    [(1, 8, 4, 3), (2, 6, 4, 5), (3, 4, 4, 5), (8, 3, 4, 5)],
)
def test_lanes__go_by_the_number_of_gpus(
    gpus: int, scan: int, docking: int, copy_numbers: int
) -> None:
    lanes = (SCAN_LANES, docking_lanes(DockOptions(), 0), COPY_NUMBER_LANES)
    assert [each.each(gpus) for each in lanes] == [scan, docking, copy_numbers]


@pytest.mark.parametrize(
    ("options", "text_bytes", "seconds", "gpus"),
    [
        ({}, 200_000_000, 1.25, 1),  # ten degrees: to read a ligand takes longest
        ({"precision": 5.0}, 0, 0, 2),
        ({"precision": 3.0}, 200_000_000, 14.4, 11),
        ({"precision": 1e-300}, 1, math.inf, MOST),
        ({"rotations": 1_000_000}, 0, 0, 6),
        ({"rotation_file": "a.npy"}, 0, 0, 1),
        ({"rotation_file": "a.npy", "translations": (5.0, 0.1)}, 0, 0, 6),
        ({"translations": (1e300, 1e-300)}, 1, math.inf, MOST),
    ],
)
def test_docking_lanes__estimate_the_work_by_poses_and_bytes(
    options: dict[str, Any], text_bytes: int, seconds: float, gpus: int
) -> None:
    found = docking_lanes(DockOptions(**options), text_bytes).estimate
    assert (found.seconds, found.gpus_kept_busy) == (pytest.approx(seconds), gpus)


@pytest.mark.parametrize(
    ("there", "asked", "seconds", "used", "processes"),
    [
        (0, 0, 1e9, 0, 0),
        (0, 2, 0, 0, 2),
        (1, 0, 1e9, 1, 0),
        (1, 1, 0, 1, 1),
        (2, 0, 1e9, 2, 0),
        (8, 0, 1, 4, 0),
        (8, 0, 1000, 8, 8),
        (4, 2, 0, 4, 4),
    ],
)
def test_deployment__is_chosen_before_a_job(
    there: int, asked: int, seconds: float, used: int, processes: int
) -> None:
    devices = tuple(Device(k, f"GPU-{k}", "", 9, 9, (9, 0), mig=False) for k in range(there))
    lanes = scan_lanes(int(seconds * SCAN_RATE))
    where = deployment(RunOptions(processes=asked), devices, lanes)
    assert (where.gpus, where.processes) == ([f"GPU-{k}" for k in range(used)], processes)
    assert where.in_process == (not processes)


def test_deployment__of_a_scheduler_starts_no_processes() -> None:
    run = RunOptions(scheduler="tcp://127.0.0.1:9", processes=2)
    where = deployment(run, (), scan_lanes(0))
    assert (where.remote, where.processes, where.in_process) == (True, 0, False)

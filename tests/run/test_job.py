"""What all jobs share: when a journal stays, how many chunks are in progress."""

import errno
import gzip
import math
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import multigpu
from multigpu.cluster.devices import memory
from multigpu.cluster.devices.gpus import Device, Survey
from multigpu.cluster.engine.events import Event
from multigpu.cluster.errors import spelled
from multigpu.errors import Failure, InputError, TooLittleMemory, Unreadable, UsageError
from multigpu.formats.sequences import fastq
from multigpu.formats.storage import sources
from multigpu.run import options as run_options
from multigpu.run.job import KEPT, Job, deployment
from multigpu.run.options import MOST, GpuLanes, RunOptions
from multigpu.workloads.cnv.options import COPY_NUMBER_LANES
from multigpu.workloads.dock.options import DockOptions, docking_lanes
from multigpu.workloads.scan.options import SCAN_LANES, SCAN_RATE, scan_lanes

READS = "".join(f"@read{n}\nACGTACGTTTGA\n+\nIIIIIIIIIIII\n" for n in range(200))


Scan = Callable[..., Any]


def scan_of(folder: Path, name: str, content: bytes) -> Scan:
    """Return a function that begins a scan of a file, or resumes it."""
    (folder / name).write_bytes(content)
    (folder / "signatures.fa").write_text(">s\nGTTTGA\n")
    usual = {"gpus": "none", "max_chunk_bytes": 500, "journal": folder / "journal", "resume": True}
    return lambda **run: multigpu.scan(folder / name, folder / "signatures.fa", **usual, **run)


@pytest.fixture
def scan(tmp_path: Path) -> Scan:
    return scan_of(tmp_path, "reads.fq", READS.encode())


@pytest.fixture
def compressed(tmp_path: Path) -> Scan:
    """A scan of a file that is opened once, and looked at again when all is computed."""
    return scan_of(tmp_path, "reads.fq.gz", gzip.compress(READS.encode()))


def begin(scan: Scan, parts: int = 3, **run: Any) -> Generator[Any, None, None]:
    """Begin a scan; return its rows after some parts."""
    rows = iter(scan(**run))
    assert len(list(islice(rows, parts))) == parts
    return rows


def failing(event: Event) -> None:
    if event.name == "planned":
        raise Failure("the scheduler does not answer")


@pytest.mark.process
@pytest.mark.parametrize("processes", [0, 2])
def test_resume__gives_what_the_journal_has_before_it_computes(scan: Scan, processes: int) -> None:
    begin(scan, 9, workers=processes, threads=2).close()
    told: list[str] = []
    again = scan(workers=processes, threads=2)
    again._job.listeners.append(lambda event: told.append(event.name))
    assert again.to_table().num_rows == 200
    assert told.count("resumed") >= 9
    first, last_resumed = told.index("started"), len(told) - told[::-1].index("resumed") - 1
    assert first > last_resumed


def test_run__that_fails_at_once_leaves_the_journal_as_it_was(scan: Scan, tmp_path: Path) -> None:
    first = scan()
    first._job.listeners.append(failing)
    with pytest.raises(Failure, match="does not answer"):
        list(first)
    assert not (tmp_path / "journal").exists()
    # Resumed, it keeps it.
    begin(scan).close()
    before = (tmp_path / "journal").read_bytes()
    again = scan()
    again._job.listeners.append(failing)
    with pytest.raises(Failure, match="does not answer"):
        list(again)
    assert (tmp_path / "journal").read_bytes() == before
    assert scan().to_table().num_rows == 200
    assert not (tmp_path / "journal").exists()


def test_input__that_cannot_be_read_for_a_while_costs_no_journal(
    scan: Scan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, real = begin(scan), sources.fill
    with monkeypatch.context() as patch:
        patch.setattr(fastq.fastq, "read", stale)
        with pytest.raises(Unreadable, match="cannot be read: stale file handle"):
            list(rows)
    assert (tmp_path / "journal").exists()
    assert sources.fill is real
    assert scan().to_table().num_rows == 200


def stale(*_: object, **__: object) -> int:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def test_input__that_vanishes_at_the_end_costs_no_journal(compressed: Scan, tmp_path: Path) -> None:
    rows = begin(compressed)
    (tmp_path / "reads.fq.gz").rename(tmp_path / "away")
    with pytest.raises(Unreadable, match=r"reads\.fq\.gz: cannot be read: there is no such file$"):
        list(rows)
    (tmp_path / "away").rename(tmp_path / "reads.fq.gz")
    again = compressed()
    assert again.to_table().num_rows == 200
    assert again._job.stats.resumed == again._job.stats.chunks > 3


@pytest.mark.parametrize("change", [
    lambda path: path.write_bytes(gzip.compress(READS[:-1].encode())), Path.mkdir,
], ids=["file", "folder"])  # fmt: skip
def test_input__that_is_another_one_when_all_is_computed_ends_the_journal(
    compressed: Scan, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    rows = begin(compressed)
    (tmp_path / "reads.fq.gz").unlink()
    change(tmp_path / "reads.fq.gz")
    with pytest.raises(InputError, match=r"reads\.fq\.gz: was changed while it was read$"):
        list(rows)
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("other", [None, b"of another run"])
def test_journal__that_somebody_took_away_is_not_said_to_be_kept(
    scan: Scan, tmp_path: Path, caplog: pytest.LogCaptureFixture, other: bytes | None
) -> None:
    rows = begin(scan)
    (tmp_path / "journal").unlink()
    if other:
        (tmp_path / "journal").write_bytes(other)
    rows.close()
    assert caplog.messages == []
    assert (tmp_path / "journal").exists() == bool(other)


def test_journal__that_stays_is_said_to_stay(scan: Scan, caplog: pytest.LogCaptureFixture) -> None:
    begin(scan).close()
    assert caplog.messages == [spelled(KEPT)]


@pytest.mark.parametrize(
    ("gpus", "scan", "docking", "copy_numbers"),
    [(1, 8, 4, 6), (2, 6, 4, 5), (3, 4, 4, 5), (8, 3, 4, 5)],
)
def test_lanes__go_by_number_of_gpus(gpus: int, scan: int, docking: int, copy_numbers: int) -> None:
    lanes = (SCAN_LANES, docking_lanes(DockOptions(), False, 0), COPY_NUMBER_LANES)
    assert [each.each(gpus) for each in lanes] == [scan, docking, copy_numbers]


@pytest.mark.parametrize(("options", "text_bytes", "seconds", "gpus"), [
    ({}, 200_000_000, 1.25, 1),  # ten degrees: to read a ligand takes longest
    ({"precision": 5.0}, 0, 0, 2),
    ({"precision": 3.0}, 200_000_000, 14.4, 11),
    ({"precision": 1e-300}, 1, math.inf, MOST),
    ({"rotations": 1_000_000}, 0, 0, 6),
    ({"rotation_file": "a.npy"}, 0, 0, 1),
    ({"rotation_file": "a.npy", "translations": (5.0, 0.1)}, 0, 0, 6),
    ({"translations": (100_000.0, 1e-300)}, 1, math.inf, MOST),
])  # fmt: skip
def test_docking_lanes__estimate_the_work_by_poses_and_bytes(
    options: dict[str, Any], text_bytes: int, seconds: float, gpus: int
) -> None:
    found = docking_lanes(DockOptions(**options), False, text_bytes).estimate
    assert (found.seconds, found.gpus_kept_busy) == (pytest.approx(seconds), gpus)


def test_deployment__of_a_scheduler_starts_no_processes_and_a_long_job_does() -> None:
    run = RunOptions(scheduler="tcp://127.0.0.1:9", workers=2)
    where = deployment(run, (), scan_lanes(0))
    assert (where.remote, where.processes, where.in_process) == (True, 0, False)
    devices = tuple(gpu(k, 9) for k in range(8))
    where = deployment(RunOptions(), devices, scan_lanes(int(1000 * SCAN_RATE)))
    assert (where.processes, where.in_process) == (8, False)


def gpu(index: int, free: int, total: int = 80 << 30) -> Device:
    return Device(index, f"GPU-{index}", "a GPU", total, free, (9, 0), mig=False)


@pytest.mark.parametrize(
    ("given", "means"),
    [(0, "0"), ([0, 1], "0,1"), (("GPU-5a", 2), "GPU-5a,2"), ([], "none"), ("all", "all")],
)
def test_gpus__may_be_numbers_and_lists(given: Any, means: str) -> None:
    assert RunOptions(gpus=given).gpus == means


@pytest.mark.parametrize("given", [True, 0.5, None, [None]])
def test_gpus__of_no_meaning_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="gpus is"):
        RunOptions(gpus=given)


def test_gpus__without_room_for_cuda_are_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    there = [gpu(0, 300_000_000), gpu(1, 70 << 30), gpu(2, 0, total=0)]  # 2: the memory is shared
    monkeypatch.setattr(run_options, "survey", lambda: Survey(devices=tuple(there)))
    monkeypatch.setattr(run_options, "find_spec", lambda name: name)
    monkeypatch.setattr(run_options, "secure_cupy", lambda: None)
    assert [each.index for each in RunOptions().devices()] == [1, 2]
    line = "GPU 0 is left out: 300,000,000 bytes of its memory are free, CUDA needs about"
    assert f"multigpu: {line} 536,870,912" in caplog.messages
    del there[1:]
    assert RunOptions().devices() == ()
    with pytest.raises(UsageError, match=line):
        RunOptions(cpu_fallback=False).devices()


def test_plan__that_fits_on_no_gpu_is_that_of_the_cpu(caplog: pytest.LogCaptureFixture) -> None:
    def plan(here: Any) -> Any:
        if here.gpu:
            raise TooLittleMemory(f"{here.free:,} bytes are free")
        return here

    devices = (gpu(0, (1 << 30) + memory.CONTEXT_BYTES),)
    here = Job(RunOptions(), devices=devices).fit(None, plan)
    assert (here.gpu, here.free > 1 << 20) == (False, True)
    assert caplog.messages == ["multigpu: using the CPU, because 1,073,741,824 bytes are free"]
    with pytest.raises(TooLittleMemory):
        Job(RunOptions(cpu_fallback=False), devices=devices).fit(None, plan)


@pytest.mark.parametrize("gpus", ["auto", "all"])
def test_cupy__that_cannot_be_imported_leaves_the_cpu(
    gpus: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(memory, "cupy_problem", lambda: "CuPy cannot be imported (libcudart)")
    job = Job(RunOptions(gpus=gpus), GpuLanes(2), devices=(gpu(0, 70 << 30),))
    with ExitStack() as stack:
        if gpus == "all":
            with pytest.raises(UsageError, match=r"^GPUs cannot be used: CuPy cannot be imported"):
                job.crew(stack, [])
            return
        crew = job.crew(stack, [])
        assert (crew.capacity.gpu, crew.workers().gpu) == (False, None)
    said = "multigpu: using the CPU, because CuPy cannot be imported (libcudart)"
    assert caplog.messages == [said]


def test_warnings__with_the_same_reason_are_given_once(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(RunOptions(gpus="none"))
    for chunk in range(3):
        job.emit(Event("retired", details={"worker": "w", "reason": "the GPU of worker w failed"}))
        job.emit(Event("retried", details={"chunk": chunk, "reason": "the GPU of worker w failed"}))
        about = {"chunk": chunk, "reason": f"about {chunk} bytes are needed"}
        job.emit(Event("on_cpu", details=about))
        job.emit(Event("left", details={"worker": f"v{chunk % 2}"}))
    assert [message.split(":")[1] for message in caplog.messages] == [
        " w gets no more work", " chunk 0 runs on the CPU", " worker v0 has left",
        " worker v1 has left",
    ]  # fmt: skip

"""Random faults at random moments: whatever happens, the bytes are the same in the end.

`make soak` runs 100 schedules for each job, `make test` the first, `make test-all` ten.
"""

import contextlib
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from faults.harness import Job, Run, left, run

ATTEMPTS = 4  # the last one is left alone
GOOD_ENDS = (0, 1, 130, 143, -signal.SIGKILL)
SECONDS = (0.2, 2.0)  # from when there is a journal, but not while Python itself starts

Fault = Callable[[Run, random.Random], None]


def nothing(disturbed: Run, chance: random.Random) -> None:
    """Every run should also be left alone now and then."""


def kill_worker(disturbed: Run, chance: random.Random) -> None:
    send(signal.SIGKILL, disturbed, chance)


def kill_all_workers(disturbed: Run, chance: random.Random) -> None:
    for child in disturbed.children():
        _send(child, signal.SIGKILL)


def freeze_worker(disturbed: Run, chance: random.Random) -> None:
    """For a while, longer than the chunk timeout of these runs."""
    frozen = send(signal.SIGSTOP, disturbed, chance)
    disturbed.until(lambda: False, timeout=chance.uniform(0.5, 3))
    if frozen is not None:
        _send(frozen, signal.SIGCONT)


def freeze_worker_for_good(disturbed: Run, chance: random.Random) -> None:
    """It may still be starting, for which a run waits minutes: the journal has to grow first.

    One of them is left, as a run without any waits for Dask to find them gone, also minutes.
    """
    journal = disturbed.journal
    before = journal.stat().st_size if journal.exists() else 0
    if not disturbed.until(lambda: disturbed.journaled(before), timeout=10):
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        if not any(child.status() == psutil.STATUS_STOPPED for child in disturbed.children()):
            send(signal.SIGSTOP, disturbed, chance)


def kill_client(disturbed: Run, chance: random.Random) -> None:
    """Nobody is left to end a worker that is stopped, so none may be."""
    workers = disturbed.children()
    disturbed.send(signal.SIGKILL)
    for child in workers:
        _send(child, signal.SIGCONT)


def interrupt(disturbed: Run, chance: random.Random) -> None:
    disturbed.send(signal.SIGINT)


def terminate(disturbed: Run, chance: random.Random) -> None:
    disturbed.send(signal.SIGTERM)


FAULTS: tuple[Fault, ...] = (
    nothing, kill_worker, kill_worker, kill_all_workers, freeze_worker, freeze_worker_for_good,
    kill_client, interrupt, terminate,
)  # fmt: skip


def send(number: signal.Signals, disturbed: Run, chance: random.Random) -> psutil.Process | None:
    """To one of the workers, if there are any."""
    children = sorted(disturbed.children(), key=lambda child: child.pid)
    if not children:
        return None
    chosen = chance.choice(children)
    _send(chosen, number)
    return chosen


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def test_schedule__of_random_faults_ends_in_the_same_bytes(
    job: Job, undisturbed: bytes, tmp_path: Path, schedule: int
) -> None:
    chance = random.Random(f"{job.name} {schedule}")
    for attempt in range(ATTEMPTS):
        workers = ("--workers", "2", "--chunk-timeout", "1") if chance.random() < 0.7 else ()
        if attempt == ATTEMPTS - 1:
            assert run(job, tmp_path, "--resume", *workers).status == 0
            break
        disturbed = Run(job, tmp_path, "--resume", *workers)
        disturbed.until(disturbed.journal.exists)
        for _ in range(chance.randint(1, 2)):
            time.sleep(chance.uniform(*SECONDS))
            chance.choice(FAULTS)(disturbed, chance)
        ended = disturbed.ended()
        assert ended.status in GOOD_ENDS, ended.err
        assert "Traceback" not in ended.err
        assert "an internal error" not in ended.err, ended.err[-600:]
        if ended.status == 0 or job.output in left(tmp_path):  # then only its workers were ending
            break
    assert (tmp_path / job.output).read_bytes() == undisturbed
    assert left(tmp_path) == [job.output]

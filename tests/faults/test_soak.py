"""Random faults at random moments: whatever happens, the bytes are the same in the end.

`make soak` runs 100 schedules for each job, `make test` the first, `make test-all` ten.
"""

import contextlib
import random
import signal
import time
from pathlib import Path

import psutil
from faults.harness import Job, Run, left, run

ATTEMPTS = 4  # the last one is left alone
GOOD_ENDS = (0, 1, 130, 143, -signal.SIGKILL)
SECONDS = (0.2, 2.0)  # from when there is a journal, but not while Python itself starts

# Whom what happens to: a worker, all of them, or the client.
FAULTS = (
    ("client", None), ("worker", signal.SIGKILL), ("worker", signal.SIGKILL),
    ("workers", signal.SIGKILL), ("worker", signal.SIGSTOP), ("worker for good", signal.SIGSTOP),
    ("client", signal.SIGKILL), ("client", signal.SIGINT), ("client", signal.SIGTERM),
)  # fmt: skip


def harm(disturbed: Run, chance: random.Random) -> None:
    """Let something happen, or nothing.

    A worker is frozen for longer than the chunk timeout of these runs. One that stays so may still
    be starting, for which a run waits minutes: the journal has to grow first; and one of them is
    left, as a run without any waits for Dask to find them gone, also minutes.
    """
    whom, number = chance.choice(FAULTS)
    workers = sorted(disturbed.children(), key=lambda child: child.pid)
    if number is None:
        return
    if whom == "client":
        disturbed.send(number)
        if number == signal.SIGKILL:  # nobody is left to end a worker that is stopped
            _send(workers, signal.SIGCONT)
        return
    if whom == "worker for good":
        before = disturbed.journal.stat().st_size if disturbed.journal.exists() else 0
        if not disturbed.until(lambda: disturbed.journaled(before), timeout=10):
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(child.status() == psutil.STATUS_STOPPED for child in workers):
                return
    chosen = workers if whom == "workers" else workers and [chance.choice(workers)]
    _send(chosen, number)
    if whom == "worker" and number == signal.SIGSTOP:
        disturbed.until(lambda: False, timeout=chance.uniform(0.5, 3))
        _send(chosen, signal.SIGCONT)


def _send(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def test_schedule__ends_alike(job: Job, undisturbed: bytes, tmp_path: Path, schedule: int) -> None:
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
            harm(disturbed, chance)
        ended = disturbed.ended()
        assert ended.status in GOOD_ENDS, ended.err
        assert "Traceback" not in ended.err
        assert "an internal error" not in ended.err, ended.err[-600:]
        if ended.status == 0 or job.output in left(tmp_path):  # then only its workers were ending
            break
    assert (tmp_path / job.output).read_bytes() == undisturbed
    assert left(tmp_path) == [job.output]

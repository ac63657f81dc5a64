"""Workers of a Dask scheduler that hang."""

import os
import queue
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from multigpu.cluster.workers.dask_workers import DaskWorkers


def when_there_is(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


@pytest.mark.process
def test_results__do_not_wait_for_those_of_a_worker_that_hangs(
    scheduler: str, tmp_path: Path
) -> None:
    from distributed import Client

    answered: queue.Queue[str] = queue.Queue()
    go = tmp_path / "go"
    with Client(scheduler, set_as_default=False, direct_to_workers=True) as client:
        workers = DaskWorkers(client, None)
        processes = client.run(os.getpid)
        for name in [*processes] * 10:
            report = partial(lambda name, *_: answered.put(name), name)
            workers.submit(report, when_there_is, go, home=name)
        while sum(map(len, client.processing().values())) < 20:
            time.sleep(0.01)
        client.loop.add_callback(time.sleep, 2)  # so that it hears of all of them at once
        go.touch()
        time.sleep(1)
        hangs, works = processes
        os.kill(processes[hangs], signal.SIGSTOP)
        try:
            assert [answered.get(timeout=10) for _ in range(10)] == [works] * 10
        finally:
            os.kill(processes[hangs], signal.SIGCONT)

"""A scheduler and workers of their own, which go away: what the client makes of it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from faults.harness import Job, Run, run
from support.hosts import Host

from multigpu.cluster.deploy.start import workers_of_client
from multigpu.cluster.errors import Failure, Lost, UsageError
from multigpu.cluster.workers import dask_workers

UNDER_WAY = 3_000  # bytes of a journal
PATIENCE = ("--worker-timeout", "3", "--connect-timeout", "20")


class Cluster:
    """A scheduler and workers without nannies, as processes of their own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._host, self._stack = Host(folder), stack
        self.file = stack.enter_context(self._host.scheduler())

    def worker(self) -> "subprocess.Popen[str]":
        return self._stack.enter_context(self._host.worker("--no-nanny"))

    @property
    def port(self) -> int:
        return int(json.loads(self.file.read_text())["address"].rpartition(":")[2])

    @property
    def processes(self) -> list["subprocess.Popen[str]"]:
        """The scheduler, and then the workers."""
        return self._host.started


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def under_way(job: Job, out: Path, *more: str) -> Run:
    started = Run(job, out, *more)
    assert started.until(lambda: started.journaled(UNDER_WAY)), started.ended().err
    return started


def test_lost_scheduler__is_told(job: Job, undisturbed: bytes, cluster: Cluster, out: Path) -> None:
    cluster.worker()
    disturbed = under_way(job, out, "--scheduler-file", str(cluster.file), *PATIENCE)
    cluster.processes[0].kill()
    died = time.monotonic()
    ended = disturbed.ended()
    assert time.monotonic() - died < 30
    assert ended.status == 1
    assert "multigpu: error: the scheduler has not answered for 3 s" in ended.err
    assert "--resume continues from there" in ended.err
    assert run(job, out, "--resume").status == 0
    assert (out / job.output).read_bytes() == undisturbed


def test_last_worker__is_missed(job: Job, undisturbed: bytes, cluster: Cluster, out: Path) -> None:
    worker = cluster.worker()
    disturbed = under_way(job, out, "--scheduler-file", str(cluster.file), *PATIENCE)
    worker.kill()
    ended = disturbed.ended()
    assert ended.status == 1
    assert "multigpu: error: no worker has been left for 3 s" in ended.err
    cluster.worker()
    again = run(job, out, "--resume", "--scheduler-file", str(cluster.file))
    assert (again.status, again.err) == (0, "")
    assert (out / job.output).read_bytes() == undisturbed


class Proxy:
    """Hands bytes to and from a port, until it is cut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._pairs: list[socket.socket] = []
        self._listen()

    def _listen(self, port: int = 0) -> None:
        self._server = socket.create_server(("127.0.0.1", port))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                inner, _ = server.accept()
                outer = socket.create_connection(("127.0.0.1", self._target))
                self._pairs += [inner, outer]
                for ends in ((inner, outer), (outer, inner)):
                    threading.Thread(target=_pump, args=ends, daemon=True).start()

    def cut(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for end in self._pairs:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._pairs.clear()

    def restore(self) -> None:
        self._listen(self.port)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def test_connection__may_be_cut(job: Job, undisturbed: bytes, cluster: Cluster, out: Path) -> None:
    cluster.worker()
    proxy = Proxy(cluster.port)
    address = ("--scheduler", f"tcp://127.0.0.1:{proxy.port}")
    disturbed = under_way(job, out, *address, "--worker-timeout", "60")
    proxy.cut()
    time.sleep(1)
    proxy.restore()
    ended = disturbed.ended()
    proxy.cut()
    assert ended.status == 0, ended.err
    assert (out / job.output).read_bytes() == undisturbed


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    for _ in range(2):
        cluster.worker()
    found = Client(scheduler_file=str(cluster.file), set_as_default=False)
    found.wait_for_workers(2)
    yield found
    for process in cluster.processes:
        process.send_signal(signal.SIGCONT)
    found.close()


def test_worker__that_hangs_before_the_run_is_not_waited_for_endlessly(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "ANSWERS_TIMEOUT", 2.0)
    workers = workers_of_client(client, None, worker_timeout=10)
    assert len(set(workers.everywhere(os.getpid).values())) == 2
    cluster.processes[-1].send_signal(signal.SIGSTOP)
    with pytest.raises(Failure, match=r"^no answer from the scheduler or a worker within 2 s"):
        workers.everywhere(os.getpid)


def test_scheduler__that_hangs_does_not_stop_what_is_begun_elsewhere_or_retired(
    cluster: Cluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_workers, "ANSWER_TIMEOUT", 0.5)
    workers = workers_of_client(client, None, worker_timeout=1)
    name = min(workers.present())
    task = workers.submit(lambda outcome, error: None, time.sleep, 60)
    cluster.processes[0].send_signal(signal.SIGSTOP)
    again = workers.submit(lambda outcome, error: None, time.sleep, 60, avoid=task)
    workers.retire(name)
    for each in (task, again):
        each.cancel()
    with pytest.raises(Failure, match="the scheduler has not answered for 1 s"):
        workers.everywhere(os.getpid)


@pytest.fixture
def broken_link(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every new connection to the scheduler is lost before TLS begins."""

    async def lost(**_: Any) -> None:
        raise ValueError("IOStream is not idle; cannot convert to SSL")

    for question in ("ncores_running", "processing", "who_has", "gather", "broadcast"):
        monkeypatch.setattr(client.scheduler, question, lost)


@pytest.mark.usefixtures("broken_link")
def test_scheduler__whose_connections_are_lost_before_tls_does_not_answer(client: Client) -> None:
    with pytest.raises(Failure, match=r"^the scheduler has not answered for 1 s "):
        workers_of_client(client, None, worker_timeout=1)


def test_result__not_fetched_is_lost(client: Client, request: pytest.FixtureRequest) -> None:
    workers = workers_of_client(client, None, worker_timeout=3)
    request.getfixturevalue("broken_link")
    assert workers.idle() == 0
    with pytest.raises(Failure, match=r"^the scheduler has not answered for 3 s "):
        workers.everywhere(os.getpid)
    inbox = workers.inbox()
    for text in ("7", "no number"):
        workers.submit(lambda *reported: inbox.put(reported), int, text)
    errors = {type(inbox.get(timeout=20)[1]) for _ in range(2)}
    assert errors == {Lost, ValueError}


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:8786", 7])
def test_client__that_is_none_is_refused(client: Any) -> None:
    with pytest.raises(UsageError, match=r"^client is a (str|int), no dask\.distributed\.Client$"):
        workers_of_client(client, None, worker_timeout=1)


def test_client__that_was_closed_is_refused(cluster: Cluster) -> None:
    client = Client(scheduler_file=str(cluster.file), set_as_default=False)
    client.close()
    with pytest.raises(UsageError, match=r"^client is not connected: it is closed$"):
        workers_of_client(client, None, worker_timeout=1)

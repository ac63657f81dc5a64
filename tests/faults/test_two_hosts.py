"""Two hosts with TLS between them, by `multigpu tls`, and a link that fails."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from faults.harness import Job
from support.hosts import Host, Link, end, events, two_hosts, wait_for
from support.hosts import ended as terminated

ONLY_SCAN = pytest.mark.parametrize("job", ["scan"], indirect=True, scope="session")
pytestmark = [pytest.mark.slow, ONLY_SCAN]

TIMEOUT = 5.0  # --worker-timeout
GRACE = 12.0  # seconds that this may take longer: questions without an answer, and the end
NOTICED = 30.0  # seconds until a dead connection counts as such, by the settings


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host, Link]]:
    """With credentials and Dask's settings by our command."""
    credentials = str(tmp_path / "credentials")
    assert Host(tmp_path).run("multigpu", "tls", credentials).status == 0
    with two_hosts(tmp_path, {"DASK_CONFIG": credentials}) as hosts:
        yield hosts


class Disturbed:
    """A run on the cluster, started on a host."""

    def __init__(self, host: Host, job: Job, *more: str, timeout: float = TIMEOUT) -> None:
        self.output, self.log = host.folder / job.output, host.folder / "events.json"
        self.log.unlink(missing_ok=True)
        cluster = ("--scheduler-file", str(host.folder / "scheduler.json"))
        patience = ("--worker-timeout", str(timeout), "--log-json", str(self.log))
        _, _, *command = job.command(host.folder, *cluster, *patience, *more)
        self.process = host.start(*command)

    def under_way(self) -> None:
        """Wait until it has done a part of its work."""
        wait_for(lambda: events(self.log, "finished") > 20, "finished chunks", 180)
        assert self.process.poll() is None

    def finished(self) -> list[str]:
        """Return the events of finished chunks."""
        return [line for line in self.log.read_text().splitlines() if '"finished"' in line]


@contextmanager
def many_workers(host: Host, seconds: float) -> Iterator["subprocess.Popen[str]"]:
    """Start 50 workers on a host, each chunk of which takes some seconds; yield their parent."""
    file, log = str(host.folder / "scheduler.json"), f"many-{time.monotonic_ns()}.log"
    command = ("tests.support.many_workers", file, "50", host.address, str(host.folder))
    process = host.start(*command, str(seconds), log=log)
    with terminated(process):
        text = (host.folder / log).read_text
        wait_for(lambda: text().count("Registered to") >= 50, "50 workers", 180)
        yield process


@pytest.mark.timeout(900)  # they start on two cores
@pytest.mark.parametrize("how", ["cut off", "told to leave"])
def test_hundred_workers__share_a_run_of_which_half_go_away(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes, how: str
) -> None:
    """What they had is done elsewhere, whether they are known to be gone by then or not."""
    first, second, link = hosts
    with first.scheduler(), many_workers(first, 0.5), many_workers(second, 0.5) as leaving:
        run = Disturbed(first, job, "--max-chunk-bytes", "4000", timeout=60.0)
        run.under_way()
        assert len({line.split('"worker": ')[1] for line in run.finished()}) > 20
        if how == "cut off":
            link.cut()
        else:
            leaving.terminate()
            assert leaving.wait(30) == 0
            assert run.process.poll() is None
        ended = end(run.process, NOTICED + 150)
        link.restore()
    assert ended.status == 0, ended.lines
    if how == "told to leave":
        assert {line.rpartition(" ")[2] for line in ended.lines} == {"left"}
    assert run.output.read_bytes() == undisturbed


def test_two_hosts__share_a_run_over_tls_and_notice_no_link_that_is_away_for_a_moment(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes
) -> None:
    first, second, link = hosts
    with first.scheduler() as scheduler, first.worker(), second.worker():
        assert '"tls://' in scheduler.read_text()
        run = Disturbed(first, job)
        run.under_way()
        link.cut()
        time.sleep(1)
        link.restore()
        ended = end(run.process)
    assert (ended.status, ended.lines) == (0, [])
    assert run.output.read_bytes() == undisturbed
    log = run.log.read_text()
    for host in (first, second):
        assert f'"worker": "tls://{host.address}:' in log


def test_link_to_the_scheduler__that_is_cut_ends_the_run_which_can_be_resumed(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes
) -> None:
    first, second, link = hosts
    with second.scheduler(), second.worker():
        with first.worker():
            run = Disturbed(first, job)
            run.under_way()
            cut = time.monotonic()
            link.cut()
            ended = end(run.process, NOTICED + 30)
            took = time.monotonic() - cut
            link.restore()
        assert ended.status == 1
        assert ended.lines == [
            "multigpu: finished chunks are kept: --resume continues from there",
            f"multigpu: error: the scheduler has not answered for {TIMEOUT:g} s (--worker-timeout)",
        ]
        assert took < TIMEOUT + GRACE
        assert not run.output.exists()
        with first.worker():  # the one before found the scheduler gone, and ended
            again = Disturbed(first, job, "--resume")
            ended = end(again.process)
    assert (ended.status, ended.lines) == (0, [])
    assert events(again.log, "resumed") > 10
    assert again.output.read_bytes() == undisturbed

"""Two hosts with TLS between them, as docs/clusters.md says it, and a link that fails."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.harness import ROOT, Job
from support.hosts import Host, Link, end, events, two_hosts, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("job", ["scan"], indirect=True, scope="session"),
]

DOCUMENT = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
TLS_FOLDER = "/etc/dask/tls"
TIMEOUT = 5.0  # --worker-timeout
GRACE = 12.0  # seconds that this may take longer: questions without an answer, and the end
NOTICED = 30.0  # seconds until a dead connection counts as such, by the document's settings


def from_the_document(kind: str, begin: str) -> str:
    """The block of code of docs/clusters.md that begins so."""
    (block,) = re.findall(rf"```{kind}\n({re.escape(begin)}.*?)```", DOCUMENT, re.DOTALL)
    return str(block)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host, Link]]:
    """With certificates and Dask's configuration as the document has them."""
    if shutil.which("openssl") is None:
        pytest.skip("the certificates need the program openssl")
    commands = from_the_document("sh", "openssl req")
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    settings = from_the_document("yaml", "distributed:\n  comm:")
    (tmp_path / "dask.yaml").write_text(settings.replace(TLS_FOLDER, str(tmp_path)))
    with two_hosts(tmp_path, {"DASK_CONFIG": str(tmp_path / "dask.yaml")}) as hosts:
        yield hosts


class Disturbed:
    """A run on the cluster, started on a host."""

    def __init__(self, host: Host, job: Job, *more: str) -> None:
        self.output, self.log = host.folder / job.output, host.folder / "events.json"
        self.log.unlink(missing_ok=True)
        cluster = ("--scheduler-file", str(host.folder / "scheduler.json"))
        patience = ("--worker-timeout", str(TIMEOUT), "--log-json", str(self.log))
        _, _, *command = job.command(host.folder, *cluster, *patience, *more)
        self.process = host.start(*command)

    def under_way(self) -> None:
        """Wait until it has done a part of its work."""
        wait_for(lambda: events(self.log, "finished") > 20, "finished chunks")
        assert self.process.poll() is None


def test_two_hosts__share_a_run_over_tls(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes
) -> None:
    first, second, _ = hosts
    with first.scheduler() as scheduler, first.worker(), second.worker():
        assert '"tls://' in scheduler.read_text()
        run = Disturbed(first, job)
        ended = end(run.process)
    assert (ended.status, ended.lines) == (0, [])
    assert run.output.read_bytes() == undisturbed
    log = run.log.read_text()
    for host in (first, second):
        assert f'"worker": "tls://{host.address}:' in log


def test_link__that_is_away_for_a_moment_is_not_noticed(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes
) -> None:
    first, second, link = hosts
    with first.scheduler(), first.worker(), second.worker():
        run = Disturbed(first, job)
        run.under_way()
        link.cut()
        time.sleep(1)
        link.restore()
        ended = end(run.process)
    assert (ended.status, ended.lines) == (0, [])
    assert run.output.read_bytes() == undisturbed


def test_link_to_a_worker__that_is_cut_does_not_hold_the_run_up(
    hosts: tuple[Host, Host, Link], job: Job, undisturbed: bytes
) -> None:
    """What it had is done elsewhere, whether it is known to be gone by then or not."""
    first, second, link = hosts
    with first.scheduler(), first.worker(), second.worker():
        run = Disturbed(first, job)
        run.under_way()
        link.cut()
        ended = end(run.process, NOTICED + 30)
        link.restore()
        assert ended.status == 0
    gone = any(second.address in line and "has left" in line for line in ended.lines)
    assert gone or events(run.log, "moved")
    assert run.output.read_bytes() == undisturbed


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

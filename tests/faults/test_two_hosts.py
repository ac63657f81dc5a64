"""Two hosts with TLS between them, as docs/clusters.md says it, and a link that fails."""

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosts import ROOT, Host, Link, end, events, two_hosts, wait_for

pytestmark = pytest.mark.slow

DOCUMENT = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
TLS_FOLDER = "/etc/dask/tls"
TIMEOUT = 5.0  # --worker-timeout
GRACE = 12.0  # seconds that this may take longer: questions without an answer, and the end
NOTICED = 30.0  # seconds until a dead connection counts as such, by the document's settings


def from_the_document(kind: str, begin: str) -> str:
    """The block of code of docs/clusters.md that begins so."""
    (block,) = re.findall(rf"```{kind}\n({re.escape(begin)}.*?)```", DOCUMENT, re.DOTALL)
    return str(block)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates, Dask's configuration, samples, signatures, and what a scan gives for them."""
    folder = tmp_path_factory.mktemp("hosts")
    commands = from_the_document("sh", "openssl req")
    subprocess.run(["bash", "-ec", commands], cwd=folder, check=True, capture_output=True)
    settings = from_the_document("yaml", "distributed:\n  comm:")
    (folder / "dask.yaml").write_text(settings.replace(TLS_FOLDER, str(folder)))
    here = Host(folder)
    signatures, samples = str(folder / "signatures.fasta"), str(folder / "samples.fastq")
    made = [
        here.run("multigpu", "simulate", "signatures", "--count", "20", "--min-length", "300",
                 "--max-length", "900", "-o", signatures),
        here.run("multigpu", "simulate", "samples", "--signatures", signatures, "--clean", "300",
                 "--infected", "50", "--min-length", "20000", "--max-length", "40000",
                 "-o", samples),
        here.run("multigpu", "scan", samples, "-s", signatures, "--gpus", "none",
                 "-o", str(folder / "undisturbed.tsv")),
    ]  # fmt: skip
    assert [ended.status for ended in made] == [0, 0, 0]
    return folder


@pytest.fixture
def hosts(folder: Path) -> Iterator[tuple[Host, Host, Link]]:
    with two_hosts(folder, {"DASK_CONFIG": str(folder / "dask.yaml")}) as hosts:
        yield hosts


class Scan:
    """A scan of a thousand chunks on the cluster, started on a host."""

    def __init__(self, host: Host, *options: str) -> None:
        self.folder = host.folder
        self.output, self.log = self.folder / "hits.tsv", self.folder / "events.json"
        for left in (self.output, self.log):
            left.unlink(missing_ok=True)
        self.process = host.start(
            "multigpu", "scan", str(self.folder / "samples.fastq"),
            "-s", str(self.folder / "signatures.fasta"), "-o", str(self.output),
            "--scheduler-file", str(self.folder / "scheduler.json"), "--max-chunk-bytes", "20000",
            "--worker-timeout", str(TIMEOUT), "--log-json", str(self.log), *options,
        )  # fmt: skip

    def under_way(self) -> None:
        """Wait until it has done a part of its work."""
        wait_for(lambda: events(self.log, "finished") > 50, "finished chunks")
        assert self.process.poll() is None

    def is_as_undisturbed(self) -> bool:
        return self.output.read_bytes() == (self.folder / "undisturbed.tsv").read_bytes()


def test_two_hosts__share_a_scan_over_tls(hosts: tuple[Host, Host, Link]) -> None:
    first, second, _ = hosts
    with first.scheduler() as scheduler, first.worker(), second.worker():
        assert '"tls://' in scheduler.read_text()
        scan = Scan(first)
        ended = end(scan.process)
    assert (ended.status, ended.lines) == (0, [])
    assert scan.is_as_undisturbed()
    log = scan.log.read_text()
    for host in (first, second):
        assert f'"worker": "tls://{host.address}:' in log


def test_link__that_is_away_for_a_moment_is_not_noticed(hosts: tuple[Host, Host, Link]) -> None:
    first, second, link = hosts
    with first.scheduler(), first.worker(), second.worker():
        scan = Scan(first)
        scan.under_way()
        link.cut()
        time.sleep(1)
        link.restore()
        ended = end(scan.process)
    assert (ended.status, ended.lines) == (0, [])
    assert scan.is_as_undisturbed()


def test_link_to_a_worker__that_is_cut_costs_the_worker_and_not_the_run(
    hosts: tuple[Host, Host, Link],
) -> None:
    first, second, link = hosts
    with first.scheduler(), first.worker(), second.worker() as lost:
        scan = Scan(first)
        scan.under_way()
        link.cut()
        ended = end(scan.process, NOTICED + 30)
        link.restore()
        assert ended.status == 0
        lost.wait(NOTICED)  # it has found its scheduler gone; whoever started it may do so again
    assert any(second.address in line and "is gone" in line for line in ended.lines)
    assert scan.is_as_undisturbed()


def test_link_to_the_scheduler__that_is_cut_ends_the_run_which_can_be_resumed(
    hosts: tuple[Host, Host, Link],
) -> None:
    first, second, link = hosts
    with second.scheduler(), second.worker():
        with first.worker():
            scan = Scan(first)
            scan.under_way()
            cut = time.monotonic()
            link.cut()
            ended = end(scan.process, NOTICED + 30)
            took = time.monotonic() - cut
            link.restore()
        assert ended.status == 1
        assert ended.lines == [
            "multigpu: what is finished is kept: --resume goes on with it",
            f"multigpu: error: the scheduler does not answer, for {TIMEOUT:g} s now",
        ]
        assert took < TIMEOUT + GRACE
        assert not scan.output.exists()
        with first.worker():  # the one before found the scheduler gone, and ended
            again = Scan(first, "--resume")
            ended = end(again.process)
    assert (ended.status, ended.lines) == (0, [])
    assert events(again.log, "resumed") > 50
    assert again.is_as_undisturbed()

"""A cluster that others started: who may take part, who joins, and what is said of it."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
import pytest
import yaml
from support.hosts import PATIENCE, Host, end, ended, events, wait_for
from support.program import ROOT

from multigpu.cli import cli
from multigpu.cluster.deploy.dask_clients import LISTENS
from multigpu.errors import Failure, UsageError
from multigpu.run.job import Job
from multigpu.run.options import RunOptions

DEPLOY = ROOT / "cluster" / "deploy"
READ = "@r{0}\nACGTACGTAC\n+\nIIIIIIIIII\n"

# What a worker loads before it starts, to be unlike the others. Dask may load it twice.
OLD = "from multigpu.run import fitness; fitness.__version__ = '0.0.9'"
GPU = (
    "from multigpu.cluster.devices import memory;"
    "from multigpu.cluster.workers import worker;"
    "worker.device_of = lambda _: 0; memory.free_bytes = lambda _: 1 << 30"
)
ELSEWHERE = """
from multigpu.formats.storage.fingerprints import fingerprint_or_none as seen
from multigpu.formats.storage.fingerprints import content_digest, fingerprint_or_none
from multigpu.run import fitness
fitness.fingerprint_or_none = lambda path: seen(path.replace("/here/", "/there/"))
"""
BARE = "import sys; sys.modules['multigpu'] = None"  # as if it were not installed
# A worker that stops after some chunks until another one, which joins later, has got one.
WAITING = """
import time
from itertools import count
from pathlib import Path
from multigpu.workloads.scan import work as scan

chunks = count()

class Waiting(scan.SpanReader):
    def read(self, span):
        late = next(chunks) > 8
        while late and not Path("{joined}").exists():
            time.sleep(0.05)
        return super().read(span)

scan.SpanReader = Waiting
"""
JOINING = """
from pathlib import Path
from multigpu.workloads.scan import work as scan

class Joining(scan.SpanReader):
    def read(self, span):
        Path("{joined}").touch()
        return super().read(span)

scan.SpanReader = Joining
"""
Scan = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def samples(tmp_path: Path) -> str:
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / "samples.fastq"
    path.write_text("".join(READ.format(number) for number in range(2000)))
    return str(path)


@pytest.fixture
def signatures(tmp_path: Path) -> str:
    path = tmp_path / "signatures.fasta"
    path.write_text(">s\nCGTAC\n")
    return str(path)


def loading(host: Host, name: str, code: str) -> tuple[str, str]:
    """Options of a worker that runs this first."""
    path = host.folder / f"{name}.py"
    path.write_text(code)
    return "--preload", str(path)


@pytest.fixture
def scan(host: Host, samples: str, signatures: str) -> Scan:
    """Starts a scan on the cluster of this test."""

    def start(*options: str, log: str | None = None) -> "subprocess.Popen[str]":
        cluster = ("--scheduler-file", str(host.folder / "scheduler.json"))
        output = ("-o", str(host.folder / "hits.tsv"))
        command = ("multigpu", "scan", samples, "-s", signatures, *output, *cluster, *options)
        return host.start(*command, log=log)

    return start


def test_workers__that_are_unfit_are_told_all_at_once(host: Host, samples: str, scan: Scan) -> None:
    (host.folder / "there").mkdir()
    (host.folder / "there" / "samples.fastq").write_text("something else")
    with (
        host.scheduler(),
        host.worker("--name", "good"),
        host.worker(*loading(host, "old", OLD + ELSEWHERE)),
        host.worker(*loading(host, "bare", BARE)),
    ):
        ended = end(scan())
    assert ended.status == 1
    first, *lines = ended.lines
    assert first == "multigpu: error: not all workers can take part:"
    assert len(lines) == 2
    assert all(line.startswith("  worker tcp://127.0.0.1:") for line in lines)
    (old,) = [line for line in lines if "0.0.9" in line]
    assert "runs multigpu 0.0.9 (kernels " in old
    assert f"; {samples}: not the same file as here" in old
    (bare,) = [line for line in lines if line != old]
    assert "cannot be asked; is the same multigpu installed there? (" in bare
    assert not (host.folder / "hits.tsv").exists()


def test_command__waits_for_a_scheduler_that_is_starting(host: Host, scan: Scan) -> None:
    file = host.folder / "scheduler.json"
    file.touch()  # the scheduler has opened the file and not written it yet
    log = host.folder / "scan.log"
    command = scan(log=log.name)
    with ended(command):
        wait_for(lambda: "multigpu: waiting for a scheduler" in log.read_text(), "a scan")
        file.unlink()
        with host.scheduler(), host.worker():
            assert command.wait(PATIENCE) == 0
    assert (host.folder / "hits.tsv").exists()


def test_worker_without_a_gpu__helps_only_where_all_use_cpus(host: Host) -> None:
    def gpus(**run: object) -> str | None:
        with ExitStack() as stack:
            crew = Job(RunOptions(scheduler_file=str(file), **run)).crew(stack, [])  # type: ignore[arg-type]
            return crew.workers().gpu

    refused = pytest.raises(Failure, match=r"has no GPU that can be used \(gpus none lets")
    with host.scheduler() as file, host.worker(*loading(host, "gpu", GPU)), host.worker():
        with refused as caught:
            gpus()
        assert str(caught.value).count("worker tcp://") == 1
        assert gpus(gpus="none") is None


def test_all_gpus__of_a_cluster_without_any_are_refused(host: Host) -> None:
    with host.scheduler() as file, host.worker(), ExitStack() as stack:
        job = Job(RunOptions(scheduler_file=str(file), gpus="all"))
        with pytest.raises(UsageError, match="gpus all: no worker has a GPU that can be used"):
            job.crew(stack, [])


def test_workers__that_join_get_work_and_unfit_ones_are_sent_away(host: Host, scan: Scan) -> None:
    log = host.folder / "events.json"
    joined = host.folder / "joined"
    waiting = loading(host, "waiting", WAITING.format(joined=joined))
    joining = loading(host, "joining", JOINING.format(joined=joined))
    with host.scheduler(), host.worker(*waiting):
        running = scan("--max-chunk-bytes", "500", "--log-json", str(log))
        wait_for(lambda: events(log, "finished") > 3, "finished chunks")
        with host.worker(*loading(host, "old", OLD)) as unfit, host.worker(*joining):
            assert unfit.wait(30) == 0
            ended = end(running)
    assert ended.status == 0
    (line,) = [line for line in ended.lines if "gets no more work" in line]
    assert "runs multigpu 0.0.9" in line
    assert (host.folder / "hits.tsv").read_text().count("\n") == 2001
    assert len({line.split('"worker": ')[1].split(",")[0] for line in finished(log)}) == 2


def finished(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if '"event": "finished"' in line]


def test_workers__may_come_after_the_command(host: Host, scan: Scan) -> None:
    with host.scheduler():
        running = scan()
        assert running.stderr is not None
        assert " runs what anybody sends " in running.stderr.readline()
        assert "the scheduler has no workers yet" in running.stderr.readline()
        with host.worker():
            ended = end(running)
    assert (ended.status, ended.lines) == (0, [])


def outside() -> str:
    """Return an address of this machine that others can reach."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but the loopback")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("where", ["loopback", "outside"])
def test_scheduler__without_tls_is_warned_of(tmp_path: Path, where: str, scan: Scan) -> None:
    """On the loopback, too: every user of the machine reaches it."""
    address = "127.0.0.1" if where == "loopback" else outside()
    host = Host(tmp_path, address)
    with host.scheduler(), host.worker():
        ended = end(scan())
        quiet = end(scan("--quiet"))
    assert (ended.status, quiet.status) == (0, 0)
    (line,) = [line for line in ended.all_err.splitlines() if f"tcp://{address}:" in line]
    assert line.startswith(f"multigpu: tcp://{address}:")
    assert line.endswith(f" {LISTENS} (multigpu tls DIR; docs/clusters.md)")
    assert (quiet.lines, "tcp://" in quiet.all_err) == ([], False)


@pytest.mark.parametrize(
    ("address", "settings", "problem"),
    [
        ("tls://127.0.0.1:9", {}, "TLS expects a `ssl_context` argument"),
        ("tcp://127.0.0.1:9", {"DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"},
         "encryption required by Dask"),
        ("127.0.0.1", {}, "missing port number in address"),
        ("foo://127.0.0.1:9", {}, "unknown address scheme 'foo'"),
        ("", {}, "must not be empty"),
        ("127.0.0.1:9", {"CONFIG": "{}/dask.yaml"}, "/dask.yaml"),
    ],
    ids=["no certificates", "no encryption", "no port", "scheme", "empty", "configuration"],
)  # fmt: skip
def test_scheduler__that_cannot_be_addressed_is_told(
    host: Host, samples: str, signatures: str, address: str, settings: dict[str, str], problem: str
) -> None:
    (host.folder / "dask.yaml").write_text("distributed: [")
    names = {f"DASK_{name}": value.format(host.folder) for name, value in settings.items()}
    command = ("multigpu", "scan", samples, "-s", signatures, "--scheduler", address)
    ended = end(host.start(*command, **names))
    assert (ended.status, ended.out, len(ended.lines)) == (2, "", 1)
    assert problem in ended.problem


SRUN = """#!/usr/bin/env bash
while [[ $1 == --* ]]; do shift; done
exec "$@"
"""
PROGRAM = f"""#!/usr/bin/env bash
exec {sys.executable} -m "$(basename "$0")" "$@"
"""


@pytest.mark.slow
def test_slurm_file__runs_a_command_on_the_nodes(host: Host, samples: str, signatures: str) -> None:
    """On one node, which this machine plays."""
    programs = host.folder / "bin"
    programs.mkdir()
    for name, script in (("srun", SRUN), ("dask", PROGRAM), ("multigpu", PROGRAM)):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    run = subprocess.run(
        [DEPLOY / "slurm.sbatch", "scan", samples, "-s", signatures, "-o", "hits.tsv"],
        cwd=host.folder, timeout=120, check=False, capture_output=True, text=True,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "SLURM_JOB_ID": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (host.folder / "hits.tsv").read_text().count("\n") == 2001
    assert list(host.folder.glob("scheduler-*")) == []


def test_kubernetes_file__asks_for_what_there_is() -> None:
    cluster, job = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    program, name, *arguments = container["args"]
    assert program == "multigpu"
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = command.make_context(name, arguments).params
    (port, _) = cluster["spec"]["scheduler"]["service"]["ports"]
    where = f"tcp://{cluster['metadata']['name']}-scheduler:{port['port']}"
    assert (options["scheduler"], options["resume"]) == (where, True)


@pytest.mark.parametrize("cuda", ["12", "13"])
def test_image_file__copies_what_is_there(cuda: str) -> None:
    lines = (DEPLOY / "Dockerfile").read_text().replace("${CUDA}", cuda).splitlines()
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    assert {"multigpu", "cluster", "kernels", f"requirements/cu{cuda}.txt"} < copied
    assert [name for name in copied if not (ROOT / name).exists()] == []

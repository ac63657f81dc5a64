"""What other users of the machine can reach of a run's worker processes."""

import atexit
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import psutil
import pytest
from support.hosts import listening
from support.program import ROOT

from multigpu.cluster.deploy.deployment import Deployment
from multigpu.cluster.deploy.start import start_workers

pytestmark = pytest.mark.process

TWO = Deployment(threads=2, processes=2)


@cache
def readable_stranger() -> Path:
    """Return the stranger's program, with all that it imports, where every user can read it.

    The clone, and the environment in it, may lie in a folder that nobody else may enter.
    """
    folder = Path(tempfile.mkdtemp(prefix="multigpu-test-"))
    atexit.register(shutil.rmtree, folder)
    folder.chmod(0o755)
    shutil.copy(ROOT / "tests" / "support" / "stranger.py", folder)
    for name in needed_packages("distributed", "cryptography"):
        for file in metadata.files(name) or ():
            source, target = Path(str(file.locate())), folder / file
            if ".." not in file.parts and source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
    return folder / "stranger.py"


def needed_packages(*names: str) -> set[str]:
    """Return packages and all that they need, of those that are installed."""
    found: set[str] = set()
    left = {*names}
    while left:
        name = left.pop()
        with suppress(metadata.PackageNotFoundError):
            needed = [line for line in metadata.requires(name) or () if "extra ==" not in line]
            found.add(name)
            left |= {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in needed} - found
    return found


def found_by_a_stranger(scheduler: str, ports: list[int]) -> list[str]:
    program = readable_stranger()
    command = [sys.executable, "-W", "ignore", str(program)]
    first = int(scheduler.rpartition(":")[2])
    others = [port for port in ports if port != first]
    run = subprocess.run(
        [*command, *map(str, [first, *others])], capture_output=True, text=True, timeout=120,
        check=False, cwd=program.parent,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_stranger__reaches_nothing_of_worker_processes() -> None:
    before = listening()
    with start_workers(TWO) as pending:
        workers = pending.wait()
        ports = {port: ip for port, ip in listening().items() if port not in before}
        assert set(ports.values()) == {"127.0.0.1"}
        assert len(ports) >= 5  # a scheduler, two nannies and their workers
        scheduler = workers._client.scheduler.address  # type: ignore[attr-defined]
        assert found_by_a_stranger(scheduler, sorted(ports)) == []
        assert len(workers.present()) == 2


def test_credentials__are_kept_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of the workers
    with start_workers(TWO) as pending:
        secret = pending.wait()._client.security.tls_worker_key.splitlines()[1]  # type: ignore[attr-defined]
        here = psutil.Process()
        processes = [here, *here.children(recursive=True)]
        assert len(processes) >= 3
        for process in processes:
            assert not any(secret in word for word in process.cmdline())
            assert not any(secret in value for value in process.environ().values())
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert not any(secret.encode() in path.read_bytes() for path in files)
        (folder,) = tmp_path.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(tmp_path.iterdir()) == []


def test_stranger__gets_into_a_cluster_without_credentials() -> None:
    """So the attempts above fail for no other reason."""
    from distributed import LocalCluster

    before = listening()
    with LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        memory_limit=0,
    ) as cluster:  # fmt: skip
        scheduler = cluster.scheduler_address
        found = found_by_a_stranger(scheduler, sorted(listening().keys() - before.keys()))
    ways = {line.partition(" ")[2] for line in found}
    assert {"run", "run_function", "Client.run", "Client.run_on_scheduler", "/health"} <= ways
    assert len({line for line in found if line.endswith(" run")}) == 2  # the nanny and its worker


def test_idle_connections__do_not_stop_a_run_and_are_closed() -> None:
    """More of them than a process may open, unless it raises its limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few, count = 256, 300
    before = listening()
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
        found = stack.enter_context(start_workers(TWO)).wait()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > count
        addresses = [(ip, port) for port, ip in listening().items() if port not in before]
        many = [address for address in addresses for _ in range(count)]
        idle = [stack.enter_context(socket.create_connection(each, timeout=60)) for each in many]
        assert len(set(found.everywhere(os.getpid).values())) == 2
        begin = time.monotonic()
        assert {connection.recv(1) for connection in idle} == {b""}
        assert time.monotonic() - begin < 60
        assert len(found.present()) == 2

"""Credentials for a cluster, and what they keep strangers from."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from support.hosts import Host, end, listening
from support.program import ROOT, Run

pytestmark = pytest.mark.process


def test_credentials__keep_strangers_out_and_let_the_run_in(main: Run, tmp_path: Path) -> None:
    folder = tmp_path / 'a "folder": #1'
    assert main("tls", str(folder)).status == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert sorted(path.name for path in folder.iterdir()) == ["cert.pem", "key.pem", "tls.yaml"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    key = (folder / "key.pem").read_text()
    assert main("tls", str(folder)).problem == f"{folder}: cannot be written: file exists"
    assert (folder / "key.pem").read_text() == key
    assert main("tls", "").problem == "the folder for the credentials has no name"
    samples, signatures = tmp_path / "samples.fastq", tmp_path / "signatures.fasta"
    samples.write_text("@r\nACGTACGTAC\n+\nIIIIIIIIII\n")
    signatures.write_text(">s\nCGTAC\n")
    scan = ("multigpu", "scan", str(samples), "-s", str(signatures), "-o", str(tmp_path / "o.tsv"))
    host = Host(tmp_path, settings={"DASK_CONFIG": str(folder)})
    with host.scheduler() as scheduler, host.worker() as worker:
        address = json.loads(scheduler.read_text())["address"]
        assert address.startswith("tls://127.0.0.1:")
        ports = listening(worker.pid)
        assert len(ports) >= 2
        stranger = [sys.executable, "-W", "ignore", str(ROOT / "tests" / "support" / "stranger.py")]
        tried = [address.rpartition(":")[2], *map(str, ports)]
        seen = subprocess.run([*stranger, *tried], capture_output=True, text=True, check=True)
        assert [line for line in seen.stdout.splitlines() if "://" in line] == []
        run = host.start(*scan, "--scheduler-file", str(scheduler))
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        assert len((tmp_path / "o.tsv").read_text().splitlines()) == 2
        without = end(Host(tmp_path).start(*scan, "--scheduler-file", str(scheduler)))
        assert (without.status, len(without.lines)) == (2, 1)
        assert "DASK_CONFIG" in without.problem

"""Host memory is bounded by what the plan says, however large the input."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
CHUNK = ("--max-chunk-bytes", str(16 << 20), "--threads", "4", "--gpus", "none")
RECORDS = 40_000
# Of a process that began small: the peak counts from the fork on.
PEAK = """
import os, subprocess, sys
process = subprocess.Popen([sys.executable, "-m", "multigpu", "scan", *sys.argv[1:]])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss << 10, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(1)
    bases = rng.choice(np.frombuffer(b"ACGT", np.uint8), (RECORDS, 1500))
    with (folder / "plain.fq").open("wb") as file:
        for number, row in enumerate(bases):
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, row.tobytes(), b"I" * 1500))
    (folder / "packed.fq.gz").write_bytes(gzip.compress((folder / "plain.fq").read_bytes(), 1))
    (folder / "signatures.fa").write_bytes(b">s\n%s\n" % bases[7, 100:140].tobytes())
    return folder


@pytest.mark.parametrize("name", ["plain.fq", "packed.fq.gz"])
def test_scan__takes_no_more_host_memory_than_planned(files: Path, name: str) -> None:
    """Four times 16 MiB in hand, of 120 MB; gzip is decompressed to as much."""
    arguments = [str(files / name), "-s", str(files / "signatures.fa"), *CHUNK]
    plan = subprocess.run(
        [sys.executable, "-m", "multigpu", "plan", "scan", *arguments, "--json"],
        cwd=ROOT, capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    most = json.loads(plan.stdout)["host_bytes"]
    assert most < 1 << 30
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments], cwd=ROOT, capture_output=True, check=True,
        timeout=120,
    )  # fmt: skip
    rows, used = done.stdout, int(done.stderr.split()[-1])
    assert rows.count(b"\n") == 2
    assert used < most

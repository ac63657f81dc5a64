"""Host memory is bounded by what the plan says, however large the input and late a chunk."""

import gzip
import json
import re
import resource
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.approximate_cases import with_edits
from support.program import program, run_python
from support.scan_cases import random_letters

from multigpu import Counts, write_counts
from multigpu.cluster.engine.dispatch import LINE_PER_THREAD
from multigpu.formats.alignments.regions import windows
from multigpu.workloads.cnv import plan as cnv_plan
from multigpu.workloads.dock import plan as dock_plan
from multigpu.workloads.dock.simulate import ligands, pocket

CHUNK = ("--max-chunk-bytes", str(16 << 20), "--threads", "4", "--gpus", "none")
PROCESSES = ("--workers", "2", "--max-chunk-bytes", str(4 << 20), "--gpus", "none")
RECORDS = 40_000
LITTLE = 256 << 10  # bytes of a chunk
CHROMOSOMES, SAMPLES = 8, 40
FEW, REGIONS = 8000, 400_000
LIGANDS = 12_000
CHUNKS = ("--max-chunk-bytes", str(LITTLE), "--threads", "2", "--gpus", "none")
# Of a process that began small: the peak counts from the fork on. It is the largest of one process.
PEAK = """
import os, subprocess, sys
process = subprocess.Popen([sys.executable, *sys.argv[1:]])
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss << 10, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
# The program, in which the first chunk of a scan takes a second; how many are done by then.
LATE = """
import sys, time
from multigpu import cli
from multigpu.workloads.scan import work as scan
compute, finish, done = scan.ScanSession.compute, scan.ScanSession.finish, []
def late(self, loaded):
    if loaded.pieces.begin == 0:
        time.sleep(1)
        print(len(done), file=sys.stderr)
    return compute(self, loaded)
def counted(self, loaded, computed):
    part = finish(self, loaded, computed)
    done.append(part.begin)
    return part
scan.ScanSession.compute, scan.ScanSession.finish = late, counted
cli.main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory")
    rng = np.random.default_rng(1)
    bases = rng.choice(np.frombuffer(b"ACGT", np.uint8), (RECORDS, 1500))
    with (folder / "plain.fq").open("wb") as file:
        for number, row in enumerate(bases):
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, row.tobytes(), b"I" * 1500))
    text = (folder / "plain.fq").read_bytes()
    (folder / "packed.fq.gz").write_bytes(gzip.compress(text, 1))
    (folder / "signatures.fa").write_bytes(b">s\n%s\n" % bases[7, 100:140].tobytes())
    (folder / "few.fq").write_bytes(text[: text.index(b"@r7000\n")])
    (folder / "letter.fa").write_bytes(b">s\nA\n")
    return folder


def planned(*arguments: str) -> dict[str, Any]:
    """The plan; `host_bytes` are those that it allows a process."""
    plan = program("plan", *arguments, "--json")
    assert plan.status == 0, plan.err
    facts: dict[str, Any] = json.loads(plan.out)
    return facts


def peak(*arguments: str, start: tuple[str, ...] = ("-m", "multigpu")) -> tuple[int, str, str]:
    """The bytes that a run takes, what it writes, and what it says."""
    done = run_python("-c", PEAK, *start, *arguments)
    assert done.status == 0, done.err
    *said, used = done.lines
    return int(used), done.out, "".join(said)


@pytest.mark.parametrize(
    ("name", "more"),
    [("plain.fq", CHUNK), ("packed.fq.gz", CHUNK), ("packed.fq.gz", PROCESSES)],
    ids=["plain", "gzip", "processes"],
)
def test_scan__takes_no_more_than_planned(files: Path, name: str, more: tuple[str, ...]) -> None:
    """Four chunks of 16 MiB in progress, of 120 MB, gzip decompressed to as much, or two processes.

    What any of them takes counts: the client reads gzip, and has a line of blocks for both.
    """
    arguments = ["scan", str(files / name), "-s", str(files / "signatures.fa"), *more]
    most = planned(*arguments)["host_bytes"]
    assert most < 1 << 30
    used, rows, _ = peak(*arguments)
    assert rows.count("\n") == 2
    assert used < most


def test_scan__of_a_long_signature_with_edits_takes_no_more_than_planned(tmp_path: Path) -> None:
    """All steps of its alignment would take 600 MB."""
    rng = np.random.default_rng(3)
    signature = random_letters(rng, 80_000, 0)
    copy = with_edits(rng, signature, 4000)
    (tmp_path / "signature.fa").write_bytes(b">s\n%s\n" % signature.tobytes())
    (tmp_path / "samples.fa").write_bytes(b">a\n%s\n>b\nACGT\n" % copy.tobytes())
    arguments = ["scan", str(tmp_path / "samples.fa"), "-s", str(tmp_path / "signature.fa")]
    arguments += ["--max-edits", "0.05", "--hits", "best", "--gpus", "none"]
    used, rows, _ = peak(*arguments)
    assert rows.count("\n") == 2
    assert used < planned(*arguments)["host_bytes"] < 500e6


def test_scan__a_late_chunk_lets_no_others_pile_up(files: Path, tmp_path: Path) -> None:
    """The rows take three times the 21 MB of the input, and wait for the first chunk."""
    rows = tmp_path / "rows.tsv"
    arguments = [
        "scan", str(files / "few.fq"), "-s", str(files / "letter.fa"), "--hits", "all", "-o",
        str(rows), *CHUNKS,
    ]  # fmt: skip
    usual, _, _ = peak(*arguments)
    line, size = LINE_PER_THREAD * 2, rows.stat().st_size
    read = (files / "few.fq").stat().st_size
    assert size > 56 << 20
    late, _, done = peak(*arguments, start=("-c", LATE))
    assert rows.stat().st_size == size
    assert int(done) < line
    assert late < usual + line * size * LITTLE // read + (8 << 20)


def test_cnv__takes_no_more_host_memory_than_planned(tmp_path: Path) -> None:
    """Without matrices and report: the program, less than 3 × the counts, and 4 chunks."""
    used, plan = {}, {}
    for regions in (FEW, REGIONS):
        table, output = str(tmp_path / f"{regions}.parquet"), str(tmp_path / str(regions))
        write_counts(table, cohort(regions))
        arguments = ["cnv", table, "--min-read-count", "20", "--gpus", "none"]
        plan[regions] = planned(*arguments)
        used[regions], _, _ = peak(*arguments, "-o", output, "--no-matrices", "--no-report", "-q")
        assert used[regions] < plan[regions]["host_bytes"]
    counts, chunk = REGIONS * SAMPLES * 4, plan[REGIONS]["chromosomes"][0]["device_bytes"]
    held = plan[REGIONS]["host_bytes"] - cnv_plan.PROGRAM_BYTES
    assert held < 3 * counts + 4 * chunk
    assert used[REGIONS] - used[FEW] < held  # compilers and libraries are in both


def cohort(regions: int) -> Counts:
    """Every hundredth region tells something, so that little is to be computed."""
    rng = np.random.default_rng(1)
    places = windows([(f"chr{k}", regions // CHROMOSOMES * 1000) for k in range(CHROMOSOMES)], 1000)
    values = rng.poisson(3, (regions, SAMPLES)).astype(np.int32)
    values[::100] = rng.poisson(80, (len(values[::100]), SAMPLES))
    return Counts(places, tuple(f"s{k}" for k in range(SAMPLES)), values)


def test_dock__takes_no_more_host_memory_than_planned(tmp_path: Path) -> None:
    with (tmp_path / "pocket.npz").open("wb") as out:
        pocket(out, points=24, spacing=0.75, wells=12, seed=3)
    used, plan = {}, {}
    for count in (500, LIGANDS):
        with (tmp_path / f"{count}.sdf").open("wb") as out:
            ligands(out, count, 20, 40, seed=3)
        arguments = ["dock", str(tmp_path / f"{count}.sdf"), "--precision", "90", *CHUNKS]
        arguments += ["--pocket", str(tmp_path / "pocket.npz")]
        plan[count] = planned(*arguments)["host_bytes"]
        used[count], _, _ = peak(*arguments, "-o", str(tmp_path / "poses.sdf"), "-q")
        assert used[count] < plan[count]
    assert used[LIGANDS] - used[500] < plan[LIGANDS] - dock_plan.PROGRAM_BYTES


def test_address_space__that_is_limited_is_enough_or_said(tmp_path: Path) -> None:
    """By `ulimit -v`: libraries that reserve more than they use abort, or ask for it for ever."""
    random = np.random.default_rng(1)
    regions = windows([("chr1", 300_000)], 1000)
    values = random.poisson(100, (300, 6)).astype(np.int32)
    write_counts(str(tmp_path / "t.tsv"), Counts(regions, tuple("abcdef"), values))
    words = ["cnv", "t.tsv", "-o", "out", "--no-report", "--gpus", "none", "--threads", "2"]
    for limit, status in ((1200 << 20, 0), (500 << 20, 1)):
        limited = partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
        ended = program(*words, cwd=tmp_path, preexec_fn=limited)
        assert ended.status == status, ended.err
    assert re.fullmatch(
        r"multigpu: error: `ulimit -v` leaves [\d,]+ bytes of addresses, and the program needs"
        r" [\d,]+: raise the limit\n",
        ended.err,
    )

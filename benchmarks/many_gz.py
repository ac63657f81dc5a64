"""Compressed FASTQ: many files at once, one alone, and BGZF, against the decompressor alone.

    python benchmarks/many_gz.py [--only many one bgzf hosts] [--device cpu|gpu] [--scale 0.1]

A file has 1 GB of FASTQ, reads of 150 bases with four qualities; there are as many as cores. The
decompressor is isal with as many processes, each of which reads whole files. Results are checked
against those of the plain file first. Rates are those of the run from its first step to its last;
the start-up stands beside them. The part `hosts` has one and two workers of a scheduler, each on a
core of its own, on two hosts that network namespaces play, for which it has to be root.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import common
import numpy as np
from common import ROOT, Figure, require, timed
from data import ReadSet, in_page_cache, made
from runs import Job, Running, Watched

sys.path.append(str(ROOT / "tests"))
from support.hosts import Host, two_hosts

READS = 2_890_000  # 1 GB
BASES = 150
MARKS = np.frombuffer(b"F" * 12 + b"::,#", np.uint8)
LEVEL = 6
ONE_COPIES = 4
HOST_FILES = 32
PATIENCE = 600.0  # seconds


class Bench(common.Bench):
    """Bench of compressed files."""

    @property
    def reads(self) -> ReadSet:
        return ReadSet(self.folder, round(READS * self.scale))

    @property
    def plain(self) -> Path:
        """Return the reads with four qualities."""

        def write(target: Path) -> None:
            raw = np.fromfile(self.reads.reads, np.uint8).reshape(self.reads.count, -1)
            raw[:, -1 - BASES : -1] = MARKS[raw[:, -1 - BASES : -1] % len(MARKS)]
            raw.tofile(target)

        return made(self.folder / f"four-{self.reads.count}.fastq", write)

    def packed(self, count: int) -> list[Path]:
        """Return `count` names of the gzip file."""
        one = made(self.folder / f"four-{self.reads.count}.fastq.gz", self._gzip)
        folder = self.output / f"{count}-files"
        folder.mkdir(exist_ok=True)
        paths = [folder / f"lane{number:03}.fastq.gz" for number in range(count)]
        for path in paths:
            if not path.exists():
                path.symlink_to(one)
        return [in_page_cache(path) for path in paths]

    def _gzip(self, target: Path) -> None:
        import gzip

        with self.plain.open("rb") as raw, gzip.open(target, "wb", LEVEL) as out:
            shutil.copyfileobj(raw, out, 16 << 20)

    def bgzipped(self) -> Path:
        from pysam import tabix_compress

        path = self.folder / f"four-{self.reads.count}.fastq.bgz"
        return made(path, lambda part: tabix_compress(str(self.plain), str(part), force=True))


def inflate(path: Path) -> int:
    """Decompress a file and return the bytes of its content."""
    from isal.isal_zlib import _GzipReader

    size, out = 0, bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        reader = _GzipReader(file, 1 << 18)
        while count := reader.readinto(out):
            size += count
    return size


def inflating(paths: list[Path], processes: int, runs: int) -> list[float]:
    """Return the seconds that isal takes in so many processes, which have started."""
    with ProcessPoolExecutor(processes) as pool:
        list(pool.map(inflate, paths))
        return [timed(lambda: list(pool.map(inflate, paths))) for _ in range(runs)]


def scan(bench: Bench, paths: list[Path], *more: str) -> tuple[Watched, list[bytes]]:
    """Run the command; return how it ran, and its rows without their file."""
    folder = bench.output / "many"
    shutil.rmtree(folder, ignore_errors=True)
    gpus = "0" if bench.gpu else "none"
    names = ("scan", *map(str, paths), "-s", str(bench.reads.signatures), "--gpus", gpus, *more)
    ran = Running(Job("scan", names, "rows.tsv", 0), folder).ended()
    lines = (folder / "out" / "rows.tsv").read_bytes().splitlines()[1:]
    return ran, [b"\t".join(line.split(b"\t")[:6]) for line in lines]


def compare(
    bench: Bench, part: str, what: str, asked: float, paths: list[Path], processes: int, *more: str
) -> Iterator[Figure]:
    """Check the rows against the plain file's, then give our rate as a share of isal's."""
    rows = scan(bench, [bench.plain])[1]
    require(len(rows) > bench.reads.count / 200, f"{len(rows)} rows")
    require(scan(bench, paths, *more)[1] == rows * len(paths), "the rows differ")
    size = bench.plain.stat().st_size * len(paths) / 1e9
    theirs = inflating(paths, processes, bench.runs)
    ours = [scan(bench, paths, *more)[0] for _ in range(bench.runs)]
    alone = float(np.median(theirs))
    work, start = np.median([ran.work for ran in ours]), np.median([ran.start_up for ran in ours])
    yield Figure(
        part, f"{what}, {bench.where}: rate, of that of isal in {processes} processes", "×",
        [alone / ran.work for ran in ours], asked, at_most=False,
        note=f"{size:.3g} GB; isal {size / alone:.3g} GB/s, scan {size / work:.3g} GB/s after"
        f" {start:.2g} s of start-up; whole process {np.median([r.seconds for r in ours]):.3g} s",
    )  # fmt: skip


def part_many(bench: Bench) -> Iterator[Figure]:
    """Scan as many files as there are cores."""
    count = common.cores()
    yield from compare(bench, "many", f"{count} .gz", 0.75, bench.packed(count), count)


def part_one(bench: Bench) -> Iterator[Figure]:
    """Scan one file alone, of several members."""
    target = bench.output / "one.fastq.gz"
    with target.open("wb") as out:
        out.write(bench.packed(1)[0].read_bytes() * ONE_COPIES)
    rows = scan(bench, [bench.plain])[1]
    require(scan(bench, [target])[1] == rows * ONE_COPIES, "the rows differ")
    theirs = inflating([target], 1, bench.runs)
    ours = [scan(bench, [target])[0] for _ in range(bench.runs)]
    size = bench.plain.stat().st_size * ONE_COPIES / 1e9
    yield Figure(
        "one", f"one .gz, {bench.where}: rate, of that of isal in one process", "×",
        [float(np.median(theirs)) / ran.work for ran in ours], 0.95, at_most=False,
        note=f"isal {size / np.median(theirs):.3g} GB/s,"
        f" scan {size / np.median([ran.work for ran in ours]):.3g} GB/s",
    )  # fmt: skip


def part_bgzf(bench: Bench) -> Iterator[Figure]:
    """Scan one BGZF file; isal has as many copies of it as cores."""
    count, path = common.cores(), in_page_cache(bench.bgzipped())
    theirs = inflating([path] * count, count, bench.runs)
    rows = scan(bench, [bench.plain])[1]
    require(scan(bench, [path])[1] == rows, "the rows differ")
    ours = [scan(bench, [path])[0] for _ in range(bench.runs)]
    size = bench.plain.stat().st_size / 1e9
    rate = size * count / float(np.median(theirs))
    yield Figure(
        "bgzf", f"BGZF, {bench.where}: rate, of that of isal in {count} processes", "×",
        [size / ran.work / rate for ran in ours], 0.75, at_most=False,
        note=f"isal {rate:.3g} GB/s, scan {size / np.median([r.work for r in ours]):.3g} GB/s",
    )  # fmt: skip


def part_hosts(bench: Bench) -> Iterator[Figure]:
    """Scan 32 files with a worker on one host, then with one on each of two."""
    paths = bench.packed(HOST_FILES)
    rows = scan(bench, [bench.plain])[1]
    folder = bench.output / "hosts"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with two_hosts(folder, {}) as (first, second, _), first.scheduler(), first.worker() as here:
        pin(here.pid, 0)
        alone = [scan_from(first, bench, paths, rows) for _ in range(bench.runs)]
        with second.worker() as there:
            pin(there.pid, 1)
            both = [scan_from(first, bench, paths, rows) for _ in range(bench.runs)]
    one, size = float(np.median(alone)), bench.plain.stat().st_size * HOST_FILES / 1e9
    yield Figure(
        "hosts", f"{HOST_FILES} .gz, workers on two hosts: rate, of that of one", "×",
        [one / each for each in both], 1.8, at_most=False,
        note=f"{size:.3g} GB, {size / one:.3g} GB/s with one",
    )  # fmt: skip


def pin(process: int, core: int) -> None:
    """Let all threads of a process have one core."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {core})


def scan_from(host: Host, bench: Bench, paths: list[Path], rows: list[bytes]) -> float:
    """Scan on the workers of a host's scheduler, check the rows, return seconds of work."""
    table, log = host.folder / "rows.tsv", host.folder / "log.jsonl"
    log.unlink(missing_ok=True)
    ended = host.run(
        "multigpu", "scan", *map(str, paths), "-s", str(bench.reads.signatures), "-o", str(table),
        "--scheduler-file", str(host.folder / "scheduler.json"), "--log-json", str(log),
        timeout=PATIENCE,
    )  # fmt: skip
    require(ended.status == 0, ended.err)
    lines = table.read_bytes().splitlines()[1:]
    found = [b"\t".join(line.split(b"\t")[:6]) for line in lines]
    require(found == rows * len(paths), "the rows differ")
    return Watched(0, 0, tuple(map(json.loads, log.read_text().splitlines()))).work


PARTS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "many": part_many,
    "one": part_one,
    "bgzf": part_bgzf,
    "hosts": part_hosts,
}


if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, Bench)

"""Plan of a scan: sizes of chunks, memory, and input that is not compressed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.stored import expand

from multigpu.cluster.engine.plan import Capacity
from multigpu.errors import UsageError
from multigpu.formats.sequences.pairs import PairedSource
from multigpu.formats.sequences.signatures import Joined, Signatures
from multigpu.formats.storage.input_paths import plain_bytes
from multigpu.formats.storage.sources import Source
from multigpu.kernels.scan.approximate import alignment
from multigpu.run.options import RunOptions
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.plan import ScanPlan, plan_scan

FREE = 100 << 30  # bytes on each GPU
MUCH = Source("a.fq", 1 << 40, "none", "fastq")
SIGNATURES = Signatures([b"s"], Joined(np.frombuffer(b"ACGT", np.uint8), np.array([0, 4])))


def plan(here: Capacity, source: Source = MUCH, **run: Any) -> ScanPlan:
    return plan_scan([source], SIGNATURES, here, RunOptions(**run), ScanOptions())


@pytest.mark.parametrize(("lanes", "gpu", "in_process", "chunk"), [
    ((6, 6), True, True, 48 << 20), ((12, 6), True, True, 128 << 20),
    ((24, 3), True, True, 128 << 20), ((24, 3), True, False, 256 << 20),
    ((24, 6), True, False, 128 << 20), ((4, 4), False, True, 64 << 20),
    ((96, 12), True, True, 32 << 20),  # chunks in progress of all lanes together are limited
])  # fmt: skip
def test_chunks_are_larger_where_each_costs_more(
    lanes: tuple[int, int], gpu: bool, in_process: bool, chunk: int
) -> None:
    here = Capacity(FREE, *lanes, gpu=gpu, in_process=in_process)
    assert plan(here).chunk_bytes == chunk
    assert plan(here, max_chunk_bytes=4_000_000).chunk_bytes == 4_000_000


def test_chunks_of_pairs_are_smaller_on_cpus() -> None:
    here, pairs = Capacity(FREE, 4, 4, gpu=False, in_process=True), PairedSource(MUCH, MUCH)
    assert plan(here, pairs).chunk_bytes == 24 << 20
    assert plan(replace(here, gpu=True), pairs).chunk_bytes == 48 << 20


def test_cpu_needs_no_more_than_a_small_input() -> None:
    here = Capacity(8 << 20, 2, 2, gpu=False, in_process=True)
    assert plan(here, replace(MUCH, size=88)).device_bytes < 4 << 20
    with pytest.raises(UsageError, match="the smallest chunk needs"):
        plan(replace(here, gpu=True), replace(MUCH, size=88))


def test_host_memory_counts_the_chunks_of_all_gpus_of_a_process() -> None:
    one = plan(Capacity(FREE, 24, 3, gpu=True), max_chunk_bytes=128 << 20)
    eight = plan(Capacity(FREE, 24, 3, gpu=True, in_process=True))
    assert (one.lanes, one.process_chunks) == (eight.lanes, eight.process_chunks // 8) == (3, 3)
    assert eight.host_bytes > one.host_bytes + 21 * 1.75 * eight.chunk_bytes


def test_host_memory_counts_what_long_signatures_with_edits_take_in_each_chunk() -> None:
    here = Capacity(FREE, 4, 4, gpu=False, in_process=True)
    genome = replace(MUCH, layout="fasta")

    def host_bytes(length: int, **options: Any) -> int:
        letters = Joined(np.full(length, ord("A"), np.uint8), np.array([0, length]))
        searched = Signatures([b"s"], letters)
        planned = plan_scan([genome], searched, here, RunOptions(), ScanOptions(**options))
        return planned.host_bytes

    short, long = host_bytes(20, max_edits=1), host_bytes(100_000, max_edits=0.05)
    assert short > host_bytes(20) + 4 * (alignment.BLOCK + (64 << 20))
    # Linear in the length and in the edits, not in their product of 500 MB.
    assert 4 * 100_000 * 17 < long - short < 4 * 100_000 * 40


def test_signatures_that_do_not_fit_are_refused_with_what_they_need() -> None:
    letters = np.full(31 * 10**6, ord("A"), np.uint8)
    offsets = np.arange(10**6 + 1) * 31
    many = Signatures([b""] * 10**6, Joined(letters, offsets))
    here = Capacity(500 << 20, 2, 2, gpu=False, in_process=True)
    message = r"^1,000,000 signatures of 31,000,000 bases need [3-5]\d\d,\d{3},\d{3} bytes of mem"
    with pytest.raises(UsageError, match=message):
        plan_scan([MUCH], many, here, RunOptions(), ScanOptions())
    planned = plan_scan([MUCH], many, replace(here, free=2 << 30), RunOptions(), ScanOptions())
    assert planned.host_bytes > planned.index.memory > planned.index.entries >= 10**6


def test_plain_bytes__are_those_of_files_that_are_not_compressed(tmp_path: Path) -> None:
    sizes = {"a.fq": 10, "b.fastq.gz": 100, "c.fa.zst": 1000, "d.fa": 10_000, "e.FQ.GZ": 5}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b">" * size)

    assert plain_bytes(expand([str(tmp_path)])) == 10_010
    assert plain_bytes(expand([f"{tmp_path}/*.f*", str(tmp_path / "a.fq")])) == 10_020
    assert plain_bytes(["-", "https://example.org/a.fq", str(tmp_path / "a.fq")]) == 10
    for nothing in ([], [str(tmp_path / "missing.fq")], ["a\0b"]):
        assert plain_bytes(nothing) == 0

"""`multigpu.Scanner`: the rows of `multigpu.scan`, call after call."""

import concurrent.futures.thread
import gc
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.scanned import READS, SIGNATURES

import multigpu
from multigpu import InputError, Scanner, UsageError
from multigpu.cluster.workers.worker import WORKER
from multigpu.workloads.scan import scanner

pytestmark = pytest.mark.process  # runs whole searches

OPTIONS: dict[str, Any] = {"gpus": "none", "hits": "all", "strand": "both"}


def expected(records: list[Any], **options: Any) -> list[Any]:
    table = multigpu.scan(iter(records), SIGNATURES, **OPTIONS, **options).to_table()
    rows: list[Any] = table.drop_columns(["file"]).to_pylist()
    return rows


@pytest.mark.parametrize("size", [20, 1 << 20])
@pytest.mark.parametrize("more", [
    {}, {"max_edits": 1}, {"max_mismatches": 1}, {"max_mismatches": 1, "hits": "top"},
    {"within": "1:-1"}, {"circular": True},
    {"max_mismatches": 0, "max_dna_bulges": 1}, {"overhang": "end", "max_mismatches": 0.2},
], ids=lambda more: "-".join(more) or "exact")  # fmt: skip
def test_scan__gives_the_same_rows(size: int, more: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_BYTES", size)
    options = {**OPTIONS, **more}
    reads = [read for read in READS if len(read[1]) > 5] if more else READS
    signatures = [each for each in SIGNATURES if len(each[1]) > 2]
    kept = Scanner(signatures, **options)
    wanted = multigpu.scan(iter(reads), signatures, **options).to_table()
    assert wanted.num_rows > 2
    names, bases, qualities = zip(*reads, strict=True)
    table = pa.table({"name": names, "sequence": bases, "quality": qualities})
    for given in (reads, iter(reads), table, reads):
        found = kept.scan(given)
        assert found.to_table().drop_columns(["file"]).equals(wanted.drop_columns(["file"]))
        assert len(found) == wanted.num_rows


def test_scan__is_safe_in_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanner, "BLOCK_BYTES", 50)
    kept = Scanner(SIGNATURES, threads=2, **OPTIONS)
    inputs = [READS[begin:] * 20 for begin in range(len(READS))]
    wanted = [expected(each) for each in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for found, rows in zip(pool.map(kept.scan, inputs), wanted, strict=True):
                assert found.to_table().drop_columns(["file"]).to_pylist() == rows


def test_scan__of_nothing_and_after_an_error_is_as_ever(signatures: str) -> None:
    kept = Scanner(Path(signatures), **OPTIONS)
    assert len(kept.scan([])) == len(kept.scan(iter(()))) == 0
    for wrong in ("reads.fq", ["reads.fq"], 5):
        with pytest.raises(UsageError, match=r"takes records in memory: multigpu\.scan"):
            kept.scan(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^records: record 'a': the .*"):
        kept.scan([("a", "AC", "I")])
    with pytest.raises(InputError, match=r"^records: record 'b', position 1 \(from 0\): 'X' is"):
        kept.scan([("a", "AC"), ("b", "AX")])
    assert kept.scan(READS).to_table().drop_columns(["file"]).to_pylist() == expected(READS)


def test_scanner__is_closed_by_hand_or_when_it_is_gone() -> None:
    kept = Scanner(SIGNATURES, **OPTIONS)
    kept.close()
    with pytest.raises(UsageError, match="the Scanner is closed"):
        kept.scan(READS)
    assert repr(kept).startswith("<Scanner: 5 signatures")
    assert kept._workload.key not in repr(vars(WORKER.jobs))


@pytest.mark.parametrize(("options", "problem"), [
    ({"workers": 2}, "a Scanner has threads only, no workers: see scan"),
    ({"max_edits": 9}, "up to 9 edits: .*"), ({"strands": "both"}, ".* did you mean 'strand'.*"),
])  # fmt: skip
def test_options__that_cannot_be_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises((UsageError, TypeError), match=f"^{problem}$"):
        Scanner(SIGNATURES, gpus="none", **options)


def test_scanner__is_forgotten_by_a_thread_that_has_any_lock() -> None:
    """As the collector of garbage may do in any line, of those that start threads, too."""
    kept = Scanner(SIGNATURES, gpus="none")
    key = kept._workload.key
    with concurrent.futures.thread._global_shutdown_lock, WORKER.jobs._lock:
        del kept
        gc.collect()
    for _ in range(500):
        if key not in WORKER.jobs._jobs:
            return
        time.sleep(0.01)
    pytest.fail("the Scanner is kept")

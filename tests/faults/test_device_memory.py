"""Device memory that runs out, at every allocation in turn: the scan on the emulated GPU."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu, OutOfMemoryError
from support.scan_rows import sink
from support.stored import inspect_source

from multigpu.cluster.devices import memory
from multigpu.cluster.workers import worker
from multigpu.cluster.workers.worker import Outcome
from multigpu.formats.sequences.signatures import read_signatures
from multigpu.formats.sequences.spans import FileSpan
from multigpu.formats.sequences.streams import OpenStreams
from multigpu.kernels.scan.seeds import SeedPlan
from multigpu.workloads.scan import search
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.work import ScanWorkload

GENEROUS = 1 << 40
OPTIONS: dict[str, dict[str, Any]] = {
    "any": {}, "none ambiguous": {"max_ambiguous": 0}, "mismatch": {"max_mismatches": 1},
    "edit": {"max_edits": 1, "strand": "both"},
}  # fmt: skip


class Scarce:
    """An emulated GPU whose memory gives out when it is told to."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.allocations = 0
        self.fails: range = range(0)  # which allocations fail
        self._allocate = gpu.allocate

    def allocate(self, size: int) -> Any:
        self.allocations += 1
        if self.allocations - 1 in self.fails:
            raise OutOfMemoryError(f"{size} bytes")
        return self._allocate(size)


@pytest.fixture(scope="module")
def machine() -> tuple[Gpu, Any, Any]:
    gpu, cuda = emulated.load("scan")
    _, approximate = emulated.load("scan/approximate", gpu, {"multigpu.kernels.scan.cuda": cuda})
    return gpu, cuda, approximate


def synchronize(gpu: Gpu) -> None:
    """As giving memory back does: what is queued uses it."""
    for stream in list(gpu.streams.values()):
        stream.synchronize()


@pytest.fixture
def scarce(machine: tuple[Gpu, Any, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Scarce]:
    gpu, cuda, approximate = machine
    device = Scarce(gpu)
    monkeypatch.setattr(gpu, "allocate", device.allocate)
    monkeypatch.setattr(worker, "REOPEN_AFTER", (0, 0))
    monkeypatch.setattr(cuda, "EMPTY_TABLE", 2048)
    monkeypatch.setattr(cuda, "plan_seeds", lambda *_: SeedPlan(4, 4, 1))
    monkeypatch.setattr(worker, "device_of", lambda gpu: None if gpu is None else 0)
    monkeypatch.setattr(memory, "use", lambda device: None)
    monkeypatch.setattr(memory, "free_bytes", lambda device: GENEROUS)
    monkeypatch.setattr(memory, "release_pool", lambda device: synchronize(gpu))
    kinds = (("open_scanner", cuda.ExactScanner), ("open_error_scanner", approximate.ErrorScanner))
    for name, kind in kinds:
        monkeypatch.setattr(search, name, partial(backend, getattr(search, name), kind))
    yield device
    device.fails = range(0)


def backend(on_cpu: Any, kind: Any, place: Any, *about: Any, **more: Any) -> Any:
    if place.gpu is None:
        return on_cpu(place, *about, **more)
    return kind(*about, **more), lambda size: np.empty(size, np.uint8)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("scan")
    rng = np.random.default_rng(3)
    bases = rng.choice(np.frombuffer(b"ACGTN", np.uint8), 900, p=[0.24] * 4 + [0.04]).tobytes()
    reads = ((at, bases[at : at + 300], b"I" * 300) for at in range(0, 600, 60))
    text = b"".join(b"@r%d\n%s\n+\n%s\n" % read for read in reads)
    (folder / "samples.fq").write_bytes(text)
    wanted = [bases[at : at + 9] for at in range(0, 850, 50)]
    (folder / "signatures.fa").write_bytes(b"".join(b">s\n%s\n" % one for one in wanted))
    return str(folder / "samples.fq"), str(folder / "signatures.fa")


def run(files: tuple[str, str], hits: Any = "all", **options: Any) -> Outcome[Any]:
    samples, signatures = files
    source, wanted = inspect_source(samples), read_signatures([signatures])
    workload = ScanWorkload(
        key="scarce",
        sources=[source],
        signatures=wanted,
        options=ScanOptions(hits=hits, **options),
        sinks=[sink("tsv", "mismatches", "cigar", "ambiguous", signatures=wanted)],
        streams=OpenStreams([source], 33),
    )
    worker.WORKER.jobs.admit(workload)
    try:
        span = FileSpan(0, 0, 0, source.size or 0, exact=True)
        return worker.run_chunk("scarce", "GPU-0", span)
    finally:
        worker.WORKER.jobs.dismiss("scarce")


@pytest.mark.parametrize("options", OPTIONS.values(), ids=list(OPTIONS))
@pytest.mark.parametrize("hits", ["first", "all"])
@pytest.mark.parametrize("often", [1, 3, 10_000], ids=["once", "three times", "for ever"])
def test_scan__gives_the_same_whichever_allocation_fails(
    files: tuple[str, str], scarce: Scarce, hits: str, often: int, options: dict[str, Any]
) -> None:
    whole = run(files, hits, **options)
    assert (whole.device, whole.events) == ("gpu0", ())
    assert whole.part.stats.hits > (5 if "max_ambiguous" in options else 20)
    happened = set()
    for failing in range(scarce.allocations):
        scarce.allocations, scarce.fails = 0, range(failing, failing + often)
        outcome = run(files, hits, **options)
        assert outcome.part.payloads == whole.part.payloads
        assert outcome.events or often == 1  # the session was opened at the second attempt
        happened |= {event.name for event in outcome.events}
    assert happened == {"split", "on_cpu"} - ({"on_cpu"} if often == 1 else set())


def test_device__has_all_its_memory_after_a_job(files: tuple[str, str], scarce: Scarce) -> None:
    before = scarce.gpu.used()
    for failing in (0, 5, 20, 10_000):
        scarce.allocations, scarce.fails = 0, range(failing, failing + 2)
        run(files)
        assert scarce.gpu.used() == before


def test_scan__tells_copies_and_kernels_apart(files: tuple[str, str], scarce: Scarce) -> None:
    steps = {step.name: step for step in run(files).steps}
    assert list(steps) == ["load", "copy out", "kernels", "copy in", "compute", "finish"]
    inside = [steps[name] for name in ("copy in", "kernels", "copy out")]
    assert steps["compute"].begin <= inside[0].begin
    assert all(one.end == other.begin for one, other in pairwise(inside))
    assert inside[-1].end <= steps["compute"].end

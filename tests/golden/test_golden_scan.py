"""The golden cases through the real command: whole, cut at every border, on workers, on GPUs."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.golden import DEVICES
from support.golden import cases as cases_of
from support.program import program

from multigpu.cli import cli

OPTIONS = {"first": (), "all": ("--strand", "both", "--hits", "all")}
EXPECTED = {"first": "expected.tsv", "all": "expected_all.tsv"}
CASES = [(name, hits) for hits, file in EXPECTED.items() for name in cases_of(f"scan/*/{file}")]
SMALL = [(name, hits) for name, hits in CASES if name.startswith(("format", "quality"))]
SMALL += [("edges", "first"), ("edges", "all"), ("low_complexity", "first")]
TYPICAL = [("default_like", "first"), ("edges", "all"), ("format_gzip", "first")]
PIECES = 45  # chunks that a file is cut into


Case = tuple[str, str]
Scan = Callable[..., bytes]
Words = Callable[..., list[str]]
Expected = Callable[[Case], bytes]


def cases(chosen: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", chosen, ids="-".join)


def one_file(folder: Path, stem: str) -> Path:
    (path,) = folder.glob(f"{stem}.fast*")
    return path


def piece_size(golden: Path, case: Case) -> int:
    """Return the bytes of a chunk with which the samples make `PIECES` chunks."""
    path = one_file(golden / "scan" / case[0], "samples")
    text = path.read_bytes()
    return -(-len(gzip.decompress(text) if path.suffix == ".gz" else text) // PIECES)


@pytest.fixture
def arguments(golden: Path, tmp_path: Path) -> Words:
    """The command line of a case, `output` being where it writes."""

    def build(case: Case, *options: str) -> list[str]:
        folder = golden / "scan" / case[0]
        samples, signatures = one_file(folder, "samples"), one_file(folder, "signatures")
        command = ["scan", str(samples), "-s", str(signatures), "-o", str(tmp_path / "hits.tsv")]
        return [*command, *OPTIONS[case[1]], *options]

    return build


@pytest.fixture
def scan(arguments: Words, tmp_path: Path) -> Scan:
    """Return the rows that the command writes for a case."""

    def run(case: Case, *options: str) -> bytes:
        cli.main(arguments(case, *options), standalone_mode=False)
        return (tmp_path / "hits.tsv").read_bytes()

    return run


@pytest.fixture
def expected(golden: Path) -> Expected:
    """Return the rows that it should write: a missing score is empty there."""

    def read(case: Case) -> bytes:
        table = (golden / "scan" / case[0] / EXPECTED[case[1]]).read_bytes()
        return table.replace(b"\tnan\n", b"\t\n")

    return read


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("case", "size"), [
    *((case, size) for case in CASES for size in ("whole", "pieces")),
    *((case, size) for case in SMALL for size in (37, 150)),  # smaller than a record
], ids=lambda value: "-".join(value) if isinstance(value, tuple) else str(value))  # fmt: skip
def test_scan__gives_the_expected_rows_however_it_is_cut(
    scan: Scan, expected: Expected, golden: Path, tmp_path: Path, case: Case,
    size: str | int, device: tuple[str, ...],
) -> None:  # fmt: skip
    if size == "whole":
        assert scan(case, *device) == expected(case)
        return
    most, summary = piece_size(golden, case) if size == "pieces" else size, tmp_path / "summary"
    got = scan(case, *device, "--max-chunk-bytes", str(most), "--summary", str(summary))
    assert got == expected(case)
    facts = json.loads(summary.read_text())
    assert facts["chunks"]["bytes"] == most
    if size == "pieces" and facts["samples"][0]["compression"] == "none":
        assert facts["chunks"]["run"] in (PIECES - 1, PIECES)


@cases(CASES)
def test_scan__from_two_worker_processes(
    scan: Scan, expected: Expected, golden: Path, scheduler: str, case: Case
) -> None:
    size = str(piece_size(golden, case))
    got = scan(case, "--gpus", "none", "--scheduler", scheduler, "--max-chunk-bytes", size)
    assert got == expected(case)


@cases(TYPICAL)
def test_scan__with_two_workers(
    scan: Scan, expected: Expected, golden: Path, tmp_path: Path, case: Case
) -> None:
    summary = tmp_path / "summary.json"
    size = str(piece_size(golden, case))
    options = ("--gpus", "none", "--workers", "2", "--summary", str(summary))
    assert scan(case, *options, "--max-chunk-bytes", size) == expected(case)
    assert len(json.loads(summary.read_text())["workers"]) == 2


@pytest.mark.gpu
@cases(TYPICAL)
def test_scan__of_workers_per_gpu(scan: Scan, expected: Expected, golden: Path, case: Case) -> None:
    """`--workers` makes them processes, so that LocalCUDACluster runs on a single GPU too."""
    size = str(piece_size(golden, case))
    options = ("--gpus", "all", "--workers", "1", "--max-chunk-bytes", size)
    assert scan(case, *options) == expected(case)


@pytest.mark.parametrize("device", DEVICES)
@cases([("default_like", "first"), ("format_gzip", "first")])
def test_program__writes_rows(
    arguments: Words, expected: Expected, tmp_path: Path, case: Case, device: tuple[str, ...]
) -> None:
    run = program(*arguments(case, *device))
    assert (run.status, run.out, run.err) == (0, "", "")
    assert (tmp_path / "hits.tsv").read_bytes() == expected(case)
    assert [path.name for path in tmp_path.iterdir()] == ["hits.tsv"]


def test_program__writes_only_rows_to_standard_output(arguments: Words, expected: Expected) -> None:
    case = ("low_complexity", "all")
    run = program(*arguments(case, "--gpus", "none"), "-o", "-")
    assert (run.status, run.out.encode(), run.err) == (0, expected(case), "")

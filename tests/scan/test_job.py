"""Summary of a run, and the plan of a run."""

import gzip
import json
import os
import platform
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click.testing
import pytest
from support.scanned import ALL, HALVES, READS, SIGNATURES, Scan, answer, fasta_of, fastq

import multigpu
from multigpu import InputError
from multigpu.cli import cli
from multigpu.workloads.scan.options import ScanOptions


def test_summary__says_what_was_done(scan: Scan, store: Any, tmp_path: Path) -> None:
    paths = [store("a.fq", HALVES[0]), store("b.fa.gz", gzip.compress(fasta_of(READS[3:])))]
    summary = tmp_path / "summary.json"
    options = (*ALL, "--max-chunk-bytes", "40", "--summary", str(summary))
    got = scan(*paths, options=options, name="hits.tsv.gz")
    facts = json.loads(summary.read_text())
    assert facts["version"] == 1
    assert facts["program"]["multigpu"] == multigpu.__version__
    assert {"python", "numpy", "numba"} <= set(facts["program"])
    assert facts["options"] == asdict(ScanOptions(hits="all", strand="both"))
    keys = ("path", "size", "compression", "layout")
    assert [tuple(source[key] for key in keys) for source in facts["samples"]] == [
        (paths[0], len(HALVES[0]), "none", "fastq"),
        (paths[1], Path(paths[1]).stat().st_size, "gzip", "fasta"),
    ]
    bases, hits = sum(len(bases) for _, bases, _ in READS), gzip.decompress(got).count(b"\n") - 1
    counts = [facts[key] for key in ("signatures", "records", "bases", "hits", "devices")]
    assert counts == [len(SIGNATURES), len(READS), bases, hits, []]
    path = str(tmp_path / "out" / "hits.tsv.gz")
    assert facts["output"] == {"path": path, "format": "tsv", "bytes": len(got)}
    assert facts["workers"] == {f"{platform.node()}:{os.getpid()}:cpu": facts["chunks"]["run"]}
    assert facts["chunks"]["bytes"] == 40
    assert facts["chunks"]["run"] > -(-len(HALVES[0]) // 40)
    assert 0 < facts["memory"]["device_bytes"] <= facts["memory"]["budget_bytes"]
    assert facts["seconds"]["wall"] > 0
    assert {name.split(" ")[0] for name in facts["seconds"]} >= {"load", "compute", "finish"}


@pytest.mark.parametrize("layout", ["fastq", "fasta"])
@pytest.mark.parametrize("size", ["1", "9", "100000"])
def test_summary__counts_records_and_bases_once_whatever_the_chunks(
    scan: Scan, store: Any, tmp_path: Path, layout: str, size: str
) -> None:
    path = store("reads", fastq() if layout == "fastq" else fasta_of())
    summary = tmp_path / "summary.json"
    scan(path, options=(*ALL, "--max-chunk-bytes", size, "--summary", str(summary)))
    facts = json.loads(summary.read_text())
    counts = (facts["records"], facts["bases"], facts["hits"])
    bases = sum(len(bases) for _, bases, _ in READS)
    assert counts == (len(READS), bases, len(answer(every=True, both=True)))


def test_summary__of_a_run_that_fails_is_none(scan: Scan, store: Any, tmp_path: Path) -> None:
    bad = store("bad.fq", fastq() + b"@bad\nACXT\n+\nIIII\n")
    summary = tmp_path / "summary.json"
    with pytest.raises(InputError, match="record 'bad'"):
        scan(bad, options=("--summary", str(summary)))
    assert not summary.exists()


@pytest.fixture
def plan(signatures: str) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        command = ["plan", "scan", *arguments, "-s", signatures, "--gpus", "none"]
        result = click.testing.CliRunner().invoke(cli, command, catch_exceptions=False)
        assert (result.exit_code, result.stderr) == (0, "")
        return result.stdout

    return run


def test_plan__is_what_a_run_does(plan: Any, scan: Scan, store: Any, tmp_path: Path) -> None:
    plain, packed = store("a.fq", fastq() * 9), store("b.fq.gz", gzip.compress(fastq()))
    options = ("--max-chunk-bytes", "70", "--threads", "2")
    facts = json.loads(plan(plain, packed, *options, "--json"))
    size = len(fastq()) * 9
    assert facts["sources"] == [
        {"path": plain, "bytes": size, "compression": "none", "layout": "fastq",
         "chunks": -(-size // 70)},
        {"path": packed, "bytes": Path(packed).stat().st_size, "compression": "gzip",
         "layout": "fastq", "chunks": None},
    ]  # fmt: skip
    assert (facts["version"], facts["devices"], facts["signatures"]) == (1, [], len(SIGNATURES))
    assert 0 < facts["device_bytes"] <= facts["budget_bytes"]
    assert facts["host_bytes"] > 0
    summary = tmp_path / "summary.json"
    scan(plain, options=(*options, "--summary", str(summary)))
    run = json.loads(summary.read_text())["chunks"]
    assert (run["bytes"], run["run"]) == (facts["chunk_bytes"], facts["sources"][0]["chunks"])
    assert run["lanes"] == facts["lanes"] == 2


def test_plan__as_a_table_names_files_and_numbers(plan: Callable[..., str], store: Any) -> None:
    plain, packed = store("a.fq", fastq() * 9), store("b.fa.gz", gzip.compress(fasta_of()))
    lines = plan(plain, packed, "--max-chunk-bytes", "70").splitlines()
    size = len(fastq()) * 9
    chunks, stored = -(-size // 70), Path(packed).stat().st_size
    for wanted in (
        f"{plain}: fastq, none, {size:,} bytes, {chunks:,} chunks",
        f"{packed}: fasta, gzip, {stored:,} bytes, a stream",
        "where CPU", f"signatures {len(SIGNATURES)}",
    ):  # fmt: skip
        assert wanted in [re.sub(" +", " ", line) for line in lines]
    assert re.search(r"^chunk +up to 70 bytes", "\n".join(lines), re.MULTILINE)

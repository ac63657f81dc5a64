"""Damaged files of every format are answered by a result or by one line, whatever is in them.

`make test` tries a few mutants of each format, `make soak` as many as go into ten minutes, and
files that become gigabytes when they are decompressed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults.mutant_formats import FORMATS
from faults.mutants import ROOT

FEW = 40  # mutants of each format, unless there is time for more
ALONE = 30.0  # seconds to start, and to compile what no run before has
LAST = 150.0  # seconds for a file that becomes gigabytes
# Formats that are read by the same modules share a process, which takes seconds to load them.
GROUPS = {
    "reads": ("fastq", "fasta", "signatures", "gzip", "bgzf", "zstd", "scan_journal"),
    "alignments": ("bam", "bam_with_index", "bai", "csi", "cram_2", "cram_3", "counts_cache"),
    "tables": ("tsv", "parquet", "bed", "sex", "ploidy", "cnv_journal"),
    "ligands": ("sdf", "mol2", "pdb", "pdbqt", "xyz", "dock_journal"),
    "pockets": ("fld", "map", "dx", "mrc", "npz", "rotations"),
    "ligands_on_maps": ("sdf_on_maps", "mol2_on_maps", "pdbqt_on_maps"),
}
BOMBS = [
    *((name, number) for name in ("gzip", "bgzf", "zstd", "bam") for number in (0, 1)),
    ("npz", 0), ("counts_cache", 0),
]  # fmt: skip


def test_groups__have_every_format() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(FORMATS)


def run(folder: Path, seed: str, *arguments: str, timeout: float) -> dict[str, int]:
    """How many mutants of each format were tried, all answered as they should be."""
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tests/faults/mutants.py"), str(folder), seed, *arguments],
        cwd=ROOT, env={**os.environ, "MALLOC_ARENA_MAX": "2"}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [each for each in said if "problem" in each] == []
    assert (ran.returncode, ran.stderr) == (0, ""), f"the mutant is in {folder}"
    return {each["format"]: each["mutants"] for each in said}


@pytest.mark.parametrize("group", GROUPS)
def test_mutants__are_answered(group: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seconds, seed = (request.config.getoption(name) for name in ("--mutant-seconds", "--seed"))
    names = GROUPS[group]
    share = seconds * len(names) / len(FORMATS)
    much = ("--seconds", str(share)) if seconds else ("--mutants", str(FEW))
    tried = run(tmp_path, seed, *names, *much, timeout=ALONE * len(names) + share)
    assert tuple(tried) == names
    assert all(tried.values())
    print(*(f"{name}: {count} mutants" for name, count in tried.items()), sep="\n")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), BOMBS)
def test_bomb__is_answered(
    name: str, number: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """In a process of its own, as it leaves little of the memory that there may be."""
    if not request.config.getoption("--mutant-seconds"):
        pytest.skip("only with --mutant-seconds: some take half a minute")
    assert run(tmp_path, "1", name, "--bomb", str(number), timeout=LAST) == {name: 1}

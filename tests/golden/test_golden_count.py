"""R's counts through the real command: whole, cut at every entry of the index, on workers."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multigpu import Counts, InputError, UsageError, cli, read_counts

# Calls that R answers, and ours too.
FOLDERS = {"bam_equal_lengths": 3, "bam_odd_reads": 17, "bam_segments": 23, "bam_windows": 35}
FLAGS = {
    "remove.dup": "--remove-duplicates",
    "get.width": "--get-width",
    "stranded.start": "--stranded-start",
}
VALUES = {"WL": "--window", "min.mapq": "--min-mapq", "read.width": "--read-width"}
LISTS = {"refSeqNames": "--chromosomes", "sampleNames": "--sample-names"}
WAYS = [
    pytest.param((), id="whole"),
    pytest.param(("--max-chunk-bytes", "1"), id="every entry"),
    pytest.param(("--no-index",), id="no index"),
]

# What R stops at, or answers with zeros, and ours does not: see docs/count.md.
NO_CHROMOSOME = {("bam_segments", "call_25")}
NO_SUCH_QUALITY = {("bam_windows", "call_37")}

Run = Callable[..., Counts]
Call = dict[str, Any]
Calls = Callable[[str], list[Call]]


@pytest.fixture
def calls(golden: Path) -> Calls:
    def read(folder: str) -> list[Call]:
        found: list[Call] = json.loads((golden / "cnv" / folder / "case.json").read_text())["calls"]
        return found

    return read


@pytest.fixture
def count(golden: Path, tmp_path: Path) -> Run:
    """The table that the command writes for a call. The files are copies: indexes may be made."""

    def run(folder: str, call: Call, *options: str) -> Counts:
        for path in (golden / "cnv" / folder).glob("*.ba*"):
            shutil.copyfile(path, tmp_path / path.name)
        files = [str(tmp_path / name) for name in call["bams"]]
        output = str(tmp_path / "counts.parquet")
        arguments = ["count", *files, *_options(call, tmp_path), "-q", "-o", output, *options]
        cli.cli.main(arguments, standalone_mode=False)
        return read_counts(output)

    return run


def _options(call: Call, folder: Path) -> Iterator[str]:
    for name, value in call["params"].items():
        if name in FLAGS:
            yield from [FLAGS[name]] if value else []
        elif name in VALUES:
            yield from (VALUES[name], str(value))
        elif name in LISTS:
            yield from (LISTS[name], value if isinstance(value, str) else ",".join(value))
    if "GR" in call:
        ranges = zip(call["GR"]["chrom"], call["GR"]["start"], call["GR"]["end"], strict=True)
        bed = folder / "regions.bed"
        bed.write_text("".join(f"{c}\t{max(0, a - 1)}\t{b}\n" for c, a, b in ranges))
        yield from ("--regions", str(bed))


def expected(golden: Path, folder: str, call: Call) -> list[tuple[Any, ...]]:
    """R's rows as ours are: 0-based, never before the reference, sorted in each chromosome."""
    arrays = np.load(golden / "cnv" / folder / "expected.npz", allow_pickle=False)
    start, end, counts = (arrays[f"{call['id']}_{name}"] for name in ("start", "end", "counts"))
    runs = call["chrom_rle"]
    names = list(np.repeat(runs["values"], runs["lengths"]))
    rows = zip(names, np.maximum(start - 1, 0).tolist(), end.tolist(), counts.tolist(), strict=True)
    first = list(dict.fromkeys(names))
    return sorted(rows, key=lambda row: (first.index(row[0]), row[1], row[2]))


def rows(counts: Counts) -> list[tuple[Any, ...]]:
    regions = counts.regions
    names = [regions.names[number] for number in regions.chrom.tolist()]
    columns = (regions.start.tolist(), regions.end.tolist(), counts.values.tolist())
    return list(zip(names, *columns, strict=True))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_rows__are_of_r(golden: Path, calls: Calls, count: Run, folder: str, way: Any) -> None:
    compared = 0
    for call in calls(folder):
        place = (folder, call["id"])
        if call["error"] is None and place not in NO_CHROMOSOME | NO_SUCH_QUALITY:
            found = count(folder, call, "--compat", "r", *way)
            assert rows(found) == expected(golden, folder, call), call["id"]
            compared += 1
    assert compared == FOLDERS[folder]


@pytest.mark.slow
def test_count__on_two_workers(golden: Path, calls: Calls, count: Run, scheduler: str) -> None:
    for folder, number in (("bam_windows", 0), ("bam_windows", 26), ("bam_segments", 6)):
        call = calls(folder)[number]
        spread = ("--scheduler", scheduler, "--max-chunk-bytes", "1")
        assert rows(count(folder, call, "--compat", "r", *spread)) == expected(golden, folder, call)


def test_unmapped_reads__never_count(calls: Calls, count: Run) -> None:
    """R has no answer to a minimum quality of 0 where unmapped reads have a position."""
    every = calls("bam_windows")
    stopped, two = every[17], every[32]
    assert "cannot contain NAs" in stopped["error"]
    found = count("bam_windows", stopped, "--compat", "r").values[:, :2]
    assert (found == count("bam_windows", two, "--compat", "r").values).all()
    odd = calls("bam_odd_reads")
    with_unmapped, without = count("bam_odd_reads", odd[1]), count("bam_odd_reads", odd[0])
    assert (with_unmapped.values >= without.values).all()
    assert with_unmapped.values.sum() <= 150 + 10  # plain reads; ten secondary ones at most


@pytest.mark.parametrize(("folder", "number", "message"), [
    ("bam_windows", 39, "sample1.bam has no reference nosuch"),
    ("bam_windows", 41, r"reference 1 is .* here and chr2 .* in .*sample1.bam"),
    ("bam_windows", 42, "sample_names: 2 given, 3 needed, one for each file"),
    ("bam_windows", 37, "min_mapq is 256; it must be 0 to 255"),
    ("bam_segments", 21, "sample1.bam has no reference chrNotThere"),
    ("bam_segments", 25, "sample1.bam has no reference chrNotThere"),
    ("bam_equal_lengths", 0, "'a' and 'b' have the same length, which R refuses"),
])  # fmt: skip
def test_stops_of_r__told(calls: Calls, count: Run, folder: str, number: int, message: str) -> None:
    with pytest.raises((InputError, UsageError), match=message):
        count(folder, calls(folder)[number], "--compat", "r")


def test_windows__are_right(golden: Path, calls: Calls, count: Run) -> None:
    """Equal lengths do not matter, and the last base of a reference is counted."""
    every = calls("bam_equal_lengths")
    ours = rows(count("bam_equal_lengths", every[0]))
    theirs = expected(golden, "bam_equal_lengths", every[1])
    theirs += expected(golden, "bam_equal_lengths", every[4])
    assert [row[0] for row in ours] == ["a"] * 6 + ["b"] * 6 + ["c"] * 4
    last = [number for number, row in enumerate(theirs) if row[2] % 5000]
    assert [theirs[number][2] for number in last] == [29999, 29999, 19999]
    both = [[row for i, row in enumerate(each) if i not in last] for each in (ours, theirs)]
    assert both[0] == both[1]
    assert [ours[number][2] for number in last] == [30000, 30000, 20000]
    lost = [np.subtract(ours[number][3], theirs[number][3]).tolist() for number in last]
    assert np.min(lost) >= 0
    assert np.sum(lost) > 0  # there are reads at the last bases


def test_no_index__is_needed_to_count(calls: Calls, count: Run, tmp_path: Path) -> None:
    call = calls("bam_segments")[27]
    assert "failed to load BAM index" in call["error"]
    read = count("bam_segments", call, "--no-index")
    assert rows(count("bam_segments", call)) == rows(read)
    assert not (tmp_path / "noindex.bam.bai").exists()
    assert read.values.sum() > 0

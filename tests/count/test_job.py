"""Counts of files whose chromosomes stand in any order, against pysam and the rows themselves."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bams import REFERENCES, random_rows, write_alignments, write_fasta
from support.counted import ROWS

from multigpu import count
from multigpu.formats.alignments.regions import windows
from multigpu.run.options import RunOptions
from multigpu.workloads.count.job import CountJob, KeptCounts
from multigpu.workloads.count.options import CountOptions

KINDS = ["bai", "csi", "cram", "cram by name"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("orders")
    write_fasta(place / "reference.fa")
    return place


def expected(path: str, regions: list[tuple[str, int, int]]) -> list[int]:
    """Reads of quality 1 or more that begin in each region, by a walk of pysam over the file."""
    pysam.set_verbosity(0)
    with pysam.AlignmentFile(path, check_sq=False) as file:
        reads = [
            (read.reference_name, read.reference_start)
            for read in file.fetch(until_eof=True)
            if not read.is_unmapped and read.mapping_quality >= 1
        ]
    return [sum(n == name and a <= at < b for n, at in reads) for name, a, b in regions]


@settings(max_examples=40)
@given(data=st.data())
def test_count__of_chromosomes_in_any_order(folder: Path, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    order = data.draw(st.permutations(range(len(REFERENCES))))
    some = random_rows(data.draw(st.sampled_from([5, 400])), longest=1500)
    rows = [row for number in (*order, -1) for row in some if row[0] == number]
    if kind == "cram by name":
        random.Random(1).shuffle(rows)
    if kind.startswith("cram"):
        fasta = folder / "reference.fa"
        path = write_alignments(folder / "some.cram", rows, fasta=fasta, index=False)
    else:
        for suffix in ("bai", "csi"):
            (folder / f"some.bam.{suffix}").unlink(missing_ok=True)
        path = write_alignments(folder / "some.bam", rows, csi=kind == "csi")
    names = data.draw(st.sampled_from([[], ["chr2"], ["chr3", "chr1"], ["chr2", "chrEmpty"]]))
    options: dict[str, Any] = {"max_chunk_bytes": data.draw(st.sampled_from([1, 5000, 1 << 30]))}
    if data.draw(st.booleans()):
        options["index"] = False
    if data.draw(st.booleans()):
        regions = [(name, 30_000, 60_000) for name in names or ["chr1", "chr2"]]
        regions.append((regions[0][0], 65_000, 65_001))
        bed = folder / "regions.bed"
        bed.write_text("".join("\t".join(map(str, region)) + "\n" for region in regions))
        options["regions"] = bed
    elif names:
        options["chromosomes"] = names
    found = count(path, **options | ({} if "regions" in options else {"window": 7000}))
    places = found.regions
    columns = [places.names[k] for k in places.chrom], places.start.tolist(), places.end.tolist()
    asked = list(zip(*columns, strict=True))
    assert found.values[:, 0].tolist() == expected(path, asked)


def counts(folder: Path, *paths: str, **options: Any) -> Any:
    """Count files in windows of 7,000 bases, and keep the counts."""
    job = CountJob(paths, CountOptions(**{"window": 7000, **options}), RunOptions())
    job.keep_in = str(folder)
    return job.counts().values


def kept(folder: Path) -> KeptCounts:
    """Return what is kept for windows of 1,000 bases."""
    return KeptCounts(str(folder), windows([("chr1", 60_000)], 1000), [0], CountOptions().counting)


def test_job__counts_only_files_that_are_new(tmp_path: Path, some: str) -> None:
    other, third = (write_alignments(tmp_path / f"{k}.bam", random_rows(300, k)) for k in (3, 4))
    folder = tmp_path / "kept"
    first = counts(folder, some, other)
    for path in folder.iterdir():
        with np.load(path) as file:
            values = file["counts"]
        np.savez(path.with_suffix(""), counts=values + 1000)  # so that it shows
    again = counts(folder, some, third, other)
    assert (again[:, [0, 2]] == first + 1000).all()
    assert (again[:, 1] == count(third, window=7000).values[:, 0]).all()
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize("change", [
    {"window": 7001}, {"min_mapq": 2}, {"remove_duplicates": True}, {"read_width": 2},
    {"get_width": True}, {"stranded_start": True}, {"chromosomes": ["chr2", "chr1"]},
])  # fmt: skip
def test_job__with_a_change_counts_again(tmp_path: Path, some: str, change: dict[str, Any]) -> None:
    folder = tmp_path / "kept"
    counts(folder, some)
    found = counts(folder, some, **change)
    assert (found == count(some, **{"window": 7000, **change}).values).all()
    assert len(list(folder.iterdir())) == 2


def test_kept_counts__know_the_content_and_not_the_name(tmp_path: Path, some: str) -> None:
    folder = tmp_path / "kept"
    counts(folder, some)
    moved = Path(some).rename(tmp_path / "moved.bam")
    counts(folder, str(moved))
    assert len(list(folder.iterdir())) == 1
    write_alignments(moved, ROWS[1:])
    counts(folder, str(moved))
    assert len(list(folder.iterdir())) == 2


def test_kept_counts__that_are_damaged_or_other_are_not_there(tmp_path: Path, some: str) -> None:
    values, folder = np.arange(60, dtype=np.int32), tmp_path / "kept"
    kept(folder).put(some, values)
    (entry,) = folder.iterdir()
    good = entry.read_bytes()
    for at in range(len(good)):
        entry.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        found = kept(folder).get(some)
        assert found is None or (found == values).all()
    for damage in (b"", b"nothing", b"PK\x03\x04", good[:-5]):
        entry.write_bytes(damage)
        assert kept(folder).get(some) is None
    for wrong in (values[1:], -values):
        kept(folder).put(some, wrong)
        assert kept(folder).get(some) is None

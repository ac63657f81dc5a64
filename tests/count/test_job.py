"""Counts of files whose chromosomes stand in any order, against pysam and the rows themselves."""

import random
from pathlib import Path
from typing import Any

import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bams import REFERENCES, random_rows, write_alignments, write_fasta

from multigpu import count

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

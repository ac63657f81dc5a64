"""Which reads count: flags, qualities, fragments, against samtools."""

from typing import Any

import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bams import REFERENCES, random_rows, write_alignments, write_fasta

from multigpu import UsageError, count
from multigpu.workloads.count.options import SAM_FLAGS, CountOptions

FLAGS = st.lists(st.sampled_from([*SAM_FLAGS]), max_size=3).map(",".join)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same pairs in BAM and CRAM."""
    folder = tmp_path_factory.mktemp("pairs")
    bam = write_alignments(folder / "a.bam", random_rows(2000))
    with pysam.AlignmentFile(bam) as file:
        reads = [read for read in file if read.reference_id >= 0]
        for at, read in enumerate(reads):  # mates stand anywhere, on other chromosomes, too
            mate = reads[(at * 7 + at % 3) % len(reads)]
            near = read if at % 4 else mate
            read.flag |= [0, 0x43, 0x83, 0x200][at % 4]
            read.next_reference_id = near.reference_id
            read.next_reference_start = near.reference_start + [0, -30, 0, 50][at // 4 % 4]
        cram = {"reference_filename": str(write_fasta(folder / "reference.fa"))}
        for name, mode, more in (("b.bam", "wb", {}), ("b.cram", "wc", cram)):
            with pysam.AlignmentFile(str(folder / name), mode, template=file, **more) as out:
                for read in reads:
                    out.write(read)
    pysam.index(str(folder / "b.bam"))
    return [str(folder / "b.bam"), str(folder / "b.cram")]


@settings(max_examples=25)
@given(without=FLAGS, needed=FLAGS, quality=st.sampled_from([0, 1, 30, 255]))
def test_count__as_samtools_does(files: list[str], without: str, needed: str, quality: int) -> None:
    options: dict[str, Any] = {"exclude_flags": without or 0, "include_flags": needed or 0}
    found = count(files[0], window=9000, aligned_width=True, min_mapq=quality, **options)
    words = ["-F", f"{without or '0'},UNMAP".removeprefix("0,"), "-f", needed or "0", "-q", quality]
    expected = [
        int(pysam.view("-c", *map(str, words), files[0], f"{name}:{at + 1}-{min(at + 9000, size)}"))
        for name, size in REFERENCES
        for at in range(0, size, 9000)
    ]
    assert found.values[:, 0].tolist() == expected


def test_fragments__are_pairs_at_the_mate_on_the_left(files: list[str]) -> None:
    def follows_its_mate(read: Any) -> bool:
        mate, here = read.next_reference_start, read.reference_start
        is_near = read.is_proper_pair and read.next_reference_id == read.reference_id
        return is_near and (mate < here or (mate == here and read.is_read2))

    with pysam.AlignmentFile(files[0]) as file:
        wanted = (read for read in file if not (read.flag & 0x904 or follows_its_mate(read)))
        kept = [(read.reference_name, read.reference_start) for read in wanted]
    expected = [
        sum(n == name and at <= start < at + 9000 for n, start in kept)
        for name, size in REFERENCES
        for at in range(0, size, 9000)
    ]
    assert 0 < len(kept) < 1900
    for path in files:
        found = count(path, window=9000, count="fragments", min_mapq=0)
        assert found.values[:, 0].tolist() == expected


@pytest.mark.parametrize(("given", "flags"), [
    ("0x704", 0x704), ("1796", 1796), (1796, 1796), ("unmap,SECONDARY", 0x104), ("DUP,DUP", 0x400),
    (0, 0),
])  # fmt: skip
def test_flags__as_samtools_takes_them(given: Any, flags: int) -> None:
    assert CountOptions(exclude_flags=given).exclude_flags == flags


@pytest.mark.parametrize("options", [
    {"exclude_flags": "DUPLICATE"}, {"exclude_flags": -1}, {"exclude_flags": 4096},
    {"include_flags": ""}, {"include_flags": True}, {"include_flags": "0x4,DUP"},
    {"aligned_width": True, "get_width": True}, {"aligned_width": True, "read_width": 5},
])  # fmt: skip
def test_options__refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"must be flags of SAM, e\.g\. 1796|aligned_width or "):
        CountOptions(**options)

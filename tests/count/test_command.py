"""`multigpu count` and `multigpu.workloads.count.api.count`: columns, regions, names, bad input."""

import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from support.bams import REFERENCES, Row, random_rows, write_alignments
from support.bgzf_data import bgzf
from support.counted import ROWS, Run, in_windows
from support.program import program, remarks

from multigpu import InputError, cli, count, read_counts
from multigpu.run.options import RunOptions
from multigpu.run.values import size
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions


def test_count__several_files_are_the_columns(tmp_path: Path, some: str) -> None:
    other = random_rows(500, seed=2)
    path = write_alignments(tmp_path / "other.bam", other)
    found = count([path, some], window=7000)
    assert found.samples == ("other", "some")
    assert found.regions.names == ("chr1", "chr2", "chrEmpty", "chr3")
    expected = np.array([in_windows(other, 7000), in_windows(ROWS, 7000)]).T
    assert (found.values == expected).all()
    assert found.notes == ()


@pytest.mark.parametrize("ways", [
    {"max_chunk_bytes": 1}, {"threads": 1}, {"index": False}, {"index": False, "threads": 3},
    pytest.param({"processes": 2, "max_chunk_bytes": 1}, marks=pytest.mark.slow),
])  # fmt: skip
def test_count__does_not_depend_on_how_it_is_run(some: str, ways: dict[str, Any]) -> None:
    assert count(some, window=7000, **ways).values[:, 0].tolist() == in_windows(ROWS, 7000)


def test_count__chosen_chromosomes_in_the_order_given(some: str) -> None:
    found = count(some, window=100_000, chromosomes=["chr3", "chr1"])
    assert found.regions.names == ("chr3", "chr1")
    whole = in_windows(ROWS, 100_000)
    assert found.values[:, 0].tolist() == [whole[-1], *whole[:3]]


def test_count__regions_of_an_interval_list(some: str, tmp_path: Path, main: Any) -> None:
    """It counts from 1; Parquet keeps the names."""
    targets, out = tmp_path / "t.interval_list", tmp_path / "counts.parquet"
    head = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:400000\n"
    targets.write_text(f"{head}chr1\t7001\t14000\t+\tBRCA1_ex2\n")
    assert main("count", some, "--regions", str(targets), "-o", str(out)).status == 0
    found = read_counts(str(out))
    assert (found.regions.start[0], found.regions.end[0]) == (7000, 14_000)
    assert found.regions.genes == ("BRCA1_ex2",)
    assert found.values.tolist() == [[in_windows(ROWS, 7000)[1]]]


def test_count__regions_of_a_bed_file(some: str, bed: Callable[..., str]) -> None:
    regions = bed(("chr2", 0, 50_000), ("chr1", 1000, 1001), ("chr1", 0, 400_000))
    found = count(some, regions=regions)
    halves = in_windows(ROWS, 50_000)
    assert found.regions.start.tolist() == [0, 0, 1000]
    assert found.values[:, 0].tolist()[:2] == [halves[6], sum(halves[:6])]
    assert [note.removeprefix(f"{regions}: ") for note in found.notes] == [
        "the regions are not in order: they are sorted",
        "1 region is overlapping an earlier one",
        "regions that end after their reference: 1, the first one is chr1:0-400000",
    ]


def test_sample_names__of_odd_characters(some: str, refused: Run) -> None:
    given = count(some, sample_names=[os.fsdecode(b"a\xff")], window=50_000)
    assert given.samples == ("a\ufffd",)
    problem = refused(some, "--sample-names", "a\x1b[2J")
    assert r"its sample is called 'a\x1b[2J': the name has the control character" in problem


PLAIN = tuple((name.removeprefix("chr"), length) for name, length in REFERENCES)


def test_rename__maps_names_without_chr(tmp_path: Path, some: str, bed: Callable[..., str]) -> None:
    plain = write_alignments(tmp_path / "plain.bam", ROWS, PLAIN)
    found = count([some, plain], window=7000, rename="auto")
    assert (found.values[:, 0] == found.values[:, 1]).all()
    assert found.values.any()
    found = count(plain, regions=bed(("chr1", 0, 300_000)), rename="auto")
    assert found.regions.names == ("chr1",)
    assert found.values.sum() == sum(in_windows(ROWS, 300_000)[:1])


def test_rename__is_asked(tmp_path: Path, some: str, bed: Callable[..., str], refused: Run) -> None:
    plain = write_alignments(tmp_path / "plain.bam", ROWS, PLAIN)
    said = refused(some, plain)
    assert "reference 1 is 1 (300,000 bases) here and chr1 (300,000 bases) in" in said
    assert said.endswith("(the names differ only by `chr`: --rename auto takes them as the same)")
    said = refused(plain, "--regions", bed(("chr1", 0, 5)))
    assert said.endswith(f"chr1 is called 1 in {plain}: --rename auto takes them as the same")
    assert "chr1 is called 1" in refused(plain, "--chromosomes", "chr1")
    regions = bed(("chr1", 0, 5), ("1", 0, 5))
    said = refused(plain, "--regions", regions, "--rename", "auto")
    assert said == f"{regions}: 1 and chr1 are one reference of {plain}"


def test_references__are_compared_where_they_are_used(
    tmp_path: Path, some: str, bed: Callable[..., str], refused: Run
) -> None:
    references = (("decoy", 500), REFERENCES[1], ("chr1", 250_000), REFERENCES[3])
    number = {1: 1, 3: 3}
    rows = [(number[row[0]], *row[1:]) for row in ROWS if row[0] in number]
    other = write_alignments(tmp_path / "other.bam", rows, references)
    regions = bed(("chr3", 0, 70_000), ("chr2", 0, 100_000))
    for options in ({"chromosomes": ["chr3", "chr2"], "window": 100_000}, {"regions": regions}):
        job = CountJob([some, other], CountOptions(**options), RunOptions())
        job.keep_in = str(tmp_path / "kept")
        for _ in range(2):  # the second time they are kept counts
            found = job.counts()
            assert (found.values[:, 0] == found.values[:, 1]).all()
            assert found.values.all()
    said = refused(some, other, "--chromosomes", "chr2,chr1")
    assert said.startswith(f"{other}: reference 2 is chr1 (250,000 bases) here and chr1 (300,000")
    assert "has no reference chrEmpty" in refused(some, other, "--chromosomes", "chrEmpty")


@pytest.mark.parametrize(
    ("text", "bases", "expected"),
    [("64M", 64_000_000, 64 << 20), ("1.5KiB", 1536, 1536), ("2MB", 2_000_000, 2_000_000),
     ("3 g", 3_000_000_000, 3 << 30), ("-5", -5, -5)],
)  # fmt: skip
def test_sizes__of_bytes_are_powers_of_1024(text: str, bases: int, expected: int) -> None:
    found = [size(unit).parse(text) for unit in ("bases", "bytes")]
    assert found == [bases, expected]
    for wrong in ("1.5", "k", "1kk", "", "1e3"):
        with pytest.raises(ValueError, match="is no number of bases: give one like 25000 or"):
            size("bases").parse(wrong)


def test_notes__a_window_wider_than_every_chromosome(some: str) -> None:
    note = "each chromosome is one window: the longest has 300,000 bases, window is 300,001"
    assert count(some, window=300_001).notes == (note,)
    assert count(some, window=300_000).notes == ()


@pytest.mark.parametrize("operation", ["M", "D"])
def test_get_width__of_a_record_whose_cigar_is_in_its_tag(tmp_path: Path, operation: str) -> None:
    header = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "chr1", "LN": 2000}]})
    with pysam.AlignmentFile(tmp_path / "a.bam", "wb", header=header) as file:
        read = pysam.AlignedSegment(header)
        read.query_name, read.flag, read.reference_id = "r", 256, 0
        read.reference_start, read.mapping_quality = 100, 60
        read.cigartuples = [(4, 0), (3, 900)]
        read.set_tag("XC", "CGBI")  # another tag, though its text looks like this one
        cigar = [300 << 4, 300 << 4 | "MIDNS".index(operation), 300 << 4]
        read.set_tag("CG", array("I", cigar))
        file.write(read)
    found = count(tmp_path / "a.bam", window=300, get_width=True, index=False)
    covered = {"M": [1, 1, 1, 1, 0, 0, 0], "D": [1, 1, 1, 0, 0, 0, 0]}[operation]
    assert found.values[:, 0].tolist() == covered


@pytest.mark.parametrize(("references", "difference"), [
    (REFERENCES[:3], r"reference 4 is missing here and chr3 \(70,000 bases\)"),
    ((*REFERENCES, ("chr4", 9)), r"reference 5 is chr4 \(9 bases\) here and missing"),
    (
        (REFERENCES[0], ("chr2", 99_999), *REFERENCES[2:]),
        r"reference 2 is chr2 \(99,999 bases\) here and chr2 \(100,000 bases\)",
    ),
])  # fmt: skip
@pytest.mark.parametrize("rename", ["none", "auto"])
def test_references__the_first_difference_is_shown(
    tmp_path: Path, some: str, references: Any, difference: str, rename: str
) -> None:
    other = write_alignments(tmp_path / "other.bam", [], references)
    with pytest.raises(InputError, match=rf"other\.bam: {difference} in .*{Path(some).name}"):
        count([some, other], rename=rename)


@pytest.mark.parametrize(("options", "problem"), [
    (("--window", "0"), "--window is 0; it must be 1 to"),
    (("--min-mapq", "-1"), "--min-mapq is -1; it must be 0 to 255"),
    (("--read-width", "0"), "--read-width is 0; it must be 1 to"),
    (("--sample-names", "a,b"), "--sample-names: 2 given, 1 needed, one for each file"),
    (("--chromosomes", "chr1,chr9,x"), "has no reference chr9, x: it has chr1, chr2, chrEmpty,"),
    (("--chromosomes", "chr1,chr1"), "chr1 and chr1 are one reference"),
    (("--chromosomes", "chr1", "--regions", "x.bed"), "give --regions or --chromosomes, not both"),
    (("--regions", "nowhere.bed"), "nowhere.bed: cannot be read: there is no such file"),
    (("--window", "many"), "Invalid value for '--window'"),
])  # fmt: skip
def test_bad_options__told(some: str, refused: Run, options: tuple[str, ...], problem: str) -> None:
    assert problem.lower() in refused(some, *options).lower()


def test_bad_files__are_one_line(tmp_path: Path, some: str, refused: Run) -> None:
    (tmp_path / "text.bam").write_text("not a BAM file, but long enough to be one, it seems")
    (tmp_path / "empty.bam").write_bytes(b"")
    neither = "is neither BAM nor CRAM, nor a list of files or a sheet with columns path and name"
    assert refused(str(tmp_path / "text.bam")).endswith(f"text.bam: {neither}")
    assert refused(str(tmp_path / "empty.bam")).endswith(f"empty.bam: {neither}")
    (tmp_path / "folder").mkdir()
    said = "folder: the directory has no alignment files (.bam, …)"
    assert refused(str(tmp_path / "folder")).endswith(said)
    assert refused("nowhere.bam") == "nowhere.bam: cannot be read: there is no such file"
    assert refused() == "no alignment files given"
    for path in ("-", "http://127.0.0.1:1/some.bam"):
        assert refused(path) == f"{path}: BAM and CRAM files must be regular files"
    assert refused("x" * 300).endswith("cannot be read: file name too long")
    assert refused(some, some) == (
        "2 samples are called some: give --sample-names NAME,…, one for each file, or"
        " --sample-names @RG for the names in their read groups"
    )
    # SAM is called by its name.
    sam = tmp_path / "a b.sam"
    sam.write_text("@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000\n")
    bam = tmp_path / "a b.bam"
    said = f"{sam}: is a SAM file, which is not read: samtools sort -o '{bam}' '{sam}'"
    assert refused(str(sam)) == said


def test_bed__absent_names_are_told(some: str, bed: Callable[..., str], refused: Run) -> None:
    mixed = bed(("chr1", 0, 5), ("chr8", 0, 5), ("chr8", 9, 15), ("chr9", 0, 5))
    has = "it has chr1, chr2, chrEmpty, chr3"
    said = refused(some, "--regions", mixed)
    assert said == f"{mixed}: {some} has no reference chr8, chr9: {has}"


def test_directory__stands_for_its_alignments(tmp_path: Path, some: str, refused: Run) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("b.bam", "a.bam"):
        write_alignments(folder / name, ROWS)
    (folder / "notes.txt").write_text("x")
    assert count(folder).samples == ("a", "b")
    assert count([some, str(folder / "?.bam")]).samples == ("some", "a", "b")


def with_groups(path: Path, *groups: str, mode: str = "wb") -> str:
    """An alignment file without reads, with a read group for each of these samples."""
    named = [{"ID": str(k), "SM": name} for k, name in enumerate(groups)]
    header = {"SQ": [{"SN": "chr1", "LN": 1000}], "RG": named}
    with pysam.AlignmentFile(str(path), mode, header=header):
        pass
    return str(path)


@pytest.mark.parametrize(("suffix", "mode"), [("bam", "wb"), ("cram", "wc")])
def test_sample_names__of_read_groups(tmp_path: Path, suffix: str, mode: str) -> None:
    paths = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        groups = (f"sample {name}",) * 2
        paths.append(with_groups(tmp_path / name / f"x.{suffix}", *groups, mode=mode))
    assert count(paths, sample_names="@RG").samples == ("sample one", "sample two")


def test_sample_names__of_read_groups_that_do_not_name_one(tmp_path: Path, refused: Run) -> None:
    none, two = (with_groups(tmp_path / f"{len(g)}.bam", *g) for g in ((), ("a", "b")))
    same = with_groups(tmp_path / "same.bam", "a"), with_groups(tmp_path / "twin.bam", "a")
    by_group = ("--sample-names", "@RG")
    said = refused(none, *by_group)
    assert "0.bam: it has no read group that names a sample (SM): give --samp" in said
    assert "2.bam: its read groups name a, b, not one sample: give" in refused(two, *by_group)
    assert refused(*same, *by_group) == (
        "2 samples are called a by their read groups: give --sample-names NAME,…, one for each file"
    )


def test_output__never_replaces_an_input(some: str, refused: Run) -> None:
    before = Path(some).read_bytes()
    assert "is named twice: a run would replace it" in refused(some, "-o", some)
    assert "is named twice" in refused(some, "-o", f"{some}.bai")
    assert Path(some).read_bytes() == before


def test_notes__no_reads(tmp_path: Path, some: str, capfd: pytest.CaptureFixture[str]) -> None:
    empty = write_alignments(tmp_path / "empty.bam", [])
    output = tmp_path / "counts.parquet"
    command = ["count", some, empty, "--window", "7000", "-o", str(output)]
    cli.cli.main(command, standalone_mode=False)
    said = remarks(capfd.readouterr().err)
    assert said == f"multigpu: note: {empty}: no read counts: empty is all zero\n"
    assert not read_counts(str(output)).values[:, 1].any()
    cli.cli.main([*command, "--quiet"], standalone_mode=False)
    assert capfd.readouterr().err == ""


@pytest.mark.process
def test_process__writes_a_table_to_standard_output(some: str) -> None:
    run = program("count", some, "--window", "300000")
    counts = in_windows(ROWS, 300_000)
    lines = [f"{c}\t0\t{length}\t{n}" for (c, length), n in zip(REFERENCES, counts, strict=True)]
    assert run.out.splitlines() == ["chrom\tstart\tend\tsome", *lines]
    assert (run.status, run.err) == (0, "")


@pytest.mark.parametrize("kind", ["bam", "cram"])
def test_count__of_many_small_references(tmp_path: Path, kind: str) -> None:
    references = [(f"contig{i}", 2000) for i in range(300)]
    rows: list[Row] = [(i, 50 * j, 60, "20M", 0) for i in range(300) for j in range(i % 7)]
    fasta = tmp_path / "contigs.fa"
    fasta.write_text("".join(f">{name}\n{'ACGT' * 500}\n" for name, _ in references))
    pysam.faidx(str(fasta))
    of_cram = {"fasta": fasta} if kind == "cram" else {}
    path = write_alignments(tmp_path / f"some.{kind}", rows, references, **of_cram)
    assert count(path).values[:, 0].tolist() == [i % 7 for i in range(300)]
    chosen = [5, 6, 7, 100, 299]
    names = [f"contig{i}" for i in chosen]
    assert count(path, chromosomes=names).values[:, 0].tolist() == [i % 7 for i in chosen]


def test_count__of_references_without_bases_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bam"
    path.write_bytes(bgzf(b"BAM\1" + np.array([0, 1, 2], "<i4").tobytes() + b"a\0" + bytes(4)))
    with pytest.raises(InputError, match=r"its references have no bases: there are no windows$"):
        count(path, index=False)

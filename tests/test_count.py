"""`multigpu count` and `multigpu.counting.count`: files of all kinds, the cache, bad input."""

import builtins
import gzip
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from bams import REFERENCES, Row, random_rows, write_alignments, write_fasta
from program import Ended, program

from multigpu import cli, count
from multigpu.errors import InputError, UsageError
from multigpu.io import alignments
from multigpu.io import cram as cram_file
from multigpu.io.counts import read_counts

ROOT = Path(__file__).resolve().parents[1]
ROWS = random_rows(2000)

Run = Callable[..., str]


@pytest.fixture
def refused(main: Callable[..., Ended], tmp_path: Path) -> Run:
    """The one line that the program says before it ends with status 2 and without output."""

    def run(*arguments: str) -> str:
        output = tmp_path / "refused.tsv"
        ended = main("count", "-o", str(output), *arguments)
        assert (ended.status, ended.out) == (2, "")
        assert not output.exists()
        return ended.problem

    return run


@pytest.fixture
def some(tmp_path: Path) -> str:
    return write_alignments(tmp_path / "some.bam", ROWS)


@pytest.fixture
def bed(tmp_path: Path) -> Callable[..., str]:
    def write(*rows: tuple[str, int, int]) -> str:
        path = tmp_path / "regions.bed"
        path.write_text("".join(f"{name}\t{start}\t{end}\n" for name, start, end in rows))
        return str(path)

    return write


def in_windows(rows: list[Row], width: int, references: Any = REFERENCES) -> list[int]:
    """How many mapped reads of quality 1 or more begin in each window."""
    counts = [0] * sum(-(-length // width) for _, length in references)
    first = np.cumsum([0, *(-(-length // width) for _, length in references)])
    for reference, position, quality, _, flag in rows:
        if reference >= 0 and quality >= 1 and not flag & 4:
            counts[first[reference] + position // width] += 1
    return counts


def test_count__several_files_are_the_columns(tmp_path: Path, some: str) -> None:
    other = random_rows(500, seed=2)
    path = write_alignments(tmp_path / "other.bam", other)
    found = count([path, some], window=7000)
    assert found.samples == ("other", "some")
    assert found.regions.names == ("chr1", "chr2", "chrEmpty", "chr3")
    expected = np.array([in_windows(other, 7000), in_windows(ROWS, 7000)]).T
    assert (found.values == expected).all()
    assert found.notes == ()


@pytest.mark.parametrize(
    "ways",
    [
        {"max_chunk_bytes": 1}, {"threads": 1}, {"index": False}, {"index": False, "threads": 3},
        pytest.param({"processes": 2, "max_chunk_bytes": 1}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_count__does_not_depend_on_how_it_is_run(some: str, ways: dict[str, Any]) -> None:
    assert count(some, window=7000, **ways).values[:, 0].tolist() == in_windows(ROWS, 7000)


def test_count__chosen_chromosomes_in_the_order_given(some: str) -> None:
    found = count(some, window=100_000, chromosomes=["chr3", "chr1"])
    assert found.regions.names == ("chr3", "chr1")
    whole = in_windows(ROWS, 100_000)
    assert found.values[:, 0].tolist() == [whole[-1], *whole[:3]]


def test_count__regions_of_a_bed_file(some: str, bed: Callable[..., str]) -> None:
    regions = bed(("chr2", 0, 50_000), ("chr1", 1000, 1001), ("chr1", 0, 400_000))
    found = count(some, regions=regions)
    halves = in_windows(ROWS, 50_000)
    assert found.regions.start.tolist() == [0, 0, 1000]
    assert found.values[:, 0].tolist()[:2] == [halves[6], sum(halves[:6])]
    assert [note.removeprefix(f"{regions}: ") for note in found.notes] == [
        "the regions are not in order: they are sorted",
        "1 region is overlapping an earlier one",
        "regions that end behind their reference: 1, the first one is chr1:0-400000",
    ]


# ---- CRAM -------------------------------------------------------------------------------------


@pytest.fixture
def cram(tmp_path: Path, some: str) -> str:
    """A CRAM file whose reference is gone."""
    fasta = write_fasta(tmp_path / "reference.fa")
    path = write_alignments(tmp_path / "some.cram", ROWS, fasta=fasta)
    fasta.unlink()
    return path


@pytest.mark.parametrize("options", [
    {}, {"index": False}, {"remove_duplicates": True}, {"get_width": True},
    {"stranded_start": True, "min_mapq": 0}, {"window": 4000, "chromosomes": ["chr3", "chr2"]},
])  # fmt: skip
def test_cram__counts_as_the_bam_file_without_its_reference(
    cram: str, some: str, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setenv("REF_PATH", "/nowhere")
    pysam.set_verbosity(0)
    with pysam.AlignmentFile(cram, "rc") as file, pytest.raises(OSError, match="truncated"):
        next(file)
    assert (count(cram, **options).values == count(some, **options).values).all()
    assert count(some, **options).values.any()


def test_cram__that_is_cut(cram: str, tmp_path: Path) -> None:
    content = Path(cram).read_bytes()
    (tmp_path / "cut.cram").write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(InputError, match=r"cut\.cram"):
        count(str(tmp_path / "cut.cram"), index=False)


@pytest.mark.parametrize("version", ["2.1", "3.0", "3.1"])
def test_cram__that_is_cut_between_containers_is_refused_with_an_index_and_without(
    tmp_path: Path, refused: Run, version: str
) -> None:
    fasta = write_fasta(tmp_path / "reference.fa")
    path = write_alignments(tmp_path / "some.cram", ROWS, fasta=fasta, version=version)
    whole = Path(path).read_bytes()
    assert count(path, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    lines = gzip.decompress(Path(path + ".crai").read_bytes()).decode().splitlines()
    containers = sorted({int(line.split("\t")[3]) for line in lines})
    assert len(containers) > 2
    size = len(cram_file.END_2 if version == "2.1" else cram_file.END_3)
    for stop in (*containers, len(whole) - size, len(whole) - 1):
        Path(path).write_bytes(whole[:stop])
        for options in ((), ("--no-index",)):
            assert refused(path, *options) == f"{path}: {TRUNCATED}"


TRUNCATED = "ends early: the file is truncated (its end marker is missing)"


@pytest.mark.parametrize("stop", [30, 500, -50])
def test_cram__that_is_cut_within_a_container_is_truncated_and_not_unsorted(
    cram: str, refused: Run, stop: int
) -> None:
    Path(cram + ".crai").unlink()
    Path(cram).write_bytes(Path(cram).read_bytes()[:stop])
    assert refused(cram) == f"{cram}: {TRUNCATED}"
    assert not Path(cram + ".crai").exists()


def test_cram__whose_end_java_wrote_is_whole(tmp_path: Path, cram: str) -> None:
    """It sets bits of the end marker that have no meaning."""
    content = Path(cram).read_bytes()
    end = bytearray(cram_file.END_3)
    assert content.endswith(end)
    end[8] = 0xFF
    Path(cram).write_bytes(content[: -len(end)] + end)
    cram_file.check_end(cram)


def test_cram__of_version_2_0_has_no_end_marker(tmp_path: Path, refused: Run) -> None:
    fasta = write_fasta(tmp_path / "reference.fa")
    path = write_alignments(tmp_path / "old.cram", ROWS, fasta=fasta, version="2.0", index=False)
    whole = Path(path).read_bytes().removesuffix(cram_file.END_2)  # which htslib writes anyway
    Path(path).write_bytes(whole)
    assert count(path, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    Path(path + ".crai").unlink()
    Path(path).write_bytes(whole[:-500])
    assert refused(path) == f"{path}: cannot be decoded: truncated file"


def test_cram__without_pysam(cram: str, refused: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "pysam")
    assert refused(cram) == "this needs the package pysam: pip install 'multigpu[cnv]'"


def hide(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    found = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)


# ---- indexes ----------------------------------------------------------------------------------


@pytest.fixture
def without_index(tmp_path: Path) -> str:
    return write_alignments(tmp_path / "bare.bam", ROWS, index=False)


def test_index__is_made_where_there_is_none(without_index: str, tmp_path: Path) -> None:
    assert count(without_index, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare.bam", "bare.bam.bai"]


def test_index__of_a_reference_too_long_for_bai(tmp_path: Path) -> None:
    longest = (("chr1", 600_000_000),)
    rows: list[Row] = [(0, 5, 60, "50M", 0), (0, 599_999_000, 60, "50M", 0)]
    path = write_alignments(tmp_path / "long.bam", rows, longest, index=False)
    assert count(path, window=300_000_000).values[:, 0].tolist() == [1, 1]
    assert (tmp_path / "long.bam.csi").exists()


@pytest.mark.parametrize("name", ["-x.bam", "s3:x.bam", "http:x.bam"])
def test_index__of_a_file_whose_name_looks_like_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Like an option, or an address."""
    monkeypatch.chdir(tmp_path)
    write_alignments(tmp_path / name, ROWS, index=False)
    assert count(name, window=7000).values[:, 0].tolist() == in_windows(ROWS, 7000)
    assert Path(f"{name}.bai").exists()


def test_index__of_a_file_whose_name_is_no_utf8(tmp_path: Path) -> None:
    path = str(tmp_path / os.fsdecode(b"\xff.bam"))
    Path(write_alignments(tmp_path / "x.bam", ROWS, index=False)).rename(path)
    ended = program("count", path, "--window", "7000")
    assert ended.status == 0
    header, *rows = ended.out.splitlines()
    assert header.split("\t")[3:] == ["\ufffd"]
    assert [int(row.split("\t")[3]) for row in rows] == in_windows(ROWS, 7000)
    assert "samtools takes names in UTF-8 only" in ended.err


def test_sample_names__that_are_no_utf8_have_replacement_characters(some: str) -> None:
    given = count(some, sample_names=[os.fsdecode(b"a\xff")], window=50_000)
    assert given.samples == ("a\ufffd",)


@pytest.mark.parametrize("problem", ["place", "pysam"])
def test_index__where_none_can_be_made_the_file_is_read_in_order(
    without_index: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    problem: str,
) -> None:  # fmt: skip
    if problem == "place":  # the superuser may write anywhere
        monkeypatch.setattr(alignments.os, "access", lambda path, mode: False)
    else:
        hide(monkeypatch, "pysam")
    with caplog.at_level(logging.WARNING, "multigpu"):
        found = count(without_index, window=7000)
    assert found.values[:, 0].tolist() == in_windows(ROWS, 7000)
    assert not Path(without_index + ".bai").exists()
    (said,) = caplog.messages
    assert "bare.bam has no index and none can be made" in said
    assert ("cannot be written" if problem == "place" else "pip install") in said


def test_index__that_is_older_than_its_file(some: str, caplog: pytest.LogCaptureFixture) -> None:
    os.utime(some + ".bai", (1, 1))
    with caplog.at_level(logging.WARNING, "multigpu"):
        count(some)
    assert caplog.messages == [f"multigpu: {some}.bai is older than the file it belongs to"]


def test_index__of_an_unsorted_file(tmp_path: Path, refused: Run) -> None:
    path = write_alignments(tmp_path / "mixed.bam", ROWS[100::-1], index=False)
    said = refused(path)
    advice = "run `samtools sort` on it first, or give --no-index (it is not sorted)"
    assert said == f"{path}: no index can be made: {advice}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mixed.bam"]
    expected = in_windows(ROWS[:101], 7000)
    assert count(path, window=7000, index=False).values[:, 0].tolist() == expected
    assert "is not sorted by position" in refused(path, "--no-index", "--remove-duplicates")


def test_index__of_a_damaged_file(without_index: str, refused: Run) -> None:
    content = bytearray(Path(without_index).read_bytes())
    middle = len(content) // 2
    content[middle : middle + 100] = bytes(100)
    Path(without_index).write_bytes(content)
    said = refused(without_index)
    assert said == refused(without_index, "--no-index")
    assert "sort" not in said


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (pysam.SamtoolsError("stdout=, stderr=samtools index: failed to create index for \"x\": No"
                             " such file or directory\n"), "failed to create index"),
        (pysam.SamtoolsError("stdout=, stderr=samtools index: failed to create or write index\n"),
         "failed to create or write index"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)  # fmt: skip
def test_index__that_samtools_does_not_make_of_a_good_file(
    without_index: str, refused: Run, monkeypatch: pytest.MonkeyPatch, said: Exception, shown: str
) -> None:
    def fail(*arguments: str) -> None:
        raise said

    monkeypatch.setattr(pysam, "index", fail)
    expected = f"{without_index}: no index can be made: --no-index does without ({shown})"
    assert refused(without_index) == expected


# ---- names ------------------------------------------------------------------------------------

PLAIN = tuple((name.removeprefix("chr"), length) for name, length in REFERENCES)


def test_rename__maps_names_that_differ_by_chr(
    tmp_path: Path, some: str, bed: Callable[..., str]
) -> None:
    plain = write_alignments(tmp_path / "plain.bam", ROWS, PLAIN)
    found = count([some, plain], window=7000, rename="auto")
    assert (found.values[:, 0] == found.values[:, 1]).all()
    assert found.values.any()
    found = count(plain, regions=bed(("chr1", 0, 300_000)), rename="auto")
    assert found.regions.names == ("chr1",)
    assert found.values.sum() == sum(in_windows(ROWS, 300_000)[:1])


def test_rename__is_asked_for(
    tmp_path: Path, some: str, bed: Callable[..., str], refused: Run
) -> None:
    plain = write_alignments(tmp_path / "plain.bam", ROWS, PLAIN)
    said = refused(some, plain)
    assert "number 1 is 1 (300,000 bases), there chr1 (300,000 bases)" in said
    assert said.endswith("(the names differ only by `chr`: --rename auto takes them as the same)")
    said = refused(plain, "--regions", bed(("chr1", 0, 5)))
    assert said.endswith(f"chr1 is called 1 in {plain}: --rename auto takes them as the same")
    assert "chr1 is called 1" in refused(plain, "--chromosomes", "chr1")
    regions = bed(("chr1", 0, 5), ("1", 0, 5))
    said = refused(plain, "--regions", regions, "--rename", "auto")
    assert said == f"{regions}: 1 and chr1 are one reference of {plain}"


@pytest.mark.parametrize(
    ("references", "difference"),
    [
        (REFERENCES[:3], r"number 4 is missing, there chr3 \(70,000 bases\)"),
        ((*REFERENCES, ("chr4", 9)), r"number 5 is chr4 \(9 bases\), there missing"),
        (
            (REFERENCES[0], ("chr2", 99_999), *REFERENCES[2:]),
            r"number 2 is chr2 \(99,999 bases\), there chr2 \(100,000 bases\)",
        ),
    ],
)
@pytest.mark.parametrize("rename", ["none", "auto"])
def test_references__the_first_difference_is_shown(
    tmp_path: Path, some: str, references: Any, difference: str, rename: str
) -> None:
    other = write_alignments(tmp_path / "other.bam", [], references)
    with pytest.raises(InputError, match=rf"other\.bam: has other references .*: {difference}"):
        count([some, other], rename=rename)


# ---- the cache --------------------------------------------------------------------------------


def test_cache__counts_only_what_is_new(tmp_path: Path, some: str) -> None:
    other = write_alignments(tmp_path / "other.bam", random_rows(300, seed=3))
    cache = tmp_path / "cache"
    first = count([some, other], window=7000, cache=cache)
    assert len(list(cache.iterdir())) == 2
    for path in cache.iterdir():
        with np.load(path) as kept:
            counts = kept["counts"]
        np.savez(path.with_suffix(""), counts=counts + 1000)  # so that it shows
    third = write_alignments(tmp_path / "third.bam", random_rows(300, seed=4))
    again = count([some, third, other], window=7000, cache=cache)
    assert (again.values[:, [0, 2]] == first.values + 1000).all()
    assert (again.values[:, 1] == count(third, window=7000).values[:, 0]).all()
    assert len(list(cache.iterdir())) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"window": 7001}, {"min_mapq": 2}, {"remove_duplicates": True}, {"read_width": 2},
        {"get_width": True}, {"stranded_start": True}, {"chromosomes": ["chr2", "chr1"]},
        {"compat_r": True, "window": 10_000},
    ],
)  # fmt: skip
def test_cache__knows_windows_and_filters(
    tmp_path: Path, some: str, change: dict[str, Any]
) -> None:
    options = {"window": 7000, "cache": tmp_path / "cache"}
    count(some, **options)
    if change.get("compat_r"):
        count(some, **(options | {"window": 10_000}))
    before = len(list((tmp_path / "cache").iterdir()))
    changed = options | change
    found = count(some, **changed)
    assert len(list((tmp_path / "cache").iterdir())) == before + 1
    assert (found.values == count(some, **(changed | {"cache": None})).values).all()


def test_cache__knows_the_content_and_not_the_name(tmp_path: Path, some: str) -> None:
    cache = tmp_path / "cache"
    count(some, cache=cache)
    moved = Path(some).rename(tmp_path / "moved.bam")
    Path(some + ".bai").rename(tmp_path / "moved.bam.bai")
    count(moved, cache=cache)
    assert len(list(cache.iterdir())) == 1
    write_alignments(moved, ROWS[1:])
    assert count(moved, cache=cache).values.sum() < sum(in_windows(ROWS, 7000)) + 1
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04"])
def test_cache__damaged_entries_are_made_again(tmp_path: Path, some: str, content: bytes) -> None:
    cache = tmp_path / "cache"
    first = count(some, cache=cache)
    (entry,) = cache.iterdir()
    for damage in (content, entry.read_bytes()[:-5]):
        entry.write_bytes(damage)
        assert (count(some, cache=cache).values == first.values).all()
        with np.load(entry) as kept:
            assert (kept["counts"] == first.values[:, 0]).all()


# ---- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--window", "0"), "windows of 0 bases are not possible"),
        (("--min-mapq", "-1"), "min_mapq is -1: it lies within 0 to 255"),
        (("--read-width", "0"), "reads cannot cover 0 bases"),
        (("--sample-names", "a,b"), "there are 2 sample names for 1 files"),
        (("--chromosomes", "chr1,chr9"), "has no reference chr9"),
        (("--chromosomes", "chr1,chr1"), "chr1 and chr1 are one reference"),
        (("--chromosomes", "chr1", "--regions", "x.bed"), "give regions or chromosomes, not both"),
        (("--regions", "nowhere.bed"), "nowhere.bed: cannot be read: there is no such file"),
        (("--window", "many"), "Invalid value for '--window'"),
        (("--counts-cache", "/dev/null/x"), "/dev/null/x: no folder for counts: not a directory"),
    ],
)
def test_bad_options__are_one_line(
    some: str, refused: Run, options: tuple[str, ...], problem: str
) -> None:
    assert problem.lower() in refused(some, *options).lower()


def test_bad_files__are_one_line(tmp_path: Path, some: str, refused: Run) -> None:
    (tmp_path / "text.bam").write_text("not a BAM file, but long enough to be one, it seems")
    (tmp_path / "empty.bam").write_bytes(b"")
    assert refused(str(tmp_path / "text.bam")).endswith("text.bam: is neither BAM nor CRAM")
    assert refused(str(tmp_path / "empty.bam")).endswith("empty.bam: is neither BAM nor CRAM")
    assert refused(str(tmp_path)).endswith(": BAM and CRAM files must be regular files")
    assert refused("nowhere.bam") == "nowhere.bam: cannot be read: there is no such file"
    assert refused() == "no alignment files given"
    for path in ("-", "http://127.0.0.1:1/some.bam"):
        assert refused(path) == f"{path}: BAM and CRAM files must be regular files"
    assert refused("x" * 300).endswith("cannot be read: file name too long")
    assert "2 samples are called some" in refused(some, some)


def test_output__never_replaces_an_input(some: str, refused: Run) -> None:
    before = Path(some).read_bytes()
    assert "is named twice: it would be replaced" in refused(some, "-o", some)
    assert Path(some).read_bytes() == before


def test_notes__a_sample_without_reads(
    tmp_path: Path, some: str, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = write_alignments(tmp_path / "empty.bam", [])
    output = tmp_path / "counts.parquet"
    command = ["count", some, empty, "--window", "7000", "-o", str(output)]
    cli.cli.main(command, standalone_mode=False)
    said = capfd.readouterr().err
    assert said == f"multigpu: note: {empty}: no read counts: empty is all zero\n"
    assert not read_counts(str(output)).values[:, 1].any()
    cli.cli.main([*command, "--quiet"], standalone_mode=False)
    assert capfd.readouterr().err == ""


def test_process__writes_a_table_to_standard_output(some: str) -> None:
    command = [sys.executable, "-m", "multigpu", "count", some, "--window", "300000"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    counts = in_windows(ROWS, 300_000)
    lines = [
        f"{name}\t0\t{length}\t{n}" for (name, length), n in zip(REFERENCES, counts, strict=True)
    ]
    assert run.stdout.splitlines() == ["chrom\tstart\tend\tsome", *lines]
    assert run.stderr == ""


def test_api__options_are_checked() -> None:
    with pytest.raises(UsageError, match="rename is 'some'; it can be none or auto"):
        count("x.bam", rename="some")


@pytest.mark.parametrize("kind", ["bam", "cram"])
def test_count__of_many_small_references(tmp_path: Path, kind: str) -> None:
    references = [(f"contig{i}", 2000) for i in range(300)]
    rows: list[Row] = [(i, 50 * j, 60, "20M", 0) for i in range(300) for j in range(i % 7)]
    fasta = tmp_path / "contigs.fa"
    fasta.write_text("".join(f">{name}\n{'ACGT' * 500}\n" for name, _ in references))
    pysam.faidx(str(fasta))
    path = write_alignments(
        tmp_path / f"some.{kind}", rows, references, fasta=fasta if kind == "cram" else None
    )
    assert count(path).values[:, 0].tolist() == [i % 7 for i in range(300)]
    chosen = [5, 6, 7, 100, 299]
    names = [f"contig{i}" for i in chosen]
    assert count(path, chromosomes=names).values[:, 0].tolist() == [i % 7 for i in chosen]

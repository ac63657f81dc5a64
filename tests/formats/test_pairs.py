"""Pairs of reads: which files are pairs, and both mates of each read wherever they are cut."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.bgzf_data import bgzf
from support.examples import examples
from support.program import Run
from support.stored import inspect_source

import multigpu
from multigpu import InputError, UsageError
from multigpu.formats.sequences import streams
from multigpu.formats.sequences.pairs import pair_files
from multigpu.formats.storage.zstandard import zstd

SIGNATURES = [("acg", "ACG"), ("tt", "TT")]
STYLES = ["{name}/{mate}", "{name} {mate}:N:0:ACGT", "{name}", "{name}/{mate} 1:Y:18:A"]
STORED: list[Callable[[bytes], bytes]] = [bytes, gzip.compress, zstd.compress, bgzf]
CHUNKS = [1, 60, 300, 100_000]

Read = tuple[str, str]  # title, bases
Write = Callable[..., list[str]]


def text_of(reads: list[Read], end: str = "\n", blank: int = 0) -> bytes:
    """Return FASTQ, with a blank line after every `blank` records."""
    lines = []
    for number, (title, bases) in enumerate(reads, 1):
        lines += [f"@{title}", bases, "+", "@" * len(bases)]
        lines += [""] * (blank > 0 and number % blank == 0)
    return "".join(line + end for line in lines).encode()


def mates(count: int, style: str = STYLES[0], lengths: tuple[int, int] = (9, 17)) -> list[Any]:
    """Return the reads of both files."""
    return [
        [
            (style.format(name=f"r{n}", mate=mate), ("ACGTTACG" * 9)[: n * 7 % (length + 1)])
            for n in range(count)
        ]
        for mate, length in enumerate(lengths, 1)
    ]


def in_turns(one: list[Read], two: list[Read]) -> list[Read]:
    return [read for pair in zip(one, two, strict=True) for read in pair]


def scanned(samples: Any, **options: Any) -> list[tuple[Any, ...]]:
    found = multigpu.scan(samples, SIGNATURES, hits="all", gpus="none", threads=3, **options)
    table = found.to_table()
    names = ["sample_index", "sample", "signature", "start", *({"mate"} & {*table.column_names})]
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def expected(reads: list[Read]) -> list[tuple[Any, ...]]:
    records = [(title, bases, "@" * len(bases)) for title, bases in reads]
    return [(*row, row[0] % 2 + 1) for row in scanned(records, pairs="none")]


@pytest.fixture
def write(store: Any) -> Write:
    """Writes contents as files a_R1.fq, a_R2.fq, … and returns their paths."""
    return lambda *contents: [store(each, f"a_R{n}.fq") for n, each in enumerate(contents, 1)]


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(1, 30),
    style=st.sampled_from(STYLES),
    lengths=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    end=st.sampled_from(["\n", "\r\n"]),
    blank=st.integers(0, 5),
    chunk=st.integers(1, 2000),
    stored=st.sampled_from(STORED),
    more=st.sampled_from([1, 100, streams.MORE]),
)
def test_rows__are_those_of_the_reads_one_by_one(
    write: Write, monkeypatch: pytest.MonkeyPatch, count: int, style: str, lengths: Any, end: str,
    blank: int, chunk: int, stored: Any, more: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(streams, "MORE", more)
    one, two = mates(count, style, lengths)
    wanted = expected(in_turns(one, two))
    texts = [text_of(one, end), text_of(two, end, blank)]
    found = scanned(write(*map(stored, texts)), max_chunk_bytes=chunk)
    assert found == wanted
    records = [(title, bases, "@" * len(bases)) for title, bases in in_turns(one, two)]
    assert scanned(records, max_chunk_bytes=chunk, pairs="interleaved") == wanted
    together = stored(text_of(in_turns(one, two), end, blank))
    assert scanned(write(together), max_chunk_bytes=chunk, pairs="interleaved") == wanted


@pytest.mark.parametrize("chunk", CHUNKS)
def test_mates__of_one_name_are_found(write: Write, chunk: int) -> None:
    """No guess is right where all reads have one name, and mates lie far from each other."""
    one, two = mates(40, "r", (3, 60))
    found = scanned(write(text_of(one), text_of(two)), max_chunk_bytes=chunk)
    assert found == expected(in_turns(one, two))


def test_files__that_are_several_pairs_are_each_a_series(tmp_path: Path) -> None:
    files, reads = [], []
    for name in "abc":
        pair = mates(30, name + "{name}")
        reads += in_turns(*pair)
        for mate, each in enumerate(pair, 1):
            files.append(tmp_path / f"{name}_{mate}.fq.gz")
            files[-1].write_bytes(gzip.compress(text_of(each)))
    assert scanned(files[::2] + files[1::2], max_chunk_bytes=200) == expected(reads)
    found = multigpu.scan(files, SIGNATURES, gpus="none").to_table().to_pylist()
    assert {(row["file"], row["mate"]) for row in found} == {
        (str(file), number % 2 + 1) for number, file in enumerate(files)
    }


def test_alignments__with_mates_in_turns_are_pairs(tmp_path: Path) -> None:
    pysam = pytest.importorskip("pysam")
    reads, path = in_turns(*mates(20, "{name}")), tmp_path / "a.bam"
    with pysam.AlignmentFile(str(path), "wb", text="@HD\tVN:1.6\n") as out:
        for number, (title, bases) in enumerate(reads):
            record = pysam.AlignedSegment(out.header)
            record.query_name, record.flag = title, (77, 141)[number % 2]
            record.query_sequence = bases
            record.query_qualities = pysam.qualitystring_to_array("@" * len(bases))
            out.write(record)
    found = scanned([path, path], pairs="interleaved", max_chunk_bytes=200)
    assert found == expected(reads + reads)


def test_run__is_resumed_within_a_pair(write: Write, tmp_path: Path) -> None:
    files = write(*(text_of(reads) for reads in mates(40)))
    options: dict[str, Any] = {"gpus": "none", "max_chunk_bytes": 150}
    whole = multigpu.scan(files, SIGNATURES, **options).to_table()
    kept: dict[str, Any] = {"journal": tmp_path / "journal", "resume": True, **options}
    rows = iter(multigpu.scan(files, SIGNATURES, **kept))
    for _ in range(5):
        next(rows)
    rows.close()  # type: ignore[attr-defined]
    again = multigpu.scan(files, SIGNATURES, **kept)
    assert again.to_table().equals(whole)
    assert again._job.stats.resumed >= 5


def test_sam__has_flags_of_mates(write: Write, tmp_path: Path, main: Run) -> None:
    one = [("r0/1", "ACGTTACG"), ("r1/1", "CCCC"), ("r2/1 x", "ACG")]
    two = [("r0/2", "TT"), ("r1/2", "TTT"), ("r2/2 y", "CCCC")]
    (tmp_path / "s.fa").write_text(">acg\nACG\n>tt\nTT\n")
    options = ("-s", f"{tmp_path}/s.fa", "--format", "sam", "--gpus", "none")
    out = main("scan", *write(text_of(one), text_of(two)), *options).out
    lines = [line.split("\t")[:3] for line in out.splitlines() if line[0] != "@"]
    assert lines == [
        ["r0", "65", "acg"], ["r0", "321", "tt"], ["r0", "129", "tt"],
        ["r1", "137", "tt"], ["r2", "73", "acg"],
    ]  # fmt: skip


# ---- mates out of step --------------------------------------------------------------------------


def changed(reads: list[Read], at: int, title: str) -> list[Read]:
    return [*reads[:at], (title, reads[at][1]), *reads[at + 1 :]]


ONE, TWO = mates(20)
NO_MATE = "has no mate: {other} has fewer records"
WRONG = [
    (ONE, TWO[:7] + TWO[8:], 2, "'r8/2'", "is no mate of record 'r7/1' at .*: their names differ"),
    (ONE, ONE, 2, "'r0/1'", "is no mate of record 'r0/1' at .*: their numbers are 1 and 1, not .*"),
    (TWO, ONE, 2, "'r0/1'", "is no mate of .*: their numbers are 2 and 1, not 1 and 2"),
    (ONE, changed(TWO, 19, "r19/1"), 2, "'r19/1'", "is no mate of .*: their numbers are 1 and 1.*"),
    (ONE, changed(TWO, 3, "r3 1:N:0:A"), 2, "'r3 1:N:0:A'", "is no mate of .* are 1 and 1, not .*"),
    (ONE[:12], TWO, 2, "'r12/2'", NO_MATE),
    (ONE, TWO[:12], 1, "'r12/1'", NO_MATE),
    (ONE, changed(TWO, 5, "r5/2\x01"), 2, r"'r5/2\x01'", "the name has the control character .*"),
]


@pytest.mark.parametrize("stored", STORED[:2])
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize(("one", "two", "mate", "record", "problem"), WRONG)
def test_mates__out_of_step_are_named(
    write: Write, one: list[Read], two: list[Read], mate: int, record: str, problem: str,
    chunk: int, stored: Any,
) -> None:  # fmt: skip
    files = write(stored(text_of(one)), stored(text_of(two)))
    problem = problem.format(other=files[2 - mate])
    title = record[1:-1].encode().decode("unicode_escape")
    byte = text_of((one, two)[mate - 1]).index(f"@{title}\n".encode())
    place = re.escape(f"{files[mate - 1]}: record {record} at byte {byte}: ")
    with pytest.raises(InputError, match=f"{place}{problem}$"):
        scanned(files, max_chunk_bytes=chunk)


@pytest.mark.parametrize("stored", STORED[:2])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_turns__that_are_wrong_are_named(write: Write, chunk: int, stored: Any) -> None:
    reads = in_turns(ONE, TWO)
    for wrong, problem in [
        (reads[:-1], "record 'r19/1' at byte .*: has no mate: the number of records is odd"),
        (reads[:7] + reads[8:], "record 'r4/1' .* no mate of record 'r3/1' .*: their names differ"),
    ]:
        with pytest.raises(InputError, match=problem):
            scanned(write(stored(text_of(wrong))), pairs="interleaved", max_chunk_bytes=chunk)


# ---- which files are pairs ----------------------------------------------------------------------


@pytest.mark.parametrize(("names", "found"), [
    (["a_R1.fq", "a_R2.fq"], ["a_R1.fq and a_R2.fq"]),
    (["R1.fq.gz", "R2.fq.gz"], ["R1.fq.gz and R2.fq.gz"]),
    (["a_2.fq", "x.fq", "a_1.fq"], ["x.fq", "a_1.fq and a_2.fq"]),
    (["a.1.fastq", "a.2.fastq"], ["a.1.fastq and a.2.fastq"]),
    (["a_R1_001.fq", "b_R1_001.fq", "a_R2_001.fq"], ["a_R1_001.fq and a_R2_001.fq", "b_R1_001.fq"]),
    (["a_1.fq", "a_2.fq.gz"], ["a_1.fq", "a_2.fq.gz"]),
    (["a_1.fq", "a_3.fq"], ["a_1.fq", "a_3.fq"]),
    (["lib_1_R1.fq", "lib_2_R1.fq"], ["lib_1_R1.fq", "lib_2_R1.fq"]),
    (["a1.fq", "a2.fq"], ["a1.fq", "a2.fq"]),
])  # fmt: skip
def test_auto__pairs_files_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], found: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in names:
        Path(name).write_bytes(b"@r\nA\n+\nI\n")
    sources, notes = pair_files(names, list(map(inspect_source, names)), "auto")
    assert [source.path for source in sources] == found
    assert len(notes) == any(" and " in path for path in found)


@pytest.mark.parametrize(("names", "titles", "paired"), [
    ("lib_1.fq lib_2.fq", "x y", False),  # libraries
    ("lib_1.fq lib_2.fq", "x x", True),
    ("lib_1.fq lib_2.fq", "x/1 y/2", True),  # the run says what is wrong
    ("lib_1.fq lib_2.fq", "x/1 x/1", False),
    ("lib_R1.fq lib_R2.fq", "x y", True),
])  # fmt: skip
def test_auto__looks_at_the_first_records_where_names_may_mean_others(
    tmp_path: Path, names: str, titles: str, paired: bool
) -> None:
    files = [str(tmp_path / name) for name in names.split()]
    for file, title in zip(files, titles.split(), strict=True):
        Path(file).write_bytes(f"@{title}\nA\n+\nI\n".encode())
    sources, (note,) = pair_files(files, list(map(inspect_source, files)), "auto")
    assert len(sources) == 2 - paired
    assert note.startswith("read as pairs: " if paired else "first records are no mates, so not ")


def test_pairs__that_cannot_be_are_refused(write: Write) -> None:
    one, two, fasta = write(text_of(ONE), b"", b">x\nA\n")
    for samples, pairs, problem in (
        ([one, two], "auto", f"{two}: is empty, and its mate {one} is not"),
        ([("r", "A")], "interleaved", "samples: record 'r' at byte 0: has no mate: .* is odd"),
        ([("r", "A", "I"), ("s", "A", None)], "interleaved", "'s': has no qualities, which all re"),
        ([one], "files", "pairs files takes files two by two; got 1 file$"),
        ([one, fasta], "files", "cannot be a pair: one is FASTQ, the other FASTA"),
    ):
        with pytest.raises((InputError, UsageError), match=problem):
            scanned(samples, pairs=pairs)

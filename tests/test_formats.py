"""One answer in every form: formats and compressions out, files and streams in, the Python API."""

import gc
import gzip
import io
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click.testing
import numpy as np
import pyarrow.parquet as pq
import pytest
from backports import zstd
from bgzf_data import bgzf

import multigpu
from multigpu import Batch, InputError, UsageError
from multigpu.cli import cli

ROOT = Path(__file__).resolve().parents[1]
HEADER = "sample\tsignature\tstart\tend\tstrand\tscore\n"
MEANING = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT",
    "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
OTHER = dict(zip("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN", strict=True))  # complements

Read = tuple[str, str, str]  # header, bases, quality
Row = tuple[str, str, int, int, str, float | None]

READS: list[Read] = [
    ("read1 first", "TTACGTNNACGTTT", "!5I+@I~,5@+I!I"),
    ("read2", "acgt", "IIII"),
    ("empty", "", ""),
    ("read1", "GGCCAARGUACGTACGW", "@@@@@@@@@@@@@@@@@"),
    ("short", "ACG", "III"),
    ("café", "NNNNNNNN", "5555!!!!"),
    ("last", "TTTACGCATTTACGT", "!!!!!!!!!!!~~~~"),
]
SIGNATURES = [
    ("sig1 one", "ACGT"),
    ("sig2", "AAR"),
    ("sig1", "CGTNNAC"),
    ("four", "CC"),
    ("y", "YRAC"),
]
ALL = ("--strand", "both", "--hits", "all")


# ---- the answer, in plain Python --------------------------------------------------------------


def answer(
    reads: list[Read] = READS,
    signatures: list[tuple[str, str]] = SIGNATURES,
    *,
    every: bool = False,
    both: bool = False,
    strict: bool = False,
    scored: bool = True,
) -> list[Row]:
    """What the scan should find, letter by letter."""
    rows: list[Row] = []
    for header, bases, quality in reads:
        for name, signature in signatures:
            found = starts(bases, signature, "+", strict)
            if both:
                reverse = "".join(OTHER[letter] for letter in reversed(signature))
                found = sorted(found + starts(bases, reverse, "-", strict))
            for start, strand in found if every else found[:1]:
                end = start + len(signature)
                values = [ord(character) - 33 for character in quality[start:end]]
                score = sum(values) / len(values) if scored else None
                rows.append((header.split()[0], name.split()[0], start, end, strand, score))
    return rows


def starts(bases: str, signature: str, strand: str, strict: bool) -> list[tuple[int, str]]:
    def agree(ours: str, theirs: str) -> bool:
        mine, wanted = set(MEANING[ours.upper()]), set(MEANING[theirs.upper()])
        return mine <= wanted if strict else bool(mine & wanted)

    size = len(signature)
    places = range(len(bases) - size + 1)
    return [(i, strand) for i in places if all(map(agree, bases[i : i + size], signature))]


def tsv(rows: list[Row]) -> bytes:
    lines = [
        "\t".join([*map(str, row[:5]), "" if row[5] is None else repr(row[5])]) for row in rows
    ]
    return (HEADER + "".join(line + "\n" for line in lines)).encode()


def text(rows: list[Row]) -> bytes:
    shown = [(row, "-" if row[5] is None else f"{row[5]:.3f}") for row in rows]
    return "".join(f"{row[0]}: {row[1]} ({score})\n" for row, score in shown).encode()


def bed(rows: list[Row]) -> bytes:
    lines = []
    for sample, signature, start, end, strand, score in rows:
        value = 0 if score is None else min(1000, round(10 * score))
        lines.append(f"{sample}\t{start}\t{end}\t{signature}\t{value}\t{strand}\n")
    return "".join(lines).encode()


def jsonl(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(zip(HEADER.split(), row, strict=True)) for row in rows]


# ---- files ------------------------------------------------------------------------------------


def fastq(reads: list[Read] = READS, shift: int = 0) -> bytes:
    return "".join(
        f"@{name}\n{bases}\n+\n{''.join(chr(ord(c) + shift) for c in quality)}\n"
        for name, bases, quality in reads
    ).encode()


def fasta(records: list[tuple[str, str]]) -> bytes:
    return "".join(f">{name}\n{bases}\n" for name, bases in records).encode()


def fasta_of(reads: list[Read] = READS) -> bytes:
    return fasta([(name, bases) for name, bases, _ in reads])


def members(data: bytes) -> bytes:
    """Gzip members of 40 bytes."""
    return b"".join(gzip.compress(data[at : at + 40]) for at in range(0, len(data), 40))


def frames(data: bytes) -> bytes:
    return b"".join(zstd.compress(data[at : at + 40]) for at in range(0, len(data), 40))


STORED = {
    "plain": bytes, "gzip": gzip.compress, "gzip, several members": members,
    "bgzf": partial(bgzf, block=40),
    "zstd": zstd.compress, "zstd, several frames": frames,
}  # fmt: skip
LAYOUTS = {
    "crlf": fastq().replace(b"\n", b"\r\n"),
    "no last line end": fastq().rstrip(b"\n"),
    "wrapped": "".join(
        f"@{name}\n{bases[:5]}\n{bases[5:]}\n+\n{quality[:3]}\n{quality[3:]}\n"
        if len(bases) > 5
        else f"@{name}\n{bases}\n+\n{quality}\n"
        for name, bases, quality in READS
    ).encode(),
    "blank lines": b"\n\n" + fastq().replace(b"\n@last", b"\n\n\r\n@last") + b"\n\n",
    "names repeated behind +": "".join(
        f"@{name}\n{bases}\n+{name}\n{quality}\n" for name, bases, quality in READS
    ).encode(),
}

Scan = Callable[..., bytes]


@pytest.fixture
def store(tmp_path: Path) -> Callable[[str, bytes], str]:
    def write(name: str, content: bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    return write


@pytest.fixture
def reads(store: Callable[[str, bytes], str]) -> str:
    return store("reads.fq", fastq())


@pytest.fixture
def signatures(store: Callable[[str, bytes], str]) -> str:
    return store("sig.fa", fasta(SIGNATURES))


@pytest.fixture
def scan(tmp_path: Path, signatures: str) -> Scan:
    """The bytes that the command writes to a file of this name."""

    def run(*samples: str, options: tuple[str, ...] = (), name: str = "hits.tsv") -> bytes:
        output = tmp_path / "out" / name
        output.parent.mkdir(exist_ok=True)
        command = ["scan", *samples, "-o", str(output), "--gpus", "none", *options]
        if "-s" not in options:
            command += ["-s", signatures]
        cli.main(command, standalone_mode=False)
        return output.read_bytes()

    return run


# ---- formats ----------------------------------------------------------------------------------


def test_answer__has_what_the_formats_must_show() -> None:
    """Ambiguous letters, both strands, several hits, repeated names, scores with many digits."""
    rows = answer(every=True, both=True)
    assert {row[4] for row in rows} == {"+", "-"}
    assert {row[0] for row in rows} == {"read1", "read2", "café", "last"}
    assert any(row[5] is not None and len(repr(row[5])) > 10 for row in rows)
    assert len(answer(every=True, both=True, strict=True)) < len(rows)
    assert len(answer(both=True)) < len(rows)
    assert len(answer()) < len(answer(both=True))


@pytest.mark.parametrize("options", [(), ("--format", "tsv")])
@pytest.mark.parametrize(
    ("flags", "every", "both"),
    [
        ((), False, False),
        (("--hits", "all"), True, False),
        (("--strand", "both"), False, True),
        (ALL, True, True),
    ],
    ids=["first", "all", "both", "all, both"],
)
def test_tsv__is_the_answer_with_a_header_and_round_trip_scores(
    scan: Scan,
    reads: str,
    options: tuple[str, ...],
    flags: tuple[str, ...],
    every: bool,
    both: bool,
) -> None:
    assert scan(reads, options=(*options, *flags)) == tsv(answer(every=every, both=both))


@pytest.mark.parametrize(("name", "options"), [("hits.txt", ()), ("hits", ("--format", "text"))])
def test_text__is_a_line_for_each_hit_with_three_decimals(
    scan: Scan, reads: str, name: str, options: tuple[str, ...]
) -> None:
    got = scan(reads, options=(*ALL, *options), name=name)
    assert got == text(answer(every=True, both=True))
    assert re.fullmatch(rb"([^\t\n]+: [^\t\n]+ \(\d+\.\d{3}\)\n)+", got)


@pytest.mark.parametrize(("name", "options"), [("hits.bed", ()), ("hits", ("--format", "bed"))])
def test_bed__has_six_columns(scan: Scan, reads: str, name: str, options: tuple[str, ...]) -> None:
    got = scan(reads, options=(*ALL, *options), name=name)
    assert got == bed(answer(every=True, both=True))


@pytest.mark.parametrize("name", ["hits.jsonl", "hits.json"])
def test_jsonl__is_an_object_on_each_line(scan: Scan, reads: str, name: str) -> None:
    lines = scan(reads, options=ALL, name=name).decode().splitlines()
    assert [json.loads(line) for line in lines] == jsonl(answer(every=True, both=True))


@pytest.mark.parametrize("name", ["hits.parquet", "hits.pq"])
def test_parquet__has_the_rows_and_the_numbers_of_sample_and_signature(
    scan: Scan, reads: str, tmp_path: Path, name: str
) -> None:
    scan(reads, options=ALL, name=name)
    table = pq.read_table(tmp_path / "out" / name)
    assert table.column_names == [
        "sample", "sample_index", "signature", "signature_index", "start", "end", "strand", "score"
    ]  # fmt: skip
    indices = table.column("sample_index").to_pylist()
    rows = table.drop_columns(["sample_index", "signature_index"]).to_pylist()
    assert rows == jsonl(answer(every=True, both=True))
    assert indices == expected_indices(READS)


def test_parquet__tells_signatures_of_one_name_apart(
    store: Callable[[str, bytes], str], tmp_path: Path
) -> None:
    """By their place in all the files of signatures."""
    one, two = store("one.fa", b">a\nACGT\n>b\nGGG\n"), store("two.fa", b">a\nCGTN\n")
    samples = store("some.fa", b">s\nTTACGTAA\n")
    output = str(tmp_path / "hits.parquet")
    cli.main(
        ["scan", samples, "-s", one, "-s", two, "-o", output, "--gpus", "none"],
        standalone_mode=False,
    )
    table = pq.read_table(output)
    assert table.column("signature").to_pylist() == ["a", "a"]
    assert table.column("signature_index").to_pylist() == [0, 2]
    assert table.column("start").to_pylist() == [2, 3]


def expected_indices(reads: list[Read]) -> list[int]:
    return [
        number for number, read in enumerate(reads) for _ in answer([read], every=True, both=True)
    ]


@pytest.mark.parametrize("suffix", ["tsv", "txt", "bed", "jsonl"])
@pytest.mark.parametrize(
    ("compression", "decompress"), [("gz", gzip.decompress), ("zst", zstd.decompress)]
)
def test_compressed_output__decodes_to_the_same_bytes(
    scan: Scan, reads: str, suffix: str, compression: str, decompress: Callable[[bytes], bytes]
) -> None:
    plain = scan(reads, options=ALL, name=f"hits.{suffix}")
    stored = scan(reads, options=ALL, name=f"hits.{suffix}.{compression}")
    assert stored != plain
    assert decompress(stored) == plain


@pytest.mark.parametrize("name", ["hits.tsv", "hits.bed", "hits.jsonl.gz", "hits.tsv.zst"])
def test_output__does_not_depend_on_the_chunks(scan: Scan, reads: str, name: str) -> None:
    outputs = {
        scan(reads, options=(*ALL, "--max-chunk-bytes", size), name=name)
        for size in ("3", "20", "1000")
    }
    assert len(outputs) == 1


def test_parquet__does_not_depend_on_the_chunks(scan: Scan, reads: str) -> None:
    outputs = {
        scan(reads, options=(*ALL, "--max-chunk-bytes", size), name="hits.parquet")
        for size in ("3", "20", "1000")
    }
    assert len(outputs) == 1


def test_parquet__of_a_run_that_fails_leaves_nothing_to_fail_later(
    scan: Scan, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failed: unraisable.append(failed.object))
    bad = store("bad.fq", fastq() + b"@bad\nACXT\n+\nIIII\n")
    with pytest.raises(InputError, match="record 'bad'") as caught:
        scan(bad, options=("--max-chunk-bytes", "20"), name="hits.parquet")
    del caught
    gc.collect()
    assert unraisable == []


def test_output__without_a_hit_has_only_the_header(scan: Scan, store: Any, tmp_path: Path) -> None:
    path = store("none.fq", fastq([("a", "TTTTTTT", "IIIIIII")]))
    assert scan(path) == HEADER.encode()
    assert scan(path, name="hits.bed") == b""
    scan(path, name="hits.parquet")
    assert pq.read_table(tmp_path / "out" / "hits.parquet").num_rows == 0


@pytest.mark.parametrize("output", [(), ("-o", "-")], ids=["no -o", "-o -"])
@pytest.mark.parametrize("fmt", ["tsv", "bed", "parquet"])
def test_standard_output__has_the_results_and_nothing_else(
    scan: Scan,
    reads: str,
    signatures: str,
    capfdbinary: pytest.CaptureFixture[bytes],
    output: tuple[str, ...],
    fmt: str,
) -> None:
    expected = scan(reads, options=ALL, name=f"hits.{fmt}")
    capfdbinary.readouterr()
    command = ["scan", reads, "-s", signatures, *output, *ALL, "--format", fmt, "--gpus", "none"]
    cli.main(command, standalone_mode=False)
    assert capfdbinary.readouterr() == (expected, b"")


# ---- what counts ------------------------------------------------------------------------------


def test_min_score__drops_weaker_rows_after_the_first_hit_is_determined(
    scan: Scan, store: Any
) -> None:
    path = store("two.fq", fastq([("a", "ACGTACGT", "!!!!IIII"), ("b", "ACGT", "5555")]))
    only = store("one.fa", fasta([("s", "ACGT")]))
    first = scan(path, options=("-s", only, "--min-score", "20"))
    assert first == tsv([("b", "s", 0, 4, "+", 20.0)])
    every = scan(path, options=("-s", only, "--min-score", "20", "--hits", "all"))
    assert every == tsv([("a", "s", 4, 8, "+", 40.0), ("b", "s", 0, 4, "+", 20.0)])
    assert scan(path, options=("-s", only, "--min-score", "40.1")) == HEADER.encode()


@pytest.mark.parametrize("score", [0.0, 10.0, 25.5])
@pytest.mark.parametrize("size", ["5", "100000"])
def test_min_score__keeps_exactly_the_rows_that_reach_it(
    scan: Scan, reads: str, score: float, size: str
) -> None:
    options = (*ALL, "--min-score", str(score), "--max-chunk-bytes", size)
    kept = [row for row in answer(every=True, both=True) if (row[5] or 0.0) >= score]
    assert scan(reads, options=options) == tsv(kept)


def test_sample_n_mismatch__needs_the_samples_base_to_be_a_subset(scan: Scan, reads: str) -> None:
    got = scan(reads, options=(*ALL, "--sample-n", "mismatch"))
    assert got == tsv(answer(every=True, both=True, strict=True))


@pytest.mark.parametrize("sample", MEANING)
def test_sample_n_mismatch__for_every_pair_of_letters(scan: Scan, store: Any, sample: str) -> None:
    path = store("one.fa", fasta([("a", sample)]))
    wanted = [(letter, letter) for letter in MEANING]
    letters = store("letters.fa", fasta(wanted))
    for options, strict in (((), False), (("--sample-n", "mismatch"), True)):
        expected = answer([("a", sample, "")], wanted, strict=strict, scored=False)
        assert scan(path, options=("-s", letters, *options)) == tsv(expected)


def test_phred_offset_64__gives_the_same_scores(scan: Scan, store: Any) -> None:
    shifted = store("old.fq", fastq([(n, b, q) for n, b, q in READS if "~" not in q], shift=31))
    expected = answer([read for read in READS if "~" not in read[2]], every=True, both=True)
    assert scan(shifted, options=(*ALL, "--phred-offset", "64")) == tsv(expected)


@pytest.mark.parametrize("size", ["1", "7", "100000"])
def test_fasta_samples__have_no_score(scan: Scan, store: Any, tmp_path: Path, size: str) -> None:
    path = store("reads.fa", fasta_of())
    options = (*ALL, "--max-chunk-bytes", size)
    rows = answer(every=True, both=True, scored=False)
    assert scan(path, options=options) == tsv(rows)
    assert scan(path, options=options, name="hits.txt") == text(rows)
    assert scan(path, options=options, name="hits.bed") == bed(rows)
    lines = scan(path, options=options, name="hits.jsonl").splitlines()
    assert [json.loads(line) for line in lines] == jsonl(rows)
    scan(path, options=options, name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    assert table.column("score").null_count == len(rows) == table.num_rows
    assert table.column("sample_index").to_pylist() == expected_indices(READS)


def test_min_score__keeps_rows_without_a_score(scan: Scan, store: Any) -> None:
    path = store("reads.fa", fasta_of())
    assert scan(path, options=("--min-score", "90")) == tsv(answer(scored=False))


# ---- input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["11", "100000"])
@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("layout", ["fastq", "fasta"])
def test_input__is_told_by_content_in_every_compression(
    scan: Scan, store: Any, layout: str, stored: str, size: str
) -> None:
    content = fastq() if layout == "fastq" else fasta_of()
    path = store("reads.dat", STORED[stored](content))
    got = scan(path, options=(*ALL, "--max-chunk-bytes", size))
    assert got == tsv(answer(every=True, both=True, scored=layout == "fastq"))


@pytest.mark.parametrize("size", ["1", "13", "100000"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_input__in_every_layout_gives_the_same(
    scan: Scan, store: Any, layout: str, size: str
) -> None:
    path = store("reads.fq", LAYOUTS[layout])
    got = scan(path, options=(*ALL, "--max-chunk-bytes", size))
    assert got == tsv(answer(every=True, both=True))


HALVES = (fastq(READS[:3]), fastq(READS[3:]))


@pytest.mark.parametrize("size", ["17", "100000"])
def test_input__of_several_files_is_read_in_the_order_given(
    scan: Scan, store: Any, tmp_path: Path, size: str
) -> None:
    first, second = store("z.fq", HALVES[0]), store("a.fq.gz", gzip.compress(HALVES[1]))
    options = (*ALL, "--max-chunk-bytes", size)
    assert scan(first, second, options=options) == tsv(answer(every=True, both=True))
    scan(first, second, first, options=options, name="hits.parquet")
    table = pq.read_table(tmp_path / "out" / "hits.parquet")
    indices = expected_indices(READS + READS[:3])
    assert table.column("sample_index").to_pylist() == indices


def test_input__of_a_folder_is_its_sequence_files_by_name(scan: Scan, store: Any) -> None:
    store("in/b.fastq.zst", zstd.compress(HALVES[1]))
    store("in/a.fq", HALVES[0])
    store("in/notes.txt", b"no sequences")
    folder = str(Path(store("in/.hidden.fq", b"no sequences")).parent)
    assert scan(folder, options=ALL) == tsv(answer(every=True, both=True))


def test_input__of_a_quoted_pattern_is_what_it_matches_by_name(scan: Scan, store: Any) -> None:
    store("lane2.fq", HALVES[1])
    folder = Path(store("lane1.fq", HALVES[0])).parent
    assert scan(str(folder / "lane*.fq"), options=ALL) == tsv(answer(every=True, both=True))


def test_input__of_a_url_is_read_through_fsspec(scan: Scan, reads: str) -> None:
    assert scan(f"file://{reads}", options=ALL) == tsv(answer(every=True, both=True))


@pytest.mark.parametrize("stored", STORED)
def test_input__from_standard_input_is_the_same(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    content = io.BytesIO(STORED[stored](fastq()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=content))
    options = (*ALL, "--max-chunk-bytes", "30")
    assert scan("-", options=options) == tsv(answer(every=True, both=True))


def test_signatures__in_several_files_are_taken_in_the_order_given(
    scan: Scan, store: Any, reads: str
) -> None:
    first = store("z.fa", fasta(SIGNATURES[:2]).replace(b"\n", b"\r\n"))
    second = store("a.fa.gz", gzip.compress(fasta(SIGNATURES[2:])))
    got = scan(reads, options=(*ALL, "-s", first, "-s", second))
    assert got == tsv(answer(every=True, both=True))


def test_names__that_are_repeated_are_kept_and_told_apart_by_order(
    scan: Scan, store: Any, tmp_path: Path
) -> None:
    path = store("same.fq", fastq([("x", "AC", "I5"), ("x", "AC", "55"), ("x", "CA", "+5")]))
    same = store("same.fa", fasta([("s", "AC"), ("s", "A")]))
    rows: list[Row] = [
        ("x", "s", 0, 2, "+", 30.0), ("x", "s", 0, 1, "+", 40.0), ("x", "s", 0, 2, "+", 20.0),
        ("x", "s", 0, 1, "+", 20.0), ("x", "s", 1, 2, "+", 20.0),
    ]  # fmt: skip
    assert scan(path, options=("-s", same)) == tsv(rows)
    scan(path, options=("-s", same), name="hits.parquet")
    indices = pq.read_table(tmp_path / "out" / "hits.parquet").column("sample_index").to_pylist()
    assert indices == [0, 0, 1, 1, 2]


# ---- Python -----------------------------------------------------------------------------------


def rows_of(batches: list[Batch], names: list[str]) -> list[Row]:
    return [
        (
            batch.sample[i].decode(),
            names[batch.signature[i]],
            int(batch.start[i]),
            int(batch.end[i]),
            "-" if batch.reverse[i] else "+",
            None if math.isnan(batch.score[i]) else float(batch.score[i]),
        )
        for batch in batches
        for i in range(len(batch))
    ]


@pytest.mark.parametrize("size", [20, 1 << 20])
def test_api__gives_batches_in_order_with_samples_numbered_through(
    store: Any, signatures: str, size: int
) -> None:
    paths = [store("a.fq", HALVES[0]), Path(store("b.fq", HALVES[1]))]
    found = multigpu.scan(
        paths, signatures, gpus="none", hits="all", strand="both", max_chunk_bytes=size
    )
    batches = list(found)
    assert rows_of(batches, found.signature_names) == answer(every=True, both=True)
    assert [n for batch in batches for n in batch.sample_index.tolist()] == expected_indices(READS)
    assert (len(batches) > 2) == (size == 20)


def test_api__computes_batches_as_they_are_taken(store: Any, signatures: str) -> None:
    """The error of a later chunk comes after the rows before it."""
    content = fastq() * 50 + b"@bad\nACXT\n+\nIIII\n"
    path = store("late.fq", content)
    batches = iter(multigpu.scan(path, signatures, gpus="none", max_chunk_bytes=200, threads=1))
    assert len(next(batches)) > 0
    with pytest.raises(InputError, match=r"record 'bad', position 2 \(from 0\): 'X' is not a base"):
        list(batches)


def test_api__table_has_the_columns_of_parquet(reads: str, signatures: str) -> None:
    table = multigpu.scan(reads, signatures, gpus="none", hits="all", strand="both").to_table()
    rows = table.drop_columns(["sample_index", "signature_index"]).to_pylist()
    assert rows == jsonl(answer(every=True, both=True))
    assert table.column("sample_index").to_pylist() == expected_indices(READS)


def test_api__frame_has_the_same_rows(reads: str, signatures: str) -> None:
    frame = multigpu.scan([reads], [signatures], gpus="none").to_pandas()
    rows = frame.drop(columns=["sample_index", "signature_index"])
    assert rows.to_dict("records") == jsonl(answer())


def test_api__of_no_hit_gives_an_empty_table(store: Any, signatures: str) -> None:
    path = store("none.fq", fastq([("a", "TTTTTTT", "IIIIIII")]))
    table = multigpu.scan(path, signatures, gpus="none").to_table()
    assert (table.num_rows, len(table.column_names)) == (0, 8)


def test_api__gives_the_rows_once(reads: str, signatures: str) -> None:
    found = multigpu.scan(reads, signatures, gpus="none")
    assert found.to_table().num_rows
    with pytest.raises(UsageError, match=r"taken already.* call multigpu\.scan once more"):
        found.to_table()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"samples": []}, "no samples given"),
        ({"samples": [3]}, "samples is 3; it must be a path"),
        ({"samples": b"reads"}, "samples is b'reads'; it must be a path"),
        ({"signatures": ()}, "no signatures given"),
        ({"signatures": None}, "signatures is None; it must be a path"),
        ({"samples": "-", "signatures": "-"}, "-: standard input can be given only once"),
        ({"min_score": "x"}, "min_score is 'x'; it must be a number"),
        ({"min_score": True}, "min_score is True; it must be a number"),
        ({"hits": ["all"]}, r"hits is \['all'\]; it can be first or all"),
        ({"phred_offset": "33"}, "phred_offset is '33'; it can be 33 or 64"),
        ({"journal": 5}, "journal is 5; it must be a path"),
        ({"threads": 1.5}, r"threads is 1\.5; it must be a whole number"),
        ({"memory_fraction": "half"}, "memory_fraction is 'half'; it must be a number"),
        ({"gpus": 0}, "gpus is 0; it must be text"),
    ],
)
def test_api__refuses_what_is_of_another_kind(
    reads: str, signatures: str, change: dict[str, Any], problem: str
) -> None:
    given: dict[str, Any] = {"samples": reads, "signatures": signatures, "gpus": "none", **change}
    with pytest.raises(UsageError, match=f"^{problem}$"):
        multigpu.scan(given.pop("samples"), given.pop("signatures"), **given)


def test_api__takes_the_other_options(store: Any, signatures: str) -> None:
    unscored = [read for read in READS if "~" not in read[2]]
    path = store("old.fq", fastq(unscored, shift=31))
    options: dict[str, Any] = {"sample_n": "mismatch", "min_score": 15.0, "phred_offset": 64}
    found = multigpu.scan(path, signatures, gpus="none", **options)
    expected = [row for row in answer(unscored, strict=True) if (row[5] or 0.0) >= 15]
    assert rows_of(list(found), found.signature_names) == expected != []


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.parametrize("stored", ["plain", "gzip"])
def test_api__takes_an_existing_client_and_leaves_it_open(
    store: Any, signatures: str, client: Any, stored: str
) -> None:
    path = store("reads.dat", STORED[stored](fastq()))
    found = multigpu.scan(
        path, signatures, client=client, gpus="none", hits="all", strand="both", max_chunk_bytes=50
    )
    assert rows_of(list(found), found.signature_names) == answer(every=True, both=True)
    assert client.status == "running"
    assert client.submit(sum, [1, 2]).result() == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hits": "last"}, r"hits is 'last'; it can be first or all"),
        ({"strand": "reverse"}, r"strand is 'reverse'; it can be forward or both"),
        ({"sample_n": "no"}, r"sample_n is 'no'; it can be match or mismatch"),
        ({"phred_offset": 50}, r"phred_offset is 50; it can be 33 or 64"),
        ({"max_chunk_bytes": 0}, r"chunks of 0 bytes are not possible"),
        ({"memory_fraction": 2.0}, r"memory fraction 2: it lies between 0 and 1"),
    ],
)
def test_api__refuses_wrong_options(
    reads: str, signatures: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        multigpu.scan(reads, signatures, gpus="none", **options)


def test_api__refuses_a_missing_file_at_once(signatures: str) -> None:
    with pytest.raises(InputError, match=r"^absent\.fq: cannot be read: there is no such file$"):
        multigpu.scan("absent.fq", signatures, gpus="none")


def test_api__refuses_an_option_that_it_does_not_know(reads: str, signatures: str) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        multigpu.scan(reads, signatures, gpus="none", speed="high")


# ---- summary and plan -------------------------------------------------------------------------


def test_summary__says_what_was_done(scan: Scan, store: Any, tmp_path: Path) -> None:
    paths = [store("a.fq", HALVES[0]), store("b.fa.gz", gzip.compress(fasta_of(READS[3:])))]
    summary = tmp_path / "summary.json"
    options = (*ALL, "--max-chunk-bytes", "40", "--summary", str(summary))
    got = scan(*paths, options=options, name="hits.tsv.gz")
    facts = json.loads(summary.read_text())
    assert facts["version"] == 1
    assert facts["program"]["multigpu"] == multigpu.__version__
    assert {"python", "numpy", "numba"} <= set(facts["program"])
    assert facts["options"] == {
        "hits": "all", "strand": "both", "sample_n": "match", "min_score": None, "phred_offset": 33
    }  # fmt: skip
    described = [
        {key: source[key] for key in ("path", "size", "compression", "layout")}
        for source in facts["samples"]
    ]
    assert described == [
        {"path": paths[0], "size": len(HALVES[0]), "compression": "none", "layout": "fastq"},
        {"path": paths[1], "size": Path(paths[1]).stat().st_size, "compression": "gzip",
         "layout": "fasta"},
    ]  # fmt: skip
    assert facts["signatures"] == len(SIGNATURES)
    assert facts["records"] == len(READS)
    assert facts["bases"] == sum(len(bases) for _, bases, _ in READS)
    assert facts["hits"] == gzip.decompress(got).count(b"\n") - 1
    assert facts["output"] == {
        "path": str(tmp_path / "out" / "hits.tsv.gz"), "format": "tsv", "bytes": len(got)
    }  # fmt: skip
    assert facts["devices"] == []
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


def test_summary__of_a_run_that_fails_is_not_written(
    scan: Scan, store: Any, tmp_path: Path
) -> None:
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


def test_plan__as_json_is_what_a_run_does(
    plan: Callable[..., str], scan: Scan, store: Any, tmp_path: Path
) -> None:
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


def test_plan__as_a_table_names_the_files_and_the_numbers(
    plan: Callable[..., str], store: Any
) -> None:
    plain, packed = store("a.fq", fastq() * 9), store("b.fa.gz", gzip.compress(fasta_of()))
    lines = plan(plain, packed, "--max-chunk-bytes", "70").splitlines()
    size = len(fastq()) * 9
    chunks, stored = -(-size // 70), Path(packed).stat().st_size
    assert f"{plain}: fastq, none, {size:,} bytes, {chunks:,} chunks" in lines
    assert f"{packed}: fasta, gzip, {stored:,} bytes, a stream" in lines
    assert re.search(r"^where +CPU$", "\n".join(lines), re.MULTILINE)
    assert re.search(rf"^signatures +{len(SIGNATURES)}$", "\n".join(lines), re.MULTILINE)
    assert re.search(r"^chunk +up to 70 bytes", "\n".join(lines), re.MULTILINE)


# ---- the program ------------------------------------------------------------------------------


def program(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "multigpu", "scan", *arguments, "--gpus", "none"],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_program__reads_standard_input_and_writes_standard_output(signatures: str) -> None:
    run = program("-", "-s", signatures, *ALL, stdin=gzip.compress(fastq()))
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == tsv(answer(every=True, both=True))


def test_program__without_input_scans_the_demo_and_says_so_on_stderr() -> None:
    run = program()
    assert run.returncode == 0
    assert run.stderr == b"multigpu: no samples given: scanning the built-in demo\n"
    table = np.array([line.split("\t") for line in run.stdout.decode().splitlines()])
    assert table.shape[1] == 6
    assert len(table) > 20
    again = program("--quiet", "--max-chunk-bytes", "100000")
    assert (again.returncode, again.stderr, again.stdout) == (0, b"", run.stdout)

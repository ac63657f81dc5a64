"""SAM, BAM and PAF of scans: read back by pysam, and compared with the bases base by base."""

import gzip
import json
import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from support.approximate_cases import with_edits
from support.program import Run
from support.scan_cases import planted, random_letters
from support.scanned import MEANING, Scan, fasta, fastq, other_strand, wrapped_fasta

from multigpu.errors import Failure, InputError, UsageError
from multigpu.workloads.scan.job import ScanJob

pytestmark = pytest.mark.process  # runs whole jobs

Texts = list[tuple[str, str]]

KINDS: dict[str, tuple[str, ...]] = {
    "first": ("--strand", "both"),
    "exact": ("--hits", "all", "--strand", "both"),
    "mismatches": ("--hits", "all", "--strand", "both", "--max-mismatches", "0.2"),
    "strict mismatches": ("--max-mismatches", "3", "--sample-n", "mismatch", "--strand", "both"),
    "edits": ("--hits", "all", "--strand", "both", "--max-edits", "0.2"),
    "best edits": ("--hits", "best", "--strand", "both", "--max-edits", "0.4"),
}
CUTS = {"r.fa": ("1", "5", "64", "500"), "r.fq": ("9", "64", "500")}


def inputs(seed: int, longest: int = 300) -> tuple[Texts, Texts]:
    """Return samples and signatures, some of which are alike; one sample is empty."""
    rng = np.random.default_rng(seed)
    letters = [random_letters(rng, int(rng.integers(6, 25)), 0.1) for _ in range(8)]
    samples = []
    for number in range(5):
        damaged = [with_edits(rng, each, int(rng.choice([0, 0, 1, 2]))) for each in letters]
        record = planted(rng, int(rng.integers(60, longest)), damaged, 0.03, plants=12)
        samples.append((f"r{number}", record.tobytes().decode()))
    samples.insert(2, ("empty", ""))
    return samples, [(f"s{i}", each.tobytes().decode()) for i, each in enumerate(letters)]


def reads_of(samples: Texts) -> bytes:
    """Return FASTQ of samples, with a quality for each base."""
    return fastq([
        (name, bases, "".join(chr(33 + 7 * at % 41) for at in range(len(bases))))
        for name, bases in samples
    ])  # fmt: skip


class Given:
    """Files of samples and signatures, and the rows of a scan of them."""

    def __init__(self, scan: Scan, folder: Path, seed: int = 1) -> None:
        self._scan, self.folder = scan, folder
        samples, signatures = inputs(seed)
        self.samples, self.signatures = dict(samples), dict(signatures)
        titled = [(f"{name} x", bases) for name, bases in samples]
        (folder / "s.fa").write_bytes(fasta([(f"{name} y", bases) for name, bases in signatures]))
        for name, text in (("r.fq", reads_of(titled)), ("r.fa", wrapped_fasta(titled, 50))):
            (folder / name).write_bytes(text)
            (folder / f"{name}.gz").write_bytes(gzip.compress(text))

    def written(self, sample: str, name: str, *options: str) -> bytes:
        """Return the bytes of an output of this name."""
        signatures = ("-s", str(self.folder / "s.fa"))
        return self._scan(str(self.folder / sample), options=(*signatures, *options), name=name)

    def rows(self, sample: str, *options: str) -> list[dict[str, str]]:
        """Return the rows of the scan as TSV has them."""
        lines = self.written(sample, "rows.tsv", *options, "--ambiguous").decode().splitlines()
        columns = lines[0].split("\t")
        return [dict(zip(columns, line.split("\t"), strict=True)) for line in lines[1:]]

    def records(self, sample: str, name: str, *options: str) -> tuple[Any, list[Any]]:
        """Return header and records as pysam reads them."""
        self.written(sample, name, *options)
        with pysam.AlignmentFile(str(self.folder / "out" / name), check_sq=False) as file:
            return file.header, list(file)


@pytest.fixture
def given(scan: Scan, tmp_path: Path) -> Given:
    return Given(scan, tmp_path)


def check_alignment(cigar: str, query: str, reference: str, kind: str) -> tuple[int, int]:
    """Check an alignment of all of the query with all of the reference, base by base.

    Returns its errors and its matching bases.

    kind  of KINDS; where it is strict, the reference is the sample
    """
    q = r = errors = same = 0
    operations = re.findall(r"(\d+)([=XID])", cigar)
    assert "".join(map("".join, operations)) == cigar
    for count, operation in operations:
        for _ in range(int(count)):
            if operation in "=X":
                mine, other = (set(MEANING[text.upper()]) for text in (query[q], reference[r]))
                agree = other <= mine if "strict" in kind else bool(mine & other)
                assert agree == (operation == "=")
            q += operation != "D"
            r += operation != "I"
            errors += operation != "="
            same += operation == "="
    assert (q, r) == (len(query), len(reference))
    return errors, same


def check_tags(tags: dict[str, Any], row: dict[str, str], errors: int, same: int) -> None:
    """Check the tags of a row with so many errors and matching bases."""
    assert errors == int(row.get("edits") or row.get("mismatches") or 0)
    assert (tags.pop("NM"), tags.pop("AS")) == (errors, same - errors)
    assert tags.pop("xa") == int(row["ambiguous"])
    score = tags.pop("qs", None)
    assert score == (pytest.approx(float(row["score"])) if row["score"] else None)
    assert not tags


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["a.sam", "a.bam"])
@pytest.mark.parametrize("sample", ["r.fa", "r.fq"])
def test_sam__aligns_signatures_to_fasta_and_reads_of_fastq_to_signatures(
    given: Given, sample: str, kind: str, name: str
) -> None:
    options, seen, are_reads = KINDS[kind], set(), sample == "r.fq"
    rows = given.rows(sample, *options)
    header, records = given.records(sample, name, *options, "--ambiguous")
    assert len(records) == len(rows) > 3
    references = given.signatures if are_reads else given.samples
    expected = [(each, len(bases)) for each, bases in references.items() if bases]
    assert list(zip(header.references, header.lengths, strict=True)) == expected
    assert header.to_dict()["HD"] == {"VN": "1.6", "SO": "unsorted"}
    (program,) = header.to_dict()["PG"]
    assert (program["ID"], program["PN"]) == ("multigpu", "multigpu")
    assert program["CL"].startswith("multigpu scan")
    for record, row in zip(records, rows, strict=True):
        names = (row["signature"], row["sample"])
        assert (record.query_name, record.reference_name) == (names[::-1] if are_reads else names)
        assert (record.mapping_quality, record.query_qualities) == (255, None)
        bases, sample_bases = given.signatures[row["signature"]], given.samples[row["sample"]]
        start, end = int(row["start"]), int(row["end"])
        under, is_reverse = sample_bases[start:end], row["strand"] == "-"
        if are_reads:
            clips = (start, len(sample_bases) - end)
            if is_reverse:
                clips, under = clips[::-1], other_strand(under)
            text = re.fullmatch(r"(?:(\d+)S)?(.*?)(?:(\d+)S)?", record.cigarstring)
            assert text is not None
            assert (int(text[1] or 0), int(text[3] or 0)) == clips
            swapped = text[2].translate(str.maketrans("ID", "DI"))
            found = check_alignment(swapped, bases, under, kind)
            assert (record.reference_start, record.query_sequence) == (0, None)
            assert record.infer_query_length() == len(sample_bases)
        else:
            sequence = other_strand(bases) if is_reverse else bases
            assert record.query_sequence == sequence.upper().replace("U", "T")
            assert record.reference_start == start
            found = check_alignment(record.cigarstring, record.query_sequence, under, kind)
        check_tags(dict(record.get_tags()), row, *found)
        assert record.is_reverse == is_reverse
        assert record.is_secondary == (record.query_name in seen)
        assert record.flag & ~(16 | 256) == 0
        seen.add(record.query_name)


def letters_of_md(value: str) -> str:
    """Return a sign for each base of the reference: = where it matches, else its letter."""
    parts = re.findall(r"(\d+)|\^?([A-Z]+)", value)
    return "".join("=" * int(count) if count else letters for count, letters in parts)


@pytest.mark.parametrize("kind", ["first", "mismatches", "best edits"])
@pytest.mark.parametrize(
    ("sample", "name"), [("r.fa", "a.sam"), ("r.fa.gz", "a.bam"), ("r.fq", "a.sam")]
)
def test_md__is_what_the_alignment_says(given: Given, sample: str, name: str, kind: str) -> None:
    cut = ("--max-chunk-bytes", "64", *KINDS[kind])
    rows, (_, usual) = given.rows(sample, *cut), given.records(sample, name, *cut)
    _, records = given.records(sample, name, *cut, "--tags", "MD", "--cigar", "M")
    assert len(records) == len(usual) == len(rows) > 3
    for record, before, row in zip(records, usual, rows, strict=True):
        reference = given.signatures[row["signature"]]
        if sample != "r.fq":
            reference = given.samples[row["sample"]][int(row["start"]) : int(row["end"])]
        reference = reference.upper().replace("U", "T")
        operations = re.findall(r"(\d+)([=XD])", before.cigarstring)
        expected = "".join(kind * int(count) for count, kind in operations)
        letters = zip(expected, reference, strict=True)
        md = record.get_tag("MD")
        assert re.fullmatch(r"\d+((\^?[A-Z]+)\d+)*", md)
        assert letters_of_md(md) == "".join("=" if kind == "=" else base for kind, base in letters)
        each = re.findall(r"(\d+)(\D)", before.cigarstring.translate(str.maketrans("=X", "MM")))
        runs = [(sum(int(n) for n, _ in run), op) for op, run in groupby(each, itemgetter(1))]
        assert record.cigarstring == "".join(f"{count}{op}" for count, op in runs)


@pytest.mark.parametrize("sample", ["r.fa", "r.fq"])
@pytest.mark.parametrize("kind", KINDS)
def test_paf__has_the_rows(given: Given, kind: str, sample: str) -> None:
    options = KINDS[kind]
    rows = given.rows(sample, *options)
    lines = given.written(sample, "a.paf", *options, "--ambiguous").decode().splitlines()
    assert len(lines) == len(rows) > 3
    for line, row in zip(lines, rows, strict=True):
        signature, bases = given.signatures[row["signature"]], given.samples[row["sample"]]
        query, length, begin, stop, strand, target, target_length, *more = line.split("\t")
        assert (query, strand, target) == (row["signature"], row["strand"], row["sample"])
        assert [int(length), int(begin), int(stop)] == [len(signature), 0, len(signature)]
        assert int(target_length) == len(bases)
        start, end, same, columns, quality, *fields = more
        assert (start, end, quality) == (row["start"], row["end"], "255")
        tags = {text[:2]: float(text[5:]) if text[3] == "f" else text[5:] for text in fields}
        tags |= {text[:2]: int(text[5:]) for text in fields if text[3] == "i"}
        cigar = str(tags.pop("cg"))
        sequence = other_strand(signature) if strand == "-" else signature
        under = bases[int(start) : int(end)]
        errors, matching = check_alignment(cigar, sequence, under, kind)
        assert (int(same), int(columns)) == (matching, matching + errors)
        check_tags(tags, row, errors, matching)


@pytest.mark.parametrize("kind", ["exact", "mismatches", "edits"])
@pytest.mark.parametrize("name", ["a.sam", "a.bam", "a.paf"])
@pytest.mark.parametrize("sample", ["r.fa", "r.fq"])
def test_bytes__do_not_depend_on_chunks(given: Given, sample: str, name: str, kind: str) -> None:
    whole = given.written(sample, name, *KINDS[kind])
    for size in CUTS[sample]:
        options = (*KINDS[kind], "--max-chunk-bytes", size, "--threads", "2")
        assert given.written(sample, name, *options) == whole, size
    compressed = given.written(f"{sample}.gz", name, *KINDS[kind], "--max-chunk-bytes", "99")
    assert compressed == whole


Stop = Callable[..., None]


@pytest.fixture
def stop(given: Given, monkeypatch: pytest.MonkeyPatch) -> Stop:
    """Begins a scan, which fails after some parts."""
    outcomes = ScanJob.outcomes

    def stopped(self: ScanJob, sinks: Any) -> Any:
        for number, outcome in enumerate(outcomes(self, sinks)):
            if number == 4:
                raise Failure("stopped")
            yield outcome

    def run(*arguments: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ScanJob, "outcomes", stopped)
            with pytest.raises(Failure, match="stopped"):
                given.written(*arguments)

    return run


RESUMED = (*KINDS["edits"], "--max-chunk-bytes", "120", "--threads", "1")


@pytest.mark.parametrize("name", ["a.sam", "a.bam", "a.paf"])
@pytest.mark.parametrize("sample", ["r.fa", "r.fq"])
def test_run__is_resumed(given: Given, stop: Stop, sample: str, name: str, tmp_path: Path) -> None:
    whole = given.written(sample, name, *RESUMED)
    (given.folder / "out" / name).unlink()
    stop(sample, name, *RESUMED)
    assert [path.name for path in (given.folder / "out").glob(".*")] == [f".{name}.journal"]
    summary = tmp_path / "summary.json"
    options = (*RESUMED, "--resume", "--summary", str(summary))
    assert given.written(sample, name, *options) == whole
    assert json.loads(summary.read_text())["chunks"]["resumed"] >= 4


def test_run__is_not_resumed_in_a_larger_format(given: Given, stop: Stop) -> None:
    stop("r.fa", "hits", *RESUMED, "--format", "parquet")
    with pytest.raises(UsageError, match=r"rows was parquet.*, is bam"):
        given.written("r.fa", "hits", *RESUMED, "--format", "bam", "--resume")


def test_program__has_the_options_that_rows_depend_on(given: Given) -> None:
    options = ("--hits", "all", "--max-edits", "0.1", "--min-score", "3", "--threads", "2")
    header, _ = given.records("r.fq", "a.sam", *options)
    (program,) = header.to_dict()["PG"]
    assert program["CL"] == "multigpu scan --hits all --min-score 3.0 --max-edits 0.1"


@pytest.mark.parametrize("size", ["1", "100000"])
@pytest.mark.parametrize(("samples", "signatures", "problem"), [
    (b">a\nACGT\n>b,c\nGG\n", b">s\nA\n", r"in\.x: record 'b,c': SAM allows names of letters"),
    (b">a\nACGT\n>b\nGG\n>a\nT\n", b">s\nA\n", r"in\.x: record 'a': duplicate name; SAM needs"),
    (b">a\nACGT\n", b">s@\nA\n", r"g\.fa: record 's@': SAM allows names of 1 to 254"),
    (b"@a\nAC\n+\nII\n@b@c\nGA\n+\nII\n", b">s\nA\n", r"in\.x: record 'b@c': SAM allows names"),
    (b"@a\nACGT\n+\nIIII\n", b">*s\nA\n", r"g\.fa: record '\*s': SAM allows names of l"),
    (b"@a\nACGT\n+\nIIII\n", b">s\nA\n>s\nT\n", r"g\.fa: record 's': duplicate name; SAM needs"),
    (b">a\nACGT\n", b">s\nA\n>\nC\n", r"g\.fa: record 2: has no name, which SAM needs"),
    (b"@a\nACGT\n+\nIIII\n", b">s\nA\n>\nT\n", r"g\.fa: record 2: has no name, which SAM"),
    (b">a\nACGT\n>\nT\n>\nA\n", b">s\nA\n", r"in\.x: record 2: has no name, which SAM needs"),
    (b"@a\nAC\n+\nII\n@\nGA\n+\nII\n", b">s\nA\n", r"in\.x: a record: has no name, which SAM"),
])  # fmt: skip
def test_name__that_sam_does_not_allow_is_refused(
    given: Given, scan: Scan, samples: bytes, signatures: bytes, problem: str, size: str
) -> None:
    (given.folder / "in.x").write_bytes(samples)
    (given.folder / "g.fa").write_bytes(signatures)
    options = ("-s", str(given.folder / "g.fa"), "--max-chunk-bytes", size)
    with pytest.raises(InputError, match=problem):
        scan(str(given.folder / "in.x"), options=options, name="a.sam")
    assert list((given.folder / "out").iterdir()) == []
    assert scan(str(given.folder / "in.x"), options=options, name="a.paf")


def test_names__of_reads_may_occur_twice(given: Given) -> None:
    (given.folder / "r.fq").write_bytes(2 * (given.folder / "r.fq").read_bytes())
    _, records = given.records("r.fq", "a.bam", *KINDS["exact"])
    half = len(records) // 2
    assert [str(each) for each in records[:half]] == [str(each) for each in records[half:]]
    with pytest.raises(UsageError, match=r"^BAM files are compressed inside: choose a name with"):
        given.written("r.fa", "a.bam.gz")


def test_reads_and_references__are_not_mixed(given: Given, main: Run) -> None:
    both = [str(given.folder / name) for name in ("r.fq", "r.fa")]
    command = ("-s", str(given.folder / "s.fa"), "--gpus", "none", "-o")
    for fmt in ("sam", "bam"):
        ended = main("scan", *both, *command, str(given.folder / f"x.{fmt}"))
        assert ended.status == 2
        assert ended.problem == (
            f"--format {fmt}: FASTQ samples are reads there, and FASTA samples are references:"
            " scan them one after the other, or choose --format paf"
        )
        assert not (given.folder / f"x.{fmt}").exists()
    assert main("scan", *both, *command, str(given.folder / "x.paf")).status == 0
    alone = b"".join(given.written(name, "a.paf") for name in ("r.fq", "r.fa"))
    assert (given.folder / "x.paf").read_bytes() == alone

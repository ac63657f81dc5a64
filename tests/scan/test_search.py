"""Scans with errors: mismatches and edits, against the plain recurrences on whole records."""

from fractions import Fraction
from functools import partial, partialmethod
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.approximate_cases import with_edits
from support.scan_answers import COLUMNS, Row, Texts, answer, check_rows, score_of
from support.scan_cases import array, planted, random_letters
from support.scanned import Scan, fasta, fastq, other_strand

import multigpu
from multigpu import UsageError
from multigpu.workloads.scan import search
from multigpu.workloads.scan.ambiguous_bases import ShortGaps
from multigpu.workloads.scan.search import EditSearch, PlaceSearch

pytestmark = pytest.mark.process  # runs whole jobs

KINDS: dict[str, dict[str, Any]] = {
    "2 mismatches": {"max_mismatches": 2},
    "a tenth mismatches": {"max_mismatches": 0.1, "hits": "all", "strand": "both"},
    "best mismatches": {"max_mismatches": 0.3, "hits": "best", "strand": "both"},
    "exact suffix": {"max_mismatches": 3, "exact_suffix": 2, "hits": "all", "strand": "both"},
    "2 edits": {"max_edits": 2},
    "2 edits, strict": {"max_edits": 2, "hits": "all", "strand": "both", "sample_n": "mismatch"},
    "best edits": {"max_edits": 0.3, "hits": "best", "strand": "both"},
    "exact prefix": {"max_edits": 3, "exact_prefix": 3, "hits": "all", "strand": "both"},
    "all bases but one": {"max_edits": 0.99, "hits": "best"},
    "few ambiguous": {"max_edits": 0.2, "max_ambiguous": 1, "hits": "best", "strand": "both"},
}


def inputs(seed: int, longest: int = 200) -> tuple[Texts, Texts]:
    """Return samples and signatures, some of which are alike."""
    rng = np.random.default_rng(seed)
    letters = [random_letters(rng, int(rng.integers(6, 25)), 0.1) for _ in range(8)]
    samples = []
    for number in range(6):
        damaged = [with_edits(rng, each, int(rng.integers(0, 4))) for each in letters]
        record = planted(rng, int(rng.integers(0, longest)), damaged, 0.03, plants=6)
        if number == 2:  # long runs of ends with the same number of edits
            record[rng.random(len(record)) < 0.8] = array("A")[0]
        samples.append((f"r{number}", record.tobytes().decode()))
    signatures = [(f"s{i}", each.tobytes().decode()) for i, each in enumerate(letters)]
    return samples, [*signatures, ("a", "AAAAAAC")]


@pytest.mark.parametrize("kind", KINDS)
def test_rows__are_those_of_the_reference_however_a_file_is_cut(kind: str, tmp_path: Path) -> None:
    samples, signatures = inputs(1)
    expected = answer(samples, signatures, KINDS[kind])
    assert len(expected) > 3
    check_rows(tmp_path, samples, signatures, expected, *COLUMNS, **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_long_runs_of_n__have_the_rows_of_the_reference(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gaps at the start, in the middle, two side by side, at the end, and nothing else."""
    rng = np.random.default_rng(4)
    samples, signatures = inputs(4, longest=60)
    records = [array(bases) for _, bases in samples]
    gaps = [np.full(int(rng.integers(60, 400)), ord("nN"[i % 2]), np.uint8) for i in range(5)]
    records[0] = np.concatenate([gaps[0], records[0], gaps[1], array("ACG"), gaps[2]])
    records[1] = np.concatenate([records[1], gaps[3], records[2], array("T"), gaps[4], records[3]])
    records[2] = gaps[2]
    samples = [(f"r{i}", bases.tobytes().decode()) for i, bases in enumerate(records)]
    monkeypatch.setattr(search, "LEAST_GAP", 2)
    missing, find = [], ShortGaps.find

    def find_and_count(*given: Any) -> ShortGaps | None:
        gaps = find(*given)
        missing.append(0 if gaps is None else gaps.missing[-1])
        return gaps

    monkeypatch.setattr(ShortGaps, "find", find_and_count)
    options = KINDS[kind]
    expected = answer(samples, signatures, options)
    check_rows(tmp_path, samples, signatures, expected, *COLUMNS, **options)
    is_shortened = "max_edits" in options or options.get("hits") != "all"
    assert any(missing) == (is_shortened and options.get("sample_n") != "mismatch")


def test_illegal_letter_beside_a_long_run_of_n__is_named_by_its_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LEAST_GAP", 2)
    (tmp_path / "r.fa").write_text(">r\nACGT" + "N" * 500 + "AC!GT\n")
    (tmp_path / "s.fa").write_text(">s\nACGTACGT\n")
    for options in ({"max_edits": 1}, {"max_mismatches": 1}):
        with pytest.raises(multigpu.InputError, match="position 506"):
            list(multigpu.scan(tmp_path / "r.fa", tmp_path / "s.fa", gpus="none", **options))


@pytest.mark.parametrize("kind", ["2 mismatches", "2 edits, strict", "few ambiguous"])
def test_rows__are_the_same_where_a_device_has_little_memory(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, signatures = inputs(5, longest=900)
    searched = []

    def find_in_little(find: Any, search: Any, part: Any) -> Any:
        if len(part.chunk.letters) > 250:
            raise MemoryError
        searched.append(part)
        return find(search, part)

    for kind_of_search in (PlaceSearch, EditSearch):
        little = partialmethod(partial(find_in_little, kind_of_search.find))
        monkeypatch.setattr(kind_of_search, "find", little)
    given = (samples, signatures, answer(samples, signatures, KINDS[kind]))
    check_rows(tmp_path, *given, *COLUMNS, cuts=(("r.fa", 10_000),), **KINDS[kind])
    assert len(searched) > 8


def test_no_errors__are_the_exact_scan_to_the_byte(scan: Scan, reads: str) -> None:
    exact = scan(reads, options=("--hits", "all"))
    for option in ("--max-mismatches", "--max-edits"):
        for none in ("0", "0.0"):
            assert scan(reads, options=("--hits", "all", option, none)) == exact
    assert scan(reads, options=("--hits", "best")) == scan(reads)


def test_formats__have_the_columns_of_errors(scan: Scan, tmp_path: Path) -> None:
    (tmp_path / "r.fq").write_bytes(fastq([("r", "CCGATTGACACC", "I" * 12)]))
    (tmp_path / "g.fa").write_bytes(fasta([("g", "GATTACA")]))
    sample, options = str(tmp_path / "r.fq"), ("-s", str(tmp_path / "g.fa"))
    edits = (*options, "--max-edits", "1")
    header = b"sample\tsignature\tstart\tend\tstrand\tscore\t"
    row = b"r\tg\t2\t10\t+\t40.0\t1\t4=1I3="
    assert scan(sample, options=edits) == header + b"edits\tcigar\n" + row + b"\n"
    both = scan(sample, options=(*edits, "--ambiguous"))
    assert both == header + b"edits\tcigar\tambiguous\n" + row + b"\t0\n"
    assert scan(sample, options=edits, name="a.bed") == b"r\t2\t10\tg\t400\t+\t1\t4=1I3=\n"
    scan(sample, options=edits, name="a.parquet")
    table = pq.read_table(tmp_path / "out" / "a.parquet").to_pydict()
    assert (table["edits"], table["cigar"]) == ([1], ["4=1I3="])
    mismatches = scan(sample, options=(*options, "--max-mismatches", "3"))
    assert mismatches == header + b"mismatches\nr\tg\t2\t9\t+\t40.0\t3\n"
    frame = multigpu.scan(sample, options[1], gpus="none", max_mismatches=3).to_pandas()
    assert frame["mismatches"].tolist() == [3]


@pytest.mark.parametrize(("options", "problem"), [
    ({"max_edits": 2, "exact_prefix": 6}, "exact prefix of 6 bases: .* 'short' has only 5 bases$"),
    *[({"max_mismatches": 5, "hits": hits}, ("up to 5 mismatches: .* 'short' has only 5 bases and"
       " would match everywhere; allow fewer, or a share of the length"))
      for hits in ("first", "best", "all")],
    ({"max_mismatches": 0.2, "hits": "top", "min_delta": 5}, ("up to 1 mismatch, and 4 for ties: .*"
     "; allow fewer, or scan long and short signatures apart, or a smaller min_delta$")),
])  # fmt: skip
def test_limits__that_cannot_be_are_refused(options: dict[str, Any], problem: str) -> None:
    signatures = [("long", "ACGTACGT"), ("short", "ACGTA")]
    with pytest.raises(UsageError, match=problem):
        multigpu.scan([("r", "ACGTACGT")], signatures, gpus="none", **options)


def test_records_in_pieces__on_workers_and_resumed(tmp_path: Path, scheduler: str) -> None:
    samples, signatures = inputs(3, longest=600)
    (tmp_path / "r.fa").write_bytes(fasta(samples))
    (tmp_path / "s.fa").write_bytes(fasta(signatures))
    kind = KINDS["2 edits, strict"]
    expected = answer(samples, signatures, kind)
    paths = (tmp_path / "r.fa", tmp_path / "s.fa")
    options: dict[str, Any] = {"max_chunk_bytes": 40, "gpus": "none", **kind}
    whole = multigpu.scan(*paths, **options).to_table()
    assert whole.num_rows == len(expected)
    assert multigpu.scan(*paths, scheduler=scheduler, **options).to_table().equals(whole)
    journal = tmp_path / "journal"
    batches = iter(multigpu.scan(*paths, journal=journal, threads=1, **options))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert journal.exists()
    again = multigpu.scan(*paths, journal=journal, resume=True, **options)
    assert again.to_table().equals(whole)


# ---- signatures over the ends of samples: all places one by one ---------------------------------

OVERHANGS: list[dict[str, Any]] = [
    {"overhang": "end", "hits": "all"},
    {"overhang": "start", "hits": "first", "strand": "both", "min_overlap": 2},
    {"overhang": "both", "hits": "all", "strand": "both", "max_mismatches": 2},
    {"overhang": "both", "hits": "best", "strand": "both", "max_mismatches": 0.3},
    {"overhang": "both", "hits": "first", "max_mismatches": 0.2, "within": "-12:"},
    {"overhang": "end", "hits": "best", "max_mismatches": 3, "within": "2:20", "min_overlap": 5},
    {"overhang": "both", "hits": "best", "max_mismatches": 0.2, "max_ambiguous": 1},
    {"overhang": "start", "hits": "all", "strand": "both", "max_ambiguous": 0},
    {"overhang": "both", "hits": "top", "strand": "both", "max_mismatches": 0.2},
]


def cut_off(seed: int) -> tuple[Texts, Texts]:
    """Return samples that begin or end within a signature, or lie within one."""
    rng = np.random.default_rng(seed)
    texts = [random_letters(rng, int(rng.integers(4, 22)), 0.0).tobytes().decode() for _ in "12345"]
    both = [*texts, *map(other_strand, texts)]
    samples = [("empty", ""), ("n", "NNNNNNN")]
    for number in range(25):
        first, last = (both[int(rng.integers(len(both)))] for _ in "12")
        middle = "".join(rng.choice(list("ACGTN"), int(rng.integers(0, 15))))
        bases = first[int(rng.integers(6)) :] + middle + last[: int(rng.integers(22))]
        samples.append((f"r{number}", bases[: int(rng.integers(5, 50))]))
    return samples, [(f"s{number}", text) for number, text in enumerate(texts)]


def hanging(samples: Texts, signatures: Texts, rules: dict[str, Any]) -> list[Row]:
    """Return (sample, signature, start, end, strand, score, errors, tied) of each row."""
    rows = []
    for sample, bases in samples:
        here = []
        for name, forward in signatures:
            strands = {"+": forward}
            if rules.get("strand") == "both":
                strands["-"] = other_strand(forward)
            found = [
                (sample, name, *place, strand, score_of(bases, *place), errors)
                for strand, text in strands.items()
                for place, errors in places(bases, text, rules).items()
            ]
            found.sort(key=lambda row: row[2:5])
            if rules["hits"] in ("best", "top"):
                found.sort(key=lambda row: (*cost(row), row[2]))
            here += found if rules["hits"] == "all" else found[:1]
        tied = 0
        if rules["hits"] == "top":
            here = [row for row in here if cost(row) == min(map(cost, here))]
            tied = len(here)
        rows += [(*row, tied) for row in here]
    return rows


def cost(row: Row) -> tuple[int, int]:
    """Return errors less matching bases, and the errors."""
    start, end, _, _, errors = row[2:7]
    return 2 * errors - (end - start), errors


def places(bases: str, text: str, rules: dict[str, Any]) -> dict[tuple[int, int], int]:
    """Return the fewest errors of a text at each place of a sample."""
    begin, *_, stop = [int(each or 0) for each in rules.get("within", ":").split(":")]
    first, last, _ = slice(begin, stop or None).indices(len(bases))
    most, least = rules.get("max_mismatches", 0), rules.get("min_overlap", 3)
    share = Fraction(most, len(text)) if isinstance(most, int) else Fraction(str(most))
    found: dict[tuple[int, int], int] = {}
    for at in range(1 - len(text), len(bases)):
        start, end = max(at, 0), min(at + len(text), len(bases))
        sides = ["start"] * (start > at) + ["end"] * (end < at + len(text))
        if first <= start and end <= last and all(rules["overhang"] in (s, "both") for s in sides):
            under, over = bases[start:end], text[start - at : end - at]
            errors = sum(a not in (b, "N") for a, b in zip(under, over, strict=True))
            is_long = end - start >= (least if sides else 0)
            few = errors <= floor(share * (end - start))
            if is_long and few and under.count("N") <= rules.get("max_ambiguous", 99):
                found[start, end] = min(errors, found.get((start, end), errors))
    return found


@pytest.mark.parametrize("rules", OVERHANGS, ids=str)
def test_overhangs__are_those_of_all_places_however_cut(rules: Any, tmp_path: Path) -> None:
    samples, signatures = cut_off(3)
    expected = hanging(samples, signatures, rules)
    assert len(expected) > 9
    check_rows(tmp_path, samples, signatures, expected, "errors", "tied", **rules)


def test_adapter__that_the_read_cuts_off(scan: Scan, store: Any) -> None:
    adapter = store("a.fa", fasta([("a", "AGATCGGAAGAGCACACGTC")]))
    reads = [("x", "C" * 40 + "AGATCGGAA"), ("whole", "C" * 9 + "AGATCGGAAGAGCACACGTC")]
    reads += [("in", "TCGGAAGAGC"), ("weak", "C" * 40 + "AGTTCGG"), ("two", "C" * 46 + "AG")]
    samples, options = store("r.fa", fasta(reads)), ("-s", adapter, "--max-mismatches", "0.1")
    ends = scan(samples, options=(*options, "--overhang", "end")).splitlines()[1:]
    assert ends == [b"x\ta\t40\t49\t+\t\t0", b"whole\ta\t9\t29\t+\t\t0"]
    options += ("--overhang", "both", "--hits", "best", "--min-overlap", "2")
    both = scan(samples, options=options).splitlines()[3:]
    assert both == [b"in\ta\t0\t10\t+\t\t0", b"two\ta\t46\t48\t+\t\t0"]


@pytest.mark.parametrize(("read", "signatures", "options"), [
    ("AACCGGTTAAGTACGA", ["AACCGGTTAT", "GTACT"], {"max_mismatches": 0.1}),
    ("TCAT", ["TGCAT", "GGA"], {"max_edits": 0.2, "min_delta": 2}),
])  # fmt: skip
def test_top__counts_as_tied_what_has_more_errors_than_its_own_share(
    read: str, signatures: list[str], options: dict[str, Any]
) -> None:
    named = [("long", signatures[0]), ("short", signatures[1])]
    found = multigpu.scan([("r", read)], named, gpus="none", hits="top", **options).to_pandas()
    assert found[["signature", "tied"]].to_numpy().tolist() == [["long", 2]]

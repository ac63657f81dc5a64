"""Matches in a slice of samples, and over the origin of circles, against plain searches."""

import gzip
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.approximate_cases import with_edits
from support.scan_cases import array, chunk_of, planted, random_letters
from support.scanned import Scan, fasta, fastq, rows_of, wrapped_fasta

import multigpu
from multigpu import InputError, UsageError
from multigpu.kernels.scan import Limits, Patterns
from multigpu.kernels.scan.approximate import reference

pytestmark = pytest.mark.process  # runs whole jobs

Row = tuple[Any, ...]
Texts = list[tuple[str, str]]

RULES: list[dict[str, Any]] = [
    {},
    {"hits": "all", "strand": "both", "sample_n": "mismatch"},
    {"hits": "all", "strand": "both", "max_mismatches": 2},
    {"hits": "best", "strand": "both", "max_mismatches": 0.2, "max_ambiguous": 1},
]
EDITS = {"hits": "all", "strand": "both", "max_edits": 2}


def inputs(seed: int) -> tuple[Texts, Texts]:
    """Return samples and signatures; some lie over the origin of a sample, some are longer."""
    rng = np.random.default_rng(seed)
    letters = [random_letters(rng, int(rng.integers(5, 18)), 0.05) for _ in range(8)]
    samples = []
    for number in range(24):
        damaged = [with_edits(rng, each, int(rng.integers(0, 2))) for each in letters]
        record = planted(rng, int(rng.integers(0, 60)), damaged, 0.03, plants=3)
        record = np.roll(record, int(rng.integers(0, 60)))
        samples.append((f"r{number}", record.tobytes().decode()))
    # A circle as long as its signature, and a shorter one, of which the signature has two turns.
    turned = np.roll(letters[0], 3).tobytes().decode()
    samples += [("turned", turned), ("empty", ""), ("ACG", "ACG"), ("n", "N" * 30)]
    signatures = [(f"s{i}", each.tobytes().decode()) for i, each in enumerate(letters)]
    return samples, [*signatures, ("turns", "ACGACG"), ("once", "CGA")]


def quality_of(bases: str) -> list[int]:
    return [(7 * at + len(bases)) % 41 for at in range(len(bases))]


def answer(
    samples: Texts, signatures: Texts, windows: list[tuple[int, int]], rules: dict[str, Any]
) -> list[Row]:
    """Return the rows of a scan of windows of the samples, which may go on after their end."""
    strands, edits = 1 + (rules.get("strand") == "both"), "max_edits" in rules
    patterns = Patterns.of([array(bases) for _, bases in signatures], strands == 2)
    turns = [2 * bases for _, bases in samples]
    hits, _ = reference.search(
        chunk_of([array(turn[a:b]) for turn, (a, b) in zip(turns, windows, strict=True)]),
        patterns,
        Limits.of(patterns, rules.get("max_mismatches") or rules.get("max_edits") or 0),
        edits=edits,
        strict=rules.get("sample_n") == "mismatch",
    )
    rows = []
    for at in range(len(hits)):
        record, pattern = int(hits.record[at]), int(hits.pattern[at])
        start, end = (int(each[at]) + windows[record][0] for each in (hits.start, hits.end))
        length = len(samples[record][1])
        under = turns[record][start:end]
        many = sum(base.upper() not in "ACGTU" for base in under)
        if start >= length or end - start > length or many > rules.get("max_ambiguous", 99):
            continue
        values = (2 * quality_of(samples[record][1]))[start:end]
        score, strand = sum(values) / len(values), "-" if pattern % strands else "+"
        names = (samples[record][0], signatures[pattern // strands][0])
        rows.append((*names, start, end, strand, score, int(hits.errors[at]), many))
    if rules.get("hits") == "all":
        return rows

    def rank(row: Row) -> Row:
        return (row[6] if rules.get("hits") == "best" else 0, row[2], row[4])

    return [min(group, key=rank) for _, group in groupby(rows, key=lambda row: row[:2])]


def check(tmp_path: Path, windows: Any, rules: dict[str, Any], **options: Any) -> list[Row]:
    """Compare the rows of several files, cut in several ways, with the answer; return them."""
    samples, signatures = inputs(len(rules))
    reads = [(name, b, "".join(chr(33 + q) for q in quality_of(b))) for name, b in samples]
    (tmp_path / "r.fq").write_bytes(fastq(reads))
    (tmp_path / "r.fq.gz").write_bytes(gzip.compress(fastq(reads)))
    (tmp_path / "r.fa").write_bytes(wrapped_fasta(samples, 7))
    (tmp_path / "s.fa").write_bytes(fasta(signatures))
    expected = answer(samples, signatures, [windows(len(b)) for _, b in samples], rules)
    for name, size in (("r.fq", 10_000), ("r.fq", 30), ("r.fq.gz", 90), ("r.fa", 1), ("r.fa", 64)):
        result = multigpu.scan(
            tmp_path / name, tmp_path / "s.fa", gpus="none", threads=2, max_chunk_bytes=size,
            **rules, **options,
        )  # fmt: skip
        rows = rows_of(result, result.signature_names, "errors", "ambiguous")
        unscored = [(*row[:5], None, *row[6:]) for row in expected]
        assert rows == (unscored if name == "r.fa" else expected), (name, size)
    return expected


@pytest.mark.parametrize("within", ["0:20", "-15:", "2:-2", ":", "-30:30", "40:", "-1:1"])
@pytest.mark.parametrize("rules", [*RULES, EDITS], ids=str)
def test_within__is_a_scan_of_the_slices(tmp_path: Path, within: str, rules: Any) -> None:
    border = [int(each) if each else None for each in within.split(":")]

    def window(length: int) -> tuple[int, int]:
        begin, end, _ = slice(*border).indices(length)
        return begin, max(begin, end)

    rows = check(tmp_path, window, rules, within=within)
    assert rows or within == "-1:1" or within == "40:"


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_circular__has_the_matches_over_the_origin(tmp_path: Path, rules: Any) -> None:
    rows = check(tmp_path, lambda length: (0, 2 * length), rules, circular=True)
    lengths = {name: len(bases) for name, bases in inputs(len(rules))[0]}
    assert sum(row[3] > lengths[row[0]] for row in rows) > 3
    assert {("turned", "s0"), ("ACG", "once")} <= {row[:2] for row in rows}
    assert ("ACG", "turns") not in {row[:2] for row in rows}


def test_barcode__is_found_where_it_stands(scan: Scan, store: Any) -> None:
    reads = [("a", "GTCAACGG" + "C" * 12), ("b", "C" * 12 + "GTCAACGG")]
    samples, barcode = store("r.fa", fasta(reads)), store("b.fa", fasta([("x", "GTCAACGG")]))
    options = ("-s", barcode, "--max-mismatches", "1", "--within")
    assert scan(samples, options=(*options, "0:8")).splitlines()[1:] == [b"a\tx\t0\t8\t+\t\t0"]
    assert scan(samples, options=(*options, "-8:")).splitlines()[1:] == [b"b\tx\t12\t20\t+\t\t0"]


@pytest.mark.parametrize("value", ["8", "1:2:3", "a:", " 0:3", "0:3 ", "", "0.0:3", "١:", 8])
def test_within__of_another_form_is_refused(value: object, reads: str, signatures: str) -> None:
    with pytest.raises(UsageError, match=r"^within is .*; it must be BEGIN:END, two whole numbers"):
        multigpu.scan(reads, signatures, gpus="none", within=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"within": "0:9"}, {"max_edits": 1}])
def test_circular__does_not_go_with(options: Any, reads: str, signatures: str) -> None:
    (other,) = options
    with pytest.raises(UsageError, match=f"^circular does not go with {other}($|: give max_mism)"):
        multigpu.scan(reads, signatures, gpus="none", circular=True, **options)


@pytest.mark.parametrize("options", [{"within": "3:9"}, {"circular": True}])
def test_illegal_letter__anywhere_is_named_by_its_place(options: Any, tmp_path: Path) -> None:
    (tmp_path / "r.fa").write_bytes(fasta([("a", "ACGT"), ("r", "ACGT" * 9 + "!A")]))
    (tmp_path / "s.fa").write_bytes(fasta([("s", "ACGT")]))
    with pytest.raises(InputError, match="'r', position 36"):
        multigpu.scan(tmp_path / "r.fa", tmp_path / "s.fa", gpus="none", **options).to_table()

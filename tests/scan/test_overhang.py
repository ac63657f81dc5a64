"""Signatures over the ends of samples: all places one by one, and which of them are rows."""

from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.scan_answers import Row, Texts, check_rows, score_of
from support.scan_cases import random_letters
from support.scanned import OTHER, Scan, fasta

pytestmark = pytest.mark.process  # runs whole jobs

RULES: list[dict[str, Any]] = [
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


def inputs(seed: int) -> tuple[Texts, Texts]:
    """Return samples that begin or end within a signature, or lie within one."""
    rng = np.random.default_rng(seed)
    texts = [random_letters(rng, int(rng.integers(4, 22)), 0.0).tobytes().decode() for _ in "12345"]
    both = [*texts, *("".join(OTHER[base] for base in reversed(text)) for text in texts)]
    samples = [("empty", ""), ("n", "NNNNNNN")]
    for number in range(25):
        first, last = (both[int(rng.integers(len(both)))] for _ in "12")
        middle = "".join(rng.choice(list("ACGTN"), int(rng.integers(0, 15))))
        bases = first[int(rng.integers(6)) :] + middle + last[: int(rng.integers(22))]
        samples.append((f"r{number}", bases[: int(rng.integers(5, 50))]))
    return samples, [(f"s{number}", text) for number, text in enumerate(texts)]


def answer(samples: Texts, signatures: Texts, rules: dict[str, Any]) -> list[Row]:
    """Return (sample, signature, start, end, strand, score, errors, tied) of each row."""
    rows = []
    for sample, bases in samples:
        here = []
        for name, forward in signatures:
            reverse = "".join(OTHER[base] for base in reversed(forward))
            strands = {"+": forward, **({"-": reverse} if rules.get("strand") == "both" else {})}
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
        sides = [side for side, hangs in (("start", start > at), ("end", end < at + len(text)))
                 if hangs]  # fmt: skip
        if first <= start and end <= last and all(rules["overhang"] in (s, "both") for s in sides):
            under, over = bases[start:end], text[start - at : end - at]
            errors = sum(a not in (b, "N") for a, b in zip(under, over, strict=True))
            is_long = end - start >= (least if sides else 0)
            few = errors <= floor(share * (end - start))
            if is_long and few and under.count("N") <= rules.get("max_ambiguous", 99):
                found[start, end] = min(errors, found.get((start, end), errors))
    return found


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_rows__are_those_of_all_places_however_a_file_is_cut(
    rules: dict[str, Any], tmp_path: Path
) -> None:
    samples, signatures = inputs(3)
    expected = answer(samples, signatures, rules)
    assert len(expected) > 9
    check_rows(tmp_path, samples, signatures, expected, "errors", "tied", **rules)


def test_adapter__that_the_read_cuts_off(scan: Scan, store: Any) -> None:
    adapter = store("a.fa", fasta([("a", "AGATCGGAAGAGCACACGTC")]))
    reads = [("x", "C" * 40 + "AGATCGGAA"), ("whole", "C" * 9 + "AGATCGGAAGAGCACACGTC")]
    reads += [("in", "TCGGAAGAGC"), ("weak", "C" * 40 + "AGTTCGG"), ("two", "C" * 46 + "AG")]
    samples, options = store("r.fa", fasta(reads)), ("-s", adapter, "--max-mismatches", "0.1")
    ends = scan(samples, options=(*options, "--overhang", "end")).splitlines()[1:]
    assert ends == [b"x\ta\t40\t49\t+\t\t0", b"whole\ta\t9\t29\t+\t\t0"]
    both = scan(
        samples, options=(*options, "--overhang", "both", "--hits", "best", "--min-overlap", "2")
    )
    assert both.splitlines()[3:] == [b"in\ta\t0\t10\t+\t\t0", b"two\ta\t46\t48\t+\t\t0"]

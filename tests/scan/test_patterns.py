"""Scans with bulges, against the plain search on whole records."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.approximate_cases import with_edits
from support.bulge_cases import chosen, places_of
from support.scan_answers import check_rows, score_of
from support.scan_cases import array, planted, random_letters
from support.scanned import unclear

import multigpu
from multigpu import UsageError
from multigpu.kernels.scan.approximate.bulges import BulgeRules
from multigpu.workloads.scan import search

pytestmark = pytest.mark.process  # runs whole jobs

KINDS: dict[str, dict[str, Any]] = {
    "all": {"max_mismatches": 1, "max_dna_bulges": 1, "max_rna_bulges": 2, "hits": "all"},
    "no mismatches": {"max_mismatches": 0, "max_dna_bulges": 2, "hits": "all"},
    "first": {"max_mismatches": 1, "max_dna_bulges": 1, "max_rna_bulges": 1},
    "best": {"max_mismatches": 0.2, "max_dna_bulges": 1, "max_rna_bulges": 1, "hits": "best"},
    "sites": {
        "max_mismatches": 2, "max_dna_bulges": 1, "max_rna_bulges": 1, "hits": "sites",
        "exact_suffix": 2,
    },
    "sites, strict": {
        "max_mismatches": 2, "max_dna_bulges": 2, "max_rna_bulges": 1, "hits": "sites",
        "exact_prefix": 1, "sample_n": "mismatch",
    },
    "sites without bulges": {"max_mismatches": 2, "hits": "sites", "exact_suffix": 1},
    "few ambiguous": {"max_mismatches": 1, "max_dna_bulges": 2, "hits": "best", "max_ambiguous": 1},
}  # fmt: skip


RULES = {
    "most": "max_mismatches", "prefix": "exact_prefix", "suffix": "exact_suffix",
    "dna": "max_dna_bulges", "rna": "max_rna_bulges",
}  # fmt: skip


def inputs(seed: int) -> tuple[list[str], list[str]]:
    """Return samples and signatures, some of which are alike; there are long runs of N."""
    rng = np.random.default_rng(seed)
    letters = [random_letters(rng, int(rng.integers(6, 13)), 0.1) for _ in range(4)]
    samples = []
    for number in range(4):
        damaged = [with_edits(rng, each, int(rng.integers(0, 4))) for each in letters]
        record = planted(rng, int(rng.integers(0, 90)), damaged, 0.03, plants=5)
        gap = array("N" * 70 if number == 2 else "")
        samples.append(np.concatenate([record, gap, record[:9]]).tobytes().decode())
    return samples, [each.tobytes().decode() for each in letters]


@pytest.mark.parametrize("kind", KINDS)
def test_rows__are_those_of_the_plain_search_however_the_input_is_cut(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "LEAST_GAP", 2)
    samples, signatures = inputs(3)
    options = KINDS[kind]
    rules = BulgeRules(**{name: options.get(option, 0) for name, option in RULES.items()})
    places = places_of(samples, signatures, rules, "sample_n" in options)
    if "max_ambiguous" in options:
        places = [x for x in places if unclear(samples[x.record][x.start : x.end]) < 2]
    wanted = chosen(options.get("hits", "first"), places, "exact_suffix" in options)
    expected = [
        (f"r{r}", f"s{s}", start, end, strand, score_of(samples[r], start, end), *more)
        for r, s, start, end, strand, *more in wanted
    ]
    assert len(expected) > 3
    named = [[(f"{kind}{i}", text) for i, text in enumerate(texts)]
             for kind, texts in (("r", samples), ("s", signatures))]  # fmt: skip
    columns = ("errors", "bulge", "cigar")
    check_rows(tmp_path, *named, expected, *columns, strand="both", **options)


def test_place_at_the_limits_of_the_field__is_found(tmp_path: Path) -> None:
    """Four mismatches and a bulge of one base; with edits it has five and another alignment."""
    genome = "T" * 30 + "AAGCATCTGCTTTTGTACCCGTGG" + "T" * 30
    rules: dict[str, Any] = {"max_dna_bulges": 1, "max_rna_bulges": 1, "exact_suffix": 3}
    expected = [("c", "g", 30, 54, "+", score_of(genome, 30, 54), 4, 1)]
    guides = [("g", "AATCTGCTGCTTTGTACGCGNGG")]
    check_rows(
        tmp_path, [("c", genome)], guides, expected, "errors", "bulge", max_mismatches=4,
        hits="all", sample_n="mismatch", strand="both", **rules,
    )  # fmt: skip


def test_top__takes_the_signature_with_the_fewest_bulges() -> None:
    reads = [("r", "GGACGTACGTGG"), ("t", "ACGTAACGT")]
    signatures = [("bulge", "ACGTTACGT"), ("mismatches", "ACCTACCT"), ("other", "ACGTCACGT")]
    rules: dict[str, Any] = {"hits": "top", "max_mismatches": 2, "max_rna_bulges": 1}
    result = multigpu.scan(reads, signatures, gpus="none", **rules)
    table = result.to_pandas()[["sample", "signature", "mismatches", "bulge_size", "tied"]]
    assert table.to_numpy().tolist() == [
        ["r", "mismatches", 2, 0, 1], ["t", "bulge", 1, 0, 2], ["t", "other", 1, 0, 2],
    ]  # fmt: skip


@pytest.mark.parametrize(("options", "problem"), [
    ({"max_dna_bulges": 20, "max_mismatches": 1}, "max_dna_bulges 20 and max_rna"),
    ({"max_mismatches": 6, "max_rna_bulges": 4}, "up to 6 mismatches, and 4 bases in RNA"),
])  # fmt: skip
def test_bulges__that_are_too_many_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=f"^{problem}"):
        multigpu.scan([("r", "ACGT")], [("s", "ACGTACGTAC")], gpus="none", **options)

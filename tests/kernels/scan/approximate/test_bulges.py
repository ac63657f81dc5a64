"""Variants of signatures with bulges, against the plain search for places with bulges."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import sample_with
from support.bulge_cases import Place, places_of
from support.examples import examples
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan.approximate.alignment import align_layouts
from multigpu.kernels.scan.approximate.bulges import BulgeRules, Variants

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
Case = tuple[list[str], list[str], BulgeRules, bool]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Samples and signatures, some of which are alike, with bulges of every kind."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ambiguous = draw(st.sampled_from([0.0, 0.1, 0.5]))
    signatures = [
        random_letters(rng, int(rng.integers(1, 11)), ambiguous) for _ in range(rng.integers(1, 4))
    ]
    records = [sample_with(rng, signatures, ambiguous) for _ in range(rng.integers(1, 4))]
    small = st.sampled_from([0, 0, 1, 2, 3])
    rules = BulgeRules(
        most=draw(st.integers(0, 3) | st.floats(0, 0.4)),
        prefix=draw(small), suffix=draw(small), dna=draw(small), rna=draw(small),
    )  # fmt: skip
    texts = [[each.tobytes().decode() for each in given] for given in (records, signatures)]
    return texts[0], texts[1], rules, draw(st.booleans())


def found(case: Case, backend: Any) -> list[Place]:
    """Return the places that a scanner finds."""
    records, signatures, rules, strict = case
    letters, chunk = chunk_of(list(map(array, signatures))), chunk_of(list(map(array, records)))
    variants = Variants.of(letters.letters, letters.offsets, rules, both_strands=True)
    how: dict[str, Any] = {"edits": False, "strict": strict, "wanted": "all"}
    scanner = backend.ErrorScanner(variants.patterns, variants.limits, **how)
    hits, patterns = variants.merged(scanner.scan(chunk))
    given = (chunk.offsets, chunk.letters, variants.layouts, hits, patterns, strict)
    columns = (hits.record, hits.pattern // 2, hits.start, hits.end, hits.pattern % 2, hits.errors)
    rows = zip(*(column.tolist() for column in columns), align_layouts(*given).texts(), strict=True)
    return sorted(
        Place(r, s, a, b, "+-"[strand], errors, b - a - len(signatures[s]), cigar.decode())
        for r, s, a, b, strand, errors, cigar in rows
    )


@pytest.mark.parametrize("device", DEVICES)
@given(case=cases())
@examples(150)
def test_places__are_those_of_the_plain_search_with_alignments(device: str, case: Case) -> None:
    backend = import_module(f"multigpu.kernels.scan.approximate.{device}")
    assert found(case, backend) == places_of(*case)


def test_variants__are_distinct_and_counted_before_they_are_made() -> None:
    guide = array("AATCTGCTGCTTTGTACGCGNGG")
    rules = BulgeRules(most=4, suffix=3, dna=1, rna=1)
    assert rules.counts(23) == {23: 1, 24: 20, 22: 20}
    offsets = np.array([0, 23])
    made = Variants.of(guide, offsets, rules, both_strands=True)
    # Bases of the runs AA and TTT can be left out in one way each.
    assert np.bincount(made.patterns.lengths).tolist()[22:] == [2 * 17, 2, 2 * 20]
    assert len(rules.lengths(np.array([23, 23]))) == 2 * 41
    assert BulgeRules(dna=2, rna=3).counts(4) == {4: 1, 5: 3, 6: 6, 3: 4, 2: 6, 1: 4}
    assert BulgeRules(prefix=3, suffix=1, dna=2, rna=2).counts(4) == {4: 1, 5: 1, 6: 1}
    assert BulgeRules(rna=5).counts(1) == {1: 1}

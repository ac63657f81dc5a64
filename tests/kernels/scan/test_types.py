"""Signatures as patterns, and hits in their order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scan_cases import array, letters_of, rows

from multigpu.kernels.bases import encode, reverse_complement
from multigpu.kernels.scan import Hits, Patterns


@given(st.lists(letters_of.filter(bool), min_size=1, max_size=6), st.booleans())
def test_patterns__hold_signatures_and_complements(signatures: list[str], both: bool) -> None:
    patterns = Patterns.of([array(signature) for signature in signatures], both)
    assert patterns.strands == 1 + both
    assert len(patterns) == len(patterns.lengths) == patterns.strands * len(signatures)
    assert (patterns.offsets[0], patterns.offsets[-1]) == (0, len(patterns.sets))
    assert (patterns.sets.dtype, patterns.offsets.dtype) == (np.uint8, np.int64)
    for p, (begin, end) in enumerate(pairwise(patterns.offsets.tolist())):
        expected = encode(array(signatures[p // patterns.strands]))
        if p % patterns.strands:
            expected = reverse_complement(expected)
        assert patterns.sets[begin:end].tolist() == expected.tolist()
        assert patterns.lengths[p] == end - begin


@pytest.mark.parametrize("wrong", ["", "ACGX", "AC GT", "-"])
def test_patterns__refuse_what_is_no_signature(wrong: str) -> None:
    with pytest.raises(ValueError, match="empty or has a letter that is no IUPAC base"):
        Patterns.of([array("ACGT"), array(wrong)])


def random_hits(draw: np.random.Generator, count: int) -> Hits:
    record, pattern, start = (draw.integers(0, most, count) for most in (4, 6, 5))
    no_errors = np.zeros(count, np.int32)
    return Hits.at_places(record, pattern, start, no_errors, np.ones(6, np.int64))


@given(st.integers(0, 2**32), st.integers(0, 60), st.sampled_from([1, 2]), st.booleans())
def test_hits__are_in_their_order(seed: int, count: int, strands: int, first: bool) -> None:
    hits = random_hits(np.random.default_rng(seed), count)
    expected = sorted(set(rows(hits)), key=lambda row: (row[0], row[1] // strands, row[2], row[1]))
    if first:
        pairs = [(record, pattern // strands) for record, pattern, _ in expected]
        expected = [row for i, row in enumerate(expected) if pairs.index(pairs[i]) == i]
    assert rows(hits.chosen("first" if first else "all", strands, by_end=False)) == expected

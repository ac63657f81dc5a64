"""Signatures as patterns, hits in their order, and a chunk that is cut in two."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.halving import moved
from support.scan_cases import Case, array, assert_same, cases, chunk_of, letters_of, rows

from multigpu.kernels.bases import encode, reverse_complement
from multigpu.kernels.scan import Chunk, Hits, Patterns, ScanRules, reference
from multigpu.kernels.scan.types import Half, split

# ---- patterns and hits ------------------------------------------------------------------------


@given(st.lists(letters_of.filter(bool), min_size=1, max_size=6), st.booleans())
def test_patterns__hold_every_signature_and_its_reverse_complement(
    signatures: list[str], both: bool
) -> None:
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
def test_hits__are_ordered_by_record_signature_start_and_strand(
    seed: int, count: int, strands: int, first: bool
) -> None:
    hits = random_hits(np.random.default_rng(seed), count)
    expected = sorted(set(rows(hits)), key=lambda row: (row[0], row[1] // strands, row[2], row[1]))
    if first:
        pairs = [(record, pattern // strands) for record, pattern, _ in expected]
        expected = [row for i, row in enumerate(expected) if pairs.index(pairs[i]) == i]
    assert rows(hits.chosen("first" if first else "all", strands, by_end=False)) == expected


# ---- cutting a chunk in two -------------------------------------------------------------------


def before(chunk: Chunk, patterns: Patterns, limit: int) -> Hits:
    """The reference's hits, all of them, that begin before a position of the chunk."""
    hits = reference.scan(chunk, patterns, ScanRules(first=False))
    return hits.take(chunk.offsets[hits.record] + hits.start < limit)


def divided(chunk: Chunk, patterns: Patterns, limit: int, smallest: int) -> Hits:
    """The same, cut in two again and again."""
    if limit <= smallest:
        return before(chunk, patterns, limit)
    halves = split(chunk, limit, int(patterns.lengths.max()))
    for half in halves:
        check_contract(half)
    return Hits.joined(
        [moved(half, divided(half.chunk, patterns, half.limit, smallest)) for half in halves]
    )


def check_contract(half: Half) -> None:
    offsets = half.chunk.offsets
    assert (offsets[0], offsets[-1]) == (0, len(half.chunk.letters))
    assert (np.diff(offsets) >= 0).all()
    assert 0 <= half.limit <= len(half.chunk.letters)
    assert (offsets.dtype, half.chunk.letters.dtype) == (np.int64, np.uint8)


SMALL = ["AAAACC", "", "ACCAAACAC", "", "", "C", "AACCAACCAAC", ""]


@pytest.mark.parametrize("longest", [1, 2, 3, 5, 12])
def test_split__at_every_border_keeps_every_hit_once(longest: int) -> None:
    chunk = chunk_of([array(record) for record in SMALL])
    patterns = Patterns.of([array("A"), array("AACC"[:longest]), array("N" * longest)])
    for limit in range(len(chunk.letters) + 1):
        expected = before(chunk, patterns, limit).chosen("all", 1, by_end=False)
        assert_same(
            divided(chunk, patterns, limit, max(1, limit - 1)).chosen("all", 1, by_end=False),
            expected,
        )
        assert_same(divided(chunk, patterns, limit, 1).chosen("all", 1, by_end=False), expected)


@examples(60)
@given(case=cases(most_records=5, most_signatures=4), smallest=st.integers(1, 40))
def test_split__again_and_again_keeps_every_hit_once(case: Case, smallest: int) -> None:
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures)
    expected = reference.scan(chunk, patterns, ScanRules(first=False))
    got = divided(chunk, patterns, len(chunk.letters), smallest)
    assert_same(got.chosen("all", 1, by_end=False), expected)


def test_split__keeps_the_first_hit_of_a_record_that_is_cut() -> None:
    chunk, patterns = chunk_of([array("CCACCACC")]), Patterns.of([array("AC"), array("CC")])
    expected = reference.scan(chunk, patterns, ScanRules())
    halves = split(chunk, len(chunk.letters), 2)
    found = [moved(half, reference.scan(half.chunk, patterns, ScanRules())) for half in halves]
    assert_same(Hits.joined(found).chosen("first", 1, by_end=False), expected)

"""The search with edits in pieces of records and in portions of chunks: the hits of the whole."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import rows
from support.examples import examples
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan import Chunk, Hits, Limits, Patterns
from multigpu.kernels.scan.approximate import cpu
from multigpu.kernels.scan.approximate.pieces import Piece, Portion, join_halves

Case = tuple[Chunk, Patterns, Limits, int]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A chunk whose matches overlap borders and each other, patterns, and the longest hit."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ambiguous = draw(st.sampled_from([0.0, 0.3, 1.0]))
    signatures = [random_letters(rng, int(rng.integers(1, 9)), ambiguous / 3) for _ in range(3)]
    sizes = rng.integers(0, 80, draw(st.integers(1, 3))).tolist()
    records = [random_letters(rng, size, ambiguous) for size in sizes]
    if draw(st.booleans()):  # long runs of ends with the same number of edits
        for record in records:
            record[rng.random(len(record)) < 0.9] = array("A")[0]
        signatures[0] = array("AAAAAC")
    patterns = Patterns.of(signatures, True)
    limits = Limits.of(patterns, int(rng.integers(0, 4)), int(rng.integers(0, 2)))
    return chunk_of(records), patterns, limits, int((patterns.lengths + limits.most).max())


def found_by_halves(scanner: Any, portion: Portion, margin: int) -> Hits:
    """Return the hits of a portion that is cut in two as often as it can be."""
    halves = portion.halves(margin)
    if not halves:
        hits: Hits = scanner.scan(portion.chunk, portion.piece)
        return hits
    return join_halves(halves, [found_by_halves(scanner, half, margin) for half in halves])


@pytest.mark.parametrize("edits", [True, False])
@given(case=cases(), wanted=st.sampled_from(["first", "best", "all"]))
@examples(200)
def test_halves__have_the_hits_of_the_whole(edits: bool, case: Case, wanted: Any) -> None:
    chunk, patterns, limits, margin = case
    margin = margin if edits else int(patterns.lengths.max()) - 1
    scanner = cpu.ErrorScanner(patterns, limits, edits=edits, strict=False, wanted=wanted)
    whole = scanner.scan(chunk)
    found = found_by_halves(scanner, Portion(chunk=chunk), margin)
    assert not found.edge.any()
    assert rows(found.chosen(wanted, 2, by_end=edits)) == rows(whole)


@given(cases(), st.integers(1, 30), st.booleans())
@examples(200)
def test_pieces__of_a_record_have_all_hits(case: Case, step: int, is_known: bool) -> None:
    """Pieces are open where they might go on, or only where they are known to.

    A run of ends may go over several pieces, and fall in the end.
    """
    chunk, patterns, limits, margin = case
    record = chunk.letters
    scanner = cpu.ErrorScanner(patterns, limits, edits=True, strict=False, wanted="all")
    whole = scanner.scan(chunk_of([record]))
    begin, portions, hits = 0, [], []
    while not portions or portions[-1].goes_on:
        letters = record[begin : begin + step + margin]
        is_full = not is_known and len(letters) == step + margin
        is_open = is_full or begin + len(letters) < len(record)
        piece = Piece(margin if begin else 0, is_open)
        portions.append(Portion(chunk=chunk_of([letters]), piece=piece, cut=begin, goes_on=is_open))
        hits.append(scanner.scan(portions[-1].chunk, piece))
        begin += step
    joined, last = hits[0], portions[0]
    for portion, found in zip(portions[1:], hits[1:], strict=True):
        joined = join_halves((last, portion), (joined, found))
        last = Portion(chunk=portion.chunk, piece=portion.piece, goes_on=portion.goes_on)
    ordered = joined.chosen("all", 2, by_end=True)
    assert not ordered.edge.any()
    assert rows(ordered) == rows(whole)

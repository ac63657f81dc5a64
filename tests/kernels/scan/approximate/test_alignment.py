"""Alignments whose steps have little room, against the reference and those that have enough."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import Case, cases, rows, search, with_edits
from support.examples import examples
from support.scan_cases import Letters, chunk_of, random_letters

from multigpu.kernels.scan import Limits, Patterns
from multigpu.kernels.scan.approximate import alignment, cpu, reference


@given(cases(), st.sampled_from([1, 10, 60]))
@examples(300)
def test_alignments_in_parts__are_those_of_the_reference(case: Case, block: int) -> None:
    chunk, patterns, limits, strict = case
    expected, operations = reference.search(chunk, patterns, limits, edits=True, strict=strict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "BLOCK", block)
        hits, cigars = search(case, edits=True)
    assert rows(hits) == rows(expected)
    assert [written_out(each) for each in cigars] == operations


@given(st.integers(0, 1 << 32), st.sampled_from([1, 100, 3000]))
@examples(60)
def test_alignments_in_parts__are_those_in_one(seed: int, block: int) -> None:
    case = long_case(np.random.default_rng(seed))
    hits, cigars = search(case, edits=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "BLOCK", block)
        hits_in_parts, cigars_in_parts = search(case, edits=True)
    assert rows(hits_in_parts) == rows(hits)
    assert cigars_in_parts == cigars


def long_case(rng: np.random.Generator) -> Case:
    """Return patterns of very different lengths with up to 40 % errors, repetitive ones, too."""
    ambiguous = float(rng.choice([0, 0.1, 0.5]))
    signatures = [
        np.resize(random_letters(rng, int(rng.choice([1, 3, 400])), ambiguous), size)
        for size in rng.integers(1, 400, 3)
    ]
    before = [random_letters(rng, int(rng.integers(40)), ambiguous) for _ in signatures]
    damaged = [with_edits(rng, each, int(rng.integers(len(each) // 3 + 1))) for each in signatures]
    records = [*map(np.append, before, damaged)]
    patterns = Patterns.of(signatures, False)
    limits = Limits.of(patterns, 0.4, *rng.choice([0, 0, 1, 15], 2).tolist())
    return chunk_of(records), patterns, limits, bool(rng.integers(2))


def test_long_alignment__takes_little_memory() -> None:
    rng = np.random.default_rng(2)
    signature = random_letters(rng, 20_000, 0)
    sample = np.concatenate([random_letters(rng, 500, 0), with_edits(rng, signature, 800)])
    patterns, chunk = Patterns.of([signature], False), chunk_of([sample])
    limits = Limits.of(patterns, 800)
    hits = cpu.ErrorScanner(patterns, limits, edits=True, strict=False, wanted="best").scan(chunk)
    tracemalloc.start()
    found = alignment.align(chunk.offsets, chunk.letters, patterns, limits, hits, False)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < alignment.BLOCK + (1 << 20)
    piece, operations = sample[found.start[0] : hits.end[0]], written_out(found.texts()[0].decode())
    assert count_edits(operations, signature, piece) == hits.errors[0] > 600
    scratch = alignment.make_scratch(np.array([1_000_000]), np.array([36_000]))
    assert sum(each.nbytes for each in scratch) < 12_000_000


def count_edits(operations: str, signature: Letters, piece: Letters) -> int:
    """Return the edits of an alignment without ambiguous bases, after checking each column."""
    at = row = edits = 0
    for operation in operations:
        if operation in "=X":
            assert (signature[row] == piece[at]) == (operation == "=")
        edits += operation != "="
        at += operation != "D"
        row += operation != "I"
    assert (row, at) == (len(signature), len(piece))
    return edits


def written_out(cigar: str) -> str:
    """Return a letter for each column of an alignment."""
    return "".join(kind * int(number) for number, kind in re.findall(r"(\d+)(\D)", cigar))

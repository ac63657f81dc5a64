"""Distances in a band of the table, in bits and row by row, against those of the whole table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import with_edits
from support.examples import examples
from support.scan_cases import random_letters

from multigpu.kernels.scan import Patterns
from multigpu.kernels.scan.approximate import verification
from multigpu.kernels.scan.approximate.alignment import EditTable


@pytest.mark.parametrize("in_bits", [False, True])
@given(st.integers(0, 1 << 32), st.booleans(), st.sampled_from([0.0, 0.1]))
@examples(150)
def test_band__has_all_distances_that_are_few_and_none_that_is_too_low(
    in_bits: bool, seed: int, strict: bool, ambiguous: float
) -> None:
    rng = np.random.default_rng(seed)
    signature = random_letters(rng, int(rng.integers(1, 300)), ambiguous)
    most = int(rng.integers(0, len(signature) // 4 + 1))
    copy = with_edits(rng, signature, most)
    if rng.integers(2):  # a path that leaves the band, and comes back
        middle = int(rng.integers(len(copy) + 1))
        insertion = random_letters(rng, int(rng.integers(300)), 0)
        copy = np.concatenate([copy[:middle], insertion, copy[middle:]])
    before = random_letters(rng, int(rng.integers(0, 400)), ambiguous)
    sample = np.concatenate([before, copy, random_letters(rng, 30, ambiguous)])
    patterns = Patterns.of([signature])
    length, end = len(signature), len(before) + len(copy)
    scratch = verification.make_scratch(patterns, len(sample) + 1, length + len(sample))
    table = EditTable(sample, patterns.sets, (0, length), strict)
    verification._measure(table, (0, len(sample)), (-length - len(sample), len(sample)), scratch)
    whole = scratch.distances.copy()
    ends = (max(0, end - int(rng.integers(9))), min(len(sample), end + int(rng.integers(9))))
    band = (ends[0] - length - most, ends[1] - length + most)
    if in_bits:
        verification._lay_out(patterns.sets, strict, scratch.equal)
        verification._measure_bits(length, sample, ends, band, scratch)
    else:
        verification._measure(table, ends, band, scratch)
    expected = whole[ends[0] : ends[1] + 1]
    found = scratch.distances[: len(expected)]
    assert (found >= expected).all()
    assert (found[expected <= most] == expected[expected <= most]).all()

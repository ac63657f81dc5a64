"""Sums by key, however they are made and joined, against a dictionary."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.workloads.scan.sums import Sums, add_sums

KEYS = st.integers(0, 5) | st.integers(0, 2**40)
CHUNKS = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 2**30)), max_size=20), max_size=8)


@given(CHUNKS)
def test_sums__are_those_of_all_chunks_in_any_order(chunks: list[list[tuple[int, int]]]) -> None:
    counts: Counter[int] = Counter()
    weights: Counter[int] = Counter()
    several: list[Sums] = []
    for chunk in chunks:
        keys, values = np.array(chunk, np.int64).reshape(-1, 2).T
        add_sums(several, Sums.of(keys, weight=values))
        for key, value in chunk:
            counts[key] += 1
            weights[key] += value
    total = Sums.joined(several)
    assert total.keys.tolist() == sorted(counts)
    for name, expected in (("count", counts), ("weight", weights)):
        found = total.numbers.get(name, np.empty(0))
        assert found.tolist() == [expected[key] for key in sorted(expected)]


def test_dense__has_zeros_where_nothing_was_added() -> None:
    sums = Sums.of(np.array([2, 2, 0]))
    assert sums.dense("count", 4).tolist() == [1, 0, 2, 0]
    assert sums.dense("count", 2, first=2).tolist() == [2, 0]
    assert Sums.joined([]).dense("count", 2).tolist() == [0, 0]

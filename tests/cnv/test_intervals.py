"""Intervals against sets of their rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.workloads.cnv.results.intervals import subtract, touch, union

SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6).map(
    lambda rows: np.array([(a, a + n) for a, n in rows], np.int64).reshape(-1, 2).T
)


@given(SPANS, SPANS)
def test_subtract_and_touch__are_those_of_sets(spans: np.ndarray, others: np.ndarray) -> None:
    others = union(*others)
    taken = {row for a, b in zip(*others, strict=True) for row in range(a, b)}
    rows = [set(range(a, b)) for a, b in zip(*spans, strict=True)]
    which, first, stop = subtract(spans[0], spans[1], others)
    found: list[set[int]] = [set() for _ in rows]
    for k, a, b in zip(which.tolist(), first.tolist(), stop.tolist(), strict=True):
        assert not found[k] & set(range(a - 1, b + 1))  # pieces are apart, and as long as can be
        found[k] |= set(range(a, b))
    assert found == [each - taken for each in rows]
    assert touch(spans[0], spans[1], others).tolist() == [bool(each & taken) for each in rows]

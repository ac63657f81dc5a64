"""Intervals against sets of their rows."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.workloads.cnv.records import SegmentTable
from multigpu.workloads.cnv.results.intervals import cut, last_bases, subtract, touch, union

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


@given(SPANS, st.sets(st.integers(1, 39)))
def test_union__joins_what_touches_but_for_breaks(spans: np.ndarray, places: set[int]) -> None:
    breaks = np.isin(np.arange(40), [*places])
    first, stop = (each.tolist() for each in union(spans[0], spans[1], breaks))
    expected: list[list[int]] = []
    for a, b in sorted(zip(*spans.tolist(), strict=True)):
        if expected and (a < expected[-1][1] or (a == expected[-1][1] and a not in places)):
            expected[-1][1] = max(expected[-1][1], b)
        else:
            expected.append([a, b])
    assert [*map(list, zip(first, stop, strict=True))] == expected


@given(SPANS, st.sets(st.integers(1, 39)))
def test_cut__parts_lie_between_breaks_and_keep_values(spans: np.ndarray, places: set[int]) -> None:
    first, stop = spans
    start = np.arange(40) * 10
    end = start + 7
    end[::5] += 30  # some reach over the next ones
    number = np.arange(len(first), dtype=np.int32)
    value = number / 2
    segments = SegmentTable.uncalled(
        chrom=number, sample=number, first=first, stop=stop, start=start[first],
        end=last_bases(end, first, stop, False), mean=value, median=-value,
    )  # fmt: skip
    found = cut(segments, np.isin(np.arange(40), [*places]), start, end)
    expected = []
    for k, (a, b) in enumerate(spans.T.tolist()):
        borders = [a, *(each for each in sorted(places) if a < each < b), b]
        expected += [(k, x, y) for x, y in pairwise(borders)]
    columns = (found.sample, found.first, found.stop)
    assert [*zip(*(each.tolist() for each in columns), strict=True)] == expected
    assert (found.start == start[found.first]).all()
    assert found.end.tolist() == [int(end[a:b].max()) for _, a, b in expected]
    assert (found.mean == found.sample / 2).all()

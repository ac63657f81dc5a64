"""The counting kernel against the plain count."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigpu.kernels.counting import reference
from multigpu.kernels.counting.cpu import Counter
from multigpu.kernels.counting.types import READ_DTYPES, Counting, Reads

REFERENCES = 3
LENGTH = 60

FLAGS = ("remove_duplicates", "get_width", "stranded_start", "aligned_width")
options = st.builds(
    Counting,
    min_mapq=st.integers(0, 3), read_width=st.sampled_from([1, 2, 7, 100]),
    exclude_flags=st.sampled_from([0, 0, 0x400, 0x412]),
    include_flags=st.sampled_from([0, 0, 2, 0x100]),
    count=st.sampled_from(["reads", "fragments"]), **dict.fromkeys(FLAGS, st.booleans()),
)  # fmt: skip
chromosomes = st.integers(0, REFERENCES - 1)
positions = st.integers(0, LENGTH - 1)


@st.composite
def reads(draw: st.DrawFn) -> Reads:
    """Sorted reads on few places, so that many are duplicates."""
    rows = st.tuples(
        chromosomes, positions, st.integers(1, 9), st.integers(0, 9), st.integers(0, 3),
        st.sampled_from([0, 16, 2, 3, 0x100, 0x410, 0x802]), st.booleans(),
    )  # fmt: skip
    table = sorted(draw(st.lists(rows, max_size=60)), key=lambda row: row[:2])
    columns = list(zip(*table, strict=True)) or [()] * 7
    columns[2] = tuple(np.add(columns[1], columns[2]).tolist())
    return made(*columns)


@st.composite
def regions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = draw(st.lists(st.tuples(chromosomes, positions, st.integers(1, 30)), max_size=12))
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    return columns[0].astype(np.int32), columns[1].copy(), columns[1] + columns[2]


def made(*columns: object) -> Reads:
    return Reads(*map(np.array, columns, READ_DTYPES.values()))


def part(whole: Reads, rows: slice) -> Reads:
    return Reads(*(getattr(whole, field.name)[rows] for field in dataclasses.fields(whole)))


def counted(whole: Reads, where: tuple[Any, Any, Any], rules: Counting, size: int) -> Any:
    counter = Counter(*where, REFERENCES, rules)
    for at in range(0, len(whole), size):
        counter.add(part(whole, slice(at, at + size)))
    return counter.counts()


@given(reads(), regions(), options, st.sampled_from([1, 2, 7, 1000]))
def test_counter__gives_the_plain_count_however_reads_come(
    whole: Reads, where: tuple[Any, Any, Any], rules: Counting, size: int
) -> None:
    assert (counted(whole, where, rules, size) == reference.count(whole, *where, rules)).all()


def one_region(rules: Counting, **changes: list[int]) -> int:
    """Reads at 10, ten bases long, all alike but for the changes, counted in [10, 12)."""
    count = len(next(iter(changes.values())))
    columns = {"chrom": [0], "start": [10], "end": [20], "length": [10], "mapq": [9]}
    columns = {name: values * count for name, values in columns.items()}
    columns |= {"flag": [0] * count, "is_right_mate": [False] * count} | changes
    where = (np.zeros(1, np.int32), np.array([10]), np.array([12]))
    return int(counted(made(*columns.values()), where, rules, 1000)[0])


@pytest.mark.parametrize(("rules", "changes", "expected"), [
    (Counting(min_mapq=3), {"mapq": [2, 3, 4, 255]}, 3),
    (Counting(remove_duplicates=True), {"mapq": [0, 60, 60]}, 0),  # the first one fails
    (Counting(remove_duplicates=True), {"flag": [0, 16, 0, 16]}, 2),
    (Counting(remove_duplicates=True), {"length": [8, 9, 9]}, 1),
    (Counting(remove_duplicates=True, get_width=True), {"length": [8, 9, 9]}, 2),
    (Counting(), {"start": [9, 10, 11, 12]}, 2),
    (Counting(read_width=2), {"start": [8, 9, 10, 11, 12]}, 3),
    (Counting(get_width=True), {"start": [0, 1, 2, 12], "end": [20] * 4}, 2),
    (Counting(exclude_flags=0x500), {"flag": [0, 0x100, 0x400, 0x500, 16]}, 2),
    (Counting(include_flags=3, exclude_flags=4), {"flag": [1, 2, 3, 7, 0x403]}, 2),
    (Counting(exclude_flags=16, remove_duplicates=True), {"flag": [16, 0, 0]}, 1),
    (Counting(count="fragments"), {"flag": [0, 3, 0x100, 0x800, 16]}, 3),
    (Counting(count="fragments"), {"is_right_mate": [True, False, True]}, 1),
    (Counting(aligned_width=True), {"start": [0, 2, 9, 12], "end": [10, 13, 20, 14]}, 2),
    (Counting(stranded_start=True), {"start": [0, 2, 3, 10], "flag": [16] * 4}, 1),
])  # fmt: skip
def test_rules__as_r_has_them(rules: Counting, changes: dict, expected: int) -> None:
    if "start" in changes and "end" not in changes:
        changes = changes | {"end": [start + 11 for start in changes["start"]]}
    assert one_region(rules, **changes) == expected


def test_counter__reads_that_do_not_reach_the_first_region_are_no_earlier_ones() -> None:
    """R asks its file for what lies from the first to the last region, and sees no others."""
    rules = Counting(remove_duplicates=True, get_width=True)
    for ends, expected in (([10, 11], 1), ([11, 11], 1), ([10], 0)):
        assert one_region(rules, start=[5] * len(ends), end=ends) == expected


def test_reads__other_dtypes_are_refused() -> None:
    good = made([0], [1], [2], [1], [3], [0], [False])
    with pytest.raises(ValueError, match=r"start: int32\[1\] instead of int64\[1\]"):
        dataclasses.replace(good, start=good.start.astype(np.int32))
    with pytest.raises(ValueError, match=r"mapq: uint8\[2\] instead of uint8\[1\]"):
        dataclasses.replace(good, mapq=np.zeros(2, np.uint8))

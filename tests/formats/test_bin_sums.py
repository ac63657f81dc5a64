"""Sums of bins, however the text is cut; and what is wrong with a line."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stored import Store

from multigpu.errors import Failure, InputError
from multigpu.formats.tables import bin_sums, counts
from multigpu.formats.tables.bin_sums import read_bin_sums
from multigpu.formats.tables.counts_files import read_counts

HEADER = "#Chr\tStart\tEnd\tA\tB\n"
GOOD = "1\t0\t10\t3\t4\n1\t10\t20\t5\t6\n"


def every(_: str, start: Any, __: Any) -> Any:
    """Keep all bins."""
    return np.ones(len(start), np.bool_)


@st.composite
def matrices(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Return rows (chromosome, number of the line on its grid, counts of A and B)."""
    rows = []
    for name in draw(st.lists(st.sampled_from(["1", "10", "X", "chr1"]), unique=True, min_size=1)):
        numbers = sorted(draw(st.sets(st.integers(0, 60), min_size=1)))
        rows += [(name, k, *draw(st.tuples(*[st.integers(0, 10**6)] * 2))) for k in numbers]
    return rows


@given(matrices(), st.integers(1, 400), st.sampled_from([0, 7, 100]), st.sampled_from(["", "\r"]))
def test_read_bin_sums__are_those_of_all_lines_on_the_grid(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], block: int, origin: int, mark: str
) -> None:
    path = tmp_path_factory.mktemp("bins") / "m.txt"
    lines = [f"{c}\t{origin + 9 * k}\t{origin + 9 * k + 9}\t{a}\t{b}" for c, k, a, b in rows]
    text = HEADER + "\n".join(lines)  # the last line has no end
    path.write_bytes(text.replace("\n", mark + "\n").encode())
    expected: dict[tuple[str, int, int], list[int]] = {}
    for size in (2, 5):
        for name, k, *reads in rows:
            numbers = [number for c, number, *_ in rows if c == name]
            first, last = min(numbers), max(numbers)
            begin = first + (k - first) // size * size
            place = f"{name} ×{size}", origin + 9 * begin, origin + 9 * min(begin + size, last + 1)
            sums = expected.setdefault(place, [0, 0])
            sums[:] = [x + y for x, y in zip(sums, reads, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bin_sums, "BLOCK", block)
        found = read_bin_sums(str(path), (2, 5), (), every)
    regions = found.regions
    names = [regions.names[k] for k in regions.chrom]
    places = zip(names, regions.start.tolist(), regions.end.tolist(), strict=True)
    assert dict(zip(places, found.values.tolist(), strict=True)) == expected


@pytest.mark.parametrize(("text", "problem"), [
    ("Chr\tStart\tA\n", "is no counts table: its columns are chrom, start, end and samples"),
    (HEADER, "there are no regions"),
    (HEADER + GOOD + "1\t20\t30\t7\n", "row 3: 4 columns instead of 5"),
    (HEADER + GOOD + "1\t20\t30\t7\t1.5\n", "row 3, column 5: '1.5' is no whole number"),
    (HEADER + f"1\t{'9' * 5000}\t10\t1\t1\n", "row 1: is no bin as wide as the first one"),
    (HEADER + "1\tx\t10\t1\t1\n", "row 1, column 2: 'x' is no whole number"),
    (HEADER + GOOD + "1\t25\t35\t7\t1\n", "row 3: is no bin as wide as the first one"),
    (HEADER + GOOD + "1\t10\t20\t7\t1\n", "row 3: is no bin as wide as the first one"),
    (HEADER + GOOD + "2\t0\t9\t7\t1\n" + GOOD, "the rows of '1' are in two places"),
    (HEADER + "\t0\t9\t7\t1\n", "'' is no chromosome"),
    (HEADER + "10\t0\t9\t7\t1\n" + GOOD + "10\t9\t18\t7\t1\n", "the rows of '10' are in two"),
    (HEADER + GOOD + "\n" + GOOD, "row 3: 1 columns instead of 5"),
])  # fmt: skip
@pytest.mark.parametrize("block", [1 << 20, 12])
def test_read_bin_sums__names_the_line_that_is_wrong(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str, problem: str, block: int
) -> None:
    monkeypatch.setattr(bin_sums, "BLOCK", block)
    with pytest.raises(InputError) as error:
        read_bin_sums(store(text.encode()), (2,), (), every)
    assert problem in error.value.text


def test_read_bin_sums__takes_chosen_chromosomes(store: Store) -> None:
    path = store((HEADER + "2\t0\t9\t7\t1\n" + GOOD + "3\t0\t9\t7\t1.5\n").encode())
    found = read_bin_sums(path, (2,), ["1"], every)
    assert (found.regions.names, found.values.tolist()) == (("1 ×2",), [[8, 10]])
    with pytest.raises(InputError, match="row 4, column 5"):
        read_bin_sums(path, (2,), ["1", "3"], every)
    with pytest.raises(InputError, match="has no chromosome 'chr1'"):
        read_bin_sums(path, (2,), ["chr1"], every)


@pytest.mark.parametrize("stored", ["plain", "bgzf"])
@pytest.mark.parametrize(
    "read", [read_counts, partial(read_bin_sums, sizes=(1, 2), chosen=(), keep=every)]
)
def test_tables__are_refused_before_they_are_read_where_memory_is_short(
    store: Store, monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Any], stored: str
) -> None:
    rows = "".join(f"1\t{k}0\t{k + 1}0\t55\t66\n" for k in range(10_000, 80_000))
    path = store(f"chrom\tstart\tend\tA\tB\n{rows}".encode())
    if stored == "bgzf":
        pysam.tabix_compress(path, f"{path}.gz")
    monkeypatch.setattr(counts, "free_bytes", lambda _: 500_000)
    with pytest.raises(Failure, match=r"not fit into memory .about 7\d,\d+ regions of 2 samples"):
        read(path if stored == "plain" else f"{path}.gz")


def test_sums__that_do_not_fit_are_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bin_sums, "free_bytes", lambda _: 7)
    with pytest.raises(Failure, match=r"does not fit into memory .the sums of its bins alone"):
        read_bin_sums(store((HEADER + GOOD).encode()), (1,), ("1",), every)

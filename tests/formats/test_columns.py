"""Texts in one buffer, and columns as text: as Python writes them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigpu.formats.tables.columns import decimals, glued, whole
from multigpu.formats.tables.texts import Texts

WORDS = st.lists(st.binary(max_size=5), max_size=6)
FINITE = st.floats(-1e6, 1e6) | st.floats(allow_nan=False, allow_infinity=False)


@given(WORDS, WORDS)
def test_texts__are_those_they_were_made_of(some: list[bytes], more: list[bytes]) -> None:
    joined = Texts.joined([Texts.of(some), Texts.of(more)])
    assert joined.each() == [joined[i] for i in range(len(joined))] == some + more
    backwards = np.arange(len(joined))[::-1]
    assert joined.take(backwards).each() == (some + more)[::-1]


@pytest.mark.parametrize(
    ("begins", "lengths"), [([0], [9]), ([-1], [2]), ([2], [3]), ([0, 0], [9, -5]), ([0], [1, 1])]
)
def test_texts__beyond_their_buffer_are_refused(begins: list[int], lengths: list[int]) -> None:
    """A journal may come from anybody's disk, and compiled functions check no bounds."""
    with pytest.raises(ValueError, match=r"texts beyond|texts are"):
        Texts(np.zeros(4, np.uint8), np.array(begins, np.int64), np.array(lengths, np.int64))


def test_words__of_names_that_are_no_text() -> None:
    assert Texts.of_words(["a\udcff", "é"]).each() == [b"a?", "é".encode()]


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=3)), min_size=1))
def test_glued__has_the_pieces_of_each_row(rows: list[tuple[bytes, bytes]]) -> None:
    left, right = (Texts.of(column) for column in zip(*rows, strict=True))
    assert glued(b"<", left, b"|", right, b"").each() == [b"<" + a + b"|" + b for a, b in rows]


@given(st.lists(st.integers(0, (1 << 63) - 1)))
def test_whole__is_as_python_writes_it(values: list[int]) -> None:
    assert whole(np.array(values, np.int64)).each() == [b"%d" % value for value in values]


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1), st.sampled_from([4, 6, 9]))
def test_decimals__are_as_python_writes_them(rows: list[tuple[float, float]], digits: int) -> None:
    wanted = [f"{a:.{digits}f}\t{b:.{digits}f}".encode() for a, b in rows]
    assert decimals(np.array(rows), digits).each() == wanted


@pytest.mark.parametrize("digits", [4, 6, 9])
def test_decimals__between_two_are_rounded_as_python_rounds(digits: int) -> None:
    chance = np.random.default_rng(digits)
    halves = chance.integers(-(10**9), 10**9, 20_000) + 0.5
    values = np.concatenate(
        [
            halves / 10.0**digits,  # just beside the middle, on one side or the other
            np.ldexp(chance.integers(-(2**30), 2**30, 20_000) * 2.0 + 1, -digits - 1),  # in it
            2.0**51 / 10.0**digits * chance.uniform(-1.1, 1.1, 2_000),  # about the largest
            [0.0, -0.0, 5e-324, -5e-324, 1e300],
        ]
    )
    values = np.concatenate([values, np.nextafter(values, np.inf), np.nextafter(values, -np.inf)])
    for part in (values, values[np.abs(values) < 1e5]):
        wanted = [f"{value:.{digits}f}".encode() for value in part.tolist()]
        assert decimals(part, digits).each() == wanted

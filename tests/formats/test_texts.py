"""Texts in one buffer."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multigpu.formats.tables.texts import Texts

WORDS = st.lists(st.binary(max_size=5), max_size=6)


@given(WORDS, WORDS)
def test_texts__are_those_they_were_made_of(some: list[bytes], more: list[bytes]) -> None:
    joined = Texts.joined([Texts.of(some), Texts.of(more)])
    assert joined.each() == [joined[i] for i in range(len(joined))] == some + more


def test_texts__beyond_their_buffer_are_refused() -> None:
    """A journal may come from anybody's disk, and compiled functions check no bounds."""
    for case in (([0], [9]), ([-1], [2]), ([2], [3]), ([0, 0], [9, -5]), ([0], [1, 1])):
        with pytest.raises(ValueError, match=r"texts beyond|texts are"):
            Texts(np.zeros(4, np.uint8), *(np.array(each, np.int64) for each in case))

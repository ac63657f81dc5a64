"""Words that lines begin with or have in them, for records read by compiled functions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit

NEWLINE, BLANK = b"\n "


class TextArrays(NamedTuple):
    """Texts as compiled functions take them: text i is raw[begins[i] : begins[i] + lengths[i]].

    raw      uint8[size], read-only
    begins   int64[n]
    lengths  int64[n]
    """

    raw: NDArray[np.uint8]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]


def word_table(words: Sequence[bytes]) -> NDArray[np.uint8]:
    """Return uint8[n, longest], for `begins_with`; zeros fill the shorter ones."""
    longest = max(map(len, words))
    return np.array([list(word.ljust(longest, b"\0")) for word in words], np.uint8)


@jit
def begins_with(raw: Any, begin: Any, end: Any, words: Any) -> Any:
    """Whether raw[begin:end] begins with one of the words, a `word_table`."""
    for i in range(words.shape[0]):
        letter = 0
        while letter < words.shape[1] and words[i, letter] != 0:
            if begin + letter >= end or raw[begin + letter] != words[i, letter]:
                break
            letter += 1
        if letter == words.shape[1] or words[i, letter] == 0:
            return True
    return False


@jit
def find_word(raw: Any, begin: Any, end: Any, word: Any) -> Any:
    """Return where raw[begin:end] has the word of a table of one first; -1 for nowhere."""
    for at in range(begin, end - word.shape[1] + 1):
        if begins_with(raw, at, end, word):
            return at
    return -1


@jit
def are_whole_lines(raw: Any, begin: Any, end: Any) -> Any:
    """Whether raw[begin:end] consists of lines, without other control characters."""
    if begin == end or raw[end - 1] != NEWLINE:
        return False
    controls = 0
    for byte in raw[begin:end]:
        controls += (byte < BLANK) & (byte != NEWLINE)
    return controls == 0

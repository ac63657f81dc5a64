"""The alphabet: each IUPAC letter as the set of bases it stands for (Cornish-Bowden 1985).

A set is four bits, A = 1, C = 2, G = 4, T = 8. Two letters match when their sets share a bit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc

SETS = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8,
    "R": 1 | 4, "Y": 2 | 8, "S": 2 | 4, "W": 1 | 8, "K": 4 | 8, "M": 1 | 2,
    "B": 2 | 4 | 8, "D": 1 | 4 | 8, "H": 1 | 2 | 8, "V": 1 | 2 | 4, "N": 15,
}  # fmt: skip


# uint8[16]: the complements of each set, A <-> T and C <-> G: the four bits in reverse order.
COMPLEMENTS = np.array([int(f"{bases:04b}"[::-1], 2) for bases in range(16)], np.uint8)
# The table by which `bytes.translate` makes letters those of the other strand; their case stays.
COMPLEMENTARY_LETTERS = bytes.maketrans(
    b"ACGTURYSWKMBDHVNacgturyswkmbdhvn", b"TGCAAYRSWMKVHDBNtgcaayrswmkvhdbn"
)
# uint8[256]: the set of each letter (ASCII), 0 for no IUPAC base.
LETTER_SETS = np.array([SETS.get(chr(letter).upper(), 0) for letter in range(256)], np.uint8)


def encode(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Letters (ASCII) to sets, shape kept; 0 where the letter is no IUPAC base."""
    sets = np.empty(letters.shape, np.uint8)
    _encode(np.ascontiguousarray(letters).reshape(-1), sets.reshape(-1))
    return sets


def _letters_with(base: str) -> np.uint32:
    """Bit i: the i-th letter of the alphabet, counted from 1, may stand for `base`."""
    return np.uint32(sum(1 << (ord(x) & 31) for x, bases in SETS.items() if bases & SETS[base]))


_WITH_A, _WITH_C, _WITH_G, _WITH_T = map(_letters_with, "ACGT")
_ONE = np.uint32(1)


@jit_no_alloc
def _encode(letters: Any, sets: Any) -> None:
    # Shifts of constants and no table, so that many letters go through a register at once.
    for i in range(len(letters)):
        letter = np.uint32(letters[i] & 31)
        bases = _WITH_A >> letter & _ONE
        bases |= (_WITH_C >> letter & _ONE) << np.uint32(1)
        bases |= (_WITH_G >> letter & _ONE) << np.uint32(2)
        bases |= (_WITH_T >> letter & _ONE) << np.uint32(3)
        sets[i] = bases if letters[i] >> 6 == 1 else np.uint32(0)


def reverse_complement(sets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The other strand, read in its own direction."""
    return COMPLEMENTS[sets[::-1]]

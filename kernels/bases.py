"""The alphabet: each IUPAC letter as the set of bases it stands for (Cornish-Bowden 1985).

A set is four bits, A = 1, C = 2, G = 4, T = 8. Two letters match when their sets share a bit.
"""

import numpy as np
from numpy.typing import NDArray

SETS = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8,
    "R": 1 | 4, "Y": 2 | 8, "S": 2 | 4, "W": 1 | 8, "K": 4 | 8, "M": 1 | 2,
    "B": 2 | 4 | 8, "D": 1 | 4 | 8, "H": 1 | 2 | 8, "V": 1 | 2 | 4, "N": 15,
}  # fmt: skip


def _letters_to_sets() -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    for letter, bases in SETS.items():
        table[ord(letter)] = table[ord(letter.lower())] = bases
    table.flags.writeable = False
    return table


def _complements() -> NDArray[np.uint8]:
    """A <-> T and C <-> G: the four bits in reverse order."""
    table = np.array([int(f"{bases:04b}"[::-1], 2) for bases in range(16)], np.uint8)
    table.flags.writeable = False
    return table


LETTER_SETS = _letters_to_sets()  # uint8[256]: letter -> set, 0 where it is no base
COMPLEMENTS = _complements()  # uint8[16]: set -> set of the complements


def encode(letters: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Letters (ASCII) to sets, shape kept; 0 where the letter is no IUPAC base."""
    # Half the time of LETTER_SETS[letters], which makes eight bytes of every letter first.
    sets = bytearray(letters.ravel().data).translate(LETTER_SETS.tobytes())
    return np.frombuffer(sets, np.uint8).reshape(letters.shape)


def reverse_complement(sets: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The other strand, read in its own direction."""
    return COMPLEMENTS[sets[::-1]]

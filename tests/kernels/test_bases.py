"""Letters as sets of bases."""

import numpy as np
from hypothesis import given
from support.scan_cases import LEGAL, array, letters_of
from support.scanned import MEANING

from multigpu.kernels.bases import COMPLEMENTS, encode, reverse_complement

LETTER_SETS = encode(np.arange(256, dtype=np.uint8))


def test_sets__are_those_of_iupac_in_both_cases() -> None:
    assert np.flatnonzero(LETTER_SETS).tolist() == sorted(ord(letter) for letter in LEGAL)
    for letter, meaning in MEANING.items():
        value = sum(1 << "ACGT".index(base) for base in meaning)
        assert LETTER_SETS[ord(letter)] == LETTER_SETS[ord(letter.lower())] == value


def test_complements__pair_the_bases() -> None:
    pairs = dict(zip("ACGTRYKMBVDHSWN", "TGCAYRMKVBHDSWN", strict=True))
    for letter, other in pairs.items():
        assert COMPLEMENTS[LETTER_SETS[ord(letter)]] == LETTER_SETS[ord(other)]
    assert COMPLEMENTS[0] == 0


@given(letters_of)
def test_reverse_complement__twice_changes_nothing(letters: str) -> None:
    sets = encode(array(letters))
    assert reverse_complement(reverse_complement(sets)).tolist() == sets.tolist()

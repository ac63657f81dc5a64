"""CFD: how often SpCas9 cuts at a site with mismatches and bulges, as a share of its own target.

Cutting frequency determination, Doench et al. 2016, Nature Biotechnology 34:184-191, supplementary
table 19. A share is the product of one factor for each pair of bases that differ, by its position
from 1 to 20, the base before the PAM, and one for the PAM.

As in CRISPRme (Cancellieri et al. 2023, Nature Genetics 55:34-43) the positions of a site with a
DNA bulge are counted from the PAM, and what lies before position 1 is left out. A gap at position
1, for which there are no data, has the factor 1.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

SPACER, PAM = 20, b"NGG"
LETTERS, GAP = b"ACGT-", ord("-")
UNKNOWN = len(LETTERS)  # code of other letters, for which there is no score

# After each base of the guide with that of the site, both of the strand of the guide, its factors.
PAIRS = """
AC 6/7 11/14 3/7 6/17 1/2 5/11 7/16 3/7 4/7 1/3 2/5 5/19 4/19 3/14 3/11 0 3/17 4/21 6/29 5/22
AG 1 4/5 11/18 5/8 18/25 5/7 12/17 11/15 2/3 5/9 13/20 13/18 15/23 7/15 13/20 5/26 3/17
   2/5 3/8 13/17
AT 1 8/11 12/17 7/11 4/11 5/7 7/16 3/7 3/5 15/17 4/13 1/3 3/10 8/15 1/5 0 2/15 1/2 7/13 3/5
A- 1 63/65 8/9 18/31 21/64 18/65 28/65 15/64 18/65 37/65 18/65 4/65 1/32 3/65 1/32 1/65 0
   0 0 4/65
CA 1 8/11 13/15 16/19 4/7 13/14 3/4 13/20 6/7 13/15 3/4 5/7 5/13 7/20 2/9 1 7/15 7/13 3/7 1/2
CG 21/23 16/23 1/2 1/2 3/5 1/2 8/17 9/14 13/21 7/18 1/4 4/9 3/22 0 1/20 2/13 1/17 2/15 1/8 1/17
CT 1 10/11 11/16 4/5 7/11 13/14 13/16 7/8 7/8 16/17 4/13 7/13 7/10 11/15 1/15 4/13 7/15
   9/14 6/13 3/10
C- 1 31/32 14/15 43/63 23/63 7/16 37/65 8/65 27/65 8/13 11/65 3/64 0 3/65 0 0 0 0 0 1/32
GA 9/10 11/13 3/4 9/10 13/15 1 1 1 9/14 14/15 1 14/15 12/13 3/4 16/17 1 14/15 9/13 5/7 15/16
GC 5/7 9/13 5/13 9/17 11/14 15/22 11/16 8/13 7/13 2/5 3/7 9/17 8/19 3/7 3/11 0 4/17
   10/21 13/29 3/7
GT 1 7/11 1/2 4/11 3/10 2/3 4/7 5/8 8/15 13/16 5/13 5/13 3/10 4/15 1/7 0 1/4 2/3 2/3 7/10
G- 1 59/64 51/62 34/65 19/64 25/64 31/63 19/63 21/64 37/63 1/4 1/8 3/64 4/63 0 0 0 0 4/63 3/32
TA 1 11/13 5/7 10/21 1/2 13/15 7/8 4/5 13/14 6/7 3/4 4/5 9/13 13/21 11/19 10/11 8/15
   2/3 2/7 9/16
TC 6/7 6/7 3/7 11/17 1 10/11 11/16 1 12/13 8/15 2/3 18/19 15/19 2/7 3/11 2/3 12/17 3/7 8/29 1/11
TG 22/23 21/25 1/2 5/8 16/25 4/7 10/17 11/15 13/21 1/2 2/5 1/2 6/23 0 1/20 9/26 2/17
   1/3 1/4 3/17
T- 1 61/64 59/64 21/32 14/65 29/65 36/65 19/64 39/64 41/63 21/65 2/65 0 4/65 0 0 0 0 0 0
-A 1 8/11 3/5 1/10 0 1/12 0 1/16 3/16 1/4 1/13 1/13 0 0 0 0 0 0 4/13 3/5
-C 1 24/25 2/3 3/8 6/25 1/7 1/17 2/15 5/21 1/3 1/10 1/18 1/23 0 0 0 0 1/5 7/16 9/17
-G 1 5/7 6/13 3/17 1/14 0 0 0 0 2/15 2/15 0 0 0 0 0 1/17 1/7 1/28 1/22
-T 1 9/13 7/16 3/20 2/15 1/15 0 0 1/7 2/5 5/16 1/14 1/13 1/21 1/19 0 0 2/13 1/7 3/5
"""
# The last two bases of the PAM; other ones have 0.
PAMS = "GG 1 AG 7/27 CG 3/28 GA 5/72 TG 3/77 GC 1/45 GT 1/62"


CODES = np.full(256, UNKNOWN)  # of each letter, by its number in ASCII
CODES[list(LETTERS)] = range(len(LETTERS))


def _factors(text: str, columns: int) -> NDArray[np.float64]:
    """Return float64[code, code, columns], NaN where the text has no line of two letters."""
    factors = np.full((UNKNOWN + 1, UNKNOWN + 1, columns), np.nan)
    for letters, *line in np.reshape(text.split(), (-1, 1 + columns)).tolist():
        one, other = CODES[list(letters.encode())]
        factors[one, other] = [float(Fraction(each)) for each in line]
    return factors


PAIR_FACTORS = _factors(PAIRS, SPACER)  # of guide, site and position
PAIR_FACTORS[range(4), range(4)] = 1
PAM_FACTORS = _factors(PAMS, 1)[..., 0]  # of the last two bases of a PAM
PAM_FACTORS[:4, :4] = np.nan_to_num(PAM_FACTORS[:4, :4])


def cfd_scores(guides: NDArray[np.uint8], sites: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the score of each alignment of a guide of 20 bases and NGG; NaN for others.

    guides, sites  uint8[n, columns]  capital letters and -; blanks before the shorter ones
    """
    target = slice(-SPACER - len(PAM), -len(PAM))
    if guides.shape[1] < SPACER + len(PAM):
        return np.full(len(guides), np.nan)
    guide, site = CODES[guides[:, target]], CODES[sites[:, target]]
    scores = PAIR_FACTORS[guide, site, np.arange(SPACER)].prod(axis=1)
    scores *= PAM_FACTORS[CODES[sites[:, -2]], CODES[sites[:, -1]]]
    bases = np.count_nonzero(guides >= ord("A"), axis=1)
    is_known = (bases == SPACER + len(PAM)) & (sites[:, -len(PAM)] != GAP)
    is_known &= (guides[:, -len(PAM) :] == np.frombuffer(PAM, np.uint8)).all(axis=1)
    return np.where(is_known, scores, np.nan)

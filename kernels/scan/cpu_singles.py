"""Striking positions by the sample's single bases, where it has fewer of them than the patterns.

What lies over a single base is another base of the pattern for each position, a later one for an
earlier position. In a pattern that stands backwards these bases lie in the order of the positions,
so that one stretch of its plane of that base says which of a tile's positions may match.
"""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.native import trailing_zeros
from multigpu.kernels.scan.cpu_patterns import TILE, single

SINGLES = 256  # of a sample that are listed, from a tile on
LISTED = 512  # words in which they lie
FEW = 50  # of them, in a tile and as much behind it: one base in twenty


@lean
def list_singles(planes: Any, tile: Any, singles: Any) -> Any:
    """Lists the single bases of the tile and of what follows, as far as there is room.

    singles: int64[SINGLES], becomes position in the tile * 4 + base. Returns how many; -1 where
    they are no few.
    """
    count = 0
    for ahead in range(min(LISTED, planes.shape[0] - tile)):
        word = tile + ahead
        a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
        left = single(a, c, g, t)
        while left:
            if count == SINGLES or (count == FEW and ahead < 2 * TILE):
                return count if ahead >= 2 * TILE else -1
            at = trailing_zeros(left)
            bit = left & (~left + np.uint64(1))
            base = 0 if a & bit else 1 if c & bit else 2 if g & bit else 3
            singles[count] = (64 * ahead + at) * 4 + base
            count += 1
            left &= left - np.uint64(1)
    return count


@lean
def strike_by_singles(
    back: Any, begin: Any, size: Any, anchor: Any, singles: Any, count: Any, alive: Any
) -> Any:
    """Strikes out of `alive` what differs in one of the single bases; 0: nothing is left.

    begin, size: first word and words of the pattern in `back`
    """
    last = 64 * (begin + size) - 1 - anchor  # the pattern's base over the tile's first, backwards
    left = np.uint64(1)  # without single bases all is
    for n in range(count):
        at = last - (singles[n] >> 2)
        if at + 64 * TILE <= 64 * begin:  # it lies behind the pattern, and so do all others
            break
        plane, word, shift = singles[n] & 3, at >> 6, np.uint64(at & 63)
        left = np.uint64(0)
        for i in range(TILE):
            high = (back[plane, word + i + 1] << np.uint64(1)) << (np.uint64(63) - shift)
            alive[i] &= (back[plane, word + i] >> shift) | high
            left |= alive[i]
        if not left:
            break
    return np.int64(left != 0)

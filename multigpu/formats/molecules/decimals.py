"""Many numbers at once in columns of one width, as `%*.3f` writes them."""

import numpy as np
from numpy.typing import NDArray

Letters = NDArray[np.uint8]
DECIMALS = 3
BLANK, PLUS, MINUS, POINT, ZERO = b" +-.0"
DOUBTFUL = 1e-6  # of a last digit: more than the error of a product below 10^9


def read_decimals(texts: Letters) -> NDArray[np.float64]:
    """Return float64[n]: what Python's `float` gives; NaN for a text that is not `%*.3f`.

    texts: uint8[n, width], up to 10 wide; a plus before the first digit is allowed, too
    """
    letters = np.ascontiguousarray(texts.T)
    digits = letters - ZERO
    whole = np.zeros(len(texts), np.uint32)
    for column in np.delete(digits, -DECIMALS - 1, axis=0):
        whole = 10 * whole + np.where(column < 10, column, 0)
    # Both numbers are exact, so the quotient is rounded once.
    numbers = whole / 10.0**DECIMALS
    numbers = np.where((letters == MINUS).any(axis=0), -numbers, numbers)
    is_plus = letters == PLUS
    written, fits = write_decimals(numbers, len(letters))
    same = (written == np.where(is_plus, BLANK, letters)).all(axis=0)
    same &= ~(is_plus[:-1] & (digits[1:] >= 10)).any(axis=0)
    return np.where(same & fits, numbers, np.nan)


def write_decimals(numbers: NDArray[np.float64], width: int) -> tuple[Letters, NDArray[np.bool_]]:
    """Return `%*.3f` of each, uint8[width, n], and bool[n]: whether it is right.

    It is not where a number is wider, or only exact arithmetic can tell how to round. width: to 10
    """
    product = np.minimum(np.abs(numbers) * 10.0**DECIMALS, 10.0 ** (width - 1))
    left = np.rint(product).astype(np.uint32)
    sign = np.where(np.signbit(numbers), np.uint8(MINUS), np.uint8(BLANK))
    texts = np.empty((width, len(numbers)), np.uint8)
    for column in range(width)[::-1]:
        if column == width - DECIMALS - 1:
            texts[column] = POINT
            continue
        rest = left // 10
        is_before = (left == 0) & (column < width - DECIMALS - 2)  # the first digit
        texts[column] = np.where(is_before, sign, left - 10 * rest + ZERO)
        sign[is_before] = BLANK
        left = rest
    is_clear = np.abs(product - np.floor(product) - 0.5) > DOUBTFUL
    return texts, is_clear & (left == 0) & (sign == BLANK)

"""Decimal numbers in columns of fixed width, read and written as Python does."""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.text.words import BLANK

PLUS, MINUS, POINT, ZERO = b"+-.0"
MOST_DIGITS = 15  # of a number: as a whole one it is exact, as is the power of ten that divides it
TENS = 10.0 ** np.arange(MOST_DIGITS + 1)
DOUBTFUL = 1e-6  # of a last digit: more than the error of a product below 10^9


@jit
def read_decimal(raw: Any, begin: Any, end: Any) -> Any:
    """Return what Python's `float` gives for a decimal number with blanks around it; else NaN.

    Its digits are a whole number below 2^53, and so is the power of ten that divides it: the
    quotient is rounded once. Numbers with more digits give NaN, too.
    """
    while begin < end and raw[begin] == BLANK:
        begin += 1
    while end > begin and raw[end - 1] == BLANK:
        end -= 1
    negative = begin < end and raw[begin] == MINUS
    if negative or (begin < end and raw[begin] == PLUS):
        begin += 1
    whole, digits, decimals, seen_point = 0, 0, 0, False
    for byte in raw[begin:end]:
        if byte == POINT and not seen_point:
            seen_point = True
        elif ZERO <= byte <= ZERO + 9:
            whole = 10 * whole + (byte - ZERO)
            digits += 1
            decimals += seen_point
        else:
            return np.nan
    if digits == 0 or digits > MOST_DIGITS:
        return np.nan
    value = whole / TENS[decimals]
    return -value if negative else value


@jit
def put_decimal(out: Any, at: Any, value: Any, width: Any, decimals: Any) -> Any:
    """Write `%*.*f` to `out` if that has as many letters as the width; return whether it has.

    Nothing is written either where only exact arithmetic can tell how to round.
    """
    product = abs(value) * TENS[decimals]
    negative = math.copysign(1.0, value) < 0
    limit = TENS[width - 2 if negative else width - 1]
    if not product < limit:
        return False
    whole = int(product)
    beyond = (product - whole) - 0.5
    whole += beyond > 0
    if abs(beyond) < DOUBTFUL or whole >= limit:
        return False
    last = at + width - 1
    for i in range(width):
        if i == decimals:
            out[last - i] = POINT
        elif whole > 0 or i < decimals + 2:
            out[last - i] = ZERO + whole % 10
            whole //= 10
        else:
            out[last - i] = MINUS if negative else BLANK
            negative = False
    return True

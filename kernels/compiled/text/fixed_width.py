"""Decimal numbers in columns of fixed width, read and written as Python does."""

import math
from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit
from multigpu.kernels.compiled.text.words import BLANK

PLUS, MINUS, POINT, ZERO = b"+-.0"
MOST_DIGITS = 15  # of a number: as a whole one it is exact, as is the power of ten that divides it
TENS = 10.0 ** np.arange(MOST_DIGITS + 1)
MOST_SCALED = 2.0**51  # value × 10^digits: below, halves are exact
SPLIT = 2.0**27 + 1  # cuts a float64 into two halves, so that products of halves are exact


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
def read_whole(raw: Any, begin: Any, end: Any) -> Any:
    """Return the whole number in raw[begin:end], after blanks; -1 where there is none."""
    value = -1
    for byte in raw[begin:end]:
        if ZERO <= byte <= ZERO + 9:
            value = 10 * max(value, 0) + (byte - ZERO)
        elif byte != BLANK or value >= 0:
            return -1
    return value


@jit
def put_decimal(out: Any, at: Any, value: Any, width: Any, decimals: Any) -> Any:
    """Write `%*.*f` to `out` if that has as many letters as the width; return whether it has."""
    whole = _scale(abs(value), TENS[decimals])
    negative = math.copysign(1.0, value) < 0
    if whole < 0 or whole >= TENS[width - 2 if negative else width - 1]:
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


@jit
def _scale(value: Any, power: Any) -> Any:
    """Return the whole number nearest to value × power, halves to even; -1 if it is too large.

    Neither is negative, and the power is one of ten below 10^23, which is exact. So the exact
    product is `product` + `rest` (Dekker, A floating-point technique for extending the available
    precision, 1971).
    """
    product = value * power
    if not product < MOST_SCALED:
        return -1
    high, high_power = _upper_bits(value), _upper_bits(power)
    low, low_power = value - high, power - high_power
    rest = high * high_power - product
    rest = (rest + high * low_power + low * high_power) + low * low_power
    nearest = int(product)
    beyond = (product - nearest) - 0.5
    if beyond > 0 or (beyond == 0 and (rest > 0 or (rest == 0 and nearest % 2 == 1))):
        return nearest + 1
    return nearest


@jit
def _upper_bits(value: Any) -> Any:
    """Return the number that the upper 26 bits of a float64 make."""
    return SPLIT * value - (SPLIT * value - value)

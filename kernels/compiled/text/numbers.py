"""Numbers to text: whole ones, and decimals exactly as Python rounds them."""

from typing import Any

from multigpu.kernels.compiled.jit import jit

ZERO = ord("0")
MOST_SCALED = 2.0**51  # value × 10^digits: below, halves are exact
SPLIT = 2.0**27 + 1  # cuts a float64 into two halves, so that products of halves are exact


@jit
def put_whole(out: Any, at: Any, value: Any, least: Any) -> Any:
    """Write a whole number with at least `least` digits to out[at:]; return where they end."""
    digits, rest = 1, value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    digits = max(digits, least)
    for i in range(digits):
        out[at + digits - 1 - i] = ZERO + value % 10
        value //= 10
    return at + digits


@jit
def scaled(value: Any, power: Any) -> Any:
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

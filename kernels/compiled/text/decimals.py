"""Numbers as whole multiples of a power of ten, rounded as Python's `%.*f` rounds."""

from typing import Any

from multigpu.kernels.compiled.jit import jit

MOST_SCALED = 2.0**51  # value × power: below, halves are exact
SPLIT = 2.0**27 + 1  # cuts a float64 into two halves, so that products of halves are exact


@jit
def scaled(value: Any, power: Any) -> Any:
    """Return the whole number nearest to value × power, the even one of two; -1 if too large.

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
    """Return the number that the upper 26 bits of a float64's mantissa make."""
    return SPLIT * value - (SPLIT * value - value)

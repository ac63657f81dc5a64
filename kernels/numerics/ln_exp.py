"""Natural logarithms and powers of e; `ln_exp.cuh` has the same, operation by operation.

Libraries differ in the last bit from machine to machine, and a last bit may decide where a segment
ends: the I/NI of neighbouring positions are often exactly equal. All results are within 2 ulp.
"""

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.log2_exp2 import DIGITS, LOG2E, ONE, ROOT_HALF, ROUND

LN2_HIGH = 6.93147180369123816490e-01  # 33 bits, so that multiples of it are exact
LN2_LOW = 1.90821492927058770002e-10


@jit_no_alloc
def times_power_of_2(x, n):  # type: ignore[no-untyped-def]
    """Return x 2^n, all of them normal numbers."""
    bits = np.float64(x).view(np.int64) + (np.int64(n) << DIGITS)
    return np.int64(bits).view(np.float64)


@jit_no_alloc
def ln(x):  # type: ignore[no-untyped-def]
    """Return the natural logarithm of a normal number above 0.

    With x = m 2^n and m between sqrt(1/2) and sqrt(2) it is n ln 2 + 2 atanh((m - 1) / (m + 1)).
    """
    bits = np.float64(x).view(np.int64)
    n = ((bits + (ONE - ROOT_HALF)) >> DIGITS) - 1023
    f = times_power_of_2(x, -n) - 1.0
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    z4 = z2 * z2
    low = (2 / 3 + 2 / 5 * z) + z2 * (2 / 7 + 2 / 9 * z)
    middle = (2 / 11 + 2 / 13 * z) + z2 * (2 / 15 + 2 / 17 * z)
    series = low + z4 * (middle + z4 * (2 / 19 + 2 / 21 * z))
    # 2 s = f - s f exactly, so that nothing is lost around 1.
    tail = s * (z * series - f)
    return n * LN2_HIGH + (f + (tail + n * LN2_LOW))


@jit_no_alloc
def ln_1p(x):  # type: ignore[no-untyped-def]
    """Return ln(1 + x) for x above -1; what 1 + x loses is added."""
    y = 1.0 + x
    return ln(y) + (x - (y - 1.0)) / y


@jit_no_alloc
def exp_of(x):  # type: ignore[no-untyped-def]
    """Return e ** x for x from -700 to 700: 2^n times Taylor's series of what is left."""
    rounded = x * LOG2E + ROUND
    n = rounded - ROUND
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1 / 2 + 1 / 6 * r) + r2 * (1 / 24 + 1 / 120 * r)
    middle = (1 / 720 + 1 / 5040 * r) + r2 * (1 / 40320 + 1 / 362880 * r)
    high = (1 / 3628800 + 1 / 39916800 * r) + r2 * (1 / 479001600 + 1 / 6227020800 * r)
    power = 1.0 + (r + r2 * (low + r4 * (middle + r4 * high)))
    return times_power_of_2(power, n)

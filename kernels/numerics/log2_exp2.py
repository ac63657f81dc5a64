"""1 / x, 2 ** x, log2 and log2(x!); `log2_exp2.cuh` has the same, operation by operation.

Nothing is rounded but where it says so, so results are the same on every processor and on a GPU.
Loops over arrays that call these functions become vector instructions.
"""

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma

LOG2E = 1.4426950408889634
HALF_LOG_2PI = 0.91893853320467274178
ROUND = 1.5 * 2.0**52  # added to a number of up to 2 ** 51: its whole part is in the low bits
LEAST, LITTLE = -1000.0, 2.0**-1000
ONE = 0x3FF0000000000000  # 1.0
ROOT_HALF = 0x3FE6A09E667F3BCD  # sqrt(1/2)
DIGITS = 52  # bits after the exponent


@jit_no_alloc
def _bits(x):  # type: ignore[no-untyped-def]
    return np.float64(x).view(np.int64)


@jit_no_alloc
def _number(bits):  # type: ignore[no-untyped-def]
    return np.int64(bits).view(np.float64)


@jit_no_alloc
def reciprocal(x):  # type: ignore[no-untyped-def]
    """Return 1 / x to 3 ulp: exactly rounded, of x without its last bit; log2_exp2.cuh says why."""
    return 1.0 / _number(_bits(x) & -2)


@jit_no_alloc
def exp2_of(x):  # type: ignore[no-untyped-def]
    """Return 2 ** x to 3 ulp for -1000 < x < 1000."""
    rounded = x + ROUND
    f = x - (rounded - ROUND)
    # The nearest polynomial for |f| <= 0.5 with 1 at 0, off by 2.2e-16 of the value.
    t = 7.038192839357054e-09
    t = fma(t, f, 1.0208322608913776e-07)
    t = fma(t, f, 1.3215653515016351e-06)
    t = fma(t, f, 1.5252659429815089e-05)
    t = fma(t, f, 0.00015403529994413375)
    t = fma(t, f, 0.0013333558225796533)
    t = fma(t, f, 0.009618129107982995)
    t = fma(t, f, 0.05550410866448184)
    t = fma(t, f, 0.240226506959091)
    t = fma(t, f, 0.6931471805599492)
    return _number(_bits(fma(t, f, 1.0)) + (_bits(rounded) << DIGITS))


@jit_no_alloc
def exp2_or_little(x):  # type: ignore[no-untyped-def]
    """Return 2 ** x for x < 1000; 2 ** -1000 from x = -1000 down."""
    value = exp2_of(x)
    return value if x > LEAST else LITTLE


@jit_no_alloc
def _log2_of_quotient(s):  # type: ignore[no-untyped-def]
    """Return log2((1 + s) / (1 - s)) for |s| <= 0.172.

    The series is 2 (s + s ** 3 / 3 + s ** 5 / 5 + ...) / ln(2).
    """
    z = s * s
    t = 2 * LOG2E / 19
    t = fma(t, z, 2 * LOG2E / 17)
    t = fma(t, z, 2 * LOG2E / 15)
    t = fma(t, z, 2 * LOG2E / 13)
    t = fma(t, z, 2 * LOG2E / 11)
    t = fma(t, z, 2 * LOG2E / 9)
    t = fma(t, z, 2 * LOG2E / 7)
    t = fma(t, z, 2 * LOG2E / 5)
    t = fma(t, z, 2 * LOG2E / 3)
    t = fma(t, z, 2 * LOG2E)
    return t * s


@jit_no_alloc
def log2_of(x):  # type: ignore[no-untyped-def]
    """Return the logarithm of a normal number above 0, to 5 ulp; away from 1 to 1 ulp."""
    # x = m * 2 ** n with m in [0.707, 1.414).
    n = ((_bits(x) + (ONE - ROOT_HALF)) >> DIGITS) - 1023
    m = _number(_bits(x) - (n << DIGITS))
    return _log2_of_quotient((m - 1.0) * reciprocal(m + 1.0)) + np.int32(n)


@jit_no_alloc
def log2_of_ratio(x, y):  # type: ignore[no-untyped-def]
    """Return log2(x / y) where neither is above 1.4 times the other, to 5 ulp."""
    return _log2_of_quotient((x - y) * reciprocal(x + y))


@jit_no_alloc
def log2_factorial(x):  # type: ignore[no-untyped-def]
    """Return lgamma(x + 1) / ln(2) for x >= 0, to 6e-14 absolute or 8 ulp.

    This is Stirling's series at x + 9.
    """
    z = x + 1.0
    product = 1.0
    for _ in range(8):
        product *= z
        z += 1.0
    inverse = reciprocal(z)
    w = inverse * inverse
    t = 1 / 156
    t = fma(t, w, -691 / 360360)
    t = fma(t, w, 1 / 1188)
    t = fma(t, w, -1 / 1680)
    t = fma(t, w, 1 / 1260)
    t = fma(t, w, -1 / 360)
    t = fma(t, w, 1 / 12)
    series = fma(t, inverse, HALF_LOG_2PI) - z
    return fma(z - 0.5, log2_of(z), fma(series, LOG2E, 0.0 - log2_of(product)))

"""The upper tail of Student's t in Numba; `student.cuh` has the same, operation by operation.

With a = df/2, y = t²/(df + t²) and the factor e = y^(1/2) (1 - y)^a / B(a, 1/2) the tail is

    near  1/2 - e 2F1(a + 1/2, 1; 3/2; y)                  by its series, or
    far   1/2 e / (a y) 2F1(1/2, 1; a + 1; -df/t²)         by Gauss's continued fraction

(Abramowitz and Stegun 15.1.1, 15.3.4, 26.5.2, 26.7.1; DLMF 15.7.5). All terms are positive, so
nothing cancels, and the logarithm of the large part of e is kept apart, so that nothing underflows.
"""

import math

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.log2_exp2 import LOG2E, exp2_of, log2_of

PRECISION = 1e-16
NEAR = 7.0  # t² from where the continued fraction takes fewer terms than the series
MOST_TERMS = 100_000
CHECKED = 4  # terms from one look at what the continued fraction gained to the next
LARGE = 1e200
SHIFTED = 8.0  # from where the series of the gamma functions is taken
LOG_2 = 0.6931471805599453
HALF_LOG_PI = 0.5723649429247001  # ln(pi) / 2
# -2 E(k) / (k 4^(k+1)) of the Euler numbers E(2), E(4) ...
RATIO = (
    1 / 64, -5 / 2048, 61 / 49152, -1385 / 1048576, 50521 / 20971520, -2702765 / 402653184,
    199360981 / 7516192768,
)  # fmt: skip


@jit_no_alloc
def gamma_step(a):  # type: ignore[no-untyped-def]
    """Return f and s with Γ(a + 1/2) / Γ(a) = f exp(s), for a > 0.

    s is an even series around a - 1/4.
    """
    product = 1.0
    while a < SHIFTED:
        product *= a / (a + 0.5)
        a += 1.0
    w = a - 0.25
    u = 1.0 / (w * w)
    series = 0.0
    for k in range(len(RATIO) - 1, -1, -1):
        series = (series + RATIO[k]) * u
    return product * math.sqrt(w), series


@jit_no_alloc
def near_series(a, y):  # type: ignore[no-untyped-def]
    """Return 2F1(a + 1/2, 1; 3/2; y)."""
    term, total = 1.0, 1.0
    for n in range(MOST_TERMS):
        term *= (a + 0.5 + n) * y / (1.5 + n)
        total += term
        if term <= PRECISION * total:
            break
    return total


@jit_no_alloc
def far_fraction(a, z):  # type: ignore[no-untyped-def]
    """Return 2F1(1/2, 1; a + 1; -z) for z > 0, a quotient of two forward recurrences."""
    top, top_before, below, below_before = 1.0, 0.0, 1.0, 1.0
    out = 1.0
    for n in range(1, MOST_TERMS):
        odd = (n - 0.5) * (a + n - 1.0) * z / ((a + 2 * n - 2.0) * (a + 2 * n - 1.0))
        even = n * (a + n - 0.5) * z / ((a + 2 * n - 1.0) * (a + 2 * n))
        top_before = top + odd * top_before
        below_before = below + odd * below_before
        top = top_before + even * top
        below = below_before + even * below
        if n % CHECKED == 0:
            before, out = out, top / below
            if abs(out - before) <= PRECISION * out:
                break
            if below > LARGE:
                top, top_before = top / LARGE, top_before / LARGE
                below, below_before = below / LARGE, below_before / LARGE
    return out


@jit_no_alloc
def ln_1p(x):  # type: ignore[no-untyped-def]
    """Return ln(1 + x) for x above -1; what 1 + x loses is added."""
    y = 1.0 + x
    return LOG_2 * log2_of(y) + (x - (y - 1.0)) / y


@jit_no_alloc
def surprise(t2, df):  # type: ignore[no-untyped-def]
    """Return minus the logarithm of the probability that Student's t exceeds sqrt(t2)."""
    if t2 == 0.0:
        return LOG_2
    a, u = 0.5 * df, t2 / df
    y = u / (1.0 + u)
    factor, series = gamma_step(a)
    factor *= math.sqrt(y)
    scale = series - HALF_LOG_PI - a * ln_1p(u)
    if t2 * (a + 1.5) < NEAR * a:
        return LOG_2 - ln_1p(-2.0 * factor * exp2_of(scale * LOG2E) * near_series(a, y))
    return LOG_2 - scale - LOG_2 * log2_of(factor * far_fraction(a, 1.0 / u) / (a * y))


@jit_no_alloc
def compared(t2, df, other_t2, other_df):  # type: ignore[no-untyped-def]
    """Return 1 or -1 where the first's surprise is certainly greater or smaller, else 0.

    It rises with both. What df gains is bounded: with d more degrees of freedom the same surprise
    takes a t² that is smaller by less than 2 d t² (1 + t²) / df².
    """
    more_t2, more_df = t2 - other_t2, df - other_df
    if more_df >= 0.0:
        if more_t2 > 0.0:
            return 1
        if -more_t2 * other_df * other_df > 2.0 * more_df * other_t2 * (1.0 + other_t2):
            return -1
    else:
        if more_t2 <= 0.0:
            return -1
        if more_t2 * df * df > -2.0 * more_df * t2 * (1.0 + t2):
            return 1
    return 0

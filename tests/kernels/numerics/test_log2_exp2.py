"""Functions that CPU and GPU share to the bit, against Python's own."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import fma
from multigpu.kernels.numerics import log2_exp2
from multigpu.kernels.numerics.exact_sums import exact_mean, exact_sum, in_80_bits

EPSILON = np.finfo(float).eps


@jit_no_alloc
def apply(function: Any, x: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        out[i] = function(x[i])


def applied(function: Any, x: Any) -> Any:
    out = np.empty_like(x)
    apply(function, x, out)
    return out


@jit_no_alloc
def fused_and_not(x: Any, y: Any, z: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        out[0, i] = fma(x[i], y[i], z[i])
        out[1, i] = x[i] * y[i] + z[i]


def test_arithmetic__rounds_once_where_it_says_so_and_nowhere_else() -> None:
    """Else results would depend on whether a processor has such an instruction."""
    x, z = np.full(64, 1 + 2.0**-30), np.full(64, -1 - 2.0**-29)
    out = np.empty((2, 64))
    fused_and_not(x, x, z, out)
    assert (out[0] == 2.0**-60).all()
    assert (out[1] == 0).all()


def test_exp2__is_right_to_three_ulps() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-999, 999, 4000), rng.uniform(-1, 1, 4000)])
    expected = [2.0**each for each in x]
    for function in (log2_exp2.exp2_of, log2_exp2.exp2_or_little):
        np.testing.assert_allclose(applied(function, x), expected, rtol=3 * EPSILON)


def test_exp2__of_whole_numbers_is_exact_and_never_below_a_little() -> None:
    x = np.array([-999.0, -52.0, -1.0, 0.0, -0.0, 1.0, 10.0, 999.0])
    np.testing.assert_array_equal(applied(log2_exp2.exp2_of, x), 2.0**x)
    below = np.nextafter(-1000, 0)
    x = np.array([-1e300, -1e19, -1e9, -1001.0, -1000.0, below, -999.5, -999.0])
    got = applied(log2_exp2.exp2_or_little, x)
    assert (got[:5] == 2.0**-1000).all()
    np.testing.assert_allclose(got[5:], 2.0 ** x[5:], rtol=3 * EPSILON)


@pytest.mark.parametrize(("low", "high"), [(-700, 700), (-0.7, 0.7), (-1e-7, 1e-7)])
def test_log2__is_right_to_five_ulps(low: float, high: float) -> None:
    x = np.exp(np.random.default_rng(2).uniform(low, high, 8000))
    expected = [math.log2(each) for each in x]
    np.testing.assert_allclose(applied(log2_exp2.log2_of, x), expected, rtol=5 * EPSILON)
    near = np.clip(x, 1 / 1.4, 1.4)
    found = [log2_exp2.log2_of_ratio(each, 1.0) for each in near]
    np.testing.assert_allclose(found, [*map(math.log2, near)], rtol=5 * EPSILON)


def test_log2_factorial__is_right_between_whole_numbers_too() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([np.arange(200.0), rng.uniform(0, 20, 3800), rng.uniform(0, 1e7, 4000)])
    expected = [math.lgamma(each + 1) / math.log(2) for each in x]
    np.testing.assert_allclose(
        applied(log2_exp2.log2_factorial, x), expected, rtol=8 * EPSILON, atol=6e-14
    )


def test_reciprocal__is_that_of_the_even_number_below() -> None:
    rng = np.random.default_rng(4)
    x = 2.0 ** rng.uniform(-1000, 1000, 8000)
    x[:8] = [1, 2, 3, np.nextafter(2, 0), np.nextafter(1, 0), np.nextafter(1, 2), 1e-300, 1e300]
    even = (x.view(np.int64) & -2).view(np.float64)
    np.testing.assert_array_equal(applied(log2_exp2.reciprocal, x), 1 / even)


def test_exact_sum__keeps_what_rounding_leaves_out() -> None:
    x = np.array([1.0, 1.0, 1e-30, 3.5, 0.0, 0.1, 1.0, 1 / 3])
    y = np.array([1e-30, 2.0**-53, 1.0, 0.25, 0.0, 0.2, 3 * 2.0**-64, 1e-9])
    total, left_out = np.array([exact_sum(a, b) for a, b in zip(x, y, strict=True)]).T
    rounded = np.array([in_80_bits(a, b) for a, b in zip(total, left_out, strict=True)])
    assert (total == x + y).all()
    for each in zip(x, y, total, left_out, strict=True):
        a, b, c, d = map(Fraction, each)
        assert a + b == c + d
    assert rounded[:5].tolist() == [0, 2.0**-53, 0, 0, 0]  # 64 bits
    assert rounded[6] == 2.0**-62  # of 1 + 1.5 ulps, a tie
    assert (abs(rounded - left_out) <= 2.0**-64 * total).all()


@pytest.mark.parametrize(
    "function", [log2_exp2.exp2_of, log2_exp2.log2_of, log2_exp2.log2_factorial]
)
def test_value__does_not_depend_on_its_neighbours(function: Any) -> None:
    x = np.random.default_rng(4).uniform(0.1, 30, 64)
    alone = [function(each) for each in x]
    np.testing.assert_array_equal(applied(function, x), alone)


def test_exact_mean__is_rounded_once_more_than_the_true_one() -> None:
    values = np.random.default_rng(7).uniform(0, 1, 1000)
    total = left_out = 0.0
    for value in values:
        total, rest = exact_sum(total, value)
        left_out += rest
    assert exact_mean(total, left_out, 1000.0) == float(sum(map(Fraction, values)) / 1000)

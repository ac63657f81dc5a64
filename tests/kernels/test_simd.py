"""Vectors of eight float64 against Python's own functions."""

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from multigpu.kernels.compiled import simd
from multigpu.kernels.compiled.jit import lean
from multigpu.kernels.compiled.simd import LANES, load, splat, store

EPSILON = np.finfo(float).eps


@lean
def exponentials(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.exp2(load(x, at)))


@lean
def exponentials_or_little(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.exp2_or_little(load(x, at)))


@lean
def logarithms(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.log2(load(x, at)))


@lean
def logarithms_of_ratios(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.log2_of_ratio(load(x, at), splat(1.0)))


@lean
def log2_factorials(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.log2_factorial(load(x, at)))


@lean
def reciprocals(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.reciprocal(load(x, at)))


@lean
def arithmetic(x: Any, y: Any, out: Any) -> bool:
    a, b = load(x, 0), load(y, 0)
    store(out, 0, a + b)
    store(out, 8, a - b)
    store(out, 16, a * b)
    store(out, 24, a / b)
    store(out, 32, simd.greater(a, b))
    store(out, 40, simd.fused(a, b, splat(1.0)))
    store(out, 48, simd.where_above(a, b, splat(1.0), splat(2.0)))
    store(out, 56, simd.absolute(a))
    return simd.any_above(a, b)


def applied(function: Any, x: Any) -> Any:
    out = np.empty_like(x)
    function(x, out)
    return out


def test_arithmetic__is_that_of_numpy() -> None:
    x = np.array([1.0, -2.0, 3.5, 0.0, -0.0, 1e30, 7.0, -8.25])
    y = np.array([2.0, -3.0, 3.5, 4.0, 5.0, 2e29, -7.0, 0.5])
    out = np.empty(64)
    assert arithmetic(x, y, out)
    expected = [x + y, x - y, x * y, x / y, np.maximum(x, y), x * y + 1]
    expected += [np.where(x > y, 1.0, 2.0), np.abs(x)]
    np.testing.assert_allclose(out.reshape(8, 8), expected, rtol=EPSILON)
    assert not arithmetic(y, np.maximum(x, y), out)


@lean
def fused_and_not(x: Any, y: Any, z: Any, out: Any) -> None:
    a, b, c = load(x, 0), load(y, 0), load(z, 0)
    store(out, 0, simd.fused(a, b, c))
    store(out, 8, a * b + c)


def test_arithmetic__rounds_once_where_it_says_so_and_nowhere_else() -> None:
    """Else results would depend on whether a processor has such an instruction."""
    x, z = np.full(8, 1 + 2.0**-30), np.full(8, -1 - 2.0**-29)
    out = np.empty(16)
    fused_and_not(x, x, z, out)
    assert (out[:8] == 2.0**-60).all()
    assert (out[8:] == 0).all()


def test_exp2__is_right_to_three_ulps() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-999, 999, 4000), rng.uniform(-1, 1, 4000)])
    expected = [2.0**each for each in x]
    for function in (exponentials, exponentials_or_little):
        np.testing.assert_allclose(applied(function, x), expected, rtol=3 * EPSILON)


def test_exp2__of_whole_numbers_is_exact() -> None:
    x = np.array([-999.0, -52.0, -1.0, 0.0, -0.0, 1.0, 10.0, 999.0])
    np.testing.assert_array_equal(applied(exponentials, x), 2.0**x)


def test_exp2__is_never_below_a_little() -> None:
    below = np.nextafter(-1000, 0)
    x = np.array([-1e300, -1e19, -1e9, -1001.0, -1000.0, below, -999.5, -999.0])
    got = applied(exponentials_or_little, x)
    assert (got[:5] == 2.0**-1000).all()
    np.testing.assert_allclose(got[5:], 2.0 ** x[5:], rtol=3 * EPSILON)


@pytest.mark.parametrize(("low", "high"), [(-700, 700), (-0.7, 0.7), (-1e-7, 1e-7)])
def test_log2__is_right_to_five_ulps(low: float, high: float) -> None:
    x = np.exp(np.random.default_rng(2).uniform(low, high, 8000))
    expected = [math.log2(each) for each in x]
    np.testing.assert_allclose(applied(logarithms, x), expected, rtol=5 * EPSILON)
    near = np.clip(x, 1 / 1.4, 1.4)
    expected = [math.log2(each) for each in near]
    np.testing.assert_allclose(applied(logarithms_of_ratios, near), expected, rtol=5 * EPSILON)


def test_log2_factorial__is_right_between_whole_numbers_too() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([np.arange(200.0), rng.uniform(0, 20, 3800), rng.uniform(0, 1e7, 4000)])
    expected = [math.lgamma(each + 1) / math.log(2) for each in x]
    np.testing.assert_allclose(applied(log2_factorials, x), expected, rtol=8 * EPSILON, atol=6e-14)


def test_reciprocal__is_that_of_the_even_number_below() -> None:
    rng = np.random.default_rng(4)
    x = 2.0 ** rng.uniform(-1000, 1000, 8000)
    x[:8] = [1, 2, 3, np.nextafter(2, 0), np.nextafter(1, 0), np.nextafter(1, 2), 1e-300, 1e300]
    even = (x.view(np.int64) & -2).view(np.float64)
    np.testing.assert_array_equal(applied(reciprocals, x), 1 / even)


def test_reciprocal__comes_of_a_rough_one_in_the_steps_of_a_gpu() -> None:
    """Those of `numbers.cuh`, in whole numbers; the rough one is off by up to 2 ** -18."""
    rng = np.random.default_rng(5)
    tops = 2**53 - 2 * np.r_[1:200, rng.integers(1, 2**45, 200)]
    for x in map(int, np.r_[tops, 2**52 + 2 * np.r_[0:200, rng.integers(0, 2**51, 1000)]]):
        for off in (-(2.0**-18), -(2.0**-21), 2.0**-21, 2.0**-18):
            assert refined(x * 2.0**-52, (1 + off) / (x * 2.0**-52)) == 1 / (x * 2.0**-52)


def refined(x: float, y: float) -> float:
    off = fused(-x, y, 1.0)
    y = fused(y, fused(off, off, off), y)
    return fused(y, fused(-x, y, 1.0), y)


def fused(a: float, b: float, c: float) -> float:
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def divided(a: float, b: float) -> float:
    """a / b in the steps of `numbers.cuh`."""
    y = 1 / float((np.array(b).view(np.int64) & -2).view(np.float64))
    y = fused(y, fused(-b, y, 1.0), y)
    q = a * y
    q = fused(fused(-b, q, a), y, q)
    return fused(fused(-b, q, a), y, q)


def near_the_middle(b: int) -> Iterator[int]:
    """Those a in [2 ** 52, 2 ** 53) whose a / b lies next to the middle between two numbers."""
    for bits in (53, 54):
        inverse = pow(2**bits, -1, b)
        for off in range(-15, 16, 2):  # a * 2 ** bits = odd number * b + off
            a = inverse * off % b
            if 2**52 <= a < 2**53:
                yield a


def test_quotient__comes_in_the_steps_of_a_gpu() -> None:
    """Also with the highest mantissas, and where the quotient is all but a tie of rounding."""
    rng = np.random.default_rng(6)
    dividers = np.r_[
        2**53 - np.arange(1, 130), 2**52 + np.arange(1, 60), rng.integers(2**52, 2**53, 300)
    ]
    tried = 0
    for b in map(int, dividers):
        hard = near_the_middle(b) if b % 2 else ()
        for a in (2**52, 2**53 - 1, b - 1, b, b + 1, *rng.integers(2**52, 2**53, 3), *hard):
            x, y = float(a) * 2.0**-340, float(b) * 2.0**-60
            assert divided(x, y) == x / y, (a, b)
            tried += 1
    assert tried > 5000


@lean
def exact_sums(x: Any, y: Any, out: Any) -> None:
    total, left_out = simd.exact_sum(load(x, 0), load(y, 0))
    store(out, 0, total)
    store(out, 8, left_out)
    store(out, 16, simd.in_80_bits(total, left_out))


def test_exact_sum__keeps_what_rounding_leaves_out() -> None:
    x = np.array([1.0, 1.0, 1e-30, 3.5, 0.0, 0.1, 1.0, 1 / 3])
    y = np.array([1e-30, 2.0**-53, 1.0, 0.25, 0.0, 0.2, 3 * 2.0**-64, 1e-9])
    out = np.empty(24)
    exact_sums(x, y, out)
    total, left_out, rounded = out.reshape(3, 8)
    assert (total == x + y).all()
    for each in zip(x, y, total, left_out, strict=True):
        a, b, c, d = map(Fraction, each)
        assert a + b == c + d
    assert rounded[:5].tolist() == [0, 2.0**-53, 0, 0, 0]  # 64 bits
    assert rounded[6] == 2.0**-62  # of 1 + 1.5 ulps, a tie
    assert (abs(rounded - left_out) <= 2.0**-64 * total).all()


@pytest.mark.parametrize("function", [exponentials, logarithms, log2_factorials])
def test_value__does_not_depend_on_its_neighbours(function: Any) -> None:
    x = np.random.default_rng(4).uniform(0.1, 30, 64)
    alone = [applied(function, np.full(LANES, each))[3] for each in x]
    np.testing.assert_array_equal(applied(function, x), alone)

"""Vectors of eight float64 against Python's own functions."""

import math
from typing import Any

import numpy as np
import pytest

from kernels import simd
from kernels.jit import lean
from kernels.simd import LANES, load, splat, store

EPSILON = np.finfo(float).eps


@lean
def exponentials(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.exp(load(x, at)))


@lean
def logarithms(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.log(load(x, at)))


@lean
def log_factorials(x: Any, out: Any) -> None:
    for at in range(0, x.shape[0], LANES):
        store(out, at, simd.log_factorial(load(x, at)))


@lean
def arithmetic(x: Any, y: Any, out: Any) -> bool:
    a, b = load(x, 0), load(y, 0)
    store(out, 0, a + b)
    store(out, 8, a - b)
    store(out, 16, a * b)
    store(out, 24, a / b)
    store(out, 32, simd.greater(a, b))
    store(out, 40, simd.smaller(a, b))
    store(out, 48, simd.fused(a, b, splat(1.0)))
    store(out, 56, simd.where_above(a, b, splat(1.0), splat(2.0)))
    store(out, 64, simd.absolute(a))
    return simd.any_above(a, b)


def applied(function: Any, x: Any) -> Any:
    out = np.empty_like(x)
    function(x, out)
    return out


def test_arithmetic__is_that_of_numpy() -> None:
    x = np.array([1.0, -2.0, 3.5, 0.0, -0.0, 1e30, 7.0, -8.25])
    y = np.array([2.0, -3.0, 3.5, 4.0, 5.0, 2e29, -7.0, 0.5])
    out = np.empty(72)
    assert arithmetic(x, y, out)
    expected = [x + y, x - y, x * y, x / y, np.maximum(x, y), np.minimum(x, y), x * y + 1]
    expected += [np.where(x > y, 1.0, 2.0), np.abs(x)]
    np.testing.assert_allclose(out.reshape(9, 8), expected, rtol=EPSILON)
    assert not arithmetic(y, np.maximum(x, y), out)


def test_exp__is_right_to_an_ulp() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-708, 709, 4000), rng.uniform(-1, 1, 4000)])
    np.testing.assert_allclose(
        applied(exponentials, x), [math.exp(each) for each in x], rtol=1.01 * EPSILON
    )


def test_exp__stays_finite_and_above_0_beyond_its_range() -> None:
    x = np.array([-1e300, -709.0, -708.0, 0.0, -0.0, 709.0, 710.0, 1e300])
    got = applied(exponentials, x)
    assert got[0] == got[1] == got[2] > 0
    assert got[5] == got[6] == got[7] < np.inf
    assert got[3] == got[4] == 1


@pytest.mark.parametrize(("low", "high"), [(-700, 700), (-0.7, 0.7), (-1e-7, 1e-7)])
def test_log__is_right_to_two_ulps(low: float, high: float) -> None:
    x = np.exp(np.random.default_rng(2).uniform(low, high, 8000))
    expected = [math.log(each) for each in x]
    np.testing.assert_allclose(applied(logarithms, x), expected, rtol=2 * EPSILON)


def test_log_factorial__is_right_between_whole_numbers_too() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([np.arange(200.0), rng.uniform(0, 20, 3800), rng.uniform(0, 1e7, 4000)])
    expected = [math.lgamma(each + 1) for each in x]
    np.testing.assert_allclose(applied(log_factorials, x), expected, rtol=8 * EPSILON, atol=4e-14)


@pytest.mark.parametrize("function", [exponentials, logarithms, log_factorials])
def test_value__does_not_depend_on_its_neighbours(function: Any) -> None:
    x = np.random.default_rng(4).uniform(0.1, 30, 64)
    alone = [applied(function, np.full(LANES, each))[3] for each in x]
    np.testing.assert_array_equal(applied(function, x), alone)

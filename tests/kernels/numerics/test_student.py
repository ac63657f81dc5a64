"""The surprise of a t statistic."""

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.backends import GPUS, backends
from support.examples import trials

from multigpu.kernels.device.launch import source
from multigpu.kernels.numerics import student
from multigpu.kernels.segmentation import cpu, reference

SURPRISES = """
extern "C" __global__ void surprises(const double* t2, const double* df, int n, double* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = surprise(t2[i], df[i]);
}
"""


backend = backends("segmentation")
cuda = backends("segmentation", GPUS)


def surprises(backend: Any, t2: Any, df: Any) -> Any:
    if backend is cpu:
        return np.array([student.surprise(*pair) for pair in zip(t2, df, strict=True)])
    cupy = backend.cupy
    code = source("numerics", "student.cuh") + SURPRISES
    kernel = cupy.RawModule(code=code, options=("--std=c++17", "--fmad=false"))
    arrays = [cupy.asarray(t2), cupy.asarray(df)]
    out = cupy.empty(len(t2), np.float64)
    blocks = -(-len(t2) // 256)
    kernel.get_function("surprises")((blocks,), (256,), (*arrays, np.int32(len(t2)), out))
    return out.get()


def test_surprise__is_that_of_scipy(backend: Any) -> None:
    # Imported here, because every process that collects tests would wait for it.
    from scipy import stats

    rng = np.random.default_rng(8)
    df = np.exp(rng.uniform(0.01, np.log(1e6), 20_000))
    t = np.exp(rng.uniform(np.log(1e-4), np.log(60), 20_000))
    expected = -stats.t.logsf(t, df)
    near = expected < 650  # SciPy's tail is 0 from 745 on
    assert near.sum() > 15_000
    got = surprises(backend, t * t, df)
    np.testing.assert_allclose(got[near], expected[near], rtol=1e-12)


def test_surprise__far_out_is_that_of_the_series(backend: Any) -> None:
    rng = np.random.default_rng(9)
    df = np.exp(rng.uniform(np.log(2), np.log(3000), 5000))
    expected = rng.uniform(600, 10_000, 5000)
    t2 = df * np.expm1(np.minimum(2 * expected / (df + 1), 600.0))  # about there
    expected = -reference.log_tail(np.sqrt(t2), df)
    assert expected.max() > 9000
    np.testing.assert_allclose(surprises(backend, t2, df), expected, rtol=1e-12)


def test_surprise__has_the_bits_of_the_cpu(cuda: Any) -> None:
    rng = np.random.default_rng(13)
    df = np.exp(rng.uniform(0.01, np.log(1e6), 30_000))
    t2 = np.exp(rng.uniform(-150, 12, 30_000))
    np.testing.assert_array_equal(surprises(cuda, t2, df), surprises(cpu, t2, df))


@given(st.floats(-0.999, 10) | st.floats(1e-300, 1e300))
def test_ln_1p__is_right_to_six_last_bits(x: float) -> None:
    assert abs(student.ln_1p(x) - math.log1p(x)) <= 6 * math.ulp(math.log1p(x))


def test_compared__is_certain_only_of_what_is_so() -> None:
    assert student.surprise(0.0, 100.0) == np.log(2)  # of no difference
    rng = np.random.default_rng(10)
    certain, count = 0, trials(20_000)
    for _ in range(count):
        df = float(np.exp(rng.uniform(np.log(1.02), np.log(5000))))
        t2 = float(np.exp(rng.uniform(np.log(1e-6), np.log(1e5))))
        more = float(np.exp(rng.uniform(np.log(1e-3), np.log(2 * df))))
        bound = 2 * more * t2 * (1 + t2) / df**2
        less_t2 = t2 - bound * (1 + 1e-6)  # as close as a claim may be
        pairs = [(t2, df, rng.uniform(0.5, 2) * t2, df + rng.uniform(-0.5, 1) * df)]
        if less_t2 > 0:
            pairs.append((less_t2, df + more, t2, df))
        for pair in pairs:
            sign = student.compared(*pair)
            assert student.compared(*pair[2:], *pair[:2]) == -sign
            difference = student.surprise(*pair[:2]) - student.surprise(*pair[2:])
            assert sign * difference >= 0, pair
            certain += sign != 0
    assert certain > count

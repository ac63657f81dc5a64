"""The model on a GPU, or on the emulator: the bits of the CPU."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.backends import GPUS, backends, on_host
from support.model_counts import cohort

from multigpu.kernels.cnmops import cpu
from multigpu.kernels.cnmops.types import Model, Result

# Samples and classes: teams of all sizes, with and without empty slots; from 230 × 12 on a team is
# a block, and densities of 3,100 × 9 are not kept.
TEAMS = [
    (2, 3), (3, 12), (4, 5), (5, 9), (8, 10), (9, 9), (13, 4), (15, 9), (16, 9), (17, 7), (23, 12),
    (31, 11), (33, 9), (47, 3), (50, 9), (64, 9), (69, 8), (70, 12), (200, 9), (230, 12),
    (90, 40), (285, 9), (300, 9), (1000, 9), (2500, 9), (3100, 9),
]  # fmt: skip


backend = backends("cnmops", GPUS)


def assert_same(got: Result, expected: Result, what: object = "") -> None:
    for name in ("level", "alpha", "ini", "sini", "cn_index", "posterior"):
        if (wanted := getattr(expected, name)) is not None:
            found = on_host(getattr(got, name))
            np.testing.assert_array_equal(found, wanted, f"{what} {name}")


def counts_of_all_kinds(rng: np.random.Generator, samples: int) -> Any:
    """float64 whole numbers: ordinary regions, all posteriors 0 or 1, levels that go far, odd ones.

    In the last ones a few samples have thousands of times the reads of the others, so that levels
    move far from their anchors, and densities the range of float64.
    """
    ordinary = [cohort(rng, 4, samples, mean) for mean in (3, 60, 500, 30_000)]
    wild = rng.integers(0, 10 ** rng.integers(1, 8, (6, 1)), (6, samples))
    wild[rng.random(wild.shape) < 0.3] = 0
    wild[:, 0] *= 10
    return np.concatenate([*ordinary, wild]).astype(np.float64)


def models_of(rng: np.random.Generator, classes: int) -> list[Model]:
    changes = tuple(np.sort(rng.uniform(0.02, 5, classes)).tolist())
    main = int(rng.integers(classes))
    more: dict[str, Any] = {"fold_changes": changes, "main": main, "posterior": True}
    return [
        Model(**more, min_read_count=float(rng.integers(9))),
        Model(**more, cycles=int(rng.integers(1, 6)), prior_impact=10.0, min_read_count=1),
        Model(**more, kind="single", min_read_count=1),
        Model(**more, kind="reference", prior_impact=3.0, min_read_count=0),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("unit", [True, False], ids=["unit", "coverages"])
@pytest.mark.parametrize("shape", TEAMS, ids=str)
def test_model__is_the_same_bits_on_gpus(backend: Any, shape: tuple[int, int], unit: bool) -> None:
    samples, classes = shape
    rng = np.random.default_rng([samples, classes, unit])
    for whole, options in product((True, False), models_of(rng, classes)):
        counts = counts_of_all_kinds(rng, samples)[:: 1 + samples // 400]
        counts = counts.astype(np.int32) if whole else counts * rng.uniform(0.5, 1.5)
        cov = np.ones(samples) if unit else rng.uniform(0.6, 1.6, samples)
        scale = rng.uniform(0.8, 1.2, samples) if rng.random() < 0.7 else None
        if options.kind == "cohort":
            given = (counts, cov, options, scale)
            assert_same(backend.model(*given), cpu.model(*given), options)
            continue
        level = cpu.level_of_controls(counts[:, : max(1, samples // 2)])
        given = (counts, level, cov, options, scale)
        assert_same(backend.model_against(*given), cpu.model_against(*given), options)


@pytest.mark.parametrize("samples", [15, 300])
def test_model__of_pieces(backend: Any, samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, ones = cohort(np.random.default_rng(22), 30, samples), np.ones(samples)
    monkeypatch.setitem(backend.upload.__globals__, "PIECE", counts[:7].nbytes)
    options = Model(posterior=True)
    assert_same(backend.model(counts, ones, options), cpu.model(counts, ones, options))


@pytest.mark.parametrize("whole", [True, False])
def test_level__is_the_same_bits_on_cpu_and_gpu(backend: Any, whole: bool) -> None:
    rng = np.random.default_rng(19)
    for samples in (1, 2, 9, 15, 33):
        controls = counts_of_all_kinds(rng, samples)
        controls = controls.astype(np.int32) if whole else controls * 0.7
        for scale in (None, rng.uniform(0.8, 1.2, samples)):
            got = on_host(backend.level_of_controls(controls, scale))
            np.testing.assert_array_equal(got, cpu.level_of_controls(controls, scale))


@pytest.mark.gpu
def test_model__is_the_same_bits_on_cpu_and_gpu_in_a_hundred_thousand_regions() -> None:
    from multigpu.kernels.cnmops import cuda

    rng = np.random.default_rng(20)
    for mean in (30.0, 100.0, 2000.0):
        counts, ones = cohort(rng, 100_000, 15, mean), np.ones(15)
        assert_same(cuda.model(counts, ones, Model()), cpu.model(counts, ones, Model()), mean)


def test_model__takes_counts_from_the_device(backend: Any) -> None:
    counts = cohort(np.random.default_rng(18), 20, 4)
    on_device = backend.cupy.asarray(counts)
    ones = np.ones(4)
    assert_same(backend.model(on_device, ones, Model()), cpu.model(counts, ones, Model()))
    turned = backend.cupy.asarray(np.ascontiguousarray(counts.T)).T
    for wrong in (backend.cupy.asarray(counts.astype(np.int64)), turned):
        with pytest.raises(TypeError, match="must be int32 or float64 and C-contiguous"):
            backend.model(wrong, np.ones(4), Model())

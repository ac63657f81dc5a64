"""Counts without waves: sums and products as plain NumPy has them, and waves that were planted."""

import numpy as np
import pytest

from multigpu.kernels.normalization import covariates
from multigpu.kernels.normalization.covariates import LEVELS, ROUNDED, bins_of, correction

RANDOM = np.random.default_rng(3)


def cohort(
    regions: int = 5000, samples: int = 6, reads: float = 100, wave: float = 0.2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts with a wave of each sample, GC content, and the waves."""
    gc = np.clip(RANDOM.normal(0.42, 0.07, regions), 0, 1)
    phase = np.linspace(0, 2 * np.pi, samples, endpoint=False)
    waves = 1 + wave * np.sin(10 * (gc[:, None] - 0.42) + phase)
    effects = np.exp(RANDOM.normal(0, 0.3, (regions, 1))) * (1 - gc[:, None])
    depths = RANDOM.uniform(0.7, 1.4, samples)
    return RANDOM.poisson(reads * effects * waves * depths).astype(np.int32), gc, waves


def spread(values: np.ndarray) -> float:
    """Return how far values [regions, samples] are from products of a region and a sample."""
    logs = np.log(values)
    logs -= np.median(logs, axis=1, keepdims=True)
    return float((logs - np.median(logs, axis=0)).std())


def everywhere(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(len(counts), bool), np.ones(counts.shape[1], bool)


@pytest.mark.parametrize("dtype", [np.int32, np.float64])
def test_apply__as_in_plain_numpy_for_any_number_of_threads(dtype: type) -> None:
    counts, gc, _ = cohort(2 * ROUNDED + 99, 3, 5)
    gc[:50] = np.nan
    found = correction([counts.astype(dtype)], gc, *everywhere(counts))
    exact = counts * np.where(found.level < 0, 1, found.factors[found.level].T).T
    wanted = exact.copy()
    if dtype is np.int32:
        for begin in range(0, len(counts), ROUNDED):
            rest = np.zeros(3)
            for row in range(begin, min(begin + ROUNDED, len(counts))):
                if found.level[row] >= 0:
                    value = exact[row] + rest
                    wanted[row] = np.where(counts[row] > 0, np.floor(value + 0.5), 0)
                    rest = value - wanted[row]
    for threads in (1, 5):
        values, other = counts.astype(dtype), correction([counts], gc, *everywhere(counts), threads)
        assert (other.factors == found.factors).all()
        assert other.apply(values, slice(None), threads) is None
        assert (values == wanted).all()
    assert abs(values.sum(axis=0) - exact.sum(axis=0)).max() <= 2


@pytest.mark.parametrize(
    ("regions", "reads", "left"), [(40_000, 60, 0.07), (5000, 100, 0.12), (600, 600, 0.2)]
)
def test_waves__are_gone_and_what_is_shared_stays(regions: int, reads: float, left: float) -> None:
    counts, gc, waves = cohort(regions, 8, reads)
    found = correction([counts], gc, *everywhere(counts))
    factors = found.factors[found.level]
    assert spread(waves * factors) < left * spread(waves)
    assert np.quantile(abs(np.median(factors, axis=1) - 1), 0.98) < 0.05


def test_reference__samples_keep_what_they_share() -> None:
    counts, gc, waves = cohort(20_000, 5, 200)
    counts[:, 1:] = RANDOM.poisson(counts[:, 1:] / waves[:, 1:] * waves[:, :1])
    is_reference = np.arange(5) > 0
    tables = [np.ascontiguousarray(counts[:, :1]), np.ascontiguousarray(counts[:, 1:])]
    found = correction(tables, gc, everywhere(counts)[0], is_reference)
    assert np.quantile(abs(found.factors[found.level] - 1), 0.98) < 0.05
    alone = correction([counts[:, :1].copy()], gc, *everywhere(counts[:, :1]))
    fixed = counts[:, 0] * alone.factors[alone.level, 0]
    by_gc = [fixed[(gc > low) & (gc <= low + 0.05)].mean() for low in np.arange(0.3, 0.5, 0.05)]
    assert max(by_gc) < 1.1 * min(by_gc)


def test_changes__of_copies_hide_in_no_factor() -> None:
    counts, gc, _ = cohort(600, 6, 600, wave=0)
    gc[100:120] = 0.5 + RANDOM.normal(0, 0.002, 20)
    counts[100:112, 0] //= 2
    counts[100:120, 1] = counts[100:120, 1] * 3 // 2
    found = correction([counts], gc, *everywhere(counts))
    assert found.factors[found.level][100:120] == pytest.approx(1, abs=0.12)


def test_nonsense__is_not_made_of_little() -> None:
    counts, gc, _ = cohort(600, 5)
    counts[:, 1], counts[:, 2] = 0, RANDOM.random(600) < 0.01
    found = correction([counts], gc, *everywhere(counts))
    assert np.isfinite(found.factors).all()
    assert (found.factors[:, 1] == 1).all()
    assert found.factors[:, 2] == pytest.approx(1, abs=0.02)
    for same in (np.full(600, 0.4), np.full(600, np.nan)):
        found = correction([counts], same, *everywhere(counts))
        assert found.bins == 1
    for few in (counts[:0], counts[:1], counts[:30]):
        values = few.copy()
        correction([few], gc[: len(few)], *everywhere(few)).apply(values, slice(None))
        assert abs(values - few).max(initial=0) <= 0.2 * few.max(initial=0) + 1
    none = correction([counts], gc, np.zeros(600, bool), np.ones(5, bool))
    assert (none.factors == 1).all()


def test_bins__have_about_as_many_regions_each() -> None:
    regions = np.zeros(LEVELS + 1, np.int64)
    regions[[300, 301, 400, 401, 402]] = [500, 400, 6, 7, 30_000]
    bins = bins_of(regions)
    assert (np.diff(bins) >= 0).all()
    assert set(np.diff(np.unique(bins))) == {1}
    assert bins[300] != bins[301] != bins[402]
    assert bins[400] == bins[401]
    assert covariates.weighted_median(np.array([[1.0], [2], [9]]), np.array([1.0, 1, 3])) == [[9]]

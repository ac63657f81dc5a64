"""The model in plain NumPy, all regions at once. The tests' oracle."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.types import (
    LEAST_LEVEL,
    LEAST_REFERENCE,
    Floats,
    Model,
    ModelError,
    Result,
    checked,
    checked_level,
)

log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


def model(counts: NDArray[Any], cov: Floats, options: Model, scale: Floats | None = None) -> Result:
    """The mixture of Poissons of every region, its level estimated from the samples.

    counts  float64 or int32[regions, samples], none negative
    cov     float64[samples], the samples' coverages: 1 where counts are normalized
    scale   float64[samples], what the counts are multiplied by first; None: 1. They are size
            factors of whole-numbered counts; fractions are multiplied by `apply` of the
            normalization, which makes regions empty where all are below 1
    raises  ModelError for fewer than two samples or coverages that are not above 0
    """
    x = checked(counts, cov, scale, options).astype(np.float64) * (1.0 if scale is None else scale)
    covered = (x > options.min_read_count).any(axis=1)
    level, alpha, posterior = _of_nothing(x, options)
    level[covered], alpha[covered], posterior[covered] = _estimated(x[covered], cov, options)
    return _result(level, alpha, posterior, options)


def model_against(
    counts: NDArray[Any], level: Floats, cov: Floats, options: Model, scale: Floats | None = None
) -> Result:
    """Do what `model` does at given levels above 0, float64[regions]: of controls or a sample."""
    checked_level(level, counts)
    x = checked(counts, cov, scale, options).astype(np.float64) * (1.0 if scale is None else scale)
    covered = (x > options.min_read_count).any(axis=1) | (level > options.min_read_count)
    _, alpha, posterior = _of_nothing(x, options)
    rates = np.multiply.outer(level[covered], options.changes())
    likelihood = np.maximum(_poisson(x[covered], cov, rates), options.floor)
    weighted = likelihood * options.weights(x.shape[1])
    posterior[covered] = weighted / _sum_of_classes(weighted.astype(np.longdouble)).astype(
        np.float64
    )
    alpha[covered] = posterior[covered].mean(axis=2)
    return _result(level, alpha, posterior, options)


def level_of_controls(
    controls: NDArray[Any], scale: Floats | None = None, cov: Floats | None = None
) -> Floats:
    """float64[regions]: the mean of the controls' counts, at least 1e-5.

    scale   float64[controls]: their size factors, by which counts are multiplied
    cov     float64[controls]: their coverages (`norm=2`), by which they are divided
    """
    scaled = controls.astype(np.float64) * (1.0 if scale is None else scale)
    scaled /= 1.0 if cov is None else cov
    return np.asarray(np.maximum(scaled.mean(axis=1), LEAST_REFERENCE))


def level_of_sample(counts: NDArray[Any]) -> float:
    """Return the median of counts that are not 0. Raises ModelError where all are."""
    if not (reads := counts[counts > 0]).size:
        raise ModelError("a chromosome without any read has no level of its own")
    return float(np.median(reads))


def _of_nothing(x: Floats, options: Model) -> tuple[Floats, Floats, Floats]:
    """Level, weights and posterior where the counts tell nothing: the main class, surely."""
    main = np.arange(options.classes) == options.main
    alpha = np.tile(main.astype(np.float64), (len(x), 1))
    return np.zeros(len(x)), alpha, np.repeat(alpha[:, :, None], x.shape[1], axis=2)


def _estimated(x: Floats, cov: Floats, options: Model) -> tuple[Floats, Floats, Floats]:
    changes, prior = options.changes(), options.prior()
    over_cov = x / cov
    level = np.median(over_cov, axis=1)
    low = level < LEAST_LEVEL
    level[low] = np.maximum(over_cov[low].mean(axis=1), 1)
    alpha = np.tile(options.start(), (len(x), 1))
    rates = np.multiply.outer(level, changes * changes)  # R multiplies twice in the first cycle
    posterior = np.empty((len(x), options.classes, x.shape[1]))
    for _ in range(options.cycles):
        weighted = np.maximum(alpha[:, :, None] * _poisson(x, cov, rates), options.floor)
        posterior = weighted / _sum_of_classes(weighted)
        alpha = (posterior.mean(axis=2) + prior) / (1 + prior.sum())
        level = x.sum(axis=1) / np.einsum("rik,i,k->r", posterior, changes, cov)
        rates = np.multiply.outer(level, changes)
    return level, alpha, posterior


def _sum_of_classes(values: NDArray[Any]) -> NDArray[Any]:
    """[regions, 1, samples]: values of [regions, classes, samples], added from the first class on.

    NumPy's sums take another order where there is one sample.
    """
    total = np.zeros_like(values[:, :1])
    for i in range(values.shape[1]):
        total += values[:, i : i + 1]
    return total


def _poisson(x: Floats, cov: Floats, rates: Floats) -> Floats:
    """float64[regions, classes, samples]: the density, also between whole numbers."""
    mean = rates[:, :, None] * cov
    return np.asarray(np.exp(x[:, None] * np.log(mean) - mean - log_gamma(x + 1)[:, None]))


def _result(level: Floats, alpha: Floats, posterior: Floats, options: Model) -> Result:
    bits = np.log2(options.changes())[:, None]
    informative = _sum_of_classes(posterior * np.abs(bits))[:, 0]
    return Result(
        level=level,
        alpha=alpha,
        ini=informative.astype(np.longdouble).mean(axis=1).astype(np.float64),
        sini=np.asfortranarray(_sum_of_classes(posterior * bits)[:, 0]),
        cn_index=np.asfortranarray(posterior.argmax(axis=1).astype(np.int8)),
        posterior=posterior if options.posterior else None,
        fold_changes=options.changes(),
    )

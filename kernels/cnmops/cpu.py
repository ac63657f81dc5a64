"""The model in Numba, in several threads, without the GIL; `cpu_loops.py` has the loops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.cpu_loops import Constants, Out, estimate, work_for
from multigpu.kernels.cnmops.numbers import lanes_of, log2, numbers_of
from multigpu.kernels.cnmops.types import (
    LEAST_REFERENCE,
    Floats,
    Model,
    Result,
    checked,
    checked_level,
    ones_or,
)
from multigpu.kernels.compiled.parallel import over_spans

LEAST_SPAN = 1024  # regions, for a thread


def model(
    counts: NDArray[Any],
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
    level: Floats | None = None,
) -> Result:
    """Do what `reference.model` does or, where levels are given, `reference.model_against`."""
    checked(counts, cov, scale, options)
    x = np.ascontiguousarray(counts, np.int32 if counts.dtype == np.int32 else np.float64)
    (regions, samples), coverages = x.shape, np.array(cov, np.float64)
    team, is_given = lanes_of(samples, options.classes), level is not None
    weights = np.ones((samples, options.classes))
    constants = Constants(
        *numbers_of(samples, options),
        is_level_given=is_given,
        weights=np.ascontiguousarray(options.weights(samples).T) if is_given else weights,
        least_density=options.floor if is_given else 0.0,
        floor=0.0 if is_given else options.floor,
        scale=ones_or(scale, samples),
        cov=coverages,
        log_cov=log2(coverages),
        ones=np.ones(samples),
        is_unit=bool((coverages == 1).all()),
        first_cycle=1 if is_given else 0,
        cycles=2 if is_given else options.cycles,
        least=float(options.min_read_count),
        classes=tuple(range(options.classes)),
    )
    if is_given:  # posteriors alone make the weights
        constants = constants._replace(start=np.ones(options.classes), impact=0.0)
    # Answers of regions that are not covered.
    out = Out(
        level=np.zeros(regions) if level is None else np.array(level, np.float64),
        alpha=np.zeros((regions, options.classes)),
        ini=np.zeros(regions),
        sini=np.zeros((samples, regions)),
        cn_index=np.full((samples, regions), options.main, np.int8),
        posterior=np.zeros((regions if options.posterior else 0, options.classes, samples)),
    )
    out.alpha[:, options.main] = 1
    out.posterior[:, options.main] = 1

    def work(begin: int, stop: int) -> None:
        estimate(x, begin, stop, constants, work_for(samples, options.classes, team), out)

    over_spans(work, regions, threads, LEAST_SPAN)
    return Result(
        level=out.level,
        alpha=out.alpha,
        ini=out.ini,
        sini=out.sini.T,
        cn_index=out.cn_index.T,
        posterior=out.posterior if options.posterior else None,
        fold_changes=options.changes(),
    )


def model_against(
    counts: NDArray[Any],
    level: Floats,
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
) -> Result:
    """Do what `reference.model_against` does."""
    return model(counts, cov, options, scale, threads, checked_level(level, counts))


def level_of_controls(
    controls: NDArray[Any], scale: Floats | None = None, cov: Floats | None = None
) -> Floats:
    """Return what `reference.level_of_controls` does; counts are added in order, as on GPUs."""
    total, samples = np.zeros(len(controls)), controls.shape[1]
    factors, coverages = ones_or(scale, samples), ones_or(cov, samples)
    for k in range(samples):
        total += controls[:, k] * factors[k] / coverages[k]
    return np.asarray(np.maximum(total / samples, LEAST_REFERENCE))

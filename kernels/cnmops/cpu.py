"""The model in Numba, in several threads, without the GIL; `cpu_regions.py` has the loops."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops import reference
from multigpu.kernels.cnmops.cpu_blocks import UNROLLED, Constants, Out, work_for
from multigpu.kernels.cnmops.cpu_regions import add_up, compare, estimate, find_covered
from multigpu.kernels.cnmops.numbers import lanes_of, log2, numbers_of
from multigpu.kernels.cnmops.types import (
    LEAST_REFERENCE,
    Floats,
    Model,
    Result,
    checked,
    checked_level,
)
from multigpu.kernels.compiled.parallel import over_spans

LEAST_SPAN = 1024  # regions, for a thread

level_of_sample = reference.level_of_sample


def model(
    counts: NDArray[Any],
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
) -> Result:
    """Do what `reference.model` does."""
    x, constants = _prepared(counts, cov, options, scale)
    out = _empty(x, options)

    def work(begin: int, stop: int) -> None:
        rows = np.flatnonzero(_covered(x[begin:stop], constants)) + begin
        estimate(x, rows, constants, work_for(x.shape[1], options.classes, constants.team), out)

    over_spans(work, len(x), threads, LEAST_SPAN)
    return _result(out, options)


def model_against(
    counts: NDArray[Any],
    level: Floats,
    cov: Floats,
    options: Model,
    scale: Floats | None = None,
    threads: int = 1,
) -> Result:
    """Do what `reference.model_against` does."""
    x, constants = _prepared(counts, cov, options, scale)
    weights = np.ascontiguousarray(options.weights(x.shape[1]).T)
    constants = constants._replace(is_level_given=True, weights=weights, floor=0.0)
    out = _empty(x, options)
    out.level[:] = checked_level(level, x)

    def work(begin: int, stop: int) -> None:
        above = out.level[begin:stop] > options.min_read_count
        rows = np.flatnonzero(_covered(x[begin:stop], constants) | above) + begin
        arrays = work_for(x.shape[1], options.classes, constants.team)
        compare(x, rows, options.floor, constants, arrays, out)

    over_spans(work, len(x), threads, LEAST_SPAN)
    return _result(out, options)


def level_of_controls(
    controls: NDArray[Any], scale: Floats | None = None, cov: Floats | None = None
) -> Floats:
    """Return what `reference.level_of_controls` does."""
    level, samples = np.empty(len(controls)), controls.shape[1]
    add_up(_usable(controls), _ones_or(scale, samples), _ones_or(cov, samples), level)
    return np.asarray(np.maximum(level / controls.shape[1], LEAST_REFERENCE))


def _prepared(
    counts: NDArray[Any], cov: Floats, options: Model, scale: Floats | None
) -> tuple[NDArray[Any], Constants]:
    checked(counts, cov, scale, options)
    coverages = np.array(cov, np.float64)
    samples = len(coverages)
    return _usable(counts), Constants(
        *numbers_of(samples, options),
        is_level_given=False,
        weights=np.empty((0, 0)),
        scale=_ones_or(scale, samples),
        cov=coverages,
        log_cov=log2(coverages),
        is_unit=bool((coverages == 1).all()),
        team=lanes_of(samples, options.classes)[0],
        cycles=options.cycles,
        least=float(options.min_read_count),
        floor=options.floor,
        classes=tuple(range(options.classes)) if options.classes in UNROLLED else (),
    )


def _usable(counts: NDArray[Any]) -> NDArray[Any]:
    kind = np.int32 if counts.dtype == np.int32 else np.float64
    return np.ascontiguousarray(counts, kind)


def _ones_or(values: Floats | None, samples: int) -> Floats:
    return np.ones(samples) if values is None else np.array(values, np.float64)


def _empty(x: NDArray[Any], options: Model) -> Out:
    """Return arrays with the answers of regions that are not covered."""
    regions, samples = x.shape
    out = Out(
        level=np.zeros(regions),
        alpha=np.zeros((regions, options.classes)),
        ini=np.zeros(regions),
        sini=np.zeros((samples, regions)),
        cn_index=np.full((samples, regions), options.main, np.int8),
        posterior=np.zeros((regions if options.posterior else 0, options.classes, samples)),
    )
    out.alpha[:, options.main] = 1
    out.posterior[:, options.main] = 1
    return out


def _result(out: Out, options: Model) -> Result:
    return Result(
        level=out.level,
        alpha=out.alpha,
        ini=out.ini,
        sini=out.sini.T,
        cn_index=out.cn_index.T,
        posterior=out.posterior if options.posterior else None,
        fold_changes=options.changes(),
    )


def _covered(x: NDArray[Any], constants: Constants) -> NDArray[np.bool_]:
    out = np.zeros(len(x), np.bool_)
    find_covered(x, constants.scale, constants.least, out)
    return out

"""The model on a GPU: `model.cu` through CuPy, compiled for the number of samples and classes.

The floor is arithmetic: a cycle takes four float64 instructions for each sample and class, 21 for
each sample and 15 for each class, the first two 15 more for each sample and class, the last one six
more for each sample and class and 25 for each sample. That is 25,000 for 15 samples, 9 classes and
20 cycles, and 30,000 where four lanes share a region, because they do some of it twice: 12 ms for
6.9 million regions at the 17e12 instructions a second of an H200. Memory (60 bytes in, 220 out) is
no matter.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.cnmops.numbers import (
    LEAST_MOST,
    REACH,
    WARP,
    ModelNumbers,
    lanes_of,
    log2,
    numbers_of,
)
from multigpu.kernels.cnmops.types import (
    LEAST_LEVEL,
    LEAST_REFERENCE,
    Floats,
    Model,
    Result,
    checked,
    checked_level,
    ones_or,
)
from multigpu.kernels.device.launch import POINTER, launch, source, struct, usable
from multigpu.kernels.device.upload import upload

THREADS = 128  # of a block, which has several teams unless a team is a block
SUM_BYTES = 16  # of shared memory that a lane needs for sums

_INPUT = np.dtype(
    [
        (name, POINTER)
        for name in (
            *("counts", "scale", "cov", "log_cov", "levels", "weights"),
            *("changes", "falls", "prior", "start"),
        )
    ]
    + [(name, "<i8") for name in ("begin", "stop", "regions")]
)
_OUTPUT = np.dtype(
    [(name, POINTER) for name in ("level", "alpha", "ini", "sini", "cn_index", "posterior")]
)


def model(counts: Any, cov: Floats, options: Model, scale: Floats | None = None) -> Result:
    """Do what `reference.model` does; counts of NumPy or CuPy, the result on the current device."""
    return _run("estimate", counts, cov, options, scale)


def model_against(
    counts: Any, level: Any, cov: Floats, options: Model, scale: Floats | None = None
) -> Result:
    """Do what `reference.model_against` does; counts and levels of NumPy or CuPy."""
    if not isinstance(level, cupy.ndarray):
        level = cupy.asarray(np.asarray(level, np.float64))
    weights = np.ascontiguousarray(options.weights(counts.shape[1]).T)
    levels = checked_level(level, counts)
    return _run("compare", counts, cov, options, scale, levels, weights)


def level_of_controls(controls: Any, scale: Floats | None = None, cov: Floats | None = None) -> Any:
    """Return what `reference.level_of_controls` does, on the current device."""
    controls, spans = _arriving(controls)
    for _ in spans:
        pass
    samples = controls.shape[1]
    level = cupy.empty(len(controls), np.float64)
    launch(
        _module(samples, 1, True, controls.dtype == np.int32), "mean_of", len(controls), THREADS,
        controls, cupy.asarray(ones_or(scale, samples)), cupy.asarray(ones_or(cov, samples)),
        np.int64(len(controls)), np.float64(LEAST_REFERENCE), level,
    )  # fmt: skip
    return level


def defines(samples: int, classes: int, unit: bool, whole: bool, shared: bool) -> dict[str, object]:
    """Return the macros that `model.cu` is compiled with."""
    return {
        "SAMPLES": samples,
        "CLASSES": classes,
        "TEAM": lanes_of(samples, classes),
        "SHARED": int(shared),
        "UNIT": int(unit),
        "COUNT": "int" if whole else "double",
    }


@cache
def _module(samples: int, classes: int, unit: bool, whole: bool, shared: bool = False) -> Any:
    macros = defines(samples, classes, unit, whole, shared).items()
    # Nothing is contracted: the CPU rounds the same results.
    options = ("--std=c++17", "--fmad=false", *(f"-D{name}={value}" for name, value in macros))
    return cupy.RawModule(code=source("cnmops", "model.cu"), options=options)


def _run(
    kernel: str, counts: Any, cov: Floats, options: Model, scale: Floats | None,
    levels: Any = None, weights: NDArray[np.float64] | None = None,
) -> Result:  # fmt: skip
    checked(counts, cov, scale, options)
    counts, spans = _arriving(counts)
    regions, samples = counts.shape
    cov, size = np.array(cov, np.float64), (samples, options.classes)
    lanes, shared = lanes_of(*size), _shared_bytes(*size)
    module = _module(*size, bool((cov == 1).all()), counts.dtype == np.int32, shared > 0)
    numbers = numbers_of(samples, options)
    arrays = {
        "scale": ones_or(scale, samples),
        "cov": cov,
        "log_cov": log2(cov),
        "weights": weights,
        **{name: getattr(numbers, name) for name in ("changes", "falls", "prior", "start")},
    }
    held = {name: cupy.asarray(each) for name, each in arrays.items() if each is not None}
    constants = _constants(numbers, options)
    result, out = _room(regions, samples, options, held["changes"])
    for begin, stop in spans:
        given = struct(
            _INPUT, counts=counts, levels=levels, begin=begin, stop=stop, regions=regions, **held
        )
        launch(
            module, kernel, (stop - begin) * lanes, lanes if lanes > WARP else THREADS,
            given, constants, out, shared=shared,
        )  # fmt: skip
    return result


def _shared_bytes(samples: int, classes: int) -> int:
    """Return what a block keeps of a region in shared memory; 0 for those in one warp, or no room.

    Answers do not depend on it.
    """
    lanes = lanes_of(samples, classes)
    if lanes <= WARP:
        return 0
    size = -(-samples // lanes) * lanes * (classes + 1) * 8
    room = cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"] - lanes * SUM_BYTES
    return size if size <= room else 0


def _arriving(counts: Any) -> tuple[Any, Iterable[tuple[int, int]]]:
    """Return int32 or float64, C-contiguous, on the device; and spans of rows as they arrive."""
    if isinstance(counts, cupy.ndarray):
        return usable(counts), [(0, len(counts))]
    kind = np.int32 if counts.dtype == np.int32 else np.float64
    return upload(np.ascontiguousarray(counts, kind))


def _constants(numbers: ModelNumbers, options: Model) -> NDArray[Any]:
    """Return the struct `Constants` of team.cuh, in the order of its fields."""
    floats: dict[str, Any] = {
        "changes": numbers.changes,
        "squares": numbers.squares,
        "bits": numbers.bits,
        "sample_weight": numbers.sample_weight,
        "widest": numbers.widest,
        "least": options.min_read_count,
        "floor": options.floor,
        "least_level": LEAST_LEVEL,
        "reach": REACH,
        "least_most": LEAST_MOST,
        "impact": numbers.impact,
    }
    whole = {"cycles": options.cycles, "main": numbers.main}
    fields = [(name, "<f8", np.shape(value)) for name, value in floats.items()]
    fields += [(name, "<i4", ()) for name in whole]
    return struct(np.dtype(fields), **floats, **whole)


def _room(regions: int, samples: int, options: Model, changes: Any) -> tuple[Result, NDArray[Any]]:
    """Allocate the arrays of the result; return them as the caller and as the kernel take them."""
    classes = options.classes
    level, ini = cupy.empty(regions, np.float64), cupy.empty(regions, np.float64)
    alpha = cupy.empty((classes, regions), np.float64)
    sini = cupy.empty((samples, regions), np.float64)
    cn_index = cupy.empty((samples, regions), np.int8)
    posterior = None
    if options.posterior:
        posterior = cupy.empty((regions, classes, samples), np.float64)
    out = struct(
        _OUTPUT, level=level, alpha=alpha, ini=ini, sini=sini, cn_index=cn_index,
        posterior=posterior,
    )  # fmt: skip
    result = Result(level, alpha.T, ini, sini.T, cn_index.T, posterior, changes)
    return result, out

"""The hidden Markov model on the current GPU: `expect.cu` and `paths.cu` through CuPy.

The floor is arithmetic: about 40 float64 instructions for a region, sample and state in each of two
passes, 2.5 ms for 6.9 million regions of 15 samples at the 17e12 instructions a second of an H200.
"""

from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch, launch_blocks, source, struct, usable
from multigpu.kernels.hmm.cpu import emissions_of
from multigpu.kernels.hmm.types import STATES, ExpectedCounts, SampleModel, rows_inside

THREADS = 128
BLOCK = 128  # regions, as in paths.cu


def _fields(pointers: str, **others: str) -> np.dtype[Any]:
    """Return the struct of a kernel: pointers, and then other fields with their types."""
    return np.dtype([*((n, POINTER) for n in pointers.split()), *others.items()], align=True)


_COHORT = _fields(
    "counts inside weights references sizes spread",
    regions="<i8", typical="<f8", worth="<f8", columns="<i4", samples="<i4",
)  # fmt: skip
_INPUT = _fields(
    "counts mean dispersion inside moves folds log_folds noise",
    regions="<i8", blocks="<i8", worth="<f8", cap="<f8",
    columns="<i4", means="<i4", samples="<i4",
)  # fmt: skip


@cache
def _module(name: str, **macros: Any) -> Any:
    options = (
        "--std=c++17",
        "--fmad=false",
        *(f"-D{key}={value}" for key, value in macros.items()),
    )
    return cupy.RawModule(code=source("hmm", name), options=options)


def expect(counts: Any, model: SampleModel, inside: Any = None) -> ExpectedCounts:
    """Return what `reference.expect` does, on the device; counts of NumPy or CuPy."""
    counts = _on_device(counts)
    regions, samples = len(counts), model.samples
    module = _module(
        "expect.cu", COUNT=_type_of(counts), REFERENCES=model.references.shape[1],
        CUT=model.cut, SPREAD=len(model.spread),
    )  # fmt: skip
    arrays = _held(
        inside=rows_inside(inside, regions), weights=model.weights, references=model.references,
        sizes=model.sizes, spread=model.spread,
    )  # fmt: skip
    cohort = struct(
        _COHORT, counts=counts, **arrays, regions=regions, typical=model.dispersion,
        worth=model.worth, columns=counts.shape[1], samples=samples,
    )  # fmt: skip
    mean = cupy.empty((regions, samples), np.float32)
    dispersion = cupy.empty(regions, np.float32)
    launch(module, "means", regions * samples, THREADS, cohort, mean)
    launch(module, "dispersions", regions, THREADS, cohort, mean, dispersion)
    return ExpectedCounts(mean, dispersion)


def paths(
    counts: Any,
    expected: ExpectedCounts,
    model: SampleModel,
    moves: NDArray[np.int32],
    inside: Any = None,
) -> Any:
    """Return what `reference.paths` does, on the device: int8[regions, samples]."""
    counts = _on_device(counts)
    regions, samples = len(counts), model.samples
    blocks = -(-regions // BLOCK)
    emissions = emissions_of(model, model.folds)
    arrays = _held(
        mean=expected.mean, dispersion=expected.dispersion, inside=rows_inside(inside, regions),
        moves=moves, folds=emissions.folds, log_folds=emissions.log_folds, noise=emissions.noise,
    )  # fmt: skip
    given = struct(
        _INPUT, counts=counts, **arrays, regions=regions, blocks=blocks, worth=emissions.worth,
        cap=emissions.cap, columns=counts.shape[1], means=expected.mean.shape[1], samples=samples,
    )  # fmt: skip
    path, back = (cupy.empty((regions, samples), kind) for kind in (np.int8, np.uint16))
    if not path.size:
        return path
    tasks, size = blocks * samples, (np.int64(blocks), np.int32(samples))
    products, starts = (cupy.empty(n * tasks, np.int32) for n in (STATES * STATES, STATES))
    maps, ends = cupy.empty(tasks, np.uint16), cupy.empty(tasks, np.uint8)
    last = cupy.empty(samples, np.uint8)
    module = _module("paths.cu", COUNT=_type_of(counts))
    launch(module, "multiply", tasks, THREADS, given, products)
    launch_blocks(module, "starts", samples, THREADS, *size, products, starts)
    launch(module, "point", tasks, THREADS, given, starts, back, maps, last)
    launch_blocks(module, "ends", samples, THREADS, *size, maps, last, ends)
    launch(module, "trace", tasks, THREADS, given, back, ends, path)
    return path


def log2_ratios(counts: Any, expected: ExpectedCounts, samples: int) -> Any:
    """Return what `reference.log2_ratios` does, on the device."""
    counts, mean = _on_device(counts), expected.mean
    ratios = cupy.empty((len(mean), samples), np.float32)
    launch(
        _module("paths.cu", COUNT=_type_of(counts)), "take_ratios", ratios.size, THREADS, counts,
        mean, np.int64(len(mean)), np.int32(counts.shape[1]), np.int32(mean.shape[1]),
        np.int32(samples), ratios,
    )  # fmt: skip
    return ratios


def _type_of(counts: Any) -> str:
    return "int" if counts.dtype == np.int32 else "double"


def _held(**arrays: Any) -> dict[str, Any]:
    """Return the arrays on the device, where they must live as long as kernels use them."""
    return {name: _there(each) for name, each in arrays.items()}


def _there(array: Any) -> Any:
    if isinstance(array, cupy.ndarray):
        return array
    # Not `asarray`, which keeps page-locked memory of every size.
    there = cupy.empty(array.shape, array.dtype)
    there.set(np.ascontiguousarray(array), stream=cupy.cuda.get_current_stream())
    return there


def _on_device(counts: Any) -> Any:
    """Return the counts as int32 or float64, C-contiguous, on the device."""
    if isinstance(counts, cupy.ndarray):
        return usable(counts)
    kind = np.int32 if counts.dtype == np.int32 else np.float64
    return _there(np.ascontiguousarray(counts, kind))

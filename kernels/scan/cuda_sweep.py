"""The sweep over all positions on a GPU: `sweep.cu` through CuPy, for exact searches and others."""

from functools import cache
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.device.launch import POINTER, launch, source, struct
from multigpu.kernels.scan.sweep_queries import MOST_SELECTED, STEPS, Sweep, plan_sweeps
from multigpu.kernels.scan.types import Limits, Patterns

THREADS = 256
COUNT_THREADS = 64  # as in sweep.cu

CROWDED = np.dtype([("tiles", POINTER), ("any", POINTER), ("n", "<u4"), ("reach", "<u4")])
_QUERIES = np.dtype(
    [(name, POINTER) for name in ("queries", "counted", "exact", "sets", "limits")]
    + [(name, "<u4") for name in ("n", "counted_room", "exact_room", "n_sets", "most", "_")]
)
_SELECTED = np.dtype([("positions", POINTER), ("count", POINTER), ("room", "<u4"), ("_", "<u4")])


@cache
def compiled(name: str, **defines: int) -> Any:
    """Return a CUDA source of this folder as a module, compiled with these constants."""
    options = ("--std=c++17", *(f"-D{key}={value}" for key, value in defines.items()))
    return cupy.RawModule(code=source("scan", name), options=options)


class CountedQueries:
    """A sweep of `sweep.cu` on the current device.

    limits  int32[patterns, 4] on the device, as in `sweep.cu`
    kept    FIRST and BEST of `scan.cuh`
    """

    def __init__(self, sweep: Sweep, limits: Any, strict: bool, kept: dict[str, int]) -> None:
        # An array of no elements has no address.
        padded = [np.append(each, np.uint16(0)) for each in (sweep.sets, sweep.selected)]
        queries, counted, exact, sets, self._selected = self._arrays = [
            cupy.asarray(each)
            for each in (sweep.queries.view(np.uint8), sweep.counted, sweep.exact, *padded)
        ]
        self._n_selected, self._limits = len(sweep.selected), limits
        self._queries = struct(
            _QUERIES, queries=queries, counted=counted, exact=exact, sets=sets, limits=limits,
            n=len(sweep.queries), counted_room=sweep.counted.shape[1] // STEPS,
            exact_room=sweep.exact.shape[1] // STEPS, n_sets=len(sweep.sets), most=sweep.most,
        )  # fmt: skip
        self._module = compiled(
            "sweep.cu", **kept, STRICT=int(strict), PLACES=sweep.places, ROWS=sweep.rows,
            COUNTERS=sweep.counters, LOOK=sweep.look,
        )  # fmt: skip

    def search(
        self,
        samples: NDArray[Any],
        patterns: NDArray[Any],
        hits: NDArray[Any],
        bases: int,
        crowded: NDArray[Any] | None = None,
    ) -> None:
        """Queue a search, in `crowded` tiles or all; arguments are the kernels', but `bases`."""
        words = -(-bases // 32)
        selected = np.zeros((), _SELECTED)
        if self._n_selected:
            room = int(2 * MOST_SELECTED * bases) + 1
            positions, count = cupy.empty(room, np.uint32), cupy.empty(1, np.uint32)
            count.data.memset_async(0, count.nbytes)
            selected = struct(_SELECTED, positions=positions, count=count, room=room)
            chosen = (samples, self._selected, np.uint32(self._n_selected), selected)
            launch(self._module, "select_positions", words, THREADS, *chosen)
            counted = (samples, patterns, hits, self._queries, selected)
            launch(self._module, "count_selected", -(-room // 32), COUNT_THREADS, *counted)
        tiles = np.zeros((), CROWDED) if crowded is None else crowded
        common = (samples, patterns, hits, self._queries, selected, tiles)
        launch(self._module, "count_everywhere", words, COUNT_THREADS, *common)


def queries_of(
    patterns: Patterns,
    limits: Limits,
    chosen: NDArray[np.int64],
    strict: bool,
    kept: dict[str, int],
) -> list[CountedQueries]:
    """Return the sweeps of some of the patterns, which are on the device when this returns."""
    if not len(chosen):
        return []
    on_device = limits_on_device(patterns, limits)
    sweeps = plan_sweeps(patterns.take(chosen), limits.take(chosen))
    for sweep in sweeps:
        sweep.queries["pattern"] = chosen[sweep.queries["pattern"]]
    queries = [CountedQueries(each, on_device, strict, kept) for each in sweeps]
    cupy.cuda.get_current_stream().synchronize()
    return queries


def limits_on_device(patterns: Patterns, limits: Limits) -> Any:
    """Return int32[patterns, 4] on the device: most errors, exact prefix and suffix, 0."""
    # More exact bases than a pattern has make no difference.
    exact = np.minimum([limits.prefix, limits.suffix], patterns.lengths)
    four = [limits.most, *exact, np.zeros_like(limits.most)]
    return cupy.asarray(np.stack(four, axis=1).astype(np.int32))

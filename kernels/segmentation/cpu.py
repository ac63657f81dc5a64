"""Both segmentations in Numba: a track a thread, without the GIL.

Most windows of the fast one are compared without their p values (`student.compared`).
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.numerics.medians import middle_of
from multigpu.kernels.numerics.student import compared, surprise
from multigpu.kernels.numerics.sums import WARP, total
from multigpu.kernels.segmentation import circular
from multigpu.kernels.segmentation.types import (
    LEAST_VARIANCE,
    Circular,
    Floats,
    Rows,
    Segmentation,
    SegmentedTracks,
    check,
    check_lengths,
    cleaned,
    notes,
)

SHORT, BLOCK = 128, 1024  # a span's values are added as by a warp up to SHORT, else as by a block


class WindowRules(NamedTuple):
    """Numbers by which windows grow; `Segmentation` has the others."""

    eps: float
    prior: float  # what the variance of the whole track adds to the squares of a window
    weight: float
    shortest: int
    largest: int
    delta: int


def segment(x: Floats, offsets: Rows, options: Segmentation, threads: int = 1) -> SegmentedTracks:
    """Return what `reference.segment` does."""
    check(x, offsets)
    check_lengths(offsets, options)

    def edges(values: Floats) -> Rows:
        return _merged(values, _pieces(statistic(values, options), options.alpha), options)

    return _of_tracks(edges, x, offsets, threads)


def cbs(x: Floats, offsets: Rows, options: Circular, threads: int = 1) -> SegmentedTracks:
    """Return what `reference.cbs` does, with other random numbers and p values that end early."""
    check(x, offsets)
    return _of_tracks(lambda values: circular.edges(values, options), x, offsets, threads)


def _of_tracks(
    edges_of: Callable[[Floats], Rows], x: Floats, offsets: Rows, threads: int
) -> SegmentedTracks:
    """Return the segments of all tracks.

    edges_of  returns where the segments of a track begin, and the end of the last one
    """
    borders = list(pairwise(offsets.tolist()))

    def work(track: int) -> tuple[Rows, Floats, Floats]:
        first, stop = borders[track]
        values = cleaned(x[first:stop], track)
        edges = edges_of(values) if len(values) else np.zeros(1, np.int64)
        mean = np.empty(len(edges) - 1)
        _set_means(values, edges, np.empty(BLOCK), mean)
        return edges + first, mean, _medians(values, edges)

    with ThreadPoolExecutor(threads, "track") as pool:
        found = list(pool.map(work, range(len(borders))))
    if not found:
        return SegmentedTracks.none()
    edges, mean, median = zip(*found, strict=True)
    return SegmentedTracks(
        track=np.repeat(np.arange(len(found)), [len(each) for each in mean]),
        start=np.concatenate([each[:-1] for each in edges]),
        end=np.concatenate([each[1:] for each in edges]),
        mean=np.concatenate(mean),
        median=np.concatenate(median),
        notes=notes(bool(np.isinf(x).any()), bool(np.isnan(x).any())),
    )


def _merged(x: Floats, pieces: Rows, options: Segmentation) -> Rows:
    """Return the edges of runs of pieces that are gains or losses, and of what lies between."""
    spread = 2 * math.sqrt(variance(x)) if options.limits is None else 0.0
    upper, lower = options.limits or (spread, -spread)
    begins = np.ones(len(pieces) - 1, np.bool_)  # which pieces begin a run
    counts = begins  # which are gains or losses
    if upper != 0 or lower != 0:
        middles = _medians(x, pieces)
        gains, losses = middles > upper, middles < lower
        counts = gains | losses
        begins[1:] = np.diff(gains) | np.diff(losses)
    first = np.flatnonzero(begins)
    start, end = pieces[first], pieces[np.append(first[1:], len(begins))]
    kept = counts[first] & (end - start >= options.shortest)
    return np.unique(np.concatenate([start[kept], end[kept], [0, len(x)]]))


def _medians(x: Floats, edges: Rows) -> Floats:
    out = np.empty(len(edges) - 1)
    _set_medians(x, edges, np.empty(int(np.diff(edges).max(initial=0))), out)
    return out


def statistic(x: Floats, options: Segmentation) -> Floats:
    """Return what `reference.statistic` does with `reference.maxima`, of finite values."""
    out = np.zeros(len(x))
    if len(x) < 2:
        return out
    differences = np.abs(np.diff(x))
    eps = quantile(differences, 0.75) if options.eps is None else options.eps
    prior = options.weight * max(LEAST_VARIANCE, variance(x))
    sums, squares = np.zeros((2, len(x) + 1))
    np.cumsum(x, out=sums[1:])
    np.cumsum(x * x, out=squares[1:])
    found = np.zeros(len(x))

    growth = (options.shortest, options.largest, options.delta)
    rules = WindowRules(eps, prior, options.weight, *growth)
    _search(differences, sums, squares, rules, found)
    _maxima(found, options.reach, out)
    return out


def variance(x: Floats) -> float:
    """Return the variance of float64[n], two values or more."""
    return float(_variance(x, np.empty(BLOCK)))


def quantile(values: Floats, share: float) -> float:
    """R's quantile of type 7 of float64[n]."""
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    ordered = np.partition(values, (low, high))
    part, below, above = place - low, ordered[low], ordered[high]
    if not part or below == above:
        return float(below)
    return float((1 - part) * below + part * above)


def _pieces(values: Floats, alpha: float) -> Rows:
    """Return where pieces begin, and the end of the last one."""
    if alpha < 1 and len(values):
        found = np.flatnonzero(values > quantile(values, 1 - alpha))
    else:
        found = np.argsort(-values, kind="stable")[: int(alpha)]
    return np.unique(np.r_[0, found + 1, len(values)])


@jit_no_alloc
def _variance(x, lanes):  # type: ignore[no-untyped-def]
    n = len(x)
    mean = total(x, 0, n, 0.0, False, BLOCK, lanes) / n
    return total(x, 0, n, mean, True, BLOCK, lanes) / (n - 1)


@jit_no_alloc
def _search(differences, sums, squares, rules, out):  # type: ignore[no-untyped-def]
    """Set the statistic at every position whose neighbours differ enough."""
    n = len(out)
    for i in range(rules.shortest + 1, n - rules.shortest - 1):
        if differences[i] > rules.eps:
            largest = min(rules.largest, i - 1, n - 2 - i)
            out[i] = _greatest_surprise(sums, squares, i + 1, largest + 1, rules)


@jit_no_alloc
def _greatest_surprise(sums, squares, middle, largest, rules):  # type: ignore[no-untyped-def]
    """Return that of growing windows, up to where more than `delta` in a row gained nothing."""
    t2, df = best_t2, best_df = _test(sums, squares, middle, rules.shortest + 1, rules)
    flat = 0
    for size in range(rules.shortest + 2, largest + 1):
        last_t2, last_df = t2, df
        t2, df = _test(sums, squares, middle, size, rules)
        if _exceeds(t2, df, last_t2, last_df):
            flat = 0
            if _exceeds(t2, df, best_t2, best_df):
                best_t2, best_df = t2, df
        else:
            flat += 1
            if flat > rules.delta:
                break
    return surprise(best_t2, best_df)


@jit_no_alloc
def _test(sums, squares, middle, n, rules):  # type: ignore[no-untyped-def]
    """Return t² and degrees of freedom between the n values before `middle` and the n after it."""
    freedom = n + (rules.weight - 2.0)
    scale = 1.0 / (freedom * (freedom + 1.0))
    left_sum = sums[middle] - sums[middle - n]
    right_sum = sums[middle + n] - sums[middle]
    left_mean, right_mean = left_sum / n, right_sum / n
    left = squares[middle] - squares[middle - n] - left_sum * left_mean
    right = squares[middle + n] - squares[middle] - right_sum * right_mean
    a, b = (rules.prior + left) * scale, (rules.prior + right) * scale
    both, gap = a + b, left_mean - right_mean
    return gap * gap / (both + LEAST_VARIANCE), freedom * (both * both) / (a * a + b * b)


@jit_no_alloc
def _exceeds(t2, df, other_t2, other_df):  # type: ignore[no-untyped-def]
    """Return whether a window tells more than another."""
    sign = compared(t2, df, other_t2, other_df)
    return sign > 0 or (sign == 0 and surprise(t2, df) > surprise(other_t2, other_df))


@jit_no_alloc
def _maxima(values, reach, out):  # type: ignore[no-untyped-def]
    """Set `out` to the values that no neighbour exceeds; near the ends all are kept."""
    for i in range(len(values)):
        largest = values[i]
        if largest > 0 and reach <= i < len(values) - reach:
            for k in range(i - reach, i + reach + 1):
                largest = max(largest, values[k])
        out[i] = values[i] if values[i] == largest else 0.0


@jit_no_alloc
def _set_means(x, edges, lanes, out):  # type: ignore[no-untyped-def]
    """Set `out` to the means of spans, corrected by the mean of the rest; lanes: float64[BLOCK]."""
    for k in range(len(out)):
        start, n = edges[k], edges[k + 1] - edges[k]
        threads = WARP if n <= SHORT else BLOCK
        average = total(x, start, n, 0.0, False, threads, lanes) / n
        out[k] = average + total(x, start, n, average, False, threads, lanes) / n


@jit_no_alloc
def _set_medians(x, edges, room, out):  # type: ignore[no-untyped-def]
    """Set `out` to the medians of spans, 0.0 and not -0.0; `room` holds the longest."""
    for k in range(len(out)):
        n = edges[k + 1] - edges[k]
        for i in range(n):
            room[i] = x[edges[k] + i]
        below, above = middle_of(room, n)
        out[k] = above + 0.0 if below == above else 0.5 * below + 0.5 * above

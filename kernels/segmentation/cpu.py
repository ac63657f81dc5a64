"""Both segmentations in Numba: a track a thread, without the GIL.

Most windows of the fast one are compared without their p values (`student.compared`); one is
computed for the largest of each position, and where two windows are too close to tell.
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.parallel import over_spans
from multigpu.kernels.numerics.student import compared, surprise
from multigpu.kernels.numerics.sums import total
from multigpu.kernels.segmentation import circular
from multigpu.kernels.segmentation.spans import BLOCK, means, medians, merge
from multigpu.kernels.segmentation.types import (
    LEAST_VARIANCE,
    ONE_VALUE,
    Circular,
    Floats,
    Rows,
    Segmentation,
    Segments,
    TrackError,
    check,
    cleaned,
    notes,
)

LEAST_SPAN = 4096  # positions of a track, for a thread
TOGETHER = 40  # windows that are tested together


class Found(NamedTuple):
    """Segments of one track, and whether values had to be replaced."""

    start: Rows
    end: Rows
    mean: Floats
    median: Floats
    has_infinite: bool = False
    has_nan: bool = False


NONE = Found(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


class Rules(NamedTuple):
    """Numbers by which windows grow; `Segmentation` has the others."""

    eps: float
    prior: float  # what the variance of the whole track adds to the squares of a window
    weight: float
    shortest: int
    largest: int
    delta: int


def segment(x: Floats, offsets: Rows, options: Segmentation, threads: int = 1) -> Segments:
    """Return what `reference.segment` does."""
    each = 1 if len(offsets) > threads else threads  # few tracks are shared by the threads

    def method(values: Floats, track: int) -> Found:
        return _segment(values, options, track, each)

    return _of_tracks(method, x, offsets, threads // each)


def cbs(x: Floats, offsets: Rows, options: Circular, threads: int = 1) -> Segments:
    """Return what `reference.cbs` does, with other random numbers and p values that end early."""
    return _of_tracks(lambda values, track: _cbs(values, options, track), x, offsets, threads)


def _of_tracks(
    method: Callable[[Floats, int], Found], x: Floats, offsets: Rows, threads: int
) -> Segments:
    check(x, offsets)
    borders = list(pairwise(offsets.tolist()))

    def work(track: int) -> Found:
        first, stop = borders[track]
        return method(x[first:stop], track) if first < stop else NONE

    if threads == 1 or len(borders) < 2:
        return _joined(map(work, range(len(borders))), offsets)
    with ThreadPoolExecutor(threads, "track") as pool:
        return _joined(pool.map(work, range(len(borders))), offsets)


def _joined(each: Iterable[Found], offsets: Rows) -> Segments:
    found = list(each)
    counts = [len(one.start) for one in found]
    begin = np.repeat(offsets[:-1], counts)
    start, end, mean, median = map(np.concatenate, list(zip(NONE, *found, strict=True))[:4])
    return Segments(
        track=np.repeat(np.arange(len(found)), counts),
        start=start + begin,
        end=end + begin,
        mean=mean,
        median=median,
        notes=notes(any(one.has_infinite for one in found), any(one.has_nan for one in found)),
    )


def _segment(x: Floats, options: Segmentation, track: int, threads: int) -> Found:
    """Segments of one track."""
    if len(x) == 1 and options.limits is None:
        raise TrackError(track, ONE_VALUE)
    x, *replaced = _finite(x, track)
    edges = _edges(statistic(x, options, threads), options.alpha)
    spread = 2 * math.sqrt(variance(x)) if options.limits is None else 0.0
    upper, lower = options.limits or (spread, -spread)
    return Found(*_merged(x, edges, upper, lower, options.shortest), *replaced)


def _cbs(x: Floats, options: Circular, track: int) -> Found:
    """Segments of one track."""
    x, *replaced = _finite(x, track)
    edges = circular.edges(x, options)
    return Found(edges[:-1], edges[1:], *_described(x, edges[:-1], edges[1:]), *replaced)


def _finite(x: Floats, track: int) -> tuple[Floats, bool, bool]:
    """Return x cleaned, and whether it had infinite values and NaN."""
    if np.isfinite(x).all():
        return x, False, False
    return cleaned(x, track), bool(np.isinf(x).any()), bool(np.isnan(x).any())


def _merged(
    x: Floats, edges: Rows, upper: float, lower: float, shortest: int
) -> tuple[Rows, Rows, Floats, Floats]:
    """Segments from pieces, with means and medians."""
    merging = upper != 0 or lower != 0
    middles = _medians(x, edges[:-1], edges[1:]) if merging else np.empty(0)
    spans = np.empty((2, 2 * len(edges)), np.int64)
    count = merge(edges, middles, upper, lower, shortest, merging, spans[0], spans[1])
    start, end = spans[:, :count]
    return start, end, *_described(x, start, end)


def _described(x: Floats, start: Rows, end: Rows) -> tuple[Floats, Floats]:
    """Means and medians of spans."""
    out = np.empty(len(start))
    means(x, start, end, np.empty(BLOCK), out)
    return out, _medians(x, start, end)


def _medians(x: Floats, start: Rows, end: Rows) -> Floats:
    out = np.empty(len(start))
    medians(x, start, end, np.empty(int((end - start).max(initial=0))), out)
    return out


def statistic(x: Floats, options: Segmentation, threads: int = 1) -> Floats:
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

    rules = Rules(
        eps=eps,
        prior=prior,
        weight=options.weight,
        shortest=options.shortest,
        largest=options.largest,
        delta=options.delta,
    )

    def search(begin: int, stop: int) -> None:
        windows = np.empty(TOGETHER + 1), np.empty(TOGETHER + 1), np.empty(TOGETHER + 1, np.int64)
        _search(differences, sums, squares, rules, begin, stop, windows, found)

    over_spans(search, len(x), threads, LEAST_SPAN)
    _maxima(found, options.reach, out)
    return out


def variance(x: Floats) -> float:
    """Return the variance of two values or more."""
    return float(_variance(x, np.empty(BLOCK)))


def quantile(values: Floats, share: float) -> float:
    """R's quantile of type 7."""
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    ordered = np.partition(values, (low, high))
    part, below, above = place - low, ordered[low], ordered[high]
    if not part or below == above:
        return float(below)
    return float((1 - part) * below + part * above)


def _edges(values: Floats, alpha: float) -> Rows:
    """Return where pieces begin, and the end of the last one."""
    if alpha < 1 and len(values):
        found = np.flatnonzero(values > quantile(values, 1 - alpha))
    else:
        found = np.argsort(-values, kind="stable")[: int(alpha)]
    return np.unique(np.r_[0, found + 1, len(values)])


# ---- the statistic, in Numba ------------------------------------------------------------------


@jit_no_alloc
def _variance(x, lanes):  # type: ignore[no-untyped-def]
    n = len(x)
    mean = total(x, 0, n, 0.0, False, BLOCK, lanes) / n
    return total(x, 0, n, mean, True, BLOCK, lanes) / (n - 1)


@jit_no_alloc
def _search(  # type: ignore[no-untyped-def]
    differences, sums, squares, rules, begin, stop, windows, out
):
    """Set the statistic at every position from `begin` on whose neighbours differ enough."""
    n = len(out)
    for i in range(max(begin, rules.shortest + 1), min(stop, n - rules.shortest - 1)):
        if differences[i] > rules.eps:
            largest = min(rules.largest, i - 1, n - 2 - i)
            out[i] = _greatest_surprise(sums, squares, i + 1, largest, rules, windows)


@jit_no_alloc
def _greatest_surprise(sums, squares, middle, largest, rules, windows):  # type: ignore[no-untyped-def]
    """Return that of growing windows, up to where more than `delta` in a row gained nothing.

    windows  arrays for t², degrees of freedom and signs of some windows, after one before them
    """
    t2, df, signs = windows
    size, flat = rules.shortest + 1, 0
    _test(sums, squares, middle, size, 1, rules, t2, df)
    best_t2, best_df = t2[0], df[0]
    while size <= largest:
        count = min(TOGETHER, largest + 1 - size)
        _test(sums, squares, middle, size + 1, count, rules, t2[1:], df[1:])
        _compare(t2, df, count, signs)
        for k in range(1, count + 1):
            if _exceeds(signs[k], t2[k], df[k], t2[k - 1], df[k - 1]):
                flat = 0
                sign = compared(t2[k], df[k], best_t2, best_df)
                if _exceeds(sign, t2[k], df[k], best_t2, best_df):
                    best_t2, best_df = t2[k], df[k]
            else:
                flat += 1
                if flat > rules.delta:
                    return surprise(best_t2, best_df)
        t2[0], df[0] = t2[count], df[count]
        size += count
    return surprise(best_t2, best_df)


@jit_no_alloc
def _test(sums, squares, middle, size, count, rules, t2, df):  # type: ignore[no-untyped-def]
    """Set t² and degrees of freedom between the n values before `middle` and the n after it.

    n is size, size + 1 ...; a loop of which the compiler makes vector instructions.
    """
    middle_sum, middle_square = sums[middle], squares[middle]
    for k in range(count):
        n = size + k
        freedom = n + (rules.weight - 2.0)
        scale = 1.0 / (freedom * (freedom + 1.0))
        left_sum = middle_sum - sums[middle - n]
        right_sum = sums[middle + n] - middle_sum
        left_mean, right_mean = left_sum / n, right_sum / n
        left = middle_square - squares[middle - n] - left_sum * left_mean
        right = squares[middle + n] - middle_square - right_sum * right_mean
        a, b = (rules.prior + left) * scale, (rules.prior + right) * scale
        both, gap = a + b, left_mean - right_mean
        t2[k] = gap * gap / (both + LEAST_VARIANCE)
        df[k] = freedom * (both * both) / (a * a + b * b)


@jit_no_alloc
def _compare(t2, df, count, signs):  # type: ignore[no-untyped-def]
    """Set signs[1:] to whether a window certainly tells more than the one before it."""
    for k in range(1, count + 1):
        signs[k] = compared(t2[k], df[k], t2[k - 1], df[k - 1])


@jit_no_alloc
def _exceeds(sign, t2, df, other_t2, other_df):  # type: ignore[no-untyped-def]
    """Return whether a window tells more than another, whose comparison gave `sign`."""
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

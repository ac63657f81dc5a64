"""The segmentation of one track after the other, with NumPy and SciPy. The tests' oracle."""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

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

Span = tuple[int, int]  # half open


def segment(x: Floats, offsets: Rows, options: Segmentation) -> SegmentedTracks:
    """Segments of every track.

    x        float64[n], track after track
    offsets  int64[tracks + 1], ascending from 0 to n

    Raises TrackError for a track of one value where there are no thresholds, and for one that has
    infinite values but no finite one; ValueError for arrays of other shapes and types.
    """
    check(x, offsets)
    check_lengths(offsets, options)
    return described(x, offsets, lambda values: spans(values, options))


def described(
    x: Floats, offsets: Rows, spans_of: Callable[[Floats], Iterable[Span]]
) -> SegmentedTracks:
    """Return what a method finds in every track."""
    rows: list[tuple[float, ...]] = []
    for track, (first, stop) in enumerate(pairwise(offsets.tolist())):
        values = cleaned(x[first:stop], track)
        for start, end in spans_of(values):
            part = values[start:end]
            rows.append((track, first + start, first + end, part.mean(), np.median(part)))
    table = np.array(rows, np.float64).reshape(-1, 5)
    tracks, starts, ends = table[:, :3].astype(np.int64).T
    replaced = notes(bool(np.isinf(x).any()), bool(np.isnan(x).any()))
    return SegmentedTracks(tracks, starts, ends, table[:, 3], table[:, 4], replaced)


def spans(x: Floats, options: Segmentation) -> list[Span]:
    """Return where the segments of a track are."""
    if not len(x):
        return []
    found = breaks(maxima(statistic(x, options), options.reach), options.alpha)
    return merged(x, found, options)


def quantile(values: Floats, share: float) -> float:
    """R's quantile of type 7 of float64[n]."""
    ordered = np.sort(values)
    place = (len(values) - 1) * share
    low = int(place)
    part = place - low
    if not part or ordered[low] == ordered[low + 1]:
        return float(ordered[low])
    return float((1 - part) * ordered[low] + part * ordered[low + 1])


def log_tail(t: Floats, df: Floats) -> Floats:
    """float64[n]: the logarithm of the upper tail of Student's t, for t >= 0."""
    x = df / (df + t * t)
    tail = special.betainc(df / 2, 0.5, x) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        far = (
            (df * np.log(x) + np.log1p(-x)) / 2
            - special.betaln(df / 2, 0.5)
            + np.log(special.hyp2f1(df / 2 + 0.5, 1, df / 2 + 1, x) / df)
        )
        logs: Floats = np.where(tail > 1e-280, np.log(tail), far)
    return logs


def statistic(x: Floats, options: Segmentation) -> Floats:
    """Return float64[n], how clearly a segment ends: minus the logarithm of a p value.

    The test is Welch's t with variances that lean on that of the whole track (Baldi and Long 2001:
    a window of n values counts as n + weight - 1).
    """
    out = np.zeros(len(x))
    differences = np.abs(np.diff(x))
    if not len(differences):
        return out
    variance = max(LEAST_VARIANCE, x.var(ddof=1))
    eps = quantile(differences, 0.75) if options.eps is None else options.eps
    # Running sums, as the values of large offsets show: their rounding is part of the result.
    sums = np.stack([np.r_[0, np.cumsum(x)], np.r_[0, np.cumsum(x * x)]])
    for i in range(options.shortest + 1, len(x) - options.shortest - 1):
        if differences[i] > eps:
            largest = min(options.largest, i - 1, len(x) - 2 - i)
            windows = np.arange(options.shortest, largest + 1)
            out[i] = best(welch(sums, i, windows, variance, options.weight), options.delta)
    return out


def welch(
    sums: Floats, i: int, windows: NDArray[np.intp], variance: float, weight: float
) -> Floats:
    """Minus the logarithm of the p value between i - window .. i and i + 1 .. i + 1 + window."""
    n = windows + 1
    parts = sums[:, [i + 1]] - sums[:, i - windows], sums[:, i + 2 + windows] - sums[:, [i + 1]]
    means = [total / n for total, _ in parts]
    squares = [square - total * (total / n) for total, square in parts]
    size = weight + n - 1
    left, right = ((weight * variance + own) / (size - 1) / size for own in squares)
    df = (left + right) ** 2 / ((left**2 + right**2) / (size - 1))
    return -log_tail(abs(means[0] - means[1]) / np.sqrt(left + right + LEAST_VARIANCE), df)


def best(values: Floats, delta: int) -> float:
    """The largest, up to where more than `delta` in a row did not rise."""
    flat = 0
    for k in range(1, len(values)):
        flat = 0 if values[k] > values[k - 1] else flat + 1
        if flat > delta:
            return float(values[:k].max())
    return float(values.max())


def maxima(values: Floats, reach: int) -> Floats:
    """float64[n]: values that no neighbour exceeds, else 0; near the ends all are kept."""
    out = values.copy()
    for i in range(reach, len(values) - reach):
        if values[i - reach : i + reach + 1].max() > values[i]:
            out[i] = 0
    return out


def breaks(values: Floats, alpha: float) -> NDArray[np.intp]:
    """intp[breaks]: the positions that end a piece."""
    if alpha < 1:
        return np.flatnonzero(values > quantile(values, 1 - alpha))
    return np.sort(np.argsort(-values, kind="stable")[: int(alpha)])


def merged(x: Floats, found: NDArray[np.intp], options: Segmentation) -> list[Span]:
    """Gains and losses, and what lies between them."""
    edges = np.unique(np.r_[0, found + 1, len(x)]).tolist()
    pieces = list(pairwise(edges))
    spread = 2 * x.std(ddof=1) if options.limits is None else 0.0
    upper, lower = options.limits or (spread, -spread)
    if upper == 0 and lower == 0:
        kept = [(start, end) for start, end in pieces if end - start >= options.shortest]
    else:
        medians = np.array([np.median(x[start:end]) for start, end in pieces])
        joined = [*runs(medians > upper), *runs(medians < lower)]
        all_runs = [(edges[first], edges[stop]) for first, stop in joined]
        kept = [(start, end) for start, end in all_runs if end - start >= options.shortest]
    covered = np.zeros(len(x), bool)
    for start, end in kept:
        covered[start:end] = True
    return sorted([*kept, *runs(~covered)])


def runs(wanted: NDArray[np.bool_]) -> Iterator[Span]:
    """Spans of consecutive true values of bool[n]."""
    steps = np.diff(np.r_[0, wanted.astype(np.int8), 0])
    starts, ends = np.flatnonzero(steps > 0), np.flatnonzero(steps < 0)
    return zip(starts.tolist(), ends.tolist(), strict=True)


def cbs(x: Floats, offsets: Rows, options: Circular) -> SegmentedTracks:
    """Segments of every track by circular binary segmentation, every p value by permutations.

    x and offsets as of `segment`. Raises TrackError for a track that has infinite values but no
    finite one, ValueError for arrays of other shapes and types.
    """
    check(x, offsets)
    return described(x, offsets, lambda values: circles(values, options))


def circles(x: Floats, options: Circular) -> list[Span]:
    """Return where the segments of a track are."""
    random = np.random.default_rng(options.seed)
    x = x + random.normal(0, options.noise, len(x))
    found, waiting = {0, len(x)}, [(0, len(x))]
    while waiting:
        begin, stop = waiting.pop()
        cuts = [begin + cut for cut in change(x[begin:stop], options, random)]
        found.update(cuts)
        waiting += pairwise([begin, *cuts, stop]) if cuts else []
    return list(pairwise(sorted(found))) if len(x) else []


def arcs(x: Floats, width: int, limited: bool) -> Floats:
    """Z² of all arcs, [from, to]; 0 for those that are too short (or so near an end)."""
    n = len(x)
    sums = np.r_[0, np.cumsum(x - x.mean())][:-1]
    length = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    allowed = (length >= width) & (n - length >= width)
    if limited:
        near = (np.arange(n) % n > 0) & ((np.arange(n) < width) | (np.arange(n) > n - width))
        allowed &= ~(near[:, None] | near[None, :])
    squares: Floats = np.subtract.outer(sums, sums) ** 2
    z2: Floats = squares * n / np.maximum(1, length * (n - length))
    return np.where(allowed, z2, 0.0)


def change(x: Floats, options: Circular, random: np.random.Generator) -> list[int]:
    """Return where a segment is cut, if it is."""
    if len(x) < 2 * options.min_width or not np.ptp(x):
        return []
    real = arcs(x, options.min_width, limited=True)
    first, second = sorted(np.unravel_index(real.argmax(), real.shape))
    shuffled = (random.permutation(x) for _ in range(options.permutations))
    as_large = sum(arcs(y, options.min_width, limited=False).max() >= real.max() for y in shuffled)
    if as_large > options.alpha * options.permutations:
        return []
    kept = [int(first)] if first and differ(x[:first], x[first:second], options, random) else []
    begin = kept[0] if kept else 0
    return [*kept, int(second)] if differ(x[begin:second], x[second:], options, random) else kept


def differ(x: Floats, y: Floats, options: Circular, random: np.random.Generator) -> bool:
    """Whether two neighbours have other means."""
    both = np.r_[x, y] - np.r_[x, y].mean()
    real = abs(both[: len(x)].sum())
    shuffled = (random.permutation(both) for _ in range(options.permutations))
    as_large = sum(abs(z[: len(x)].sum()) >= real for z in shuffled)
    return bool(as_large <= options.alpha * options.permutations)

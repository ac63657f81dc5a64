"""Circular binary segmentation of one track, in Numba.

A segment is closed to a circle. The arc whose mean differs most from that of the rest is cut out if
permutations of the values seldom have one as different (Olshen et al., Biostatistics 2004, 5:557);
each of its ends must then tell its neighbours apart. The pieces are segmented again.

In large segments only short arcs are permuted, and the tail of the largest of the long ones is
approximated (Venkatraman and Olshen, Bioinformatics 2007, 23:657). Permutations stop as soon as
the decision is known, or nearly so.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.segmentation.types import Circular, Floats

BLOCK = 32  # positions that are looked at together: the compiler makes vector instructions of it
PANELS = 128  # of the integral over arcs
FIRST_LOOK = 64  # permutations after which a test may stop early, and then whenever they double
EQUAL = 1 - 1e-9  # a permuted statistic is as large from this share of the real one on
ROOT_2_PI = math.sqrt(2 * math.pi)

State = NDArray[np.uint64]


class ArcBuffers(NamedTuple):
    """Memory for the tests of a track's segments."""

    values: Floats  # [n] a segment, permuted
    sums: Floats  # [n + n / 2 + 2 BLOCK] running sums of its values less their mean
    most: Floats  # [BLOCK]
    state: State  # [1] of the random numbers


def edges(x: Floats, options: Circular) -> NDArray[np.int64]:
    """int64[segments + 1]: where segments begin, and the end of the last one. x is finite."""
    n = len(x)
    room = room_for(n)
    room.state[0] = _seed(options.seed, n, n)
    blurred = np.empty(n)
    _blur(x, options.noise, room.state, blurred)
    found, waiting = {0, n}, [(0, n)] if n else []
    while waiting:
        begin, stop = waiting.pop()
        if not np.ptp(blurred[begin:stop]):
            continue
        room.state[0] = _seed(options.seed, begin, stop)
        cuts = [begin + cut for cut in _change(blurred[begin:stop], options, room)]
        found.update(cuts)
        waiting += pairwise([begin, *cuts, stop]) if cuts else ()
    return np.array(sorted(found), np.int64)


def room_for(n: int) -> ArcBuffers:
    """Return memory for tracks of up to n values."""
    return ArcBuffers(
        values=np.empty(n),
        sums=np.empty(n + n // 2 + 2 * BLOCK),
        most=np.empty(BLOCK),
        state=np.empty(1, np.uint64),
    )


def _seed(seed: int, begin: int, stop: int) -> int:
    sequence = np.random.SeedSequence([abs(seed), begin, stop])
    return int(sequence.generate_state(1, np.uint64)[0])


@jit_no_alloc
def _blur(x, noise, state, out):  # type: ignore[no-untyped-def]
    """Adds normal noise (Box and Muller's)."""
    for i in range(len(x)):
        radius = math.sqrt(-2.0 * math.log((_random_below(1 << 32, state) + 1.0) / 2.0**32))
        turn = _random_below(1 << 32, state) / 2.0**32
        out[i] = x[i] + noise * radius * math.cos(2.0 * math.pi * turn)


def _change(x: Floats, options: Circular, room: ArcBuffers) -> list[int]:
    """Return the one or two positions where a segment is cut, ascending; none for no change."""
    n, width = len(x), options.min_width
    if n < 2 * width:
        return []
    spread = _center(x, room)
    _close(room, n, width, n // 2)
    largest, length = _largest_arc(room, n, width, n // 2)
    if largest <= 0.0:
        return []
    difference = np.abs(room.sums[length : n + length] - room.sums[:n])
    z2 = difference * difference * n / (length * (n - length))
    start = int(np.argmax(z2 >= largest))  # the first such arc
    first, second = sorted((start, (start + length) % n))
    if not _is_change(largest, spread, n, options, room):
        return []
    # A cut is kept where both sides differ; at 0 is none.
    tests = (options.alpha, options.permutations, options.early, room)
    cuts = [first] if first and _differ(x, 0, first, second, *tests) else []
    if _differ(x, cuts[0] if cuts else 0, second, n, *tests):
        cuts.append(second)
    return cuts


@jit_no_alloc
def _center(x, room):  # type: ignore[no-untyped-def]
    """Takes the values without their mean; the sum of their squares."""
    total = spread = 0.0
    for i in range(len(x)):
        total += x[i]
    for i in range(len(x)):
        room.values[i] = x[i] - total / len(x)
        spread += room.values[i] * room.values[i]
    return spread


@jit_no_alloc
def _close(room, n, width, longest):  # type: ignore[no-untyped-def]
    """Running sums around the circle, and on for the longest arc.

    NaN where a cut would leave less than `width` before or after it.
    """
    total = 0.0
    for i in range(n):
        room.sums[i] = total if i == 0 or width <= i <= n - width else math.nan
        total += room.values[i]
    for i in range(longest + 2 * BLOCK):
        room.sums[n + i] = room.sums[i % n]


@jit_no_alloc
def _largest_arc(room, n, shortest, longest):  # type: ignore[no-untyped-def]
    """The largest Z² of all arcs of these lengths, up to half the circle, and its length."""
    best, best_length = 0.0, 0
    for length in range(shortest, longest + 1):
        room.most[:] = 0.0
        for i in range(0, n, BLOCK):
            begins, ends = room.sums[i : i + BLOCK], room.sums[i + length : i + length + BLOCK]
            for j in range(BLOCK):
                arc = abs(ends[j] - begins[j])
                room.most[j] = max(room.most[j], arc)
        difference = 0.0
        for most in room.most:
            difference = max(difference, most)
        z2 = difference * difference * n / (length * (n - length))
        if z2 > best:
            best, best_length = z2, length
    return best, best_length


def _is_change(z2: float, spread: float, n: int, options: Circular, room: ArcBuffers) -> bool:
    """Whether the largest arc of the values in the buffers is one of a real change."""
    longest, allowed = n // 2, options.alpha
    if n >= options.large:
        longest = options.short
        rest = max(spread - z2, 1e-12 * spread, 1e-300) / (n - 2)
        allowed -= _long_tail(math.sqrt(z2 / rest), n, longest)
        if allowed <= 0.0:
            return False
        room.values[:n].sort()
        if _bound(room.values[:n], options.min_width, longest) < EQUAL * z2:
            return True
    tests = (allowed, options.permutations, options.early, room)
    return bool(_is_seldom_reached(z2, n, options.min_width, longest, *tests))


def _bound(ordered: Floats, shortest: int, longest: int) -> float:
    """Return a Z² that no short arc of ascending values exceeds in any order of them."""
    n, lengths = len(ordered), np.arange(1, longest + 1)
    low, high = ordered[:longest].cumsum(), ordered[::-1][:longest].cumsum()
    difference = np.maximum(-low, high)
    z2 = difference * difference * n / (lengths * (n - lengths))
    return float(z2[shortest - 1 :].max(initial=0.0))


@jit_no_alloc
def _is_seldom_reached(  # type: ignore[no-untyped-def]
    z2, n, shortest, longest, allowed, permutations, early, room
):
    """Whether the largest Z² of permuted values is seldom as large."""
    larger = 0
    for done in range(1, permutations + 1):
        _shuffle(room.values, n, n, room.state)
        _close(room, n, 0, longest)
        larger += _largest_arc(room, n, shortest, longest)[0] >= EQUAL * z2
        if larger > allowed * permutations:
            return False
        if _may_stop(larger, done, allowed, permutations, early):
            return True
    return True


@jit_no_alloc
def _may_stop(larger, done, allowed, permutations, early):  # type: ignore[no-untyped-def]
    """Whether so few were larger that a p value above `allowed` is out of the question.

    Asked at 64, 128, 256 ... permutations; all answers together err with a chance of `early`.
    """
    if done < FIRST_LOOK or done & (done - 1):
        return False
    looks = 1.0 + math.log2(permutations / FIRST_LOOK)
    chance = 0.0
    for k in range(larger + 1):
        ways = math.lgamma(done + 1.0) - math.lgamma(k + 1.0) - math.lgamma(done - k + 1.0)
        chance += math.exp(ways + k * math.log(allowed) + (done - k) * math.log1p(-allowed))
    return chance <= early / looks


@jit_no_alloc
def _differ(x, begin, middle, stop, allowed, permutations, early, room):  # type: ignore[no-untyped-def]
    """Whether two neighbouring pieces have other means, by permutations."""
    n, left = stop - begin, middle - begin
    _center(x[begin:stop], room)
    smaller = min(left, n - left)
    real, larger = room.values[:left].sum(), 0
    for done in range(1, permutations + 1):
        _shuffle(room.values, n, smaller, room.state)
        larger += abs(room.values[n - smaller : n].sum()) >= EQUAL * abs(real)
        if larger > allowed * permutations:
            return False
        if _may_stop(larger, done, allowed, permutations, early):
            return True
    return True


@jit_no_alloc
def _shuffle(values, n, count, state):  # type: ignore[no-untyped-def]
    """Puts a random choice of `count` values, in random order, at the end (Fisher and Yates)."""
    for last in range(n - 1, n - 1 - min(count, n - 1), -1):
        other = _random_below(last + 1, state)
        values[last], values[other] = values[other], values[last]


@jit_no_alloc
def _random_below(n, state):  # type: ignore[no-untyped-def]
    """Return a number from 0 to n - 1, by splitmix64 (Steele, Lea and Flood 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(31))) >> np.uint64(32)
    return np.int64((x * np.uint64(n)) >> np.uint64(32))


@jit_no_alloc
def _long_tail(b, n, short):  # type: ignore[no-untyped-def]
    """The chance that an arc of more than `short` and up to half of n normal values reaches |Z| b.

    b³ φ(b) / 2 ∫ ν(b / sqrt(n t (1 - t)))² / (t (1 - t))² dt from short / n to 1/2, over log t.
    """
    low = math.log((short + 0.5) / n)
    step = (math.log(0.5) - low) / PANELS
    total = 0.0
    for k in range(PANELS):
        t = math.exp(low + (k + 0.5) * step)
        overshoot = _overshoot(b / math.sqrt(n * t * (1.0 - t)))
        total += overshoot * overshoot / (t * (1.0 - t) * (1.0 - t))
    return 0.5 * b * b * b * math.exp(-0.5 * b * b) / ROOT_2_PI * total * step


@jit_no_alloc
def _overshoot(x):  # type: ignore[no-untyped-def]
    """Siegmund's ν, by the approximation of Siegmund and Yakir (2007)."""
    half = 0.5 * x
    below = 0.5 * math.erfc(-half / math.sqrt(2.0))
    density = math.exp(-0.5 * half * half) / ROOT_2_PI
    return (below - 0.5) / half / (half * below + density)

"""The plan of an index of patterns: window length k, stride, blanked places. Pure."""

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LONGEST_RUN = 64  # longer clean runs make no difference, so they are not measured further
STRIDES = (1, 2, 4, 8, 16)
WINDOWS = range(4, 17)
MOST_BLANKS = 4
COUNTS = np.arange(WINDOWS.stop)  # of ambiguous bases in a window

EXPECTED_N = 0.1  # the share of ambiguous bases that an index is made for, where nobody knows
EXPECTED_BASES = 1e8  # to search, where nobody says: making the index has to pay over them


@dataclass(frozen=True)
class IndexCosts:
    """Time that a machine spends on each kind of work; only the proportions matter.

    Ambiguous places of a window are blanked in the index, which has an entry for every choice of
    them; or, where `choice` is given, bases are tried in their place, four in each. For a window
    with more of them `tile` positions are compared with all patterns.
    """

    probe: float  # looking one window up
    candidate: float  # following one hit of the index
    direct: float  # comparing one position with one pattern
    entry: float  # making one entry of the index
    max_entries: int  # more only if every pattern has no more than one
    choice: float | None  # looking up one choice of bases in ambiguous places
    tile: int  # positions that are compared where the index cannot answer for one
    entry_bytes: int  # memory for one entry, with its share of filters and buckets,
    pattern_bytes: int  # for one pattern, whatever its length,
    base_bytes: int  # and for each of its bases


CPU = IndexCosts(  # ns
    probe=10.0, candidate=500.0, direct=0.16, entry=40.0, max_entries=1 << 24, choice=1.5,
    tile=2048, entry_bytes=16, pattern_bytes=112, base_bytes=4,
)  # fmt: skip
GPU = IndexCosts(  # ps
    probe=30.0, candidate=200.0, direct=8.0, entry=300.0, max_entries=1 << 27, choice=None,
    tile=1, entry_bytes=16, pattern_bytes=80 + 2 * 64, base_bytes=4,
)  # fmt: skip


@dataclass(frozen=True)
class SeedPlan:
    """Windows of `k` bases, `blanks` of which may be ambiguous, at every `stride`-th position."""

    k: int
    stride: int
    blanks: int

    @property
    def run(self) -> int:
        """Unambiguous bases in a row that a pattern needs to have a seed."""
        return self.k + self.stride - 1

    @cache  # noqa: B019 (there are few plans)
    def masks(self) -> NDArray[np.uint32]:
        """Return uint32[m]: the sets of blanked places as bits, none blanked first."""
        places = [c for size in range(self.blanks + 1) for c in combinations(range(self.k), size)]
        masks = np.array([sum(1 << place for place in chosen) for chosen in places], np.uint32)
        masks.flags.writeable = False
        return masks


def bits_of(count: int) -> int:
    """Return the bits that number `count` things; six at least, as of a filter's word."""
    return max(6, count.bit_length())


def choices(k: int, blanks: int) -> int:
    """Return the number of ways to choose up to `blanks` of `k` places."""
    return sum(comb(k, size) for size in range(blanks + 1))


class _Plans(NamedTuple):
    """Every plan there is, and what does not depend on the patterns: arrays of one length."""

    plans: list[SeedPlan]
    run: NDArray[np.int64]
    stride: NDArray[np.int64]
    blanks: NDArray[np.int64]
    windows: NDArray[np.int64]  # entries per seeded pattern
    shares: NDArray[np.float64]  # [plans, 17] of windows by how many of their bases are ambiguous
    hits: NDArray[np.float64]  # [plans, 17] expected in the index for one of these and a pattern


@cache
def _plans(ambiguous: float, tries_bases: bool) -> _Plans:
    plans = [
        SeedPlan(k, stride, blanks)
        for k in WINDOWS
        for stride in STRIDES
        for blanks in range((k if tries_bases else min(k, MOST_BLANKS)) + 1)
    ]
    return _Plans(
        plans,
        np.array([plan.run for plan in plans]),
        np.array([plan.stride for plan in plans]),
        np.array([plan.blanks for plan in plans]),
        np.array(
            [plan.stride * (1 if tries_bases else choices(plan.k, plan.blanks)) for plan in plans]
        ),
        np.array([[_share(plan.k, m, ambiguous) for m in COUNTS.tolist()] for plan in plans]),
        np.array([[4.0 ** min(0, m - plan.k) for m in COUNTS.tolist()] for plan in plans]),
    )


@dataclass(frozen=True)
class IndexSize:
    """Size of patterns where they are searched: entries of their index, bytes with all else."""

    plan: SeedPlan
    entries: int
    memory: int


def size_of(
    lengths: NDArray[np.int64], costs: IndexCosts, bases: float, ambiguous: float
) -> IndexSize:
    """Return the size of patterns of these lengths, all of unambiguous bases; see `plan_seeds`."""
    runs = np.minimum(lengths, LONGEST_RUN)
    plan = plan_seeds(runs, costs, bases, ambiguous)
    masks = 1 if costs.choice else choices(plan.k, plan.blanks)
    entries = int((runs >= plan.run).sum()) * plan.stride * masks
    memory = costs.entry_bytes * entries + costs.pattern_bytes * len(lengths)
    return IndexSize(plan, entries, memory + costs.base_bytes * int(lengths.sum()))


def _share(k: int, count: int, ambiguous: float) -> float:
    """Return the share of windows of k bases with `count` ambiguous ones."""
    if count > k:
        return 0.0
    return comb(k, count) * ambiguous**count * (1.0 - ambiguous) ** (k - count)


def plan_seeds(
    runs: NDArray[np.integer[Any]],
    costs: IndexCosts,
    bases: float = EXPECTED_BASES,
    ambiguous: float = EXPECTED_N,
) -> SeedPlan:
    """Return the plan with the least expected work for a base of the samples.

    runs: the longest clean run of each pattern, not counted beyond LONGEST_RUN; bases: how many are
    going to be searched; ambiguous: which share of them is.
    """
    plans, work = works(runs, costs, bases, ambiguous)
    return plans[int(np.argmin(work))]


def works(
    runs: NDArray[np.integer[Any]], costs: IndexCosts, bases: float, ambiguous: float
) -> tuple[list[SeedPlan], NDArray[np.float64]]:
    """Return all plans, and the work expected for a base of the samples; inf: impossible."""
    table = _plans(ambiguous, costs.choice is not None)
    counts = np.bincount(runs, minlength=LONGEST_RUN + 1)
    at_least = counts[::-1].cumsum()[::-1]
    seeded = at_least[table.run]
    followed = (table.stride * seeded)[:, None]
    # The work for a window with 0, 1, … ambiguous bases.
    lookups = (costs.choice or 0.0) * (4.0**COUNTS - 1) * (seeded > 0)[:, None]
    answered = table.blanks[:, None] >= COUNTS
    indexed = answered * (lookups + costs.candidate * table.hits * followed)
    work = (costs.probe * (seeded > 0) + (table.shares * indexed).sum(1)) / table.stride
    compared = (table.shares * ~answered).sum(1) * np.maximum(costs.tile / table.stride, 1.0)
    work += costs.direct * (seeded * np.minimum(compared, 1.0) + len(runs) - seeded)
    entries = seeded * table.windows
    work += costs.entry * entries / max(bases, 1.0)
    work[entries > max(costs.max_entries, len(runs))] = np.inf
    return table.plans, work

"""How the patterns are indexed: the window length k, the stride, the blanked places. Pure."""

from dataclasses import dataclass, replace
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
class Costs:
    """What a machine spends on each kind of work; only the proportions matter.

    Ambiguous places of a window are blanked in the index, which has an entry for every choice of
    them; or, where `choice` is given, bases are tried in their place, four in each.
    """

    probe: float  # looking one window up
    candidate: float  # following one hit of the index
    direct: float  # comparing one position with one pattern
    entry: float  # making one entry of the index
    max_entries: int  # more only if every pattern has no more than one
    choice: float | None = None  # looking up one choice of bases in ambiguous places


@dataclass(frozen=True)
class SeedPlan:
    """Windows of `k` bases at every `stride`-th position.

    The index answers for up to `blanks` ambiguous bases in one.
    """

    k: int
    stride: int
    blanks: int

    @property
    def run(self) -> int:
        """Unambiguous bases in a row that a pattern needs to have a seed."""
        return self.k + self.stride - 1

    @cache  # noqa: B019 (there are few plans)
    def masks(self) -> NDArray[np.uint32]:
        """uint32[m]: the sets of blanked places as bits, none blanked first."""
        places = [c for size in range(self.blanks + 1) for c in combinations(range(self.k), size)]
        masks = np.array([sum(1 << place for place in chosen) for chosen in places], np.uint32)
        masks.flags.writeable = False
        return masks


def choices(k: int, blanks: int) -> int:
    """In how many ways up to `blanks` of `k` places are chosen."""
    return sum(comb(k, size) for size in range(blanks + 1))


class _Table(NamedTuple):
    """Every plan there is, and what does not depend on the patterns: arrays of one length."""

    plans: list[SeedPlan]
    run: NDArray[np.int64]
    stride: NDArray[np.int64]
    blanks: NDArray[np.int64]
    windows: NDArray[np.int64]  # entries per seeded pattern
    shares: NDArray[np.float64]  # [plans, 17] of windows by how many of their bases are ambiguous
    hits: NDArray[np.float64]  # [plans, 17] expected in the index for one of these and a pattern


@cache
def _table(ambiguous: float, most_blanks: int) -> _Table:
    plans = [
        SeedPlan(k, stride, blanks)
        for k in WINDOWS
        for stride in STRIDES
        for blanks in range(min(k, most_blanks) + 1)
    ]
    return _Table(
        plans,
        np.array([plan.run for plan in plans]),
        np.array([plan.stride for plan in plans]),
        np.array([plan.blanks for plan in plans]),
        np.array([plan.stride * choices(plan.k, plan.blanks) for plan in plans]),
        np.array([[_share(plan.k, m, ambiguous) for m in COUNTS] for plan in plans]),
        np.array([[4.0 ** min(0, m - plan.k) for m in COUNTS] for plan in plans]),
    )


def _share(k: int, count: int, ambiguous: float) -> float:
    """How many windows of k bases have `count` ambiguous ones, which are this share of all."""
    return comb(k, count) * ambiguous**count * (1.0 - ambiguous) ** max(0, k - count)


def plan_seeds(
    runs: NDArray[np.integer[Any]],
    costs: Costs,
    bases: float = EXPECTED_BASES,
    ambiguous: float = EXPECTED_N,
) -> SeedPlan:
    """The plan with the least expected work for a base of the samples.

    runs: the longest clean run of each pattern, not counted beyond LONGEST_RUN; bases: how many are
    going to be searched; ambiguous: which share of them is.
    """
    table = _table(ambiguous, 0 if costs.choice else MOST_BLANKS)
    counts = np.bincount(runs, minlength=LONGEST_RUN + 1)
    at_least = counts[::-1].cumsum()[::-1]
    seeded = at_least[table.run]
    indexed, compared = _indexed(table, costs, seeded), _compared(table, costs, seeded)
    answered = COUNTS <= table.blanks[:, None]
    if costs.choice:
        answered |= indexed <= compared
    work = (table.shares * np.where(answered, indexed, compared)).sum(1) / table.stride
    work += costs.direct * (len(runs) - seeded)
    entries = seeded * table.windows
    work += costs.entry * entries / max(bases, 1.0)
    work[entries > max(costs.max_entries, len(runs))] = np.inf
    best = int(np.argmin(work))
    plan = table.plans[best]
    return replace(plan, blanks=int(answered[best, 1 : plan.k + 1].sum()))


def _indexed(table: _Table, costs: Costs, seeded: NDArray[np.int64]) -> NDArray[np.float64]:
    """[plans, 17]: the work for a window with 0, 1, … ambiguous bases in the index."""
    lookups = costs.probe + (costs.choice or 0.0) * (4.0**COUNTS - 1)
    followed = costs.candidate * table.hits * (table.stride * seeded)[:, None]
    work: NDArray[np.float64] = lookups * (seeded > 0)[:, None] + followed
    return work


def _compared(table: _Table, costs: Costs, seeded: NDArray[np.int64]) -> NDArray[np.float64]:
    """[plans, 1]: the same for a window whose positions go the direct way."""
    work = costs.probe * (seeded > 0) + costs.direct * (table.stride * seeded)
    column: NDArray[np.float64] = work[:, None]
    return column

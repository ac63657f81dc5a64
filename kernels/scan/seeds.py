"""How the patterns are indexed: the window length k, the stride, the blanked places. Pure."""

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

EXPECTED_N = 0.1  # the share of ambiguous bases that an index is made for,
FEW_N = 1e-3  # and where it is known that there are no more than these
EXPECTED_BASES = 1e8  # to search, where nobody says: making the index has to pay over them


@dataclass(frozen=True)
class Costs:
    """What a machine spends on each kind of work; only the proportions matter."""

    probe: float  # looking one window up
    candidate: float  # following one hit of the index
    direct: float  # comparing one position with one pattern
    entry: float  # making one entry of the index
    max_entries: int


@dataclass(frozen=True)
class SeedPlan:
    """Windows of `k` bases at every `stride`-th position, up to `blanks` of them blanked."""

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
    windows: NDArray[np.int64]  # entries per seeded pattern
    candidates: NDArray[np.float64]  # expected per position and seeded pattern
    dense: NDArray[np.float64]  # share of windows with more than `blanks` ambiguous bases


@cache
def _table(ambiguous: float) -> _Table:
    plans = [
        SeedPlan(k, stride, blanks)
        for k in WINDOWS
        for stride in STRIDES
        for blanks in range(min(k, MOST_BLANKS) + 1)
    ]
    return _Table(
        plans,
        np.array([plan.run for plan in plans]),
        np.array([plan.stride for plan in plans]),
        np.array([plan.stride * choices(plan.k, plan.blanks) for plan in plans]),
        np.array([_candidates(plan, ambiguous) for plan in plans]),
        np.array([sum(_share(plan.k, m, ambiguous) for m in _beyond(plan)) for plan in plans]),
    )


def _share(k: int, count: int, ambiguous: float) -> float:
    """How many windows of k bases have `count` ambiguous ones, which are this share of all."""
    return comb(k, count) * ambiguous**count * (1.0 - ambiguous) ** (k - count)


def _beyond(plan: SeedPlan) -> range:
    return range(plan.blanks + 1, plan.k + 1)


def _candidates(plan: SeedPlan, ambiguous: float) -> float:
    return sum(_share(plan.k, m, ambiguous) / 4.0 ** (plan.k - m) for m in range(plan.blanks + 1))


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
    table = _table(ambiguous)
    counts = np.bincount(runs, minlength=LONGEST_RUN + 1)
    at_least = counts[::-1].cumsum()[::-1]
    seeded = at_least[table.run]
    direct = table.dense * seeded + (len(runs) - seeded)
    work = costs.probe * (seeded > 0) / table.stride + costs.direct * direct
    work += costs.candidate * table.candidates * seeded
    entries = seeded * table.windows
    work += costs.entry * entries / max(bases, 1.0)
    work[entries > costs.max_entries] = np.inf
    return table.plans[int(np.argmin(work))]

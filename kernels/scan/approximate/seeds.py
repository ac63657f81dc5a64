"""The plan of seeds: which patterns are found by pieces without an error, and a table of these.

A pattern that may have K errors is cut into K + 1 pieces, each of which begins with a seed, k bases
of which at most one is ambiguous. Imagine the pieces in a ring. Of every hit one piece has no
error, and l pieces from it on have fewer than l together, for every l: the sum of 1 - errors over
the whole ring is at least 1, so it is above 0 all along from the last place where it is lowest when
it begins at the first piece. So

1. every window of k bases of the samples is looked up in a table of 4^k lists of seeds. An
   ambiguous base of a sample stands for all four, one after the other, and so does one of a seed,
   which has four entries. Where both are ambiguous, A alone counts;
2. the first bases of the seed's piece and the next one, which stand in the table, are compared.
   They rule almost all out;
3. a piece that follows one without an error leaves it to that one;
4. mismatches are counted in the whole pattern. The ends where a hit with edits may lie become
   candidates. After a pattern's last pieces there is little to compare: with g pieces more the sum
   is above g, which leaves a piece to begin at even if the last g are never looked up.

Counted for 1,000 patterns of 6,500 bases with 5 % errors (326,000 pieces of 20 bases) in 330 Mb and
k = 10: 0.3 entries a position, nearly all ruled out by step 2; with a tenth of all bases N
1.3^10 = 14 lookups and 4 entries. The sweep takes 200 pieces a pattern at every position.
"""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.seeds import EXPECTED_BASES, EXPECTED_N
from multigpu.kernels.scan.types import Limits, Patterns

logger = logging.getLogger(__name__)

SHORTEST, LONGEST = 4, 11  # bases of a seed
CHECKED = 27  # bases from a seed on that stand in the table
CHOICES = 4  # entries of a seed with an ambiguous base
GUARDS = 2  # pieces that are never looked up, where edits are searched and there are windows for it


@dataclass(frozen=True)
class SearchCosts:
    """Time that a machine spends on each kind of work at a position; only proportions matter."""

    position: float  # taking a window of a sample
    lookup: float  # looking up one choice of its bases
    candidate: float  # comparing the bases of one entry
    settled: float  # finding out on CPUs whether a candidate with edits is a hit
    mismatch: float  # comparing one base of a pattern in the sweep, for up to 8 mismatches
    edit: float  # one piece in the sweep for edits
    piece: int  # bases of the sweep's pieces
    whole: int  # bases of a pattern up to which the sweep takes it as a whole
    entry: float  # making one entry of a table, or one of its heads


CPU = SearchCosts(  # ns
    position=8.0, lookup=6.0, candidate=60.0, settled=1e3, mismatch=0.025, edit=1.0, piece=64,
    whole=1 << 62, entry=100.0,
)  # fmt: skip
GPU = SearchCosts(  # ps
    position=3.0, lookup=5.0, candidate=15.0, settled=1e5, mismatch=0.008, edit=0.9, piece=32,
    whole=32, entry=2e3,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TablePlan:
    """A table that is to be made: seeds of `k` bases for some of the patterns.

    windows  int32[patterns, 2]  windows of k bases, clean ones and others, see `plan_seeds`
    first    int32[patterns + 1]  the first piece of each pattern; those left out have none
    """

    k: int
    windows: NDArray[np.int32]
    first: NDArray[np.int32]

    @property
    def most(self) -> int:
        """Mismatches that an entry may have: so many pieces may begin after the seed's."""
        return (CHECKED - 1) // self.k


@dataclass(frozen=True, eq=False)
class SearchPlan:
    """Tables of seeds that are to be made, and the patterns that are in none.

    swept  int64[n], ascending
    work   expected time for a position, in the unit of the costs
    """

    tables: list[TablePlan]
    swept: NDArray[np.int64]
    work: float


def plan_seeds(
    windows: NDArray[np.int32],
    patterns: Patterns,
    limits: Limits,
    costs: SearchCosts,
    *,
    edits: bool,
    strict: bool,
    bases: float = EXPECTED_BASES,
) -> SearchPlan:
    """Return the plan with the least expected work, found greedily: one table after the other.

    windows  int32[LONGEST + 1, patterns, 2]  for each k how many windows of k bases a pattern has
             that do not overlap: clean ones, without an ambiguous base, and between them others,
             with one
    strict   an ambiguous base of a sample does not match a single one
    bases    about how many are going to be searched
    """
    clean, blurred = windows[:, :, 0], windows[:, :, 1]
    ambiguous = 0.0 if strict else EXPECTED_N
    swept_work = _sweep_work(patterns.lengths, limits.most, costs, edits)
    settled_work = _settled_work(patterns.lengths, limits.most, costs, ambiguous)
    pieces = limits.most + 1
    entries = pieces + (CHOICES - 1) * np.maximum(pieces - clean, 0)
    left, tables, work = np.arange(len(patterns)), [], 0.0
    while True:
        best, chosen, best_k = swept_work[left].sum(), left[:0], 0
        for k in range(SHORTEST, LONGEST + 1):
            chance = ((1 - ambiguous) / 4 + ambiguous) ** k
            each = entries[k, left] * (costs.candidate * chance + costs.entry / bases)
            if edits:
                each = each + settled_work[left]
            is_in = (clean + blurred)[k, left] >= pieces[left]
            is_in &= each < swept_work[left]
            here = costs.position + costs.lookup * (1 + 3 * ambiguous) ** k
            here += costs.entry * 4**k / bases / 32
            total = here + each[is_in].sum() + swept_work[left][~is_in].sum()
            if total < best:
                best, chosen, best_k = total, left[is_in], k
        if not len(chosen):
            break
        guards = np.minimum(GUARDS, windows[best_k].sum(1) - pieces) if edits else 0
        counts = np.where(np.isin(np.arange(len(patterns)), chosen), pieces + guards, 0)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        tables.append(TablePlan(best_k, windows[best_k], first))
        left = np.setdiff1d(left, chosen)
        work += best - swept_work[left].sum()
    work += swept_work[left].sum()
    logger.debug(
        "seeds of %s bases for %d patterns, a sweep for %d: %.3g a position expected",
        [table.k for table in tables], len(patterns) - len(left), len(left), work,
    )  # fmt: skip
    return SearchPlan(tables, left, float(work))


def _sweep_work(
    lengths: NDArray[np.int64], most: NDArray[np.int64], costs: SearchCosts, edits: bool
) -> NDArray[np.float64]:
    """Return the expected time of the sweep for each pattern at a position."""
    if edits:
        return costs.edit * -(-lengths // costs.piece).astype(np.float64)
    count = np.where(lengths > costs.whole, np.minimum(lengths // costs.piece, most + 1), 1)
    length = np.where(count > 1, costs.piece, lengths)
    # Three of four bases differ by chance, and of a thousand positions the last one is waited for.
    allowed = most // count + 1
    looked_at = np.minimum(length, allowed / 0.75 + 4 * np.sqrt(allowed) + 4)
    planes = np.maximum(1.0, np.log2(allowed) / 3)
    return np.asarray(costs.mismatch * count * looked_at * planes, np.float64)


def _settled_work(
    lengths: NDArray[np.int64], most: NDArray[np.int64], costs: SearchCosts, ambiguous: float
) -> NDArray[np.float64]:
    """Return the expected time for settling candidates with edits of each pattern at a position.

    By chance a piece has no error and the next one up to one edit, which can be one of about eight
    at each base.
    """
    piece = lengths / (most + 1)
    chance = 8 * piece * ((1 - ambiguous) / 4 + ambiguous) ** (2 * piece)
    return np.asarray(costs.settled * (most + 1) * np.minimum(chance, 1.0), np.float64)

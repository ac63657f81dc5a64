"""Sums of whole numbers by key, which do not depend on the order in which they are added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

DENSE_KEYS = 1 << 16  # keys in a range up to this are counted by place, without sorting


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """Sums of whole numbers by key; sparse.

    keys     int64[n], ascending
    numbers  int64[n] each, by name
    """

    keys: Numbers
    numbers: Mapping[str, Numbers]

    @classmethod
    def of(cls, keys: NDArray[np.integer], **weights: NDArray[np.generic]) -> Self:
        """Return the number of times of each key, as `count`, and the sums of its weights.

        keys     int[m], none below 0
        weights  [m], whole numbers, whose sums stay below 2**53
        """
        first = keys.min() if len(keys) else 0
        which, distinct = keys - first, None
        if which.max(initial=0) >= DENSE_KEYS + 4 * len(keys):
            distinct, which = np.unique(keys, return_inverse=True)
        count = np.bincount(which)
        there = np.flatnonzero(count)
        sums = {k: np.bincount(which, v)[there].astype(np.int64) for k, v in weights.items()}
        keys = there + first if distinct is None else distinct
        return cls(keys=keys.astype(np.int64), numbers={"count": count[there], **sums})

    @classmethod
    def joined(cls, several: Sequence["Sums"]) -> Self:
        """Return the sums of several with numbers of the same names; of none without numbers."""
        several = several or [cls(keys=np.empty(0, np.int64), numbers={})]
        keys, which = np.unique(np.concatenate([s.keys for s in several]), return_inverse=True)
        numbers = {name: np.zeros(len(keys), np.int64) for name in several[0].numbers}
        for name, total in numbers.items():
            np.add.at(total, which, np.concatenate([s.numbers[name] for s in several]))
        return cls(keys=keys, numbers=numbers)

    def dense(self, name: str, size: int, first: int = 0) -> Numbers:
        """Return the sums of this name for `size` keys from `first` on, 0 where there are none."""
        found = np.zeros(size, np.int64)
        some = slice(*np.searchsorted(self.keys, [first, first + size]))
        found[self.keys[some] - first] = self.numbers.get(name, self.keys)[some]
        return found


def add_sums(several: list[Sums], more: Sums) -> None:
    """Add to sums that are joined when all are wanted; there are never many."""
    several.append(more)
    # Each has twice as many keys as the next one: none is joined often.
    while len(several) > 1 and len(several[-2].keys) < 2 * len(several[-1].keys):
        several[-2:] = [Sums.joined(several[-2:])]

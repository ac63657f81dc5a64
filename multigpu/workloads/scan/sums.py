"""Sums of whole numbers by key, which do not depend on the order in which they are added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

DENSE_KEYS = 1 << 16  # numbers up to here are counted by place, without sorting
FEW_KEYS = 1 << 12  # that wait to be summed up, at least


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
        which, distinct = keys, None
        if keys.max(initial=0) >= DENSE_KEYS + 4 * len(keys):
            distinct, which = np.unique(keys, return_inverse=True)
        count = np.bincount(which)
        there = np.flatnonzero(count)
        sums = {k: np.bincount(which, v)[there].astype(np.int64) for k, v in weights.items()}
        keys = there if distinct is None else distinct
        return cls(keys=keys.astype(np.int64), numbers={"count": count[there], **sums})

    @classmethod
    def joined(cls, several: Sequence["Sums"]) -> Self:
        """Return the sums of at least one, all with numbers of the same names."""
        keys, which = np.unique(np.concatenate([s.keys for s in several]), return_inverse=True)
        numbers = {name: np.zeros(len(keys), np.int64) for name in several[0].numbers}
        for name, total in numbers.items():
            np.add.at(total, which, np.concatenate([s.numbers[name] for s in several]))
        return cls(keys=keys, numbers=numbers)

    def dense(self, name: str, size: int) -> Numbers:
        """Return the sums of this name for all keys below `size`, 0 where there are none."""
        found = np.zeros(size, np.int64)
        found[self.keys] = self.numbers.get(name, 0)
        return found


class RunningSums:
    """Sums to which more are added."""

    def __init__(self) -> None:
        self._sums = [Sums(keys=np.empty(0, np.int64), numbers={})]
        self._waiting = 0

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.total().keys)

    def add(self, more: Sums) -> None:
        self._sums.append(more)
        self._waiting += len(more.keys)
        if self._waiting > max(FEW_KEYS, 2 * len(self._sums[0].keys)):
            self.total()

    def total(self) -> Sums:
        """Return all sums; without numbers where none were added."""
        added = [each for each in self._sums if each.numbers]
        if added:
            self._sums, self._waiting = [Sums.joined(added)], 0
        return self._sums[0]

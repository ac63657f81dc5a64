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
        which = keys
        if keys.max(initial=0) >= DENSE_KEYS + 4 * len(keys):
            distinct, which = np.unique(keys, return_inverse=True)
        count = np.bincount(which)
        there = np.flatnonzero(count)
        sums = {name: np.bincount(which, each)[there] for name, each in weights.items()}
        return cls(
            keys=there if which is keys else distinct,
            numbers={"count": count[there], **{k: v.astype(np.int64) for k, v in sums.items()}},
        )

    @classmethod
    def joined(cls, several: Sequence["Sums"]) -> Self:
        """Return the sums of at least one, all with numbers of the same names."""
        keys = np.concatenate([each.keys for each in several])
        order = np.argsort(keys, kind="stable")
        begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
        names = several[0].numbers
        columns = {name: np.concatenate([each.numbers[name] for each in several]) for name in names}
        return cls(
            keys=keys[order][begins],
            numbers={name: np.add.reduceat(v[order], begins) for name, v in columns.items()}
            if len(begins)
            else columns,
        )

    def dense(self, name: str, size: int) -> Numbers:
        """Return the sums of this name for all keys below `size`, 0 where there are none."""
        found = np.zeros(size, np.int64)
        if name in self.numbers:
            found[self.keys] = self.numbers[name]
        return found


class RunningSums:
    """Sums to which more are added."""

    def __init__(self) -> None:
        self._sums: list[Sums] = []
        self._waiting = 0

    def add(self, more: Sums) -> None:
        self._sums.append(more)
        self._waiting += len(more.keys)
        if self._waiting > max(FEW_KEYS, 2 * len(self._sums[0].keys)):
            self.total()

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self.total().keys)

    def total(self) -> Sums:
        """Return all sums; without numbers where none were added."""
        self._sums = [Sums.joined(self._sums)] if self._sums else []
        self._waiting = 0
        return self._sums[0] if self._sums else Sums(keys=np.empty(0, np.int64), numbers={})

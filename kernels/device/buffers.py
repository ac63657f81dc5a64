"""Memory that is used again."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Buffers:
    """Buffers that are used again: fresh pages cost as much as reading into them."""

    def __init__(self, allocate: Callable[[int], NDArray[np.uint8]]) -> None:
        self._allocate = allocate
        self._free: list[NDArray[np.uint8]] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> NDArray[np.uint8]:
        """Return uint8[size] with anything in it."""
        with self._lock:
            fitting = [i for i, buffer in enumerate(self._free) if len(buffer) >= size]
            if fitting:
                best = min(fitting, key=lambda i: len(self._free[i]))
                return self._free.pop(best)[:size]
            # All are too small: one gives way, so that they do not pile up; without the lock.
            too_small = self._free.pop() if self._free else None
        del too_small
        return self._allocate(max(1, size + size // 8))[:size]

    def give(self, view: NDArray[Any]) -> None:
        """Take a buffer of `take` back, as a view of any shape and dtype."""
        whole = view.base
        assert isinstance(whole, np.ndarray)
        with self._lock:
            self._free.append(whole)

    def clear(self) -> None:
        with self._lock:
            self._free.clear()

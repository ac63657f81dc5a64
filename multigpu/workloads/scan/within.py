"""`--within BEGIN:END`: matches in a slice of every sample only."""

import numpy as np
from numpy.typing import NDArray

from multigpu.run.values import parse_slice
from multigpu.workloads.scan.views import View

FARTHEST = 1 << 62  # beyond the end of every record


class WithinView(View):
    """Slices of the records, as Python has them: borders below 0 count from the end."""

    def __init__(self, text: str) -> None:
        self._first, self._last = parse_slice(text)

    def windows(
        self, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        begins = np.zeros_like(lengths) if self._first is None else _place(self._first, lengths)
        ends = lengths if self._last is None else _place(self._last, lengths)
        ends = np.maximum(begins, ends)
        return begins, ends, ends


def _place(border: int, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the border of a slice lies in records of these lengths."""
    border = max(-FARTHEST, min(border, FARTHEST))
    return np.minimum(border, lengths) if border >= 0 else np.maximum(lengths + border, 0)

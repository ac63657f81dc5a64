"""`--within BEGIN:END`: matches in a slice of every sample only."""

import numpy as np

from multigpu.run.values import parse_slice
from multigpu.workloads.scan.views import Numbers, View

FARTHEST = 1 << 62  # beyond the end of every record


class WithinView(View):
    """Slices of the records, as Python has them: borders below 0 count from the end."""

    def __init__(self, text: str) -> None:
        first, last = parse_slice(text)
        self._first, self._last = first or 0, FARTHEST if last is None else last

    def windows(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        begins, ends = _place(self._first, lengths), _place(self._last, lengths)
        ends = np.maximum(begins, ends)
        return begins, ends, ends


def _place(border: int, lengths: Numbers) -> Numbers:
    """Return where the border of a slice lies in records of these lengths."""
    border = max(-FARTHEST, min(border, FARTHEST))
    return np.clip(border + lengths * (border < 0), 0, lengths)

"""`--circular`: samples that are circles, with matches over their origin."""

import numpy as np

from multigpu.workloads.scan.views import Numbers, View


class CircularView(View):
    """Records that go on with their first bases, so far as a match may reach.

    A match longer than the circle is in them, too: `PlaceSearch` leaves it out.
    """

    def __init__(self, longest: int) -> None:
        """Take the bases of the longest match."""
        self._longest = longest

    def windows(self, lengths: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        ends = lengths + np.minimum(lengths, self._longest - 1)
        return np.zeros_like(lengths), ends, lengths

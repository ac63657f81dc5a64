"""Changes of whole chromosomes in states of the hidden Markov model."""

import numpy as np
import pytest

from multigpu.kernels.hmm import USUAL
from multigpu.workloads.cnv.stages.whole_chromosomes import fill_whole

ROWS = 100


@pytest.mark.parametrize(("silent", "is_filled"), [(40, True), (0, False)])
def test_fill_whole__counts_regions_that_have_reads(silent: int, is_filled: bool) -> None:
    states = np.full((ROWS, 2), USUAL, np.int8)
    states[40:95, 0] = USUAL + 1
    told, start = np.arange(ROWS) >= silent, 1000 * np.arange(ROWS)
    fill_whole(states, told, start, start + 1000)
    assert (states[:, 0] == USUAL + 1).all() == is_filled
    assert (states[:, 1] == USUAL).all()

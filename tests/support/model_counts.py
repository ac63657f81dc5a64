"""Counts of random cohorts, for the model."""

from typing import Any

import numpy as np


def cohort(rng: np.random.Generator, regions: int, samples: int, mean: float = 80) -> Any:
    """int32 counts: copy numbers of all kinds, regions without reads, and with very few."""
    copies = rng.choice([1.0, 1.0, 1.0, 1.0, 0.5, 1.5, 2.0, 0.02, 4.0], (regions, samples))
    counts = rng.poisson(mean * rng.gamma(4, 0.25, (regions, 1)) * copies).astype(np.int32)
    counts[rng.random(regions) < 0.1] = 0
    sparse = rng.random(regions) < 0.1
    counts[sparse] = np.where(rng.random((int(sparse.sum()), samples)) < 0.3, counts[sparse], 0)
    return counts

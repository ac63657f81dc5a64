"""Random input of the hidden Markov model."""

from typing import Any, NamedTuple

import numpy as np

from multigpu.kernels.hmm.moves import moves
from multigpu.kernels.hmm.types import SampleModel

SHARES = [1, 1, 1, 1, 1, 0.5, 1.5, 0.02, 3]


class Case(NamedTuple):
    """Arguments of `paths`."""

    counts: Any
    model: SampleModel
    moves: Any
    inside: Any


def random_case(seed: int, regions: int, samples: int, controls: int = 0, k: int = 6) -> Case:
    """Return noisy counts of all copy numbers; samples of 0 to 3 usual copies; gaps and breaks."""
    rng = np.random.default_rng(seed)
    columns = samples + controls
    means = rng.gamma(4, 25, (regions, 1)) * rng.choice(SHARES, (regions, columns))
    counts = rng.poisson(means).astype(rng.choice([np.int32, np.float64]))
    counts[3::7] //= 100  # regions with hardly any reads
    model = SampleModel(
        weights=rng.uniform(0.7, 1.5, (2, columns)),
        references=rng.integers(0, columns, (samples, k)).astype(np.int32),
        sizes=rng.uniform(0.7, 1.5, (2, samples)),
        copies=np.stack([rng.integers(0, 4, samples), np.full(samples, 2)]).astype(np.int8),
        noise=rng.uniform(1, 2, samples),
        spread=rng.permutation(samples)[:20].astype(np.int32),
        dispersion=0.01,
        cap=float(rng.choice([4, 25])),
    )
    start = np.cumsum(rng.choice([100, 5_000, 200_000], regions))
    ways = moves(start, start + 100, -(-regions // 10), max_gap=150_000)
    return Case(counts, model, ways, rng.random(regions) < 0.2)

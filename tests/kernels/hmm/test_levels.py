"""How well levels of two copies explain depths."""

import numpy as np
import pytest

from multigpu.kernels.hmm.levels import (
    LEAST_SHARE,
    OUTLIER,
    PATTERNS,
    SHARES,
    TINY,
    UNLIKELY,
    likeliest_copies,
    likelihoods,
)


@pytest.mark.parametrize("samples", [1, 5, 40])
def test_levels__explain_depths_as_their_definition_says(samples: int) -> None:
    rng = np.random.default_rng(samples)
    depths = rng.gamma(4, 0.25, (30, samples)) * rng.choice(SHARES, (30, samples))
    levels, usual, noise = rng.uniform(0.3, 2, (7, 30)), rng.uniform(0, 2, 30), 0.1
    usual[0] = 0
    typical = np.maximum(np.sqrt(usual * levels), TINY)
    deviation = noise * np.sqrt(np.maximum(SHARES, LEAST_SHARE)) * typical[..., None, None]
    off = (depths[..., None] - SHARES * levels[..., None, None]) / deviation
    logs = -np.minimum(off**2 / 2, OUTLIER) - np.log(deviation)  # [levels, blocks, samples, copies]
    patterns = (logs[..., None, :] + PATTERNS.T).max(axis=-1).sum(axis=2) - UNLIKELY
    found = likelihoods(depths, levels, usual, noise)
    np.testing.assert_allclose(found, patterns.max(axis=2), rtol=1e-12)
    copies = likeliest_copies(depths, levels[0], usual, noise)
    np.testing.assert_array_equal(copies, logs[0].argmax(axis=2))

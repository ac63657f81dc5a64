"""The nearest of a set of points, against all distances."""

import numpy as np
import pytest

from multigpu.kernels.rotation.nearest import k_d_tree, nearest_distances


@pytest.mark.parametrize("count", [1, 2, 12, 13, 25, 100, 3000])
@pytest.mark.parametrize("decimals", [0, 1, 9])  # few: many points are the same
def test_nearest__is_the_least_of_all_distances(count: int, decimals: int) -> None:
    random = np.random.default_rng(count)
    held = random.normal(size=(count, 4)).round(decimals)
    points = np.concatenate([random.normal(size=(200, 4)).round(decimals), 9 + held[:5], held[:5]])
    every = np.sqrt(((points[:, None] - held) ** 2).sum(axis=2)).min(axis=1)
    np.testing.assert_allclose(nearest_distances(k_d_tree(held), points), every, rtol=1e-14)

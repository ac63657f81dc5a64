"""Ligands far from the others."""

import numpy as np

from multigpu.workloads.dock.stats import Outliers, are_far


def test_outliers__are_none_where_little_is_known() -> None:
    assert not are_far(np.array([1.0, 2.0, 900.0])).any()
    assert not are_far(np.array([1.0] * 20 + [2.0])).any()


def test_outliers__are_beyond_the_fences_the_farthest_first() -> None:
    values = np.append(np.arange(101.0), [-400.0, 600.0, 999.0, 150.0])
    names = [f"l{i}" for i in range(len(values))]
    assert Outliers.of(names, values) == (["l103", "l102", "l101"], [999.0, 600.0, -400.0], 51.0)

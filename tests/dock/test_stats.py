"""Ligands far from the others."""

import numpy as np

from multigpu.workloads.dock.stats import DockStats, Outliers, are_far


def test_outliers__are_none_where_little_is_known() -> None:
    assert not are_far(np.array([1.0, 2.0, 900.0])).any()
    assert not are_far(np.array([1.0] * 20 + [2.0])).any()


def test_outliers__are_beyond_the_fences_the_farthest_first() -> None:
    values = np.append(np.arange(101.0), [-400.0, 600.0, 999.0, 150.0])
    assert Outliers.of(values) == ([103, 102, 101], [999.0, 600.0, -400.0], 51.0)


def test_names__are_found_by_number() -> None:
    lines, scores = ["a\nb", "", "c"], [np.zeros(2), np.zeros(0), np.zeros(1)]
    stats = DockStats(lines=lines, scores=scores)
    assert [stats.name(i) for i in range(3)] == ["a", "b", "c"]

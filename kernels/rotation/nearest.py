"""Distances of points to the nearest of a set, by a k-d tree (Bentley 1975)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc

Points = NDArray[np.float64]
LEAF = 12  # points that are compared one by one
DEEPEST = 64  # halves that wait: more than the logarithm of any number of points


def k_d_tree(points: Points) -> Points:
    """Return points, [k, axes], in an order in which the nearest are soon found."""
    tree = points.copy()
    _halve(tree, 0)
    return tree


def _halve(tree: Points, axis: int) -> None:
    """Order points so that on an axis the one in the middle is between both halves.

    Each half is so on the next axis.
    """
    if len(tree) > LEAF:
        middle = len(tree) // 2
        tree[:] = tree[np.argpartition(tree[:, axis], middle)]
        for half in (tree[:middle], tree[middle + 1 :]):
            _halve(half, (axis + 1) % tree.shape[1])


def nearest_distances(tree: Points, points: Points) -> NDArray[np.float64]:
    """Return float64[n]: of each point, [n, axes], the distance to the nearest of a tree."""
    found = np.empty(len(points))
    _search(tree, points, np.empty((DEEPEST, 3), np.int64), np.empty(DEEPEST), found)
    return np.sqrt(found)


@jit_no_alloc
def _search(tree: Any, points: Any, waiting: Any, bounds: Any, found: Any) -> None:
    """Find the least squares of the distances; halves that are farther are left out."""
    for p in range(points.shape[0]):
        least, left = np.inf, 1
        waiting[0, 0], waiting[0, 1], waiting[0, 2], bounds[0] = 0, tree.shape[0], 0, 0.0
        while left:
            left -= 1
            (begin, end, axis), bound = waiting[left], bounds[left]
            if bound >= least:
                continue
            if end - begin <= LEAF:
                for i in range(begin, end):
                    least = min(least, _square(tree[i], points[p]))
                continue
            middle = begin + (end - begin) // 2
            least = min(least, _square(tree[middle], points[p]))
            gap, following = points[p, axis] - tree[middle, axis], (axis + 1) % tree.shape[1]
            # The half that the point is in comes first, so it is put last.
            for is_near in (False, True):
                if is_near == (gap < 0):
                    waiting[left, 0], waiting[left, 1] = begin, middle
                else:
                    waiting[left, 0], waiting[left, 1] = middle + 1, end
                waiting[left, 2] = following
                bounds[left] = bound if is_near else max(bound, gap * gap)
                left += 1
        found[p] = least


@jit_no_alloc
def _square(one: Any, other: Any) -> Any:
    """Return the square of the distance of two points."""
    total = 0.0
    for axis in range(one.shape[0]):
        total += (one[axis] - other[axis]) ** 2
    return total

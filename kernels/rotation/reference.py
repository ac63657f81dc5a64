"""The plain search: every pose, every atom, in double precision. The tests' oracle.

It also defines the score to the last bit: the other backends do the same operations in the same
order where it matters, so that equal scores are equal for all of them.
"""

import numpy as np

from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import (
    PENALTY,
    Field,
    Ligands,
    Placements,
    Poses,
    PoseSearch,
    placed,
    sum_of,
)

BLOCK = 1 << 12  # poses at once


def value(field: Field, channel: int, place: Floats, first: bool = True) -> Floats:
    """Return float64[k]: one channel at float64[k, 3], in units of the spacing from the origin.

    first: whether it is an atom's first term, which has the penalty of a place outside
    """
    found: Floats
    grid, last = field.values[channel].astype(np.float64), np.array(field.shape) - 1
    inside = np.clip(place, 0, last)
    if field.interpolation == "nearest":
        ix, iy, iz = np.floor(inside + 0.5).astype(np.int64).T
        found = grid[ix, iy, iz]
    else:
        found = _trilinear(grid, inside, np.minimum(np.floor(inside), last - 1).astype(np.int64))
    if field.outside == "clamp":
        return found
    is_inside = (inside == place).all(axis=1)
    found[~is_inside] = 0
    if field.outside == "penalty" and first:
        away = (place[~is_inside] - field.middle) * field.spacing
        found[~is_inside] = -PENALTY * sum_of(away * away)
    return found


def _trilinear(grid: Floats, place: Floats, cell: Indices) -> Floats:
    fx, fy, fz = (place - cell).T
    ix, iy, iz = cell.T

    def along_z(dx: int, dy: int) -> Floats:
        return _between(grid[ix + dx, iy + dy, iz], grid[ix + dx, iy + dy, iz + 1], fz)

    def along_y(dx: int) -> Floats:
        return _between(along_z(dx, 0), along_z(dx, 1), fy)

    return _between(along_y(0), along_y(1), fx)


def _between(low: Floats, high: Floats, fraction: Floats) -> Floats:
    return low + fraction * (high - low)


def scores(
    field: Field, ligands: Ligands, ligand: int, search: PoseSearch, poses: Indices
) -> Floats:
    """Return float64[k]: the scores of the poses of one ligand."""
    matrices, shifts = search.placements(poses)
    per_unit = 1 / field.spacing
    start = (search.targets(ligands)[ligand] - field.origin) * per_unit
    return scores_at(field, ligands, ligand, matrices, start + shifts * per_unit)


def scores_at(
    field: Field, ligands: Ligands, ligand: int, matrices: Floats, starts: Floats
) -> Floats:
    """Return float64[k]: the scores of one ligand where it is turned and moved.

    matrices: float64[k, 3, 3]; starts: float64[k, 3], the centroids in units of the spacing from
    the origin
    """
    atoms = slice(ligands.offsets[ligand], ligands.offsets[ligand + 1])
    x, y, z = ligands.relative[atoms].T
    scaled = matrices * (1 / field.spacing)[:, None]
    place = np.stack(
        [
            (scaled[:, i, 0, None] * x + scaled[:, i, 1, None] * y)
            + (scaled[:, i, 2, None] * z + starts[:, i, None])
            for i in range(3)
        ],
        axis=-1,
    )
    found = np.empty((*place.shape[:2], ligands.channels.shape[1]))
    for atom, channels in enumerate(ligands.channels[atoms]):
        for term, channel in enumerate(channels):
            found[:, atom, term] = value(field, channel, place[:, atom], term == 0)
    return sum_of(sum_of(found * ligands.weights[atoms]))


def best_poses(
    field: Field,
    bodies: Ligands,
    numbers: Indices,
    search: PoseSearch,
    span: range | None = None,
    width: float = np.inf,
) -> Poses:
    """Return the best poses that are apart, of all bodies of these numbers together.

    span: of the poses; width: how much worse than the best one may score
    """
    span = range(search.stop) if span is None else span
    poses = np.arange(span.start, min(span.stop, search.stop))
    poses = poses[search.rotations.is_first(poses // search.shifts.count)]
    parts = np.split(poses, range(BLOCK, len(poses), BLOCK))
    found = np.stack(
        [
            np.concatenate([scores(field, bodies, number, search, part) for part in parts])
            for number in numbers.tolist()
        ]
    )
    body, row = np.nonzero(found >= found.max(initial=-np.inf) - width)
    ordered = Poses(numbers[body], poses[row], found[body, row])
    return _thinned(bodies, search, ordered.take(np.lexsort((poses[row], body, -ordered.score))))


def _thinned(bodies: Ligands, search: PoseSearch, ordered: Poses) -> Poses:
    if not search.min_rmsd:
        return ordered.take(slice(search.top))
    atoms = placed(bodies, Placements.of(bodies, search, ordered)).reshape(len(ordered), -1, 3)
    kept: list[int] = []
    free = np.ones(len(ordered), bool)
    while free.any() and len(kept) < search.top:
        kept.append(int(free.argmax()))
        squared = ((atoms - atoms[kept[-1]]) ** 2).sum(axis=2).mean(axis=1)
        free &= squared >= search.min_squared
        free[kept[-1]] = False
    return ordered.take(np.array(kept, np.int64))


class PoseSearcher:
    """Searches the poses of ligands in one field."""

    def __init__(self, field: Field, search: PoseSearch) -> None:
        self.field, self.search = field, search

    def best(self, ligands: Ligands, span: range | None = None) -> Poses:
        """Return the best poses of each ligand among those with an index in `span`, or among all.

        A ligand has fewer than `top` poses where no more are far enough apart.
        """
        each = np.arange(len(ligands))[:, None]
        found = [best_poses(self.field, ligands, number, self.search, span) for number in each]
        return Poses.joined(found)


def band_poses(
    field: Field, search: PoseSearch, width: float, bodies: Ligands, ligand_of: Indices
) -> Poses:
    """Return what `BandFinder.best` does, of bodies whose ligands are `ligand_of`."""
    found = [
        best_poses(field, bodies, numbers, search, width=width)
        for numbers in np.split(np.arange(len(bodies)), np.flatnonzero(np.diff(ligand_of)) + 1)
        if len(numbers)
    ]
    return Poses.chained([Poses.none(), *found])

"""The pattern search in NumPy, every trial scored plainly: the tests' oracle.

It defines the result to the last bit. `cpu.py` only scores faster.
"""

from functools import reduce
from operator import add

import numpy as np

from multigpu.kernels.rotation.reference import scores_at
from multigpu.kernels.rotation.refine import pattern
from multigpu.kernels.rotation.refine.pattern import GROUPS, TRIALS, directions
from multigpu.kernels.rotation.rotations import Floats, Indices
from multigpu.kernels.rotation.types import Field, Ligands, Placements

AT_ONCE = 64  # placements that climb in step, each by itself


class Refiner:
    """Moves placements of bodies uphill in one field."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        """Return the placements, each moved to a local maximum of the score, in their order.

        No rigid move of up to 0.02 Å and 0.2° from there raises the score by more than 0.01.
        """
        parts = [found.take(slice(k, k + AT_ONCE)) for k in range(0, len(found), AT_ONCE)]
        return Placements.chained([self._climb(bodies, part) for part in parts] or [found])

    def _climb(self, bodies: Ligands, found: Placements) -> Placements:
        body, matrix, place = found.ligand, found.matrix.copy(), found.place.copy()
        score = self.scores(bodies, body, matrix[:, None], place[:, None])[:, 0]
        metric = np.tile(np.eye(6), (len(found), 1, 1))
        step, before = np.full(len(found), pattern.FIRST), np.full(len(found), -np.inf)
        left, first = np.arange(len(found)), np.arange(0, TRIALS, TRIALS // GROUPS)
        for batch in range(pattern.MOST_BATCHES):
            is_fine = step[left] < pattern.FINEST
            has_ended = is_fine & (score[left] - before[left] < pattern.GAIN)
            again, left = left[is_fine & ~has_ended], left[~has_ended]
            metric[again], step[again], before[again] = np.eye(6), pattern.AGAIN, score[again]
            if not len(left):
                break
            table, each = directions()[batch % pattern.TABLES], np.arange(len(left))
            moves = step[left, None, None] * _product(table, metric[left].transpose(0, 2, 1))
            matrices, places = _moved(matrix[left], place[left], moves)
            scores = self.scores(bodies, body[left], matrices, places)
            winners = scores.reshape(len(left), GROUPS, -1).argmax(axis=2) + first
            best = winners[each, scores[each[:, None], winners].argmax(axis=1)]
            gain = scores[each, best] - score[left]
            better, trial = left[gain > 0], (each[gain > 0], best[gain > 0])
            score[better], matrix[better], place[better] = (
                trials[trial] for trials in (scores, matrices, places)
            )
            longer = np.minimum(pattern.GROWTH * step[left], pattern.FIRST)
            step[left] = np.where(gain > pattern.LEAST, longer, pattern.SHRINKAGE * step[left])
            metric[left] = _stretched(metric[left], table[winners])
        columns = {"score": score, "matrix": matrix, "place": place}
        return Placements(**{**vars(found), **columns})

    def scores(self, bodies: Ligands, body: Indices, matrices: Floats, places: Floats) -> Floats:
        """Return float64[n, k]: the scores of k trials of each of n placements.

        body: int64[n]; matrices: float64[n, k, 3, 3]; places: float64[n, k, 3], Å
        """
        starts = (places - self.field.origin) * (1 / self.field.spacing)
        trials = zip(body.tolist(), matrices, starts, strict=True)
        return np.array([scores_at(self.field, bodies, *each) for each in trials])


def _product(a: Floats, b: Floats) -> Floats:
    """Return the matrix product, its terms added from the first to the last."""
    terms = (a[..., :, k, None] * b[..., k, None, :] for k in range(a.shape[-1]))
    return reduce(add, terms)


def _moved(matrix: Floats, place: Floats, moves: Floats) -> tuple[Floats, Floats]:
    """Return n placements, each moved in k ways: float64[n, k, 3, 3] and float64[n, k, 3].

    moves: float64[n, k, 6] in Å, shifts and, ARM times as long, half the vectors q of the
    quaternions 1 + q, which turn about the centroid; they need no sine.
    """
    a, b, c = np.moveaxis(moves[..., 3:], 2, 0) * (0.5 / pattern.ARM)
    scale = 2 / (1 + ((a * a + b * b) + c * c))
    rows = [
        [1 - scale * (b * b + c * c), scale * (a * b - c), scale * (a * c + b)],
        [scale * (a * b + c), 1 - scale * (a * a + c * c), scale * (b * c - a)],
        [scale * (a * c - b), scale * (b * c + a), 1 - scale * (a * a + b * b)],
    ]
    turns = np.moveaxis(np.array(rows), (0, 1), (2, 3))
    return _product(turns, matrix[:, None]), place[:, None] + moves[..., :3]


def _stretched(metric: Floats, winners: Floats) -> Floats:
    """Return metrics, float64[n, 6, 6], adapted to the winners' directions.

    winners: float64[n, GROUPS, 6]
    """
    products = _product(winners.transpose(0, 2, 1), winners)
    change = pattern.RATE * (products * (6 / GROUPS) - np.eye(6))
    return metric + _product(metric, change)

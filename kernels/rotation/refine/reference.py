"""The plain pattern search, in NumPy: the tests' oracle. It defines the result to the last bit."""

from dataclasses import replace

import numpy as np

from multigpu.kernels.rotation.reference import scores_at
from multigpu.kernels.rotation.refine import pattern
from multigpu.kernels.rotation.refine.pattern import GROUPS, TRIALS, directions
from multigpu.kernels.rotation.rotations import Floats
from multigpu.kernels.rotation.types import Field, Ligands, Placements, check, sum_of

Climbed = tuple[float, Floats, Floats]  # score, matrix, place


class Refiner:
    """Moves placements of bodies uphill in one field."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def refine(self, bodies: Ligands, found: Placements) -> Placements:
        """Return the placements, each moved to a local maximum of the score, in their order.

        No rigid move of up to 0.02 Å and 0.2° from there raises the score by more than 0.01.
        """
        check(self.field, bodies)
        score, matrix, place = found.score.copy(), found.matrix.copy(), found.place.copy()
        for k, body in enumerate(found.ligand):
            score[k], matrix[k], place[k] = self._climb(bodies, int(body), matrix[k], place[k])
        return replace(found, score=score, matrix=matrix, place=place)

    def _climb(self, bodies: Ligands, body: int, matrix: Floats, place: Floats) -> Climbed:
        score = float(self._scores(bodies, body, matrix[None], place[None])[0])
        metric, step, before = np.eye(6), pattern.FIRST, -np.inf
        groups = np.arange(0, TRIALS, TRIALS // GROUPS)
        for batch in range(pattern.MOST_BATCHES):
            if step < pattern.FINEST:
                if score - before < pattern.GAIN:
                    break
                metric, step, before = np.eye(6), pattern.AGAIN, score
            table = directions()[batch % pattern.TABLES]
            moves = step * sum_of(metric * table[:, None, :])
            matrices, places = _moved(matrix, place, moves)
            scores = self._scores(bodies, body, matrices, places)
            winners = scores.reshape(GROUPS, -1).argmax(axis=1) + groups
            best = winners[scores[winners].argmax()]
            gain = scores[best] - score
            if gain > 0:
                score, matrix, place = float(scores[best]), matrices[best], places[best]
            if gain > pattern.LEAST:
                step = min(pattern.GROWTH * step, pattern.FIRST)
            else:
                step *= pattern.SHRINKAGE
            metric = _stretched(metric, table[winners])
        return score, matrix, place

    def _scores(self, bodies: Ligands, body: int, matrices: Floats, places: Floats) -> Floats:
        starts = (places - self.field.origin) * (1 / self.field.spacing)
        return scores_at(self.field, bodies, body, matrices, starts)


def _moved(matrix: Floats, place: Floats, moves: Floats) -> tuple[Floats, Floats]:
    """Return the placement moved in k ways, float64[k, 3, 3] and float64[k, 3].

    moves: float64[k, 6] in Å, shifts and, ARM times as long, half the vectors q of the quaternions
    1 + q, which turn about the centroid; they need no sine.
    """
    a, b, c = moves[:, 3:].T * (0.5 / pattern.ARM)
    scale = 2 / (1 + ((a * a + b * b) + c * c))
    rows = [
        [1 - scale * (b * b + c * c), scale * (a * b - c), scale * (a * c + b)],
        [scale * (a * b + c), 1 - scale * (a * a + c * c), scale * (b * c - a)],
        [scale * (a * c - b), scale * (b * c + a), 1 - scale * (a * a + b * b)],
    ]
    turns = np.moveaxis(np.array(rows), 2, 0)
    return sum_of(turns[:, :, None, :] * matrix.T), place + moves[:, :3]


def _stretched(metric: Floats, winners: Floats) -> Floats:
    """Return the metric, float64[6, 6], adapted to float64[GROUPS, 6], the winners' directions."""
    products = sum_of((winners[:, :, None] * winners[:, None, :]).transpose(1, 2, 0))
    change = pattern.RATE * (products * (6 / GROUPS) - np.eye(6))
    return metric + sum_of(metric[:, None, :] * change.T)

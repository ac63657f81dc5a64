"""The rounds of a search, for any backend: score, take the best, strike out what is near, again."""

from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.rotation.bounds import LigandBounds
from kernels.rotation.types import Field, Ligands, Poses, Search


class Scores(Protocol):
    """The scores in single precision of some ligands and a part of the poses, where they lie.

    +inf: undecided (see `bounds`); -inf: repeats another pose, or was struck out.
    """

    def score(self, part: range) -> None:
        """Scores of another part."""

    def strike(self, taken: Poses) -> None:
        """Takes out these poses, and those closer to one of them than the search allows."""

    def greatest(self) -> NDArray[np.float32]:
        """float32[n]: of each ligand the highest score of a decided pose; -inf: there is none."""

    def settle(self, thresholds: NDArray[np.float32]) -> Poses:
        """Of each ligand the best pose in double precision among those not below its threshold."""


def best(scores: Scores, bounds: LigandBounds, span: range, most: int, taken: Poses) -> Poses:
    """The best poses of a span, apart from those that were taken; `most` are scored at a time."""
    found: list[Poses] = []
    for _ in range(bounds.search.top):
        if not found or len(span) > most:
            winners = _round(scores, bounds, split(span, most), Poses.joined([taken, *found]))
        else:
            scores.strike(found[-1])
            winners = scores.settle(bounds.thresholds(scores.greatest()))
        if not len(winners):
            break
        found.append(winners)
    return Poses.joined(found)


def _round(scores: Scores, bounds: LigandBounds, parts: Iterable[range], taken: Poses) -> Poses:
    """One pass over all the parts; what is found in one narrows the choice in those that follow."""
    winners, greatest = Poses.none(), np.full(1, -np.inf, np.float32)
    for part in parts:
        scores.score(part)
        bounds.prepare()
        if len(taken):
            scores.strike(taken)
        greatest = np.maximum(greatest, scores.greatest())
        winners = Poses.joined([winners, scores.settle(bounds.thresholds(greatest))]).winners()
    return winners


def split(span: range, most: int) -> Iterator[range]:
    """Consecutive parts of at most so many poses."""
    for begin in range(span.start, span.stop, most):
        yield range(begin, min(begin + most, span.stop))


def span_of(search: Search, span: range | None) -> range:
    """The poses to look at. Raises ValueError for a span that is no part of the search."""
    everything = range(search.stop)
    if span is None:
        return everything
    if span.step != 1 or not 0 <= span.start <= span.stop <= everything.stop:
        raise ValueError(f"{span} is no part of {everything}")
    return span


def check(field: Field, ligands: Ligands) -> None:
    """Raises ValueError where a term's channel is not in the field."""
    channels = ligands.channels
    if channels.size and not 0 <= channels.min() <= channels.max() < len(field.values):
        raise ValueError(f"a channel is not among the {len(field.values)} of the field")

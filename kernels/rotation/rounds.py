"""The rounds of a search, for any backend: score, take the best, strike out what is near, again."""

from collections.abc import Iterator
from typing import Protocol

from multigpu.kernels.rotation.types import Field, Ligands, Poses, Search


class Scores(Protocol):
    """The scores in single precision of some ligands and a part of the poses, where they lie.

    +inf: undecided (see `bounds`); -inf: repeats another pose, or was struck out. A device may do
    all this later, in this order; only `winners` waits for it.
    """

    def begin(self) -> None:
        """A new round: of the last one's parts nothing counts any more, but the scores stay."""

    def score(self, part: range) -> None:
        """Scores of another part."""

    def strike(self, taken: Poses) -> None:
        """Takes out these poses, and those closer to one of them than the search allows."""

    def settle(self) -> None:
        """Scores in double precision what could be the best of the round so far.

        Those are the poses of the part that are not below the threshold of `bounds`, which is that
        of the highest score of a decided pose in the round; it comes after `strike`.
        """

    def winners(self) -> Poses:
        """Return the best pose of each ligand that was settled in the round."""


def best(scores: Scores, search: Search, span: range, most: int, taken: Poses) -> Poses:
    """The best poses of a span, apart from those that were taken; `most` are scored at a time."""
    found: list[Poses] = []
    for _ in range(search.top):
        scores.begin()
        if found and len(span) <= most:  # its scores are held, and what was taken before is struck
            scores.strike(found[-1])
            scores.settle()
        else:
            _pass_over(scores, split(span, most), Poses.joined([taken, *found]))
        winners = scores.winners()
        if not len(winners):
            break
        found.append(winners)
    return Poses.joined(found)


def _pass_over(scores: Scores, parts: Iterator[range], taken: Poses) -> None:
    """All the parts; what is found in one narrows the choice in those that follow."""
    for part in parts:
        scores.score(part)
        if len(taken):
            scores.strike(taken)
        scores.settle()


def split(span: range, most: int) -> Iterator[range]:
    """Yield consecutive parts of at most `most` poses."""
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

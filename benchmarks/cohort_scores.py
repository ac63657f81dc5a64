"""Scores of callers: which planted events their calls find, which calls are false.

An event is found where calls of its sample and direction, each with at least half of its regions
inside the event, cover at least half of the event's regions; a chromosome or arm, where three of
these calls at most cover 90 % of it. A call is false where less than half of its regions lie in
planted events of its sample and direction.
"""

from dataclasses import dataclass, field

import numpy as np
from cohorts import Cohort, Events, Kind
from numpy.typing import NDArray

COVERED, PIECES = 0.9, 3  # of a whole chromosome: share that is called, and calls at most
CLEAR = 0.75  # share of a call's regions where a sample has the same copies
SURE = 1.96  # deviations of an interval of 95 %


@dataclass(frozen=True, eq=False, kw_only=True)
class Calls:
    """Calls of a cohort.

    first, stop  int64[n]  rows of the regions
    sample       int64[n]
    sign         int64[n]  -1: fewer copies than usual, 1: more
    genotypes    int8[n, samples]: copies of every sample in the regions of each call, -1 where they
                 are not known; None for callers that give none
    """

    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    sample: NDArray[np.int64]
    sign: NDArray[np.int64]
    genotypes: NDArray[np.int8] | None = None


@dataclass
class Cell:
    """Events of a label, those that were found, and by how many regions their borders are off."""

    planted: int = 0
    found: int = 0
    off: int = 0

    def add(self, other: "Cell") -> None:
        self.planted += other.planted
        self.found += other.found
        self.off += other.off


@dataclass
class Tally:
    """Answers of a caller to the cohorts of a kind.

    pairs, right      genotyped samples with clear copies at calls, and those with these copies
    carriers, copies  the same of those in whom the copies are not usual
    seconds           of the calls, without the simulation
    """

    cells: dict[str, Cell] = field(default_factory=dict)
    samples: int = 0
    calls: int = 0
    false: int = 0
    pairs: int = 0
    right: int = 0
    carriers: int = 0
    copies: int = 0
    seconds: float = 0.0

    def add(self, kind: Kind, cohort: Cohort, calls: Calls, seconds: float) -> None:
        """Count a cohort."""
        for label, cell in found_cells(kind, cohort.events, calls, cohort.usual).items():
            self.cells.setdefault(label, Cell()).add(cell)
        self.samples += len(cohort.counts.samples)
        self.calls += len(calls.first)
        self.false += int(are_false(cohort, calls).sum())
        self.seconds += seconds
        if calls.genotypes is not None:
            truth, usual, is_clear = genotypes(cohort, calls)
            is_right, is_carrier = (
                (truth == calls.genotypes) & is_clear,
                (truth != usual) & is_clear,
            )
            self.pairs += int(is_clear.sum())
            self.right += int(is_right.sum())
            self.carriers += int(is_carrier.sum())
            self.copies += int((is_right & is_carrier).sum())


def found_cells(
    kind: Kind, events: Events, calls: Calls, usual: NDArray[np.int8]
) -> dict[str, Cell]:
    """Return what is found of each label."""
    cells = {label: Cell() for label in kind.labels}
    signs = np.sign(events.copies - usual[events.first, events.sample])
    for k, (first, stop) in enumerate(
        zip(events.first.tolist(), events.stop.tolist(), strict=True)
    ):
        there = (calls.sample == events.sample[k]) & (calls.sign == signs[k])
        begin, end = np.maximum(calls.first, first), np.minimum(calls.stop, stop)
        inside = np.maximum(end - begin, 0)
        there &= (inside > 0) & (2 * inside >= calls.stop - calls.first)
        cell = cells[kind.labels[events.label[k]]]
        cell.planted += 1
        most = np.sort(inside[there])[-PIECES:] if kind.is_whole else inside[there]
        if most.sum() >= (stop - first) * (COVERED if kind.is_whole else 0.5):
            cell.found += 1
            cell.off += abs(int(calls.first[there].min()) - first)
            cell.off += abs(int(calls.stop[there].max()) - stop)
    return cells


def are_false(cohort: Cohort, calls: Calls) -> NDArray[np.bool_]:
    """Return whether less than half of a call's regions lie in events of its direction, bool[n]."""
    signs = np.sign(cohort.copies.astype(np.int64) - cohort.usual)
    planted = np.empty(len(calls.first), np.int64)
    for sign in (-1, 1):
        before = np.cumsum(np.pad(signs == sign, ((1, 0), (0, 0))), axis=0, dtype=np.int32)
        some = calls.sign == sign
        ends = before[calls.stop[some], calls.sample[some]]
        planted[some] = ends - before[calls.first[some], calls.sample[some]]
    planted[calls.sign == 0] = 0
    return 2 * planted < calls.stop - calls.first


def genotypes(
    cohort: Cohort, calls: Calls
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the copies that most regions of each call have, and the usual ones: [calls, samples].

    The third array tells where they are clear: the sample has these copies in `CLEAR` of the
    regions at least, and is compared there.
    """
    spans = list(zip(calls.first.tolist(), calls.stop.tolist(), strict=True))
    many = range(int(cohort.copies.max(initial=0)) + 1)
    rows = [[(cohort.copies[a:b] == n).mean(axis=0) for n in many] for a, b in spans]
    shares = np.array(rows).reshape(len(spans), len(many), cohort.copies.shape[1])
    usual = cohort.usual[calls.first].astype(np.int64)
    is_clear = (shares.max(axis=1) >= CLEAR) & (usual > 0)
    return shares.argmax(axis=1), usual, is_clear


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, 95 %."""
    if not whole:
        return 0.0, 1.0
    share, squared = part / whole, SURE**2 / whole
    middle = (share + squared / 2) / (1 + squared)
    half = np.sqrt(share * (1 - share) * squared + squared**2 / 4) / (1 + squared)
    return middle - half, middle + half

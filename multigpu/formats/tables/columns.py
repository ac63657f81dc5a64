"""Rows of a scan as columns of texts, which the lines of all text formats are made of."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.tables.batch import Batch

if TYPE_CHECKING:
    from multigpu.formats.sequences.signatures import Signatures

PIECE = 1 << 14  # rows rendered at a time: their Python objects stay in the processor's cache

Requested = tuple[str, ...]  # some of `multigpu.formats.tables.writers.REQUESTED`
Columns = tuple[list[str], list[str], list[int], list[int], list[str]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Rows to make lines of.

    requested  names of the columns on request
    is_first   bool[n]: whether a row is the first one of its sample
    """

    batch: Batch
    signatures: "Signatures"
    requested: Requested
    is_first: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: Batch, signatures: "Signatures", requested: Requested) -> "Rows":
        """Return the rows of a batch with all rows of its samples."""
        is_first = np.diff(batch.sample_index, prepend=-2) != 0
        return cls(batch=batch, signatures=signatures, requested=requested, is_first=is_first)

    def __len__(self) -> int:
        return len(self.batch)

    def pieces(self) -> Iterator["Rows"]:
        """Yield the rows, a piece at a time."""
        for at in range(0, len(self), PIECE):
            part = slice(at, at + PIECE)
            yield Rows(
                batch=self.batch[part],
                signatures=self.signatures,
                requested=self.requested,
                is_first=self.is_first[part],
            )


def latin1(names: Sequence[bytes]) -> list[str]:
    """Return bytes as characters, one each: encoded again they are the same bytes."""
    return decoded(names, "latin-1")


def decoded(names: Sequence[bytes], encoding: str) -> list[str]:
    """Return names as text; they hold no line ends."""
    # All at once: a call for each name takes longer.
    return b"\n".join(names).decode(encoding, "replace").split("\n") if names else []


def columns(rows: Rows, decode: Callable[[Sequence[bytes]], list[str]] = latin1) -> Columns:
    """Return sample, signature, start, end and strand as lists."""
    batch, names = rows.batch, rows.signatures.names
    # An array's elements are slow to take one by one, and only names that occur are decoded.
    which, row = np.unique(batch.signature, return_inverse=True)
    signatures = np.array(decode([names[i] for i in which.tolist()]), object)
    return (
        decode(batch.sample),
        signatures[row].tolist(),
        batch.start.tolist(),
        batch.end.tolist(),
        ["-" if reverse else "+" for reverse in batch.reverse.tolist()],
    )


def per_row(scores: NDArray[np.float64], show: Callable[[float], str], missing: str) -> list[str]:
    """Return float64[n] as n texts, NaN as `missing`; each distinct score is rendered once."""
    # + 0.0, so that there is no -0.0 beside 0.0.
    distinct, rows = np.unique(scores + 0.0, return_inverse=True)
    texts = [missing if math.isnan(score) else show(score) for score in distinct.tolist()]
    texts_by_row: list[str] = np.array(texts, object)[rows].tolist()
    return texts_by_row

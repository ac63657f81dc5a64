"""Rows of a scan as columns: what workers make, outputs write and the Python API gives."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.choice import Places

RUN = re.compile(rb"(\d+)([=XIDM])")  # of an alignment as text
DTYPES: dict[str, type[np.generic]] = {
    "sample_index": np.int64,
    "signature": np.int32,
    "start": np.int64,
    "end": np.int64,
    "reverse": np.bool_,
    "score": np.float64,
    "ambiguous": np.int32,
    "errors": np.int32,
    "sample_length": np.int64,
    "source": np.int32,
    "mate": np.int8,
    "tied": np.int32,
    "bulge": np.int32,
}
TEXTS = ("sample", "cigar", "bases")


@dataclass(frozen=True, eq=False, kw_only=True)
class Batch:
    """Hits, one in each row; all columns have the same length.

    sample_index   int64[n]    order of the sample in the whole input, from 0
    sample         n bytes     its name as in the file, free of white space
    signature      int32[n]    index into the names of the signatures
    start, end     int64[n]    on the sample, from 0, half open
    reverse        bool[n]     found on the strand -
    score          float64[n]  finite; NaN where samples have no quality, and for all if no output
                               asks
    ambiguous      int32[n]    bases of the sample within the match that are not A, C, G, T or U
    errors         int32[n]    mismatches or edits; 0 in an exact scan
    sample_length  int64[n]    bases of the whole sample
    source         int32[n]    number of its file
    mate           int8[n]     1 or 2 of a pair of reads; 0 without pairs
    tied           int32[n]    signatures that are as good for the sample as this one; 0 where
                               the best signature of each sample is not asked for
    bulge          int32[n]    bases of the sample alone, or, negative, of the signature alone
    cigar          n bytes     the alignment along the sample, in operations = X, I for a base of
                               the sample alone, D for one of the signature; empty unless edits are
                               searched or the output has alignments
    bases          n bytes     letters of the sample under the match; empty unless an output needs
                               them

    Raises ValueError on any other dtype, shape or length; nothing is converted.
    """

    sample_index: NDArray[np.int64]
    sample: list[bytes]
    signature: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    score: NDArray[np.float64]
    ambiguous: NDArray[np.int32]
    errors: NDArray[np.int32]
    sample_length: NDArray[np.int64]
    source: NDArray[np.int32]
    mate: NDArray[np.int8]
    tied: NDArray[np.int32]
    bulge: NDArray[np.int32]
    cigar: list[bytes]
    bases: list[bytes]

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            column = getattr(self, name)
            if column.dtype != dtype or column.shape != (len(self),):
                found, wanted = f"{column.dtype}{list(column.shape)}", f"{np.dtype(dtype)}"
                raise ValueError(f"{name}: {found} instead of {wanted}[{len(self)}]")
        if any(len(getattr(self, name)) != len(self) for name in TEXTS):
            raise ValueError("columns of different length")

    def __len__(self) -> int:
        return len(self.sample)

    def __repr__(self) -> str:
        return f"<Batch: {len(self):,} matches>"

    def __getitem__(self, rows: "slice | NDArray[np.bool_]") -> "Batch":
        """Return some of the rows."""
        return self.take(np.arange(len(self))[rows])

    def take(self, order: NDArray[np.intp]) -> "Batch":
        """Return the rows of these indices, in this order."""
        columns: dict[str, Any] = {name: getattr(self, name)[order] for name in DTYPES}
        rows = order.tolist()
        texts: dict[str, Any] = {name: [getattr(self, name)[i] for i in rows] for name in TEXTS}
        return Batch(**columns, **texts)

    def numbered(self, first: int) -> "Batch":
        """Return the rows with samples counted from `first` on, not from 0."""
        return replace(self, sample_index=self.sample_index + first)

    @property
    def edits(self) -> NDArray[np.int32]:
        """int32[n]: errors, with the bases in bulges."""
        return self.errors + np.abs(self.bulge)

    def places(self, bulges: bool) -> Places:
        """Return the rows as places, which may have bulges or not."""
        return Places(
            record=self.sample_index,
            signature=self.signature,
            start=self.start,
            end=self.end,
            is_reverse=self.reverse,
            errors=self.errors,
            bulge=self.bulge if bulges else None,
        )

    def sample_names(self) -> bytes:
        """Return the name of every sample that has rows, each with a line end after it.

        Of a pair it is one name.
        """
        # Rows of a sample stand together, and mates follow each other.
        samples = (self.sample_index - (self.mate == 2)).tolist()
        rows = zip(self.sample, samples, [-2, *samples], strict=False)
        return b"".join([name + b"\n" for name, sample, before in rows if sample != before])

    @classmethod
    def empty(cls) -> Self:
        columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
        texts: dict[str, Any] = {name: [] for name in TEXTS}
        return cls(**columns, **texts)

    @classmethod
    def concatenate(cls, batches: Sequence["Batch"]) -> Self:
        """Return all rows in the order given; no batches make an empty one."""
        batches = [cls.empty(), *batches]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(b, name) for b in batches]) for name in DTYPES
        }
        texts: dict[str, Any] = {
            name: [text for each in batches for text in getattr(each, name)] for name in TEXTS
        }
        return cls(**columns, **texts)


def spelled_out(cigar: bytes, is_reverse: bool = False) -> bytes:
    """Return an operation for each column, as ==X for 2=1X; where it is reverse from the last."""
    columns = b"".join([int(count) * kind for count, kind in RUN.findall(cigar)])
    return columns[::-1] if is_reverse else columns

"""Hits as columns: what workloads hand to the writers and to the Python API."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

DTYPES = {
    "sample_index": np.int64,
    "signature": np.int32,
    "start": np.int64,
    "end": np.int64,
    "reverse": np.bool_,
    "score": np.float64,
}


@dataclass(frozen=True, eq=False)
class Batch:
    """Hits, one in each row; all columns have the same length.

    sample_index  int64[n]    order of the sample in the whole input, from 0
    sample        n bytes     its name as in the file, free of white space
    signature     int32[n]    index into the names of the signatures
    start, end    int64[n]    on the sample, from 0, half open
    reverse       bool[n]     found on the strand -
    score         float64[n]  finite; NaN where the samples have no quality

    Raises ValueError on any other dtype, shape or length; nothing is converted.
    """

    sample_index: NDArray[np.int64]
    sample: list[bytes]
    signature: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    reverse: NDArray[np.bool_]
    score: NDArray[np.float64]

    def __post_init__(self) -> None:
        for name, dtype in DTYPES.items():
            column = getattr(self, name)
            if column.dtype != dtype or column.shape != (len(self.sample),):
                raise ValueError(
                    f"{name}: {column.dtype}{list(column.shape)}"
                    f" instead of {np.dtype(dtype)}[{len(self.sample)}]"
                )

    def __len__(self) -> int:
        return len(self.sample)

    def __getitem__(self, rows: "slice | NDArray[np.bool_]") -> "Batch":
        """Some of the rows; those of a slice are views."""
        if isinstance(rows, np.ndarray):
            return self.take(np.flatnonzero(rows))
        return Batch(*(getattr(self, field.name)[rows] for field in fields(self)))

    def take(self, order: NDArray[np.intp]) -> "Batch":
        """The rows of these indices, in this order."""
        columns: dict[str, Any] = {name: getattr(self, name)[order] for name in DTYPES}
        return Batch(sample=[self.sample[i] for i in order.tolist()], **columns)

    @classmethod
    def empty(cls) -> Self:
        columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}
        return cls(sample=[], **columns)

    @classmethod
    def concatenate(cls, batches: Sequence["Batch"]) -> Self:
        """All rows in the order given; no batches make an empty one."""
        if not batches:
            return cls.empty()
        columns = {name: np.concatenate([getattr(b, name) for b in batches]) for name in DTYPES}
        return cls(sample=[name for batch in batches for name in batch.sample], **columns)

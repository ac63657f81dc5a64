"""The protocol of outputs: what each takes of a chunk on a worker, and a journal keeps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from multigpu.formats.sequences.pieces import Text
from multigpu.workloads.scan.batch import Batch

Numbers = NDArray[np.int64]
# Columns of `Batch`: names of samples, scores, alignments where no edits are searched, letters.
ON_DEMAND = frozenset({"sample", "score", "cigar", "bases"})
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordTexts:
    """The place of records in a text.

    text     that the records stand in
    borders  makes int64[n] twice: where each of n records begins in the text, and where it ends
    """

    text: Text
    borders: Callable[[], tuple[NDArray[np.int64], NDArray[np.int64]]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """Records of one source that lie in one chunk, or were joined from several, and their rows.

    path       of the file, or of both files of a pair
    source     number of the file, or of the first
    rows       their samples are counted from the first of the records
    lengths    int64[n]: bases of the records
    names      makes the names of the records, n of them
    files      2 where records are of two files in turns
    letters    makes the bases of windows (records, starts, ends, int64[k] each) of the records,
               over their origin where an end is beyond; None for a record that was joined
    barcodes   makes what stands where the barcodes of reads (int64[k]) are looked for; None without
               a sample sheet, and where they may be at many places
    is_paired  whether records 2i and 2i + 1 are mates; none of them is without the other
    texts      their text; None where they were joined
    """

    path: str
    source: int
    rows: Batch
    lengths: NDArray[np.int64]
    names: Callable[[], list[bytes]]
    files: int = 1
    is_paired: bool = False
    letters: Callable[[Numbers, Numbers, Numbers], list[bytes]] | None = None
    barcodes: Callable[[Numbers], list[bytes]] | None = None
    texts: RecordTexts | None = None


class Sink(Protocol[T_co]):
    """One output of a scan. It pickles, and is sent to the workers: nothing is open in it."""

    @property
    def name(self) -> str:
        """Name of the payloads in a journal: other ones have another name."""

    @property
    def needs(self) -> frozenset[str]:
        """Columns of rows that are made for outputs that need them: some of `ON_DEMAND`."""

    def collect(self, found: Findings) -> T_co:
        """Return the payload: what this output wants of the findings.

        It is made of plain values, arrays and batches. Raises InputError for a sample that the
        output cannot have.
        """

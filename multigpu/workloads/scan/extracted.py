"""Records of a chunk as they are written to files: what --matched and --unmatched ask for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.codec import NOT_KEPT
from multigpu.formats.storage.many_outputs import Piece
from multigpu.kernels.compiled.text.record_texts import mask_records, trim_records
from multigpu.workloads.scan.sink import RecordTexts


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtractedRecords:
    """Records of a span in the order of the files that they go to; one may go to several.

    A journal keeps which records these are. Their text is read again.

    files    int64[f]      numbers of the files, ascending
    borders  int64[f + 1]  the first record of each file among all, and their number
    records  int64[k]      numbers of the records in the span
    kept     int64[k, 2]   bases of each record that are kept; int64[0, 2]: all
    masked   int64[m, 3]   record (0 to k), begin and end of bases that N is written over
    content  uint8[b]      text of the records
    edges    int64[f + 1]  where the text for each file begins in it, and ends
    """

    files: NDArray[np.int64]
    borders: NDArray[np.int64]
    records: NDArray[np.int64]
    kept: NDArray[np.int64]
    masked: NDArray[np.int64]
    content: NDArray[np.uint8] | None = field(default=None, metadata=NOT_KEPT)
    edges: NDArray[np.int64] | None = field(default=None, metadata=NOT_KEPT)

    def read(self, texts: RecordTexts) -> "ExtractedRecords":
        """Return the same with its content. Raises InputError where a file cannot be read.

        The last line of a file gets an end where it has none.
        """
        begins, ends = texts.borders()
        sizes, rooms = ends - begins, ends - begins
        last = slice(max(0, len(ends) - 2), None)  # of a file, or of both of a pair
        lines = texts.text.windows(ends[last] - 1, ends[last])
        rooms[last] += np.array([line != b"\n" for line in lines], np.int64)
        offsets = np.zeros(len(self.records) + 1, np.int64)
        np.cumsum(rooms[self.records], out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        texts.text.copy_records(begins[self.records], sizes[self.records], offsets, out)
        if len(self.kept):
            trim_records(out, offsets, self.kept)
        if len(self.masked):
            mask_records(out, offsets, *self.masked.T.copy())
        return replace(self, content=out[: offsets[-1]], edges=offsets[self.borders])

    @property
    def nbytes(self) -> int:
        """Bytes of the content."""
        return 0 if self.content is None else self.content.nbytes

    def pieces(self) -> Iterator[Piece]:
        """Yield the text for each file that gets some."""
        assert self.content is not None
        assert self.edges is not None
        text, edges = self.content.data, self.edges.tolist()
        for at, number in enumerate(self.files.tolist()):
            yield number, text[edges[at] : edges[at + 1]]

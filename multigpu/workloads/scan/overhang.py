"""`--overhang`: signatures that hang over the ends of samples."""

import numpy as np

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.scan import Chunk, Hits, Patterns
from multigpu.kernels.scan.overhang import Overhang, OverhangSearch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import limits_of
from multigpu.workloads.scan.within import WithinView


class RecordEnds:
    """The search at the ends of whole records, besides that for whole signatures."""

    def __init__(self, patterns: Patterns, options: ScanOptions) -> None:
        overhang = Overhang(
            start=options.overhang != "end",
            end=options.overhang != "start",
            least=options.min_overlap,
            most=options.most_errors,
        )
        strict = options.sample_n == "mismatch"
        self._search = OverhangSearch(patterns, limits_of(patterns, options), overhang, strict)
        self._slice = WithinView(options.within or ":")

    def join(self, pieces: Pieces, whole: Hits) -> Hits:
        """Return the hits of whole signatures and those that hang over an end; fewest errors first.

        pieces  records, or the slices of them in which matches must lie
        """
        lengths = pieces.table[:, LENGTH]
        begins, ends, _ = self._slice.windows(lengths)
        chunk = Chunk(pieces.letters, pieces.offsets)
        hits = Hits.joined([whole, self._search.find(chunk, begins == 0, ends == lengths)])
        return hits.take(np.argsort(hits.errors, kind="stable"))

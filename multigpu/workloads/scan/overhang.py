"""`--overhang`: signatures that hang over the ends of samples."""

import numpy as np

from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.scan import Chunk, Hits, Patterns
from multigpu.kernels.scan.overhang import OverhangSearch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import limits_of
from multigpu.workloads.scan.views import WithinView


class RecordEnds:
    """The search at the ends of whole records, besides that for whole signatures."""

    def __init__(self, patterns: Patterns, options: ScanOptions) -> None:
        limits, strict = limits_of(patterns, options), options.sample_n == "mismatch"
        rules = options.most_errors, options.min_overlap, strict
        self._search = OverhangSearch(patterns, limits, *rules)
        self._overhang, self._slice = options.overhang, WithinView(options.within or ":")

    def join(self, pieces: Pieces, whole: Hits) -> Hits:
        """Return the hits of whole signatures and those that hang over an end; fewest errors first.

        pieces  records, or the slices of them in which matches must lie
        """
        lengths = pieces.table[:, LENGTH]
        begins, ends, _ = self._slice.windows(lengths)
        chunk = Chunk(pieces.letters, pieces.offsets)
        at_start = (begins == 0) & (self._overhang != "end")
        at_end = (ends == lengths) & (self._overhang != "start")
        hits = Hits.joined([whole, self._search.find(chunk, at_start, at_end)])
        return hits.take(np.argsort(hits.errors, kind="stable"))

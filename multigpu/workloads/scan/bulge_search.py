"""The search for places with mismatches and bulges, by the variants of the signatures."""

import numpy as np

from multigpu.cluster.engine.workload import Place
from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.scan import Hits
from multigpu.kernels.scan.approximate.alignment import align_layouts
from multigpu.kernels.scan.approximate.bulges import Variants
from multigpu.kernels.scan.choice import choose
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.search import (
    Matches,
    PlacePortion,
    PlaceSearch,
    count_in_matches,
    most_ambiguous,
)


class BulgeSearch(PlaceSearch):
    """The search for variants with mismatches; one place has the hits of several.

    All hits at a place begin in the same piece of a record, so none of them is missing there.
    """

    def __init__(
        self, place: Place, variants: Variants, options: ScanOptions, bases: float
    ) -> None:
        super().__init__(place, variants.patterns, options, bases, variants.limits)
        self._variants = variants

    def matches(self, pieces: Pieces, portion: PlacePortion, hits: Hits) -> Matches:
        options = self._options
        if portion.origin is not None:
            hits = portion.origin.in_records(hits)
        hits, patterns = self._variants.merged(hits.take(hits.start < pieces.inside[hits.record]))
        ambiguous, number = count_in_matches(pieces, hits), np.arange(len(hits))
        if options.max_ambiguous is not None:
            number = number[ambiguous <= most_ambiguous(hits, options)]
        places = hits.take(number).places(self.patterns.strands, self._variants.lengths)
        exact_suffix = bool(options.exact_suffix)
        number = number[choose(options.wanted, places, exact_suffix=exact_suffix)]
        hits, patterns = hits.take(number), patterns[number]
        strict = options.sample_n == "mismatch"
        found = align_layouts(
            pieces.offsets, pieces.letters, self._variants.layouts, hits, patterns, strict
        )
        return Matches(hits=hits, cigars=found.texts(), ambiguous=ambiguous[number])

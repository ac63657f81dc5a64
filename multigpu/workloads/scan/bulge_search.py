"""The search for places with mismatches and bulges, by the variants of the signatures."""

from multigpu.cluster.engine.workload import Place
from multigpu.formats.sequences.pieces import Pieces
from multigpu.kernels.scan import Hits
from multigpu.kernels.scan.approximate.alignment import align_layouts
from multigpu.kernels.scan.approximate.bulges import Variants
from multigpu.kernels.scan.approximate.pieces import Portion
from multigpu.kernels.scan.choice import choose
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.search import (
    Matches,
    PlaceSearch,
    count_in_matches,
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

    def matches(self, pieces: Pieces, portion: Portion, hits: Hits) -> Matches:
        options, strands = self._options, self.patterns.strands
        hits, patterns = self._variants.merged(super().matches(pieces, portion, hits).hits)
        places = hits.places(strands, self._variants.lengths)
        number = choose(options.wanted, places, exact_suffix=bool(options.exact_suffix))
        hits, patterns = hits.take(number), patterns[number]
        strict, layouts = options.sample_n == "mismatch", self._variants.layouts
        found = align_layouts(pieces.offsets, pieces.letters, layouts, hits, patterns, strict)
        ambiguous = count_in_matches(pieces, hits)
        return Matches(hits=hits, cigars=found.texts(), ambiguous=ambiguous)

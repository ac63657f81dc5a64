"""The search of a scan on one device: exact, or with errors. Both give matches of one kind.

A search is asked about a **portion** of the loaded records: all of their bases, or, where a device
has too little memory for them, a half, a quarter and so on. A record may be a piece of a longer
one. A match as long as its signature belongs to the piece that it begins in, one with edits to the
piece that it ends in (see `multigpu.kernels.scan.approximate.pieces`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.engine.workload import Place
from multigpu.formats.sequences.pieces import Pieces
from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.compiled.text.records import LENGTH
from multigpu.kernels.device.buffers import Buffers
from multigpu.kernels.scan import (
    Chunk,
    ChunkScanner,
    Hits,
    Limits,
    Patterns,
    ScanRules,
    allowed_bases,
)
from multigpu.kernels.scan.approximate.alignment import align, align_layouts
from multigpu.kernels.scan.approximate.bulges import Variants
from multigpu.kernels.scan.approximate.pieces import EditScanner, Piece, Portion, join_halves
from multigpu.kernels.scan.choice import choose
from multigpu.kernels.scan.letters import count_ambiguous
from multigpu.kernels.scan.overhang import OverhangSearch
from multigpu.kernels.scan.types import AT_BEGIN, Wanted
from multigpu.workloads.scan.ambiguous_bases import LEAST_GAP, ShortGaps
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import limits_of, longest_match, patterns_of, variants_of
from multigpu.workloads.scan.views import WithinView

Allocate = Callable[[int], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Matches:
    """Matches in the records of a span, in the order of the rows.

    hits       where they are; flagged where a match reaches the border of a piece
    cigars     n texts: their alignments, empty unless edits are searched
    ambiguous  int32[n]: ambiguous sample bases of each
    tied       int32[n]: signatures that are as good for the read, where the search knows them
    """

    hits: Hits
    cigars: list[bytes]
    ambiguous: NDArray[np.int32]
    tied: NDArray[np.int32] | None = None

    def take(self, chosen: NDArray[np.intp]) -> "Matches":
        """Return the matches of these numbers."""
        return Matches(
            hits=self.hits.take(chosen),
            cigars=[self.cigars[i] for i in chosen.tolist()],
            ambiguous=self.ambiguous[chosen],
            tied=None if self.tied is None else self.tied[chosen],
        )


@dataclass(frozen=True, kw_only=True)
class WholePortion(Portion):
    """The portion with all bases; origin: where they are from, None where they are all loaded."""

    origin: ShortGaps | None = None


class SignatureSearch(ABC):
    """A search for the signatures on a device.

    overlap   bases that a piece of a record extends over its border
    allocate  makes memory for letters
    """

    overlap: int
    allocate: Allocate
    _scanner: ChunkScanner | None = None
    _buffers: Buffers  # for letters that are a choice of those loaded

    def __init__(self, patterns: Patterns, options: ScanOptions) -> None:
        self.patterns, self._options = patterns, options
        # Places with bulges are chosen by `BulgeSearch`.
        self._choice: Wanted = "all" if options.has_bulges else options.wanted

    @abstractmethod
    def whole(self, pieces: Pieces) -> Portion:
        """Return the portion with all bases of the pieces that may have matches."""

    def halves(self, portion: Portion) -> Sequence[Portion]:
        """Return two portions that together have the hits of this one, or none for a small one."""
        return portion.halves(self.overlap)

    @abstractmethod
    def find(self, portion: Portion) -> Hits:
        """Return the hits in a portion. Raises BadBaseError at the first illegal letter."""

    def join(self, halves: Sequence[Portion], hits: Sequence[Hits]) -> Hits:
        """Return the hits of a portion from those of its halves."""
        return join_halves(halves, hits)

    @abstractmethod
    def matches(self, pieces: Pieces, portion: Portion, hits: Hits) -> Matches:
        """Return the matches that the options ask for, from the hits of all of the pieces."""

    def seconds(self) -> dict[str, float]:
        """Return how long the steps of this thread's last search took on the device."""
        return self._scanner.seconds() if self._scanner else {}

    def _short_gaps(self, chunk: Chunk) -> ShortGaps | None:
        """Return the records with shorter runs of N where some are longer than matches by far."""
        if self._options.sample_n == "mismatch":
            return None
        return ShortGaps.find(chunk, max(LEAST_GAP, 2 * (self.overlap + 1)), self._buffers)

    def _in_records(self, portion: Portion, hits: Hits) -> Hits:
        """Return hits in a portion made by `whole` as hits in the records."""
        origin = portion.origin if isinstance(portion, WholePortion) else None
        return hits if origin is None else origin.in_records(hits)

    def give_back(self, pieces: Pieces, portion: Portion) -> None:
        """Let the memory of a portion made by `whole` be used for others."""
        if portion.chunk.letters is not pieces.letters:
            self._buffers.give(portion.chunk.letters)

    def close(self) -> None:
        """Free the memory on the device, and the buffers."""
        if self._scanner:
            self._scanner.close()
        self._buffers.clear()


def open_search(
    place: Place, signatures: Signatures, options: ScanOptions, bases: float
) -> SignatureSearch:
    """Return the search that the options ask for; `bases` are expected to be searched."""
    if options.has_bulges:
        return BulgeSearch(place, variants_of(signatures, options), options, bases)
    kind = EditSearch if options.max_edits else PlaceSearch
    return kind(place, patterns_of(signatures, options), options, bases)


class PlaceSearch(SignatureSearch):
    """The search for matches as long as their patterns: exact ones, or with mismatches.

    limits  errors that each pattern may have, where the options do not say it
    """

    _scanner: ChunkScanner

    def __init__(
        self,
        place: Place,
        patterns: Patterns,
        options: ScanOptions,
        bases: float,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(patterns, options)
        strict = options.sample_n == "mismatch"
        # Of a choice by ambiguous bases or by errors the index for exact matches knows nothing.
        first = self._choice != "all" and options.max_ambiguous is None
        self._wanted: Wanted = self._choice if first else "all"
        if options.has_errors:
            limits = limits or limits_of(patterns, options)
            self._scanner, self.allocate = open_error_scanner(
                place, patterns, limits, edits=False, strict=strict, wanted=self._wanted,
                bases=bases,
            )  # fmt: skip
        else:
            rules = ScanRules(first, strict)
            self._scanner, self.allocate = open_scanner(place, patterns, rules, bases)
        self.overlap = int(patterns.lengths.max()) - 1
        self._buffers = Buffers(self.allocate)
        # Whether a match within a run of N is never asked for, or is as good as another one there.
        self._skips_gaps = options.has_errors and options.wanted in ("first", "best")
        if options.max_ambiguous is not None:
            most = allowed_bases(options.max_ambiguous, patterns.lengths)
            self._skips_gaps |= bool((most < patterns.lengths).all())
        self._overhang = RecordEnds(patterns, options) if options.overhang else None

    def whole(self, pieces: Pieces) -> WholePortion:
        chunk = Chunk(pieces.letters, pieces.offsets)
        origin = self._short_gaps(chunk) if self._skips_gaps else None
        return WholePortion(chunk=origin.chunk if origin else chunk, origin=origin)

    def find(self, portion: Portion) -> Hits:
        return self._scanner.scan(portion.chunk)

    def join(self, halves: Sequence[Portion], hits: Sequence[Hits]) -> Hits:
        joined = super().join(halves, hits)
        return joined.chosen(self._wanted, self.patterns.strands, by_end=False)

    def matches(self, pieces: Pieces, portion: Portion, hits: Hits) -> Matches:
        hits = self._in_records(portion, hits)
        hits = hits.take(hits.start < pieces.inside[hits.record])
        if self._options.circular:
            hits = hits.take(hits.end - hits.start <= pieces.inside[hits.record])
        if self._overhang is not None:
            hits = self._overhang.join(pieces, hits)
        ambiguous = count_in_matches(pieces, hits)
        if self._options.max_ambiguous is not None:
            hits = hits.take(ambiguous <= most_ambiguous(hits, self._options))
        if self._options.max_ambiguous is not None or self._overhang is not None:
            hits = hits.chosen(self._choice, self.patterns.strands, by_end=False)
            ambiguous = count_in_matches(pieces, hits)
        return Matches(hits=hits, cigars=[b""] * len(hits), ambiguous=ambiguous)


class RecordEnds:
    """`--overhang`: the search at the ends of whole records, besides that for whole signatures."""

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


class EditSearch(SignatureSearch):
    """The search for matches with insertions and deletions."""

    _scanner: EditScanner

    def __init__(
        self, place: Place, patterns: Patterns, options: ScanOptions, bases: float
    ) -> None:
        super().__init__(patterns, options)
        self._strict = options.sample_n == "mismatch"
        self._limits = limits_of(patterns, options)
        self._scanner, self.allocate = open_error_scanner(
            place, patterns, self._limits, edits=True, strict=self._strict, wanted="all",
            bases=bases,
        )  # fmt: skip
        self.overlap = longest_match(patterns.lengths, options)
        self._buffers = Buffers(self.allocate)

    def whole(self, pieces: Pieces) -> WholePortion:
        chunk = Chunk(pieces.letters, pieces.offsets)
        # A record that ends just there is open, too: the next piece has its last end again.
        is_open = pieces.tail and len(pieces.table) > 0 and pieces.beyond >= self.overlap
        piece = Piece(self.overlap if pieces.lead else 0, is_open)
        origin = self._short_gaps(chunk)
        return WholePortion(chunk=origin.chunk if origin else chunk, piece=piece, origin=origin)

    def find(self, portion: Portion) -> Hits:
        return self._scanner.scan(portion.chunk, portion.piece)

    def matches(self, pieces: Pieces, portion: Portion, hits: Hits) -> Matches:
        options, strands, chunk = self._options, self.patterns.strands, portion.chunk
        if options.max_ambiguous is None:
            hits = hits.chosen(self._choice, strands, by_end=True)
        alignments = align(
            chunk.offsets, chunk.letters, self.patterns, self._limits, hits, self._strict
        )
        hits = self._in_records(portion, replace(hits, start=alignments.start))
        ambiguous = count_in_matches(pieces, hits)
        number = np.arange(len(hits))
        if options.max_ambiguous is not None:
            # A match at the start of a piece only confirms one of the piece before.
            few = (ambiguous <= most_ambiguous(hits, options)) | ((hits.edge & AT_BEGIN) != 0)
            number = number[few]
            number = number[hits.take(few).choice(self._choice, strands, by_end=True)]
        number = number[hits.take(number).choice("all", strands, by_end=True)]
        texts = alignments.texts()
        return Matches(
            hits=hits.take(number),
            cigars=[texts[hit] for hit in number.tolist()],
            ambiguous=ambiguous[number],
        )


def count_in_matches(pieces: Pieces, hits: Hits) -> NDArray[np.int32]:
    """Return the number of ambiguous sample bases under every hit."""
    begins = pieces.offsets[hits.record] + hits.start
    found: NDArray[np.int32] = count_ambiguous(pieces.letters, begins, hits.end - hits.start)
    return found


def most_ambiguous(hits: Hits, options: ScanOptions) -> NDArray[np.int64]:
    """Return the ambiguous sample bases that every hit may have."""
    assert options.max_ambiguous is not None
    return allowed_bases(options.max_ambiguous, hits.end - hits.start)


def open_scanner(
    place: Place, patterns: Patterns, rules: ScanRules, bases: float
) -> tuple[ChunkScanner, Allocate]:
    """Return the scanner for this thread's device, and what allocates memory for the letters."""
    if place.gpu is None:
        from multigpu.kernels.scan import cpu

        return cpu.ExactScanner(patterns, rules, bases), unpinned
    from multigpu.kernels.device.pinned import pinned
    from multigpu.kernels.scan import cuda

    return cuda.ExactScanner(patterns, rules, bases), pinned


def open_error_scanner(
    place: Place, patterns: Patterns, limits: Limits, *, edits: bool, strict: bool, wanted: Wanted,
    bases: float,
) -> tuple[EditScanner, Allocate]:  # fmt: skip
    """Return the scanner for this thread's device, and what allocates memory for the letters.

    See `multigpu.kernels.scan.approximate.cpu.ErrorScanner`.
    """
    kind: Any
    if place.gpu is None:
        from multigpu.kernels.scan.approximate import cpu

        kind, allocate = cpu.ErrorScanner, unpinned
    else:
        from multigpu.kernels.device.pinned import pinned
        from multigpu.kernels.scan.approximate import cuda

        kind, allocate = cuda.ErrorScanner, pinned
    scanner: EditScanner = kind(
        patterns, limits, edits=edits, strict=strict, wanted=wanted, bases=bases
    )
    return scanner, allocate


def unpinned(size: int) -> NDArray[np.uint8]:
    return np.empty(size, np.uint8)

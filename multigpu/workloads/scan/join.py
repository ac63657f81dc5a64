"""Parts joined to what outputs write: samples numbered, pieces of records put together.

A FASTA record may lie in several spans. Its rows wait here until it has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import illegal_base
from multigpu.formats.storage.sources import Source, first_files
from multigpu.kernels.scan.approximate.pieces import continue_runs
from multigpu.kernels.scan.choice import choose
from multigpu.kernels.scan.types import AT_BEGIN, AT_END
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import RecordPiece, RowStats, ScanPart
from multigpu.workloads.scan.sink import Findings, Sink

MOST_NAMES = 1 << 20  # samples whose names are kept to find repeated ones


@dataclass
class ScanTotals:
    """Facts of all rows of a scan.

    hits              number of rows
    mostly_ambiguous  rows with more ambiguous than unambiguous bases under the match
    repeated          samples with rows that have the name of an earlier one, among the first
                      `MOST_NAMES` names
    example           the first repeated name
    longest           bases of the longest sample, with rows or not
    nameless          samples with rows that have no name, among these
    left_out          secondary and supplementary records
    ambiguity_noted   whether the user was told of ambiguous matches
    """

    hits: int = 0
    mostly_ambiguous: int = 0
    repeated: int = 0
    example: bytes = b""
    longest: int = 0
    nameless: int = 0
    left_out: int = 0
    ambiguity_noted: bool = False
    _names: set[bytes] = field(default_factory=set)

    def add(self, stats: RowStats) -> None:
        self.hits += stats.hits
        self.mostly_ambiguous += stats.mostly_ambiguous
        if len(self._names) >= MOST_NAMES:
            return
        for name in stats.sample_names.split(b"\n")[:-1]:
            if not name:
                self.nameless += 1
            elif name in self._names:
                self.repeated += 1
                self.example = self.example or name
            self._names.add(name)


class WholeRecords(NamedTuple):
    """Payloads of records that are complete, one for each output, and their first sample."""

    payloads: tuple[Any, ...]
    first: int


class Joiner:
    """Takes the parts in the order of the input and returns what the outputs write."""

    def __init__(
        self, sources: Sequence[Source], options: ScanOptions, sinks: Sequence[Sink[Any]]
    ) -> None:
        self._sources, self._options, self._sinks = sources, options, sinks
        self._records_before = 0  # records that began in earlier parts
        self._source = -1
        # The record that has not ended yet: its name, its bases so far and its rows.
        self._is_waiting = False
        self._name = b""
        self._bases = 0
        self._waiting: list[Batch] = []
        # Its rows, and their flags, that only the next piece confirms.
        self._open: list[tuple[Batch, NDArray[np.uint8]]] = []
        self.totals = ScanTotals()

    def add(self, part: ScanPart) -> Iterator[WholeRecords]:
        """Yield what is complete now. Raises InputError where the part has an error."""
        if part.source != self._source:
            yield from self.finish()
            self._source, self._bases = part.source, 0
        if part.lead is not None:
            self._hold(part.lead)
            if part.illegal_lead is not None:
                raise self._illegal(part)
            self._bases += part.lead.bases
            self.totals.longest = max(self.totals.longest, self._bases)
        if part.records:
            yield from self.finish()
        self.totals.add(part.stats)
        self.totals.left_out += part.left_out
        self.totals.longest = max(self.totals.longest, part.longest)
        if part.payloads:
            yield WholeRecords(part.payloads, self._records_before)
        if part.error is not None:
            raise part.error
        self._records_before += part.records
        if part.tail is not None:
            self._is_waiting, self._name, self._bases = True, part.tail.name, 0
            self._hold(part.tail)
            self._bases = part.tail.bases

    def finish(self) -> Iterator[WholeRecords]:
        """Yield the waiting record, if there is one: no more of it comes."""
        if not self._is_waiting:
            return
        self._is_waiting = False
        rows = Batch.concatenate([*self._waiting, *(rows for rows, _ in self._open)])
        self._waiting, self._open = [], []
        chosen = choose(
            self._options.wanted,
            rows.places(self._options.has_bulges),
            by_end=bool(self._options.max_edits),
            exact_suffix=bool(self._options.exact_suffix),
        )
        rows = rows.take(chosen)
        rows = replace(rows, sample_length=np.full(len(rows), self._bases))
        self.totals.add(RowStats.of(rows))
        found = Findings(
            path=self._sources[self._source].path,
            source=first_files(self._sources)[self._source],
            rows=rows,
            lengths=np.array([self._bases]),
            names=lambda: [self._name],
        )
        payloads = tuple(sink.collect(found) for sink in self._sinks)
        yield WholeRecords(payloads, self._records_before - 1)

    def _hold(self, piece: RecordPiece) -> None:
        """Keep the rows of a piece of the waiting record until the record has ended."""
        rows = piece.rows
        held = replace(
            rows,
            sample_index=np.zeros(len(rows), np.int64),
            sample=[self._name] * len(rows),
            start=rows.start + self._bases,
            end=rows.end + self._bases,
        )
        borders, self._open = self._open, []
        for before, edge in borders:
            stay, edge = continue_runs(edge, _key(before), piece.edge, _key(rows))
            self._keep(before[stay], edge[stay])
        is_new = (piece.edge & AT_BEGIN) == 0
        self._keep(held[is_new], piece.edge[is_new])

    def _keep(self, rows: Batch, edge: NDArray[np.uint8]) -> None:
        """Keep rows; those that reach the end of their piece until the next one confirms them."""
        is_open = (edge & AT_END) != 0
        self._waiting.append(rows[~is_open])
        if is_open.any():
            self._open.append((rows[is_open], edge[is_open]))

    def _illegal(self, part: ScanPart) -> InputError:
        """Return the error for a letter in a later piece of a record."""
        assert part.illegal_lead is not None
        position, letter = part.illegal_lead
        path = self._sources[part.source].path
        return illegal_base(path, self._name, letter, self._bases + position)


def _key(rows: Batch) -> NDArray[np.int64]:
    """Return a number for each row that is equal for the same pattern."""
    return 2 * rows.signature.astype(np.int64) + rows.reverse

"""Parts back to rows of the whole input: samples numbered through, records in pieces put together.

A FASTA record may stand in several spans. Its rows wait here until it has ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.sequences.signatures import illegal_base
from multigpu.formats.storage.sources import Source
from multigpu.formats.tables.batch import Batch
from multigpu.scan.options import ScanOptions
from multigpu.scan.work import ScanPart

MOST_NAMES = 1 << 20  # samples whose names are kept to find repeated ones


@dataclass
class RowFacts:
    """What the rows of a scan are like.

    hits      how many were given
    unsure    how many of them rest on ambiguous bases by more than half
    repeated  samples with rows that have the name of one before them: among the first `MOST_NAMES`
    example   the name of the first of these
    longest   bases of the longest sample, with rows or not
    """

    hits: int = 0
    unsure: int = 0
    repeated: int = 0
    example: bytes = b""
    longest: int = 0
    _names: set[bytes] = field(default_factory=set)

    def add(self, hits: int, unsure: int, named: bytes) -> None:
        """Count rows. named: the samples that they are of, one a line."""
        self.hits += hits
        self.unsure += unsure
        for name in named.split(b"\n")[:-1] if len(self._names) < MOST_NAMES else ():
            if name in self._names:
                self.repeated += 1
                self.example = self.example or name
            self._names.add(name)


class Joiner:
    """Takes the parts in the order of the input and gives their rows."""

    def __init__(self, sources: Sequence[Source], options: ScanOptions) -> None:
        self._sources, self._first = sources, options.hits == "first"
        self._before = 0  # records that began in parts before
        self._source = -1
        self._name = b""
        self._bases = 0  # of the open record, so far
        self._open: list[Batch] = []
        self.facts = RowFacts()

    def rows(self, part: ScanPart) -> Iterator[Batch | bytes]:
        """What is certain now. Raises InputError where the part says what is wrong."""
        if part.source != self._source:
            yield from self.finish()
            self._source, self._bases = part.source, 0
        if part.lead_bases >= 0:
            self._add(part.lead, self._before - 1)
            if part.bad_lead is not None:
                raise self._illegal(part)
            self._bases += part.lead_bases
            self.facts.longest = max(self.facts.longest, self._bases)
        if part.records:
            yield from self.finish()
        self.facts.add(part.hits, part.unsure, part.named)
        self.facts.longest = max(self.facts.longest, part.longest)
        if len(part.rows):
            yield self._numbered(part.rows, self._before)
        if part.error is not None:
            raise part.error
        if part.tail_bases >= 0:
            self._name, self._bases = part.tail_name, 0
            self._add(part.tail, None)
            self._bases = part.tail_bases
        self._before += part.records

    def finish(self) -> Iterator[Batch]:
        """The rows of the record that was open: no more of it comes."""
        if self._open:
            rows = Batch.concatenate(self._open)
            self._open = []
            order = np.lexsort((rows.reverse, rows.start, rows.signature))
            if self._first and len(order):
                signature = rows.signature[order]
                order = order[np.r_[True, signature[1:] != signature[:-1]]]
            ended = rows.take(order)
            self.facts.add(len(ended), ended.unsure, self._name + b"\n" if len(ended) else b"")
            yield ended

    def _add(self, rows: Batch, index: int | None) -> None:
        """Rows of a piece of the open record, which is sample `index`; None: as they say."""
        if not len(rows):
            return
        number = rows.sample_index + self._before if index is None else np.full(len(rows), index)
        self._open.append(
            replace(
                rows,
                sample_index=number,
                sample=[self._name] * len(rows),
                start=rows.start + self._bases,
                end=rows.end + self._bases,
            )
        )

    def _numbered(self, rows: Batch | bytes, before: int) -> Batch | bytes:
        if isinstance(rows, bytes):
            return rows
        return replace(rows, sample_index=rows.sample_index + before)

    def _illegal(self, part: ScanPart) -> InputError:
        assert part.bad_lead is not None
        position = self._bases + part.bad_lead.position
        path = self._sources[part.source].path
        return illegal_base(path, self._name, part.bad_lead.letter, position)

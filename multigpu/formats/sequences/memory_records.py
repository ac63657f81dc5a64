"""Records that a caller has in memory, as a source: text of FASTQ or FASTA."""

import os
import re
from collections.abc import Generator, Iterable
from itertools import chain, islice
from typing import Any

import numpy as np

from multigpu.errors import InputError, printable_name, quoted
from multigpu.formats.names import name_problem
from multigpu.formats.storage.sources import Block, Source

FORMS = {"fasta": "(name, sequence)", "fastq": "(name, sequence, quality)"}
NO_BASE, NO_QUALITY = re.compile(rb"[^A-Za-z]"), re.compile(rb"[^!-~]")


class MemoryRecords(Source):
    """Tuples of texts, which are taken once, by the thread that takes the blocks.

    Its path is the name of the parameter; it is FASTQ where the first record has a quality.
    """

    def __init__(self, name: str, records: Iterable[Any], layout: str) -> None:
        super().__init__(name, None, "none", layout)
        self._records = records

    def blocks(self, size: int) -> Generator[Block]:
        """Yield the text of whole records in arrays of about `size` bytes, as they are taken.

        Raises InputError for a wrong record.
        """
        text = bytearray()
        for number, record in enumerate(self._records):
            text += self._text_of(number, record)
            if len(text) >= size:
                yield np.frombuffer(text, np.uint8)
                text = bytearray()
        if text:
            yield np.frombuffer(text, np.uint8)

    # No thread reads them ahead: an iterator may be bound to the thread of its caller.
    stream = blocks

    def _text_of(self, number: int, record: Any) -> bytes:
        form, where = FORMS[self.layout], f"record {number} (from 0)"
        if not isinstance(record, tuple) or len(record) != form.count(",") + 1:
            got = printable_name(repr(record))
            raise InputError(self.path, f"expected {form}; got {got}", where)
        if isinstance(record[0], str | bytes) and record[0]:
            where = f"record {quoted(record[0])}"
        try:
            header, bases, *quality = map(_bytes_of, record)
        except (TypeError, UnicodeEncodeError):
            raise InputError(self.path, f"{form} must be text, str or bytes", where) from None
        name = re.split(rb"[ \t]", header)[0]
        problem = name_problem(name) if name else "the name is empty"
        if found := NO_BASE.search(bases):
            problem = f"{quoted(found[0])} at position {found.start()} (from 0) is not a base"
        for values in quality:
            if found := NO_QUALITY.search(values):
                problem = f"{quoted(found[0])} at position {found.start()} (from 0) is no quality"
            if len(values) != len(bases):
                counts = f"{len(bases)} bases, the quality has {len(values)} characters"
                problem = f"the sequence has {counts}"
        if problem:
            raise InputError(self.path, problem, where)
        if not quality:
            return b">%b\n%b\n" % (name, bases)
        return b"@%b\n%b\n+\n%b\n" % (name, bases, quality[0])


def records_or_paths(given: Any, name: str) -> tuple[MemoryRecords | None, Any]:
    """Return the records of an argument whose first item is a tuple, or else the argument itself.

    name  of the parameter, by which messages call the records
    """
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | os.PathLike):
        return None, given
    items = iter(given)
    first = list(islice(items, 1))
    every = chain(first, items)
    if not first or not isinstance(first[0], tuple):
        return None, every
    return MemoryRecords(name, every, "fastq" if len(first[0]) > 2 else "fasta"), ()


def _bytes_of(text: Any) -> bytes:
    """Return a text as bytes. Raises TypeError for anything else."""
    return text if isinstance(text, bytes) else str.encode(text, "utf-8", "surrogateescape")

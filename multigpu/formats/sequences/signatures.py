"""Signatures: names and letters out of files.

There may be millions of them, so they are kept as few arrays and not as an object each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, quoted
from multigpu.formats.sequences.record_source import bytes_of
from multigpu.formats.sequences.records import describe, gather_letters
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.signature_formats import SIGNATURES, read_listed
from multigpu.formats.storage.sources import Source, inspect_source, new_memory
from multigpu.kernels import bases
from multigpu.kernels.compiled.text.records import LENGTH, NAME, NAME_END

READ_BYTES = 16 << 20
PHRED_OFFSET = 33  # qualities of signatures say nothing here
INOSINE, ANY_BASE = np.frombuffer(b"Ii", np.uint8), ord("N")
AMINO_ACIDS = b"EFILPQefilpq"  # those that are no IUPAC codes of bases


@dataclass(frozen=True, eq=False)
class Joined:
    """Sequence of arrays of bytes in one: number i is joined[offsets[i] : offsets[i + 1]]."""

    joined: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def cut(cls, joined: NDArray[np.uint8], lengths: NDArray[np.int64]) -> "Joined":
        """Return the arrays of these lengths that lie one after the other."""
        return cls(joined, np.r_[0, np.cumsum(lengths)])

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> "Joined":
        """Return the bytes of texts, which may be written over."""
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls.cut(np.frombuffer(bytearray(b"".join(texts)), np.uint8), lengths)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return int64[n], the length of each array."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> NDArray[np.uint8]:
        return self.joined[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self.joined[a:b] for a, b in pairwise(self.offsets.tolist()))


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signatures in the order of their files.

    names         as in the files, of records up to the first white space
    letters       ASCII
    files         of each file its source, and how many signatures it has
    with_inosine  names of those that had I (inosine), which became N
    pairs         pairs of primers that they belong to, by a column of a table; b"": none
    """

    names: list[bytes]
    letters: Joined
    files: tuple[tuple[Source, int], ...] = ()
    with_inosine: tuple[bytes, ...] = ()
    pairs: tuple[bytes, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    def by_file(self) -> Iterator[tuple[str, slice]]:
        """Yield the path of each file, and which of the signatures are in it."""
        first = 0
        for source, count in self.files:
            yield source.path, slice(first, first + count)
            first += count


def read_signatures(given: Sequence[str | Source]) -> Signatures:
    """Return all signatures of paths and sources in order. Raises InputError for wrong ones."""
    every = [_read(inspect_source(each, SIGNATURES)) for each in given]
    names = [name for found in every for name in found.names]
    if not names:
        paths = ", ".join(source.path for found in every for source, _ in found.files)
        raise InputError(paths or option("signatures"), "there is no signature")
    letters = [found.letters for found in every]
    return Signatures(
        names,
        Joined.cut(
            np.concatenate([each.joined for each in letters]),
            np.concatenate([each.lengths for each in letters]),
        ),
        tuple(chain.from_iterable(found.files for found in every)),
        tuple(chain.from_iterable(found.with_inosine for found in every)),
        tuple(chain.from_iterable(found.pairs for found in every)),
    )


def _read(source: Source) -> Signatures:
    """Return the signatures of one source."""
    lines = None
    if source.layout in FORMATS:
        names, letters = _records(source)
        pairs = (b"",) * len(names)
    else:
        listed = read_listed(source.path, source.layout, source.content())
        names = [bytes_of(each.name) for each in listed]
        letters = Joined.of([bytes_of(each.sequence) for each in listed])
        pairs = tuple(bytes_of(each.pair) for each in listed)
        lines = [each.line for each in listed]
    is_inosine = np.isin(letters.joined, INOSINE)
    letters.joined[is_inosine] = ANY_BASE
    _check(source, names, letters, lines)
    at = np.unique(np.searchsorted(letters.offsets, np.flatnonzero(is_inosine), "right") - 1)
    inosines = tuple(names[i] for i in at.tolist())
    return Signatures(names, letters, ((source, len(names)),), inosines, pairs)


def _records(source: Source) -> tuple[list[bytes], Joined]:
    """Return names and letters of records. Raises InputError for a wrong one."""
    raw = np.concatenate([new_memory(0), *source.blocks(READ_BYTES)])
    sequence_format = FORMATS[source.layout]
    parsed = sequence_format.parse(raw, True, PHRED_OFFSET)
    if error := describe(source.path, sequence_format.mark, raw, parsed, 0, PHRED_OFFSET):
        raise error
    table, text = parsed.table, raw.tobytes()
    borders = zip(table[:, NAME].tolist(), table[:, NAME_END].tolist(), strict=True)
    letters = Joined.cut(gather_letters(raw, table, new_memory), table[:, LENGTH])
    return [text[begin:end] for begin, end in borders], letters


def _check(
    source: Source, names: Sequence[bytes], letters: Joined, lines: Sequence[int] | None
) -> None:
    """Raise InputError for the first signature without a base or with another letter.

    lines  numbers of the signatures' lines, for messages; None where a signature has several
    """

    def place(number: int) -> str:
        return f"line {lines[number]}, " if lines else ""

    illegal = bases.encode(letters.joined) == 0
    position = int(np.argmax(illegal)) if illegal.any() else len(illegal)
    empty = np.flatnonzero(letters.lengths == 0)
    at = int(np.searchsorted(letters.offsets, position, "right")) - 1
    if len(empty) and empty[0] <= at:
        first = int(empty[0])
        where = f"{place(first)}record {quoted(names[first])}"
        raise InputError(source.path, "the signature has no base", where)
    if position < len(illegal):
        letter, name = letters.joined[position : position + 1].tobytes(), names[at]
        error = illegal_base(source.path, name, letter, position - int(letters.offsets[at]))
        raise InputError(error.path, error.problem, place(at) + error.where)


def illegal_base(path: str, name: bytes, letter: bytes, position: int) -> InputError:
    """Return the error for a letter of a record; positions count from 0, as in the output."""
    protein = "; is this protein? Only DNA and RNA can be scanned" if letter in AMINO_ACIDS else ""
    return InputError(
        path,
        f"{quoted(letter)} is not a base (A C G T U or an IUPAC code){protein}",
        f"record {quoted(name)}, position {position} (from 0)",
    )

"""Signatures: names and letters out of files.

There may be millions of them, so they are kept as few arrays and not as an object each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, quoted
from multigpu.formats.sequences.records import describe
from multigpu.formats.sequences.registry import FORMATS, SEQUENCES
from multigpu.formats.storage.sources import Source, inspect_source
from multigpu.kernels import bases
from multigpu.kernels.compiled.text.records import LENGTH, NAME, NAME_END, gather

READ_BYTES = 16 << 20
PHRED_OFFSET = 33  # qualities of signatures say nothing here
AMINO_ACIDS = b"EFILPQefilpq"  # those that are no IUPAC codes of bases


@dataclass(frozen=True, eq=False)
class Joined:
    """Sequence of arrays of bytes in one: number i is joined[offsets[i] : offsets[i + 1]]."""

    joined: NDArray[np.uint8]
    offsets: NDArray[np.int64]

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

    names    as in the files, up to the first white space
    letters  ASCII
    files    of each file its source, and how many signatures it has
    """

    names: list[bytes]
    letters: Joined
    files: tuple[tuple[Source, int], ...] = ()

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
    names: list[bytes] = []
    joined, lengths = [np.empty(0, np.uint8)], [np.empty(0, np.int64)]
    files = []
    for source in (inspect_source(each, SEQUENCES) for each in given):
        raw = np.concatenate([np.empty(0, np.uint8), *source.blocks(READ_BYTES)])
        sequence_format = FORMATS[source.layout]
        parsed = sequence_format.parse(raw, True, PHRED_OFFSET)
        if error := describe(source.path, sequence_format.mark, raw, parsed, 0, PHRED_OFFSET):
            raise error
        table, text = parsed.table, raw.tobytes()
        borders = zip(table[:, NAME].tolist(), table[:, NAME_END].tolist(), strict=True)
        found = [text[begin:end] for begin, end in borders]
        letters = np.empty(int(table[:, LENGTH].sum()), np.uint8)
        gather(raw, table, letters, 0)
        _check(source, found, _join([letters], [table[:, LENGTH]]))
        names += found
        files.append((source, len(found)))
        joined.append(letters)
        lengths.append(table[:, LENGTH])
    if not names:
        paths = ", ".join(source.path for source, _ in files)
        raise InputError(paths or option("signatures"), "there is no signature")
    return Signatures(names, _join(joined, lengths), tuple(files))


def _join(arrays: Sequence[NDArray[np.uint8]], lengths: Sequence[NDArray[np.int64]]) -> Joined:
    counts = np.concatenate(lengths)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return Joined(np.concatenate(arrays), offsets)


def _check(source: Source, names: Sequence[bytes], letters: Joined) -> None:
    """Raise InputError for the first signature without a base or with another letter."""
    illegal = bases.encode(letters.joined) == 0
    position = int(np.argmax(illegal)) if illegal.any() else len(illegal)
    empty = np.flatnonzero(letters.lengths == 0)
    at = int(np.searchsorted(letters.offsets, position, "right")) - 1
    if len(empty) and empty[0] <= at:
        where = f"record {quoted(names[int(empty[0])])}"
        raise InputError(source.path, "the signature has no base", where)
    if position < len(illegal):
        letter, name = letters.joined[position : position + 1].tobytes(), names[at]
        raise illegal_base(source.path, name, letter, position - int(letters.offsets[at]))


def illegal_base(path: str, name: bytes, letter: bytes, position: int) -> InputError:
    """Return the error for a letter of a record; positions count from 0, as in the output."""
    protein = "; is this protein? Only DNA and RNA can be scanned" if letter in AMINO_ACIDS else ""
    return InputError(
        path,
        f"{quoted(letter)} is not a base (A C G T U or an IUPAC code){protein}",
        f"record {quoted(name)}, position {position} (from 0)",
    )

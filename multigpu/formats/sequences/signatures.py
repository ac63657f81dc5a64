"""Signatures: names and letters out of files.

There may be millions of them, so they are kept as few arrays and not as an object each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.sequences.faults import describe
from multigpu.formats.sequences.records import parse
from multigpu.formats.storage.sources import Source, blocks, expand, inspect_source
from multigpu.kernels import bases
from multigpu.kernels.compiled.text.records import BASES, LENGTH, NAME, NAME_END, gather

READ_BYTES = 16 << 20
PHRED_OFFSET = 33  # qualities of signatures say nothing here
AMINO_ACIDS = b"EFILPQefilpq"  # those that are no IUPAC codes of bases


@dataclass(frozen=True, eq=False)
class Joined(Sequence[NDArray[np.uint8]]):
    """Sequence of arrays of bytes in one: number i is joined[offsets[i] : offsets[i + 1]]."""

    joined: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, arrays: Sequence[NDArray[np.uint8]]) -> "Joined":
        if isinstance(arrays, Joined):
            return arrays
        lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
        return cls(np.concatenate([np.empty(0, np.uint8), *arrays]), _offsets(lengths))

    @classmethod
    def of_table(cls, raw: NDArray[np.uint8], table: NDArray[np.int64]) -> "Joined":
        """Return copies of the sequences of a table of records in `raw`."""
        joined = np.empty(int(table[:, LENGTH].sum()), np.uint8)
        gather(raw, table, joined, 0)
        return cls(joined, _offsets(table[:, LENGTH]))

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return int64[n], the length of each array."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int) -> NDArray[np.uint8]: ...

    @overload
    def __getitem__(self, i: slice) -> list[NDArray[np.uint8]]: ...

    def __getitem__(self, i: int | slice) -> NDArray[np.uint8] | list[NDArray[np.uint8]]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]  # raises IndexError
        return self.joined[self.offsets[i] : self.offsets[i + 1]]

    def __iter__(self) -> Iterator[NDArray[np.uint8]]:
        return (self.joined[a:b] for a, b in pairwise(self.offsets.tolist()))


class Names(Sequence[bytes]):
    """Sequence of names in one array; each becomes an object when it is asked for."""

    def __init__(self, names: Joined) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, i: int) -> bytes: ...

    @overload
    def __getitem__(self, i: slice) -> list[bytes]: ...

    def __getitem__(self, i: int | slice) -> bytes | list[bytes]:
        if isinstance(i, slice):
            return [name.tobytes() for name in self._names[i]]
        return self._names[i].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        text = self._names.joined.tobytes()
        return (text[a:b] for a, b in pairwise(self._names.offsets.tolist()))


@dataclass(frozen=True, eq=False)
class Signatures:
    """Signatures in the order of their files.

    names    as in the files, up to the first white space
    letters  uint8 each, ASCII
    """

    names: Sequence[bytes]
    letters: Sequence[NDArray[np.uint8]]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def joined(self) -> Joined:
        """Return the letters in one array."""
        return Joined.of(self.letters)


def read_signatures(paths: Sequence[str]) -> Signatures:
    """Return all signatures of the files in order. Raises InputError for wrong ones."""
    names: list[Joined] = []
    letters: list[Joined] = []
    for path in expand(paths):
        source = inspect_source(path)
        raw = np.concatenate([np.empty(0, np.uint8), *blocks(source, READ_BYTES)])
        parsed = parse(raw, 0, len(raw), source.layout, final=True, offset=PHRED_OFFSET)
        if error := describe(source, raw, parsed, 0, PHRED_OFFSET):
            raise error
        table = parsed.table
        names.append(Joined.of_table(raw, _names_as_sequences(table)))
        letters.append(Joined.of_table(raw, table))
        _check(source, names[-1], letters[-1])
    if not sum(map(len, names)):
        raise InputError(", ".join(paths) or "--signatures", "there is no signature")
    return Signatures(Names(_one(names)), _one(letters))


def _names_as_sequences(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a table whose sequences are the names of another."""
    names = np.zeros_like(table)
    names[:, BASES], names[:, LENGTH] = table[:, NAME], table[:, NAME_END] - table[:, NAME]
    return names


def _one(parts: Sequence[Joined]) -> Joined:
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([part.lengths for part in parts])
    return Joined(np.concatenate([part.joined for part in parts]), _offsets(lengths))


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets: NDArray[np.int64] = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def _check(source: Source, names: Joined, letters: Joined) -> None:
    """Raise InputError for the first signature without a base or with another letter."""
    illegal = bases.encode(letters.joined) == 0
    position = int(np.argmax(illegal)) if illegal.any() else len(illegal)
    empty = np.flatnonzero(letters.lengths == 0)
    at = int(np.searchsorted(letters.offsets, position, "right")) - 1
    if len(empty) and empty[0] <= at:
        where = f"record {quoted(names[int(empty[0])].tobytes())}"
        raise InputError(source.path, "the signature has no base", where)
    if position < len(illegal):
        letter, name = letters.joined[position : position + 1].tobytes(), names[at].tobytes()
        raise illegal_base(source.path, name, letter, position - int(letters.offsets[at]))


def illegal_base(path: str, name: bytes, letter: bytes, position: int) -> InputError:
    """Return the error for a letter of a record; positions count from 0, as in the output."""
    protein = "; is this protein? Only DNA and RNA can be scanned" if letter in AMINO_ACIDS else ""
    return InputError(
        path,
        f"{quoted(letter)} is not a base (A C G T U or an IUPAC code){protein}",
        f"record {quoted(name)}, position {position} (from 0)",
    )

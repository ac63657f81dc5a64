"""Signature files to names and letters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels import bases
from multigpu.errors import InputError, quoted
from multigpu.io.faults import described
from multigpu.io.records import BASES, LENGTH, NAME, NAME_END, parse
from multigpu.io.sources import Source, blocks, expand, inspect

READ_BYTES = 16 << 20
PHRED_OFFSET = 33  # qualities of signatures say nothing here
AMINO_ACIDS = b"EFILPQefilpq"  # those that are no IUPAC codes of bases


@dataclass(frozen=True)
class Signatures:
    """names: as in the files, up to the first white space; letters: uint8 each, ASCII."""

    names: list[bytes]
    letters: list[NDArray[np.uint8]]

    def __len__(self) -> int:
        return len(self.names)


def read_signatures(paths: Sequence[str]) -> Signatures:
    """All signatures of the files in order. Raises InputError for what is wrong with them."""
    names: list[bytes] = []
    letters: list[NDArray[np.uint8]] = []
    for path in expand(paths):
        source = inspect(path)
        raw = np.concatenate([np.empty(0, np.uint8), *blocks(source, READ_BYTES)])
        parsed = parse(raw, 0, len(raw), source.layout, final=True, offset=PHRED_OFFSET)
        if error := described(source, raw, parsed, 0, PHRED_OFFSET):
            raise error
        for row in parsed.table:
            names.append(raw[row[NAME] : row[NAME_END]].tobytes())
            letters.append(raw[row[BASES] : row[BASES] + row[LENGTH]])
            _check(source, names[-1], letters[-1])
    if not names:
        raise InputError(", ".join(paths) or "--signatures", "there is no signature")
    return Signatures(names, letters)


def _check(source: Source, name: bytes, letters: NDArray[np.uint8]) -> None:
    if not len(letters):
        raise InputError(source.path, "the signature has no base", f"record {quoted(name)}")
    sets = bases.encode(letters)
    if not sets.all():
        position = int(np.argmin(sets != 0))
        raise illegal_base(source.path, name, letters[position : position + 1].tobytes(), position)


def illegal_base(path: str, name: bytes, letter: bytes, position: int) -> InputError:
    """The error for a letter of a record; positions are told from 0, as in the output."""
    protein = "; is this protein? Only DNA and RNA can be scanned" if letter in AMINO_ACIDS else ""
    return InputError(
        path,
        f"{quoted(letter)} is not a base (A C G T U or an IUPAC code){protein}",
        f"record {quoted(name)}, position {position} (from 0)",
    )

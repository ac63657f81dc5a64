"""The records of a span, in hand: their bases, and the text that names and qualities stand in."""

import os
from dataclasses import dataclass
from io import FileIO
from itertools import pairwise
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.sequences import plain_fastq, records
from multigpu.formats.sequences.records import NAME, NAME_END
from multigpu.formats.storage.inlets import errors_named
from multigpu.kernels.device.buffers import Buffers


class Text(Protocol):
    """The bytes that a table of records speaks of."""

    def cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[bytes]: ...

    def sums(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: the sums of the bytes of windows, given by int64[n] each."""
        ...

    def give_back(self) -> None:
        """It is not needed any more."""


@dataclass(frozen=True, eq=False)
class TextInMemory:
    raw: NDArray[np.uint8]
    lender: Buffers | None = None

    def cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[bytes]:
        windows = zip(begins.tolist(), ends.tolist(), strict=True)
        return [self.raw[begin:end].tobytes() for begin, end in windows]

    def sums(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        summed: NDArray[np.int64] = records.sums(self.raw, starts, lengths)
        return summed

    def give_back(self) -> None:
        if self.lender is not None:
            self.lender.give(self.raw)


@dataclass(frozen=True, eq=False)
class TextInFile:
    """Read once more where there are hits, which is little of it."""

    path: str

    def cut(self, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[bytes]:
        borders = [0, *np.cumsum(ends - begins).tolist()]
        joined = np.empty(borders[-1], np.uint8)
        with errors_named(self.path), FileIO(self.path) as file:
            if not plain_fastq.gather(file.fileno(), begins, ends, joined):
                self._complain(file.fileno(), begins, ends)
        text = joined.tobytes()
        return [text[begin:end] for begin, end in pairwise(borders)]

    def sums(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        with errors_named(self.path), FileIO(self.path) as file:
            summed: NDArray[np.int64] = plain_fastq.sums(file.fileno(), starts, lengths)
            if (summed < 0).any():
                self._complain(file.fileno(), starts, starts + lengths)
        return summed

    def _complain(self, file: int, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NoReturn:
        """Raises what the system says of some window, or that the file is shorter now."""
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            os.pread(file, end - begin, begin)
        raise InputError(self.path, "was cut while it was read")

    def give_back(self) -> None:
        pass


@dataclass(frozen=True, eq=False)
class Pieces:
    """The records, and pieces of records, of a span.

    text         what NAME, NAME_END and QUALITY of the table are positions in
    table        as in `records`; lengths include what is read over the border
    letters      uint8[b]: their bases, one after the other
    offsets      int64[n + 1]: where each piece begins there
    own          int64[n]: how many bases of each piece stand in the span
    lead, tail   the first piece goes on from, the last one may go on into another span
    begin, stop  which bytes of the file these are; begin -1: no record was found
    error        what is wrong behind the last record
    """

    source: int
    text: Text
    table: NDArray[np.int64]
    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    own: NDArray[np.int64]
    lead: bool
    tail: bool
    begin: int
    stop: int
    error: InputError | None

    def name(self, piece: int) -> bytes:
        """Of the record that a piece is of."""
        return self.names(np.array([piece]))[0]

    def names(self, pieces: NDArray[np.intp]) -> list[bytes]:
        """The same of several."""
        return self.text.cut(self.table[pieces, NAME], self.table[pieces, NAME_END])

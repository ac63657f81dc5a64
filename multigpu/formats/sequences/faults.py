"""Errors of records, in words."""

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.sequences.records import Parsed
from multigpu.formats.storage.sources import Source
from multigpu.kernels.compiled.text.fastq import HIGHEST_QUALITY
from multigpu.kernels.compiled.text.lines import copy_letters
from multigpu.kernels.compiled.text.records import LENGTH, QUALITY, Fault


def describe(
    source: Source, raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int
) -> InputError | None:
    """Return the error for the record at parsed.stop, if there is a fault.

    origin  where in the file `raw` begins
    offset  the quality character that means 0
    """
    if parsed.fault is Fault.NONE:
        return None
    where = f"byte {origin + parsed.stop}"
    if parsed.fault is Fault.NO_HEADER:
        mark = "@" if source.layout == "fastq" else ">"
        return InputError(source.path, f"a record should begin with {mark!r} here", where)
    words = raw[parsed.stop + 1 : parsed.stop + 1000].tobytes().partition(b"\n")[0].split()
    record = f"record {quoted(words[0] if words else b'')} at {where}"
    return InputError(source.path, _problem(raw, parsed, origin, offset), record)


def _problem(raw: NDArray[np.uint8], parsed: Parsed, origin: int, offset: int) -> str:
    if parsed.fault is Fault.INCOMPLETE:
        return f"the record is cut off: the data end at byte {origin + len(raw)}"
    if parsed.fault is Fault.NO_PLUS:
        return "the sequence is not followed by a line that begins with '+'"
    if parsed.fault is Fault.LENGTHS:
        bases = _count_bases(raw, parsed.stop)
        return f"the sequence has {bases} bases, the quality has {parsed.qualities} characters"
    row = parsed.table[-1]
    values = np.empty(row[LENGTH], np.uint8)
    copy_letters(values, 0, raw, row[QUALITY], row[LENGTH])
    position = find_outside(values, offset)
    letter = quoted(bytes([values[position]]))
    return f"{letter} at position {position} (from 0) is no quality from offset {offset}"


def _count_bases(raw: NDArray[np.uint8], start: int) -> int:
    """Return how many bases the FASTQ record at `start` has."""
    lines = raw[start:].tobytes().split(b"\n+", 1)[0].split(b"\n")[1:]
    return sum(len(line.rstrip(b"\r")) for line in lines)


def find_outside(values: NDArray[np.uint8], low: int) -> int:
    """Return the first position of a quality below `low` or above '~', or -1."""
    outside = np.flatnonzero((values < low) | (values > HIGHEST_QUALITY))
    return int(outside[0]) if len(outside) else -1

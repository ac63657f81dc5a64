"""What is wrong with a counts table as text: looked for only when Arrow has stopped at it."""

import re
from collections.abc import Sequence

from multigpu.errors import InputError, quoted
from multigpu.io import arrow
from multigpu.io.sources import opened

WHOLE, NUMBER = "whole number below 2^40", "number"  # what a column has: a place, or a count

# Columns as most rows have them, for which nobody need ask Arrow.
PLAIN = re.compile(rb"[!-~]+(?:\t[0-9]{1,18}){2}(?:\t[0-9]{1,18}(?:\.[0-9]{1,18})?)+")

# What Arrow says; the row is in it where one thread reads.
MISFIT = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error [^:]*: (.*)", re.DOTALL
)
MISCOUNT = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")


def explained(path: str, columns: Sequence[str]) -> InputError | None:
    """Which row and column of a text are wrong: looked for only when something is."""
    with opened(path) as file:
        file.readline()
        rows = (line.rstrip(b"\r\n") for line in file)
        for number, row in enumerate(filter(None, rows), 1):
            if PLAIN.fullmatch(row) and row.count(b"\t") == len(columns) - 1:
                continue
            if wrong := _wrong(row.split(b"\t"), columns):
                return InputError(path, wrong[1], f"row {number}{wrong[0]}")
    return None


def _wrong(fields: Sequence[bytes], columns: Sequence[str]) -> tuple[str, str] | None:
    """Where in a row Arrow stops, and the problem there."""
    if len(fields) != len(columns):
        return "", f"{len(fields)} columns instead of {len(columns)}"
    shown = [field.decode("utf-8", "replace") for field in fields]
    if shown[0].encode() != fields[0]:
        return ", column chrom", f"{quoted(shown[0])} is not UTF-8"
    for first, stop, kind, what in ((1, 3, "int64", WHOLE), (3, len(fields), "float64", NUMBER)):
        if not _are(shown[first:stop], kind):
            at = next(i for i in range(first, stop) if not _are(shown[i : i + 1], kind))
            return f", column {columns[at]}", f"{quoted(shown[at])} is no {what}"
    return None


def _are(texts: Sequence[str], kind: str) -> bool:
    """Whether Arrow reads numbers in all of them: Python's own functions take more than it."""
    import pyarrow as pa

    try:
        arrow.strings([text.strip(" ") for text in texts]).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def translated(path: str, columns: Sequence[str], said: str) -> InputError:
    """What Arrow says of a text that cannot be read once more, in the words of this program."""
    if found := MISFIT.fullmatch(said):
        column, row, misfit = found.groups()
        where = f"row {row}, column {columns[int(column)]}"
        value = misfit.removeprefix("invalid value '").removesuffix("'")
        what = WHOLE if int(column) < 3 else NUMBER
        problem = "is not UTF-8" if column == "0" else f"{quoted(value)} is no {what}"
        return InputError(path, problem, where)
    if found := MISCOUNT.match(said):
        row, wanted, there = found.groups()
        return InputError(path, f"{there} columns instead of {wanted}", f"row {row}")
    return InputError(path, said.splitlines()[0])

"""Mistakes in counts tables as text, and other files that are given instead of one.

The first is looked for only when Arrow has stopped at it.
"""

import re
import shlex
from collections.abc import Sequence

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.sources import open_content
from multigpu.formats.tables import arrow

WHOLE, NUMBER = "whole number below 2^40", "number"  # what a column has: a place, or a count

# Columns as most rows have them, for which nobody need ask Arrow.
PLAIN = re.compile(rb"[!-~]+(?:\t[0-9]{1,18}){2}(?:\t[0-9]{1,18}(?:\.[0-9]{1,18})?)+")

# What Arrow says; the row is in it where one thread reads.
MISFIT = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error [^:]*: (.*)", re.DOTALL
)
MISCOUNT = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")

PLACE = ("chrom", "start", "end")  # the first columns
SAM = ("@HD\t", "@SQ\t", "@RG\t", "@PG\t", "@CO\t")  # how its header begins
SEPARATORS = {",": "commas", ";": "semicolons", " ": "spaces"}
CNVKIT = (
    "is a file of CNVkit, with depths or ratios of one sample and not with read counts: give the"
    " BAM or CRAM files of all samples instead, and --regions TARGETS.bed"
)


def identify(path: str, header: str) -> str:
    """Return what a file is that is no counts table, by its first line, and what helps."""
    if header.startswith(SAM):
        return advise_on_sam(path)
    columns = header.lstrip("#").rstrip("\r\n").split("\t")
    if columns[:3] == ["chromosome", "start", "end"] and {"log2", "depth"} & {*columns}:
        return CNVKIT
    for sign, name in SEPARATORS.items():
        fields = [field.strip("\"' ") for field in columns[0].split(sign)]
        if tuple(filter(None, fields))[:3] == PLACE:
            return f"its columns are separated by {name}, not by tabs: {_with_tabs(path, sign)}"
    return ""


def advise_on_sam(path: str) -> str:
    """Return what is wrong with a SAM file, and what helps."""
    made = shlex.quote(re.sub(r"(\.sam)?(\.gz)?$", ".bam", path, count=1))
    return f"is a SAM file, which is not read: samtools sort -o {made} {shlex.quote(path)}"


def _with_tabs(path: str, sign: str) -> str:
    """Return the command that makes a table of a file with other separators."""
    source, made = shlex.quote(path), shlex.quote(re.sub(r"(\.\w+)?$", ".tsv", path, count=1))
    squeezed = "-s " if sign == " " else ""
    return f"tr -d '\"' < {source} | tr {squeezed}'{sign}' '\\t' > {made}"


def explain(path: str, columns: Sequence[str]) -> InputError | None:
    """Return which row and column of a text are wrong, or None."""
    with open_content(path) as file:
        file.readline()
        rows = (line.rstrip(b"\r\n") for line in file)
        for number, row in enumerate(filter(None, rows), 1):
            if PLAIN.fullmatch(row) and row.count(b"\t") == len(columns) - 1:
                continue
            if wrong := _wrong(row.split(b"\t"), columns):
                return InputError(path, wrong[1], f"row {number}{wrong[0]}")
    return None


def _wrong(fields: Sequence[bytes], columns: Sequence[str]) -> tuple[str, str] | None:
    """Return where in a row Arrow stops, and the problem there."""
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
    """Whether Arrow reads numbers in all of them: Python's own functions take more."""
    import pyarrow as pa

    try:
        arrow.strings([text.strip(" ") for text in texts]).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def translate(path: str, columns: Sequence[str], said: str) -> InputError:
    """Return an error of Arrow in our words, for a text that cannot be read again."""
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

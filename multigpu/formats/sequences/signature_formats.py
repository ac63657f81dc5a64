"""Formats of signatures beside FASTA and FASTQ: tables and lists, and BED files of primers.

A format is one object here, and one item of `SIGNATURE_FORMATS`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from multigpu.errors import InputError, quoted, several
from multigpu.formats.names import name_problem
from multigpu.formats.sequences.registry import SEQUENCES, layout_of_records, refuse_other_text
from multigpu.formats.storage.sources import BYTE_ORDER_MARK, STRANGERS

BASES = re.compile("[ACGTUINRYSWKMBDHV]+", re.IGNORECASE)
LEAST_BASES = 4  # of a word that makes a text of unknown kind a list or a table
SEPARATORS = "\t,;"  # of columns; the first that a line has
NAME, SEQUENCE, PAIR = "name", "sequence", "pair"  # titles of columns
BED_NAME, BED_SEQUENCE = 3, 6  # columns of a primer scheme
NO_ROW = re.compile(r"#|(track|browser)\b")
NO_BED_SEQUENCES = (
    "is BED without sequences: a primer scheme has them in column 7; else"
    " `bedtools getfasta -nameOnly -s -fi GENOME -bed FILE` makes FASTA of it"
)

Cells = Sequence[str]


class Row(NamedTuple):
    """One line of a file: its number from 1 on, and its cells without white space around them."""

    line: int
    cells: list[str]


class ListedSignature(NamedTuple):
    """One signature, the number of its line from 1 on, and the pair of primers it belongs to."""

    line: int
    name: str
    sequence: str
    pair: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignatureFormat:
    """One format of signatures, a signature a line.

    name     what a source calls its layout
    matches  (cells of the first two lines) → whether a file is of this format
    read     (path, rows) → its signatures. Raises InputError for wrong rows
    """

    name: str
    matches: Callable[[Sequence[Cells]], bool]
    read: Callable[[str, Sequence[Row]], Iterator[ListedSignature]]


def read_listed(path: str, layout: str, content: bytes) -> list[ListedSignature]:
    """Return the signatures of a file's content.

    Raises InputError with the line of an empty or repeated name, or of a row that does not fit.
    """
    found = list(SIGNATURE_FORMATS[layout].read(path, list(read_rows(path, content))))
    lines: dict[str, int] = {}
    for each in found:
        where = f"line {each.line}"
        problem = name_problem(each.name) if each.name else "the name is empty: fill it in"
        # A sequence stands for the name where there is none: to repeat it is no mistake in names.
        if each.name in lines and each.name != each.sequence:
            problem = f"the name {quoted(each.name)} is that of line {lines[each.name]}: rename one"
        if problem:
            raise InputError(path, problem, where)
        lines[each.name] = each.line
    return found


def read_rows(path: str, content: bytes, separators: str = SEPARATORS) -> Iterator[Row]:
    """Yield the rows: no empty lines, and no comments or lines for browsers before the first.

    Raises InputError for unclosed quotes.
    """
    text = content.decode("utf-8-sig", "surrogateescape")
    first = next((line for line in io.StringIO(text) if _is_row([line.strip()])), "")
    separator = next((each for each in separators if each in first), "\t")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    is_before = True
    try:
        for cells in reader:
            cells = [cell.strip() for cell in cells]
            is_before = is_before and not _is_row(cells)
            if any(cells) and not is_before:
                yield Row(reader.line_num, cells)
    except csv.Error as error:
        raise InputError(path, f"cannot be read as a table: {error}") from None


def _is_row(cells: Cells) -> bool:
    """Return whether a line has a row: it is not empty, no comment and no line for a browser."""
    return any(cells) and not NO_ROW.match(cells[0])


# ---- tables and lists -------------------------------------------------------------------------


def _is_table(first: Sequence[Cells]) -> bool:
    titles = [cell.lower() for cell in first[0]]
    words = [cell for cells in first for cell in cells if len(cell) >= LEAST_BASES]
    return SEQUENCE in titles or any(map(BASES.fullmatch, words))


def _read_table(path: str, rows: Sequence[Row]) -> Iterator[ListedSignature]:
    """Yield the signatures of a table with titles, or of one or two columns without.

    Without a column of names, the sequence is the name.
    """
    titles = [cell.lower() for cell in rows[0].cells]
    width = len(titles)
    has_pairs = {SEQUENCE, PAIR} <= set(titles)
    if SEQUENCE in titles:
        sequence = titles.index(SEQUENCE)
        name = titles.index(NAME) if NAME in titles else sequence
        rows = rows[1:]
    elif width <= 2 and BASES.fullmatch(rows[0].cells[-1]):
        name, sequence = 0, width - 1
    else:
        found = f"the first line has {several(rows[0].cells)}"
        problem = f"there is no column {SEQUENCE}: call two columns {NAME} and {SEQUENCE}"
        raise InputError(path, f"{problem}; {found}", f"line {rows[0].line}")
    for line, cells in rows:
        if len(cells) != width:
            problem = f"{len(cells)} columns, where the first line has {width}: correct the line"
            raise InputError(path, problem, f"line {line}")
        pair = cells[titles.index(PAIR)] if has_pairs else ""
        yield ListedSignature(line, cells[name], cells[sequence], pair)


# ---- BED ----------------------------------------------------------------------------------------


def _is_bed(first: Sequence[Cells]) -> bool:
    cells = first[0]
    return len(cells) > 2 and cells[1].isdecimal() and cells[2].isdecimal()


def _read_bed(path: str, rows: Sequence[Row]) -> Iterator[ListedSignature]:
    """Yield the primers of a scheme: chrom, start, end, name, pool, strand, sequence.

    The sequence is that of the primer, from its 5' end, on either strand.
    """
    for line, cells in rows:
        if NO_ROW.match(cells[0]):
            continue
        if len(cells) <= BED_SEQUENCE or not BASES.match(cells[BED_SEQUENCE]):
            raise InputError(path, NO_BED_SEQUENCES, f"line {line}")
        yield ListedSignature(line, cells[BED_NAME], cells[BED_SEQUENCE])


BED = SignatureFormat(name="bed", matches=_is_bed, read=_read_bed)
TABLE = SignatureFormat(name="table", matches=_is_table, read=_read_table)
SIGNATURE_FORMATS = {each.name: each for each in (BED, TABLE)}  # the first that matches is taken


def _layout(path: str, start: bytes) -> str:
    """Return the layout of a file of signatures by its beginning; "" for none."""
    refuse_other_text(path, start)
    text = start.removeprefix(BYTE_ORDER_MARK)
    if not text.startswith((b">", b"@", *STRANGERS)):
        with suppress(InputError):
            first = [row.cells for row in islice(read_rows(path, text), 2)]
            found = (name for name, each in SIGNATURE_FORMATS.items() if each.matches(first))
            return next(found, "") if first else ""
    return layout_of_records(start)


SIGNATURES = replace(
    SEQUENCES, layout=_layout, unknown="neither FASTA nor a table or list of sequences"
)

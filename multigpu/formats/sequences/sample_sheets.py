"""Sample sheets: which barcodes the reads of a sample have. TSV or CSV with a header line."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from multigpu.errors import QUOTED, InputError, quoted, several
from multigpu.formats.names import name_problem
from multigpu.formats.sequences.record_source import bytes_of
from multigpu.formats.sequences.signature_formats import Row, read_rows
from multigpu.formats.sequences.signatures import Joined, Signatures
from multigpu.formats.storage.sources import open_content, refuse_utf_16
from multigpu.kernels import bases
from multigpu.kernels.scan.barcodes import LONGEST

COLUMNS = ("sample", "barcode1", "barcode2")  # the last may be absent
LARGEST = 64 << 20  # bytes of a sheet: something else that was given by mistake may have any
RESERVED = {"tied": "that fit several samples", "unknown": "that fit none"}


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleSheet:
    """Samples and their barcodes.

    samples   names, each once
    barcodes  columns, one or two: of each sample a barcode, in upper case
    """

    path: str
    samples: list[bytes]
    barcodes: tuple[list[bytes], ...]

    def signatures(self, column: int = 0) -> Signatures:
        """Return the barcodes of a column as signatures with the names of the samples."""
        return Signatures(self.samples, Joined.of(self.barcodes[column]))


def read_sample_sheet(path: str) -> SampleSheet:
    """Return the samples of a sheet. Raises InputError where it is wrong."""
    name_lines: dict[str, int] = {}
    barcode_lines: dict[tuple[bytes, ...], int] = {}
    for number, (name, *barcodes) in _rows(path):
        where = f"line {number:,}"
        if problem := _name_problem(name):
            raise InputError(path, problem, where)
        for column, barcode in zip(COLUMNS[1:], barcodes, strict=False):
            if problem := _barcode_problem(barcode):
                raise InputError(path, f"{column} {problem}", where)
        if (before := name_lines.setdefault(name, number)) != number:
            raise InputError(path, f"the sample {quoted(name)} is in line {before:,}, too", where)
        same = tuple(barcode.upper().replace("U", "T").encode() for barcode in barcodes)
        if (before := barcode_lines.setdefault(same, number)) != number:
            raise InputError(path, f"the barcodes are those of line {before:,}", where)
    if not name_lines:
        raise InputError(path, "there is no sample")
    samples = [bytes_of(name) for name in name_lines]
    columns = tuple(list(column) for column in zip(*barcode_lines, strict=True))
    return SampleSheet(path=path, samples=samples, barcodes=columns)


def _rows(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line after the header, in the order of `COLUMNS`."""
    with open_content(path) as file:
        text = file.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise InputError(path, f"has more than {LARGEST:,} bytes: is it a sample sheet?")
    refuse_utf_16(path, text)
    header, *rows = list(read_rows(path, text, "\t,")) or [Row(1, [*COLUMNS])]
    if sorted(header.cells) not in (sorted(COLUMNS), sorted(COLUMNS[:-1])):
        columns = "the columns must be sample, barcode1 and, for dual barcodes, barcode2"
        found = several([cell[:QUOTED] for cell in header.cells])
        problem = f"{columns}, separated by tabs or commas, not {found}"
        raise InputError(path, problem, f"line {header.line:,}")
    order = [header.cells.index(column) for column in COLUMNS if column in header.cells]
    for number, cells in rows:
        if len(cells) != len(header.cells):
            problem = f"has {len(cells):,} columns, not {len(header.cells):,}"
            raise InputError(path, problem, f"line {number:,}")
        yield number, [cells[column] for column in order]


def _name_problem(name: str) -> str:
    if not name:
        return "the sample has no name"
    if name in RESERVED:
        return f"{quoted(name)} is the name for reads {RESERVED[name]}: rename the sample"
    if len(name.split()) > 1:
        return f"the sample {quoted(name)} has white space in its name: write _ instead"
    return name_problem(name)


def _barcode_problem(barcode: str) -> str:
    if not barcode:
        return "is empty"
    if len(barcode) > LONGEST:
        return f"has {len(barcode):,} bases; at most {LONGEST} are possible"
    if not bases.encode(np.frombuffer(barcode.encode(errors="replace"), np.uint8)).all():
        return f"is {quoted(barcode)}: not only bases (A C G T U or IUPAC codes)"
    return ""

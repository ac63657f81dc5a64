"""Counts tables as lines of text: TSV, bincov of GATK-SV, depths of mosdepth and CNVkit."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Any

import numpy as np

from multigpu.errors import InputError, UsageError, option, quoted
from multigpu.formats.alignments.regions import Regions, gene_name
from multigpu.formats.storage.compressed import compressed_output
from multigpu.formats.storage.sources import refuse_utf_16
from multigpu.formats.tables.counts import (
    COLUMNS,
    ROWS,
    CountRows,
    Counts,
    CountsFormat,
    Empty,
    TableParts,
    Values,
    batch_of,
    check_room,
    check_rows,
    check_samples,
    narrow,
    rows_of_batch,
    sample_of_file,
    slices,
)

BINCOV_PLACE = ("chr", "start", "end")  # how the header of GATK-SV's matrices begins, in any case
CNVKIT_PLACE = ["chromosome", "start", "end"]
NO_COVERAGE = (
    "is a file of CNVkit, with ratios or a reference: give the BAM or CRAM files of all samples"
    f" and {option('regions')} TARGETS.bed, or their .targetcoverage.cnn"
)

# What Arrow says where one thread reads.
MISFIT = re.compile(
    r"In CSV column #(\d+): Row #(\d+): CSV conversion error [^:]*: (.*)", re.DOTALL
)
MISCOUNT = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+)")
# Of mosdepth. No other table of counts is without a header; depths have decimals, as no count has.
FIRST_LINE = re.compile(rb"[^\t\n]+\t\d+\t\d+(\t[^\t\n]*)?\t\d+\.\d+\r?(\n|$)")
OTHERS = ["depth", "gene", "log2"]  # columns of CNVkit


def read_header(path: str, file: BufferedReader) -> tuple[str, ...]:
    """Return the samples of a table. Raises InputError for a file that is none."""
    line = file.readline()
    refuse_utf_16(path, line)
    header = line.decode("utf-8-sig", "replace")
    titles = header.lstrip("#").rstrip("\r\n").split("\t")
    if titles[:3] == CNVKIT_PLACE and {"log2", "depth"} & {*titles}:
        raise InputError(path, NO_COVERAGE)
    if tuple(map(str.lower, titles[:3])) == BINCOV_PLACE:
        titles[:3] = COLUMNS
    return check_samples(path, titles)


def read_tsv(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return samples, regions and values. Raises InputError for a file that is no table."""
    samples = read_header(path, file)
    columns = TextColumns((*COLUMNS, *samples), tuple(range(3, 3 + len(samples))))
    return samples, *read_text(path, file, columns)


@dataclass(frozen=True)
class TextColumns:
    """Columns of a counts table as text, of which the first three are chromosome, start and end.

    names    of all columns, for messages
    samples  positions of the columns of samples
    genes    position of the names of the regions; None without them
    first    number of a chromosome's first base: 0, or 1 where `end` is the last base, too
    """

    names: tuple[str, ...]
    samples: tuple[int, ...]
    genes: int | None = None
    first: int = 0


def read_text(path: str, file: Any, columns: TextColumns) -> tuple[Regions, Values]:
    """Return the rows of the rest of the file. Raises InputError for rows that are wrong."""
    check_room(path, file, len(columns.samples))
    names: dict[str, int] = {}
    genes: list[str] = []
    whole = CountRows.empty(0, len(columns.samples), np.int32, np.empty)
    parts = [(whole.chrom, whole.start, whole.end, whole.values)]
    samples = [columns.names[column] for column in columns.samples]
    rows = 0
    for part in _read_text_rows(path, file, columns, genes):
        if columns.first:
            part = replace(part, start=part.start - columns.first)
        check_rows(path, part, samples, rows, columns.first)
        rows += len(part.chrom)
        parts.append((part.numbered(names), part.start, part.end, narrow(part.values)))
    chrom, start, end, values = map(np.concatenate, zip(*parts, strict=True))
    named = tuple(genes) if any(genes) else ()
    return Regions(tuple(names), chrom, start, end, named), values


def _read_text_rows(
    path: str, file: Any, columns: TextColumns, genes: list[str]
) -> Iterator[CountRows]:
    """Yield the rows; their names are added to `genes`."""
    import pyarrow as pa
    from pyarrow import csv

    if not file.peek(1):
        return
    # Names that no sample's name can clash with.
    names = [f"column {number}" for number in range(len(columns.names))]
    wanted = [*range(3), *columns.samples]
    types = {names[column]: pa.float64() for column in wanted[3:]}
    types |= {names[0]: pa.dictionary(pa.int32(), pa.string())}
    types |= {names[1]: pa.int64(), names[2]: pa.int64()}
    if columns.genes is not None:
        wanted.append(columns.genes)
        types |= {names[columns.genes]: pa.binary()}
    try:
        reader = csv.open_csv(
            file,
            csv.ReadOptions(column_names=names, use_threads=False),  # so errors have a row
            csv.ParseOptions(delimiter="\t", quote_char=False),
            csv.ConvertOptions(
                column_types=types,
                null_values=[],
                include_columns=[names[column] for column in wanted],
            ),
        )
        for batch in reader:
            if columns.genes is not None:
                texts = batch.column(len(wanted) - 1).to_pylist()
                genes += [gene_name(text.decode("utf-8", "replace")) for text in texts]
                batch = batch.select(names[column] for column in wanted[:-1])
            yield rows_of_batch(batch)
    except pa.ArrowInvalid as error:
        raise _error_of_arrow(path, columns.names, str(error)) from error


def _error_of_arrow(path: str, columns: Sequence[str], said: str) -> InputError:
    if found := MISFIT.fullmatch(said):
        column, row, misfit = found.groups()
        where = f"row {row}, column {columns[int(column)]}"
        value = misfit.removeprefix("invalid value '").removesuffix("'")
        what = "whole number below 2^40" if int(column) < 3 else "number"
        problem = "is not UTF-8" if column == "0" else f"{quoted(value)} is no {what}"
        return InputError(path, problem, where)
    if found := MISCOUNT.match(said):
        row, wanted, there = found.groups()
        return InputError(path, f"{there} columns instead of {wanted}", f"row {row}")
    return InputError(path, said.splitlines()[0])


def write_tsv(path: str | None, counts: Counts) -> None:
    """Write a table, with the shortest decimals. Raises UsageError for a name with a tab."""
    with compressed_output(path) as out:
        _write_text(out, counts)


def _write_text(out: Any, counts: Counts) -> None:
    from pyarrow import csv

    for name in (*counts.regions.names, *counts.samples):
        if any(sign in name for sign in "\t\r\n"):
            raise UsageError(f"{quoted(name)} cannot be a name in a TSV file: use Parquet")
    out.write("\t".join([*COLUMNS, *counts.samples]).encode() + b"\n")
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    for rows in slices(counts, ROWS):
        text = io.BytesIO()
        csv.write_csv(batch_of(counts, rows), text, options)
        out.write(text.getbuffer())


TSV = CountsFormat(
    "a counts table in TSV", lambda start: True, read_tsv, suffixes=(".tsv",), write=write_tsv
)
BINCOV = CountsFormat(
    "a bincov matrix of GATK-SV",
    lambda start: start.lower().lstrip(b"#").startswith("\t".join((*BINCOV_PLACE, "")).encode()),
    read_tsv,
)


def _titles(line: bytes) -> list[str]:
    return line.partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r").split("\t")


def _is_coverage(start: bytes) -> bool:
    """Whether a file has depths and nothing that is computed of them, as references and ratios."""
    titles = _titles(start)
    return titles[:3] == CNVKIT_PLACE and sorted(titles[3:]) == OTHERS


def read_cnvkit(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    return _read(path, file, _titles(file.readline()))


def read_mosdepth(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return sample, regions and depths. Raises InputError for rows that are wrong."""
    found = FIRST_LINE.match(file.peek(1))
    genes = ["gene"] if found is None or found[1] is not None else []
    return _read(path, file, [*COLUMNS, *genes, "depth"])


def _read(path: str, file: BufferedReader, titles: list[str]) -> TableParts:
    genes = titles.index("gene") if "gene" in titles else None
    columns = TextColumns(tuple(titles), (titles.index("depth"),), genes)
    return (sample_of_file(path),), *read_text(path, file, columns)


CNVKIT = CountsFormat("coverage of CNVkit", _is_coverage, read_cnvkit, has_depths=True)
MOSDEPTH = CountsFormat(
    "regions of mosdepth", lambda start: bool(FIRST_LINE.match(start)), read_mosdepth, True
)

"""Counts of one sample by GATK's CollectReadCounts: text after a SAM header, and HDF5.

Starts count from 1 and ends are the last bases of intervals. The paths in HDF5 are those that the
documentation of GATK's `HDF5SimpleCountCollection` names.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any

import numpy as np

from multigpu.errors import InputError, first_line, quoted
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.names import name_problem
from multigpu.formats.storage.stored_streams import is_regular
from multigpu.formats.tables.counts import (
    CountRows,
    CountsFormat,
    Empty,
    TableParts,
    check_rows,
    narrow,
    sample_of_file,
)
from multigpu.formats.tables.counts_tsv import TextColumns, read_text
from multigpu.formats.tables.sam import SAM, advise_on_sam

MAGIC = b"\x89HDF\r\n\x1a\n"
TITLES = ("CONTIG", "START", "END", "COUNT")
INSTALL = "needs h5py: pip install 'multigpu[hdf5]', or write TSV: CollectReadCounts --format TSV"
SAMPLE, COUNTS = "sample_metadata/sample_name", "counts/values"
CONTIGS, PLACES = "intervals/indexed_contig_names", "intervals/transposed_index_start_end"


def read_gatk_text(path: str, file: BufferedReader, _: Empty) -> TableParts:
    """Return sample, regions and values of TSV. Raises InputError for a file that is none."""
    sample = ""
    while (line := file.readline().decode("utf-8", "replace").rstrip("\r\n")).startswith("@"):
        fields = line.split("\t")
        if fields[0] == "@RG":
            sample = next((each[3:] for each in fields if each.startswith("SM:")), sample)
    titles = line.split("\t")
    if titles[0] != TITLES[0]:
        raise InputError(path, advise_on_sam(path))
    if tuple(titles) != TITLES:
        expected = " ".join(TITLES)
        problem = f"has the columns {quoted(' '.join(titles))}, not {expected}: these are no counts"
        raise InputError(path, problem)
    return _sample(path, sample), *read_text(path, file, TextColumns(TITLES, (3,), first=1))


def _sample(path: str, name: str) -> tuple[str]:
    if problem := name_problem(name):
        raise InputError(path, f"its sample is called {quoted(name)}: {problem}")
    return (name or sample_of_file(path),)


def read_gatk_hdf5(path: str, _: BufferedReader, __: Empty) -> TableParts:
    """Return sample, regions and values of HDF5. Raises InputError for a file that is none."""
    if not is_regular(path):
        raise InputError(path, "HDF5 cannot be read from a pipe: give a file")
    with _open(path) as file, np.errstate(invalid="ignore"):  # what is no number is no place
        names = [_text(name) for name in file[CONTIGS][:]]
        chrom, start, end = file[PLACES][:].astype(np.int64)
        values = np.ascontiguousarray(file[COUNTS][:].reshape(-1, 1), np.float64)
        sample = _text(np.ravel(file[SAMPLE][()])[0])
    if len(chrom) != len(values) or (chrom.clip(0, len(names) - 1) != chrom).any():
        raise InputError(path, "is damaged: its intervals and counts do not fit together")
    regions = Regions(tuple(names), chrom.astype(np.int32), start - 1, end)
    rows = CountRows(names, regions.chrom, regions.start, end, values)
    check_rows(path, rows, TITLES[3:], 0, first=1)
    return _sample(path, sample), regions, narrow(values)


@contextmanager
def _open(path: str) -> Iterator[Any]:
    """Yield a file of HDF5. Raises InputError where it cannot be read, or is another."""
    try:
        import h5py
    except ImportError:
        raise InputError(path, INSTALL) from None
    try:
        with h5py.File(path) as file:
            yield file
    except KeyError as error:
        known = f"it has no {COUNTS} and {PLACES}, as files of CollectReadCounts have"
        raise InputError(path, f"is HDF5 without read counts: {known}") from error
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise InputError(path, f"cannot be read as HDF5: {first_line(error)}") from error


def _text(name: bytes | str) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


GATK_TSV = CountsFormat(
    "a table of GATK CollectReadCounts",
    lambda start: start.decode("latin-1").startswith(SAM),
    read_gatk_text,
)
GATK_HDF5 = CountsFormat(
    "HDF5 of GATK CollectReadCounts", lambda start: start.startswith(MAGIC), read_gatk_hdf5
)

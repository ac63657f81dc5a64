"""All formats of counts tables. A new one is a module that ends with its `CountsFormat`."""

import numpy as np

from multigpu.errors import Failure, InputError, first_line
from multigpu.formats.alignments.regions import in_order
from multigpu.formats.storage.sources import open_content
from multigpu.formats.storage.suffixes import suffix_of_output
from multigpu.formats.tables.counts import Counts, CountsFormat, Empty
from multigpu.formats.tables.counts_parquet import PARQUET
from multigpu.formats.tables.counts_tsv import TSV

# The first one that fits a file has it: any text may be meant as TSV.
FORMATS: tuple[CountsFormat, ...] = (PARQUET, TSV)


def read_counts(path: str, empty: Empty = np.empty) -> Counts:
    """Return a table in order; the notes say whether its rows had to be sorted.

    empty: makes large arrays, where their size is known beforehand

    Chromosomes keep the order in which they appear. Raises InputError with row (from 1) and column
    of a count that is missing, no number, negative or not finite, and for what else is no table;
    Failure where it does not fit the memory.
    """
    try:
        with open_content(path) as file:
            layout = next(each for each in FORMATS if each.fits(file.peek(4)))
            samples, regions, values = layout.read(path, file, empty)
        if not len(regions):
            raise InputError(path, "there are no regions")
        regions, order, notes = in_order(path, regions)
        return Counts(regions, samples, values if order is None else values[order], notes)
    except MemoryError as error:
        raise Failure(f"{path}: does not fit into memory ({first_line(error)})") from error


def write_counts(path: str | None, counts: Counts) -> None:
    """Write a table in the format of the suffix, else as TSV; None is standard output.

    The file appears when it is complete. Whole counts are written as int32, others as float64, in
    a text as the shortest decimal that reads back equal.
    """
    suffix = suffix_of_output(path)
    layout = next((each for each in FORMATS if suffix in each.suffixes), TSV)
    layout.write(path, counts)

"""All formats of counts tables. A new one is a `CountsFormat` in the list."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from multigpu.errors import Failure, InputError, UsageError, first_line, option, quoted
from multigpu.formats.alignments.regions import in_order
from multigpu.formats.storage.sources import open_content, read_beginning
from multigpu.formats.storage.suffixes import suffix_of_output
from multigpu.formats.tables.counts import Counts, CountsFormat, Empty, narrow
from multigpu.formats.tables.counts_arrow import PARQUET
from multigpu.formats.tables.counts_gatk import GATK_HDF5, GATK_TSV
from multigpu.formats.tables.counts_tsv import BINCOV, CNVKIT, MOSDEPTH, TSV
from multigpu.formats.tables.counts_zarr import CountsStore, is_store

# The first one that fits a file has it: any text may be meant as TSV.
FORMATS = (PARQUET, GATK_HDF5, GATK_TSV, BINCOV, CNVKIT, MOSDEPTH, TSV)


def format_of(path: str) -> CountsFormat:
    """Return the format of a file, by its content."""
    start = read_beginning(path)
    return next(each for each in FORMATS if each.fits(start))


def read_counts(
    path: str | os.PathLike[str], empty: Empty = np.empty, read_length: int | None = None
) -> Counts:
    """Return a table in order, or a kept cohort; the notes say whether rows had to be sorted.

    empty        makes large arrays, where their size is known beforehand
    read_length  bases of a read, by which depths of mosdepth and CNVkit become counts

    Chromosomes keep the order in which they appear. Raises InputError with row (from 1) and column
    of a count that is missing, no number, negative or not finite, for depths without a read length,
    and for what else is no table; Failure where it does not fit the memory.
    """
    path = os.fspath(path)
    try:
        if is_store(path):
            return CountsStore(path).counts(empty=empty)
        layout = format_of(path)
        if layout.has_depths and read_length is None:
            problem = f"has mean depths ({layout.name}): {option('read_length')} N, the bases of"
            raise InputError(path, f"{problem} a read, makes counts of them")
        with open_content(path) as file:
            samples, regions, values = layout.read(path, file, empty)
        if not len(regions):
            raise InputError(path, "there are no regions")
        if layout.has_depths and read_length:
            width = regions.end - regions.start
            values = narrow(np.rint(values * width[:, None] / read_length))
        regions, order, notes = in_order(path, regions)
        return Counts(regions, samples, values if order is None else values[order], notes)
    except MemoryError as error:
        raise Failure(f"{path}: does not fit into memory ({first_line(error)})") from error


def join_counts(
    paths: Sequence[str],
    empty: Empty = np.empty,
    read_length: int | None = None,
    names: Sequence[str] = (),
) -> Counts:
    """Return the samples of several files in one table, in the order of the files.

    names  of the samples, one for each file; none: as the files call them

    Raises InputError, besides for what `read_counts` does, where regions differ or a sample is in
    two files; UsageError where files are of several formats, or one of several is a cohort.
    """
    if len(paths) == 1 and not names:
        return read_counts(paths[0], empty, read_length)
    if stores := list(filter(is_store, paths)):
        problem = "a cohort is given alone; `multigpu cohort add` adds samples to one"
        raise UsageError(f"{stores[0]}: {problem}")
    formats = [format_of(path) for path in paths]
    for path, layout in zip(paths, formats, strict=True):
        if layout is not formats[0]:
            problem = f"{paths[0]} is {formats[0].name}, and {path} is {layout.name}"
            raise UsageError(f"{problem}: give files of one kind")
    first = read_counts(paths[0], read_length=read_length)

    def read(path: str) -> Counts:
        """Return a table with the regions of the first one."""
        found = first if path is paths[0] else read_counts(path, read_length=read_length)
        if (row := first.regions.first_difference(found.regions)) is not None:
            here, there = found.regions.shown(row), first.regions.shown(row)
            problem = f"region {row + 1} is {here} here and {there} in {paths[0]}"
            raise InputError(path, f"{problem}: files that are joined have the same regions")
        return Counts(first.regions, found.samples, found.values, found.notes)

    files: dict[str, str] = {}  # of each sample
    notes: dict[str, str] = {}  # by what they say
    try:
        values = empty((len(first.regions), len(first.samples) * len(paths)), first.values.dtype)
    except MemoryError as error:
        raise Failure(f"{len(paths):,} tables do not fit into memory ({error})") from error
    with ThreadPoolExecutor(min(len(paths), len(os.sched_getaffinity(0)))) as pool:
        for number, (path, part) in enumerate(zip(paths, pool.map(read, paths), strict=True)):
            samples = names[number : number + 1] or part.samples
            if len(samples) != len(part.samples):
                raise InputError(path, f"has {len(part.samples):,} samples, but one name is given")
            at, stop = len(files), len(files) + len(samples)
            for name in samples:
                if (other := files.get(name)) is not None:
                    raise InputError(path, f"its sample {quoted(name)} is in {other}, too")
                files[name] = path
            if stop > values.shape[1]:  # the first file had fewer samples than others
                values = np.pad(values, ((0, 0), (0, stop - values.shape[1])))
            if part.values.dtype != values.dtype:
                values = values.astype(np.float64, copy=False)
            values[:, at:stop] = part.values
            for note in part.notes:
                notes.setdefault(note.removeprefix(path), note)
    values = values if len(files) == values.shape[1] else values[:, : len(files)].copy()
    return Counts(first.regions, tuple(files), values, tuple(notes.values()))


def write_counts(path: str | None, counts: Counts) -> None:
    """Write a table in the format of the suffix, else as TSV; None is standard output.

    The file appears when it is complete. Whole counts are written as int32, others as float64, in
    a text as the shortest decimal that reads back equal.
    """
    suffix = suffix_of_output(path)
    layout = next((each for each in FORMATS if suffix in each.suffixes), TSV)
    assert layout.write
    layout.write(path, counts)

"""Regions, references and names of samples of a count, from its files and options."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from multigpu.errors import InputError, UsageError, option, quoted
from multigpu.formats.alignments.files import (
    RG,
    AlignmentFile,
    check_references,
    numbers_of,
    sample_of,
)
from multigpu.formats.alignments.regions import Regions, read_bed, windows
from multigpu.formats.names import name_problem
from multigpu.formats.tables.counts_zarr import CountsStore, is_store
from multigpu.workloads.count.options import CountOptions


def choose_regions(file: AlignmentFile, options: CountOptions) -> tuple[Regions, tuple[str, ...]]:
    """Return the regions of a BED file or a kept cohort, or windows over an alignment file.

    With them go notes, one sentence each. Raises InputError for chromosomes that the alignment
    file does not have.
    """
    rename = options.rename == "auto"
    if options.regions is not None:
        path = str(options.regions)
        kept = is_store(path)
        regions, notes = (CountsStore(path).regions, ()) if kept else read_bed(path)
        references = numbers_of(regions.names, file, rename, path)
        too_long = tuple(_notes_of_long_regions(regions, references, file))
        if kept and too_long:
            raise InputError(path, f"is of another genome than {file.path}: {too_long[0]}")
        return regions, (*notes, *too_long)
    names = options.chromosomes or tuple(name for name, _ in file.references)
    references = numbers_of(names, file, rename, option("chromosomes"))
    covered = [file.references[number] for number in references]
    if options.compat_r:
        _check_lengths_differ(file, covered)
    longest = max((length for _, length in covered), default=0)
    if not longest:
        raise InputError(file.path, "its references have no bases: there are no windows")
    note = f"each chromosome is one window: the longest has {longest:,} bases"
    notes = (
        (f"{note}, {option('window')} is {options.window:,}",) if options.window > longest else ()
    )
    return windows(covered, options.window, options.compat_r), notes


def choose_references(
    files: Sequence[AlignmentFile], regions: Regions, options: CountOptions
) -> list[tuple[int, ...]]:
    """Return the numbers of the references, in each file, that the regions' chromosomes stand for.

    Raises InputError where files differ in what is asked for: without regions or chromosomes all.
    """
    rename, source = options.rename == "auto", str(options.regions or option("chromosomes"))
    if options.regions is None and not options.chromosomes:
        check_references(files, rename)
    found = [tuple(numbers_of(regions.names, file, rename, source)) for file in files]
    chosen = [
        replace(file, references=tuple(file.references[number] for number in numbers))
        for file, numbers in zip(files, found, strict=True)
    ]
    check_references(chosen, rename=True)  # their lengths
    return found


def choose_sample_names(files: Sequence[AlignmentFile], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names given, those in read groups for `@RG`, or the files' names without suffix.

    Raises UsageError for a name that two files have.
    """
    by_group = tuple(names) == (RG,)
    if by_group:
        names = [sample_of(file) for file in files]
    if names and len(names) != len(files):
        needed = f"{len(names)} given, {len(files)} needed, one for each file"
        raise UsageError(f"{option('sample_names')}: {needed}")
    names_or_stems = names or [Path(file.path).stem for file in files]
    # Tables are UTF-8: other bytes of a name become U+FFFD.
    texts = tuple(os.fsencode(name).decode("utf-8", "replace") for name in names_or_stems)
    for file, name in zip(files, texts, strict=True):
        if problem := name_problem(name):
            raise InputError(file.path, f"its sample is called {quoted(name)}: {problem}")
    for name, times in Counter(texts).items():
        if times > 1:
            groups = " by their read groups" if by_group else ""
            other = (
                ""
                if names
                else f", or {option('sample_names')} {RG} for the names in their read groups"
            )
            raise UsageError(
                f"{times} samples are called {name}{groups}: give {option('sample_names')} NAME,…,"
                f" one for each file{other}"
            )
    return texts


def _check_lengths_differ(file: AlignmentFile, references: Sequence[tuple[str, int]]) -> None:
    """Raise InputError for two references of one length: R finds windows by the length."""
    name_by_length: dict[int, str] = {}
    for name, length in references:
        if length in name_by_length:
            names = f"{quoted(name_by_length[length])} and {quoted(name)}"
            problem = f"{names} have the same length, which R refuses"
            raise InputError(
                file.path, f"{problem}: leave out {option('compat_r')} r, or one of them"
            )
        name_by_length[length] = name


def _notes_of_long_regions(
    regions: Regions, references: Sequence[int], file: AlignmentFile
) -> Iterator[str]:
    """Yield a note where regions end after their reference, as those of another assembly do."""
    lengths = np.array([file.references[number][1] for number in references], np.int64)
    rows = np.flatnonzero(regions.end > lengths[regions.chrom])
    if len(rows):
        name = regions.names[regions.chrom[rows[0]]]
        where = f"{name}:{regions.start[rows[0]]}-{regions.end[rows[0]]}"
        yield f"regions that end after their reference: {len(rows):,}, the first one is {where}"

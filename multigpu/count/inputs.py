"""Regions and names of samples of a count, from its files and options."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from multigpu.count.options import CountOptions
from multigpu.errors import InputError, UsageError, quoted
from multigpu.formats.alignments.files import RG, Alignments, numbers_of, sample_of
from multigpu.formats.alignments.regions import Regions, read_bed, windows


def choose_regions(
    file: Alignments, options: CountOptions
) -> tuple[Regions, list[int], tuple[str, ...]]:
    """Return the regions of a BED file, or windows over the references of an alignment file.

    With them go the numbers of the references that their chromosomes stand for, and notes: what
    was noticed in a BED file, one sentence each.

    Raises InputError for chromosomes that the alignment file does not have.
    """
    rename = options.rename == "auto"
    if options.regions is not None:
        regions, notes = read_bed(options.regions)
        references = numbers_of(regions.names, file, rename, options.regions, regions)
        return regions, references, (*notes, *_notes_of_long_regions(regions, references, file))
    names = options.chromosomes or tuple(name for name, _ in file.references)
    references = numbers_of(names, file, rename, "--chromosomes")
    covered = [file.references[number] for number in references]
    if options.compat_r:
        _check_lengths_differ(file, covered)
    if not any(length for _, length in covered):
        raise InputError(file.path, "its references have no bases: there are no windows")
    return windows(covered, options.window, options.compat_r), references, ()


def choose_sample_names(files: Sequence[Alignments], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names given, those in read groups for `@RG`, or the files' names without suffix.

    Raises UsageError for a name that two files have.
    """
    by_group = tuple(names) == (RG,)
    if by_group:
        names = [sample_of(file) for file in files]
    if names and len(names) != len(files):
        raise UsageError(f"there are {len(names)} sample names for {len(files)} files")
    names_or_stems = names or [Path(file.path).stem for file in files]
    # Tables are UTF-8: other bytes of a name become U+FFFD.
    texts = tuple(os.fsencode(name).decode("utf-8", "replace") for name in names_or_stems)
    for name, times in Counter(texts).items():
        if times > 1:
            groups = " by their read groups" if by_group else ""
            other = "" if names else f", or --sample-names {RG} for the names in their read groups"
            raise UsageError(
                f"{times} samples are called {name}{groups}: give --sample-names NAME,…, one for"
                f" each file{other}"
            )
    return texts


def _check_lengths_differ(file: Alignments, references: Sequence[tuple[str, int]]) -> None:
    """Raise InputError for two references of one length: R finds windows by the length."""
    name_by_length: dict[int, str] = {}
    for name, length in references:
        if length in name_by_length:
            names = f"{quoted(name_by_length[length])} and {quoted(name)}"
            problem = f"{names} have the same length, which R refuses"
            raise InputError(file.path, f"{problem}: leave out --compat r, or one of them")
        name_by_length[length] = name


def _notes_of_long_regions(
    regions: Regions, references: Sequence[int], file: Alignments
) -> Iterator[str]:
    """Yield a note where regions end after their reference, as those of another assembly do."""
    lengths = np.array([file.references[number][1] for number in references], np.int64)
    rows = np.flatnonzero(regions.end > lengths[regions.chrom])
    if len(rows):
        name = regions.names[regions.chrom[rows[0]]]
        where = f"{name}:{regions.start[rows[0]]}-{regions.end[rows[0]]}"
        yield f"regions that end after their reference: {len(rows):,}, the first one is {where}"

"""Inputs of a run: counts, one counts table, or alignments to count."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from multigpu.errors import InputError, UsageError, option, printable_name, several
from multigpu.formats.alignments import bam, cram
from multigpu.formats.alignments.files import files_of, without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage import shareable
from multigpu.formats.storage.sources import open_content, read_beginning
from multigpu.formats.tables import counts_errors
from multigpu.formats.tables.counts import Counts, read_counts
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.samples.frames import counts_from_frame, is_frame
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions

COUNTING = [name for name in CountOptions().parameters() if name != "compat_r"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SampleInput:
    """Cases or controls as they are given: counts in memory, or files.

    table          counts in memory, or None
    paths          one counts table, or alignments to count
    is_alignments  whether the files are alignments
    """

    table: Counts | None = None
    paths: tuple[str, ...] = ()
    is_alignments: bool = False

    @classmethod
    def from_paths(cls, paths: Sequence[str]) -> Self:
        """Return files as an input; directories and patterns stand for their alignments.

        Raises UsageError and InputError for no files, and for several that are no alignments.
        """
        if not paths:
            raise UsageError("no INPUT given: a counts table, or BAM and CRAM files")
        expanded = tuple(files_of(paths))
        return cls(paths=expanded, is_alignments=are_alignments(expanded))

    @classmethod
    def from_given(cls, given: Any) -> Self:
        """Return Counts, a table in memory, or one or several paths as an input.

        Raises UsageError and InputError for anything else.
        """
        if isinstance(given, Counts):
            return cls(table=given)
        if is_frame(given):
            return cls(table=counts_from_frame(given))
        paths: list[Any] = [None]
        if isinstance(given, str | os.PathLike):
            paths = [given]
        elif isinstance(given, Iterable) and not isinstance(given, Mapping):
            paths = list(given)
        if not paths:
            raise UsageError("no INPUT given: a counts table, or BAM and CRAM files")
        if not all(isinstance(path, str | os.PathLike) for path in paths):
            raise UsageError(
                f"an input of type {type(given).__name__} has no regions: give Counts, a table with"
                " the columns chrom, start, end and samples, or files"
            )
        return cls.from_paths([os.fspath(path) for path in paths])

    @property
    def table_name(self) -> str:
        """Name of the table in messages; empty for alignments."""
        if self.table is not None:
            return "what was given"
        return "" if self.is_alignments else self.paths[0]

    def open(
        self, counting: CountOptions, run: RunOptions, client: Any = None
    ) -> Counts | CountJob:
        """Return the counts, or the job that counts the alignments."""
        if self.is_alignments:
            return CountJob(self.paths, counting, run, client)
        counts = self.table
        if counts is None:
            # Worker processes, if there are any, find the counts where they are read.
            counts = read_counts(self.paths[0], shareable.empty)
        rename = counting.rename == "auto"
        return select_chromosomes(counts, counting.chromosomes, rename, self.table_name)


def are_alignments(paths: Sequence[str]) -> bool:
    """Return whether files are alignments. Raises UsageError for several of anything else."""
    alignments = read_beginning(paths[0])[:4] in (bam.MAGIC, cram.MAGIC)
    if not alignments and len(paths) > 1:
        with open_content(paths[0]) as file:
            header = file.readline().decode("utf-8-sig", "replace")
        if problem := counts_errors.identify(paths[0], header):
            raise InputError(paths[0], problem)
        raise UsageError(f"{paths[0]} is a counts table: give one table, or alignments")
    return alignments


def check_counting(given: Iterable[str], cases: SampleInput, controls: SampleInput | None) -> None:
    """Raise UsageError for parameters of counting where there is nothing to count.

    given  the parameters in COUNTING that were given
    """
    if cases.is_alignments:
        return
    given = set(given)
    unused = [name for name in COUNTING if name in given - {"chromosomes"}]
    if controls is not None and controls.is_alignments:
        unused = [name for name in unused if name == "sample_names"]  # of the cases
    elif "rename" in unused and (controls is not None or "chromosomes" in given):
        unused.remove("rename")
    if unused:
        options = ", ".join(option(name, name != "index") for name in unused)
        raise UsageError(
            f"{options}: for alignments only, and {cases.table_name} is a counts table"
        )


def select_chromosomes(counts: Counts, names: Sequence[str], rename: bool, source: str) -> Counts:
    """Return the counts of the chromosomes `names`, in this order; of all if there are no names.

    rename  whether names that differ by `chr` are the same
    source  name of the counts in messages
    """
    if not names:
        return counts
    regions = counts.regions
    blocks = {regions.names[regions.chrom[rows.start]]: rows for rows in regions.blocks}
    wanted = [_name_in_table(name, tuple(blocks), rename, source) for name in names]
    if twice := [name for name in wanted if wanted.count(name) > 1]:
        raise UsageError(f"{option('chromosomes')}: {printable_name(twice[0])} is listed twice")
    rows = np.concatenate([np.r_[blocks[name]] for name in wanted])
    sizes = [blocks[name].stop - blocks[name].start for name in wanted]
    chrom = np.repeat(np.arange(len(wanted), dtype=np.int32), sizes)
    chosen = Regions(tuple(wanted), chrom, regions.start[rows], regions.end[rows])
    return Counts(chosen, counts.samples, counts.values[rows], counts.notes)


def _name_in_table(name: str, names: Sequence[str], rename: bool, source: str) -> str:
    """Return the name of a chromosome in a table that has these names."""
    if name in names:
        return name
    alike = [each for each in names if without_chr(each) == without_chr(name)]
    if alike and rename:
        return alike[0]
    if alike:
        problem = f"{name} is called {alike[0]} in {source}"
        problem += f": {option('rename')} auto takes them as the same"
        raise UsageError(f"{option('chromosomes')}: {problem}")
    has = f"it has {several(names)}"
    raise UsageError(
        f"{option('chromosomes')}: {source} has no chromosome {printable_name(name)}: {has}"
    )


def rename_as_cases(controls: Counts, cases: Counts) -> Counts:
    """Return the controls with the cases' names of chromosomes that differ by `chr` only."""
    cases_names = {without_chr(name): name for name in cases.regions.names}
    regions = controls.regions
    names = tuple(
        name if name in cases.regions.names else cases_names.get(without_chr(name), name)
        for name in regions.names
    )
    if len(set(names)) < len(names):
        return controls  # two would become one: they differ by more
    renamed = Regions(names, regions.chrom, regions.start, regions.end)
    return Counts(renamed, controls.samples, controls.values, controls.notes)

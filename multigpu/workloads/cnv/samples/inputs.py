"""Inputs of a run: a counts table, in memory or in a file, or alignments to count."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from multigpu.errors import InputError, UsageError, option, printable_name, several
from multigpu.formats.alignments import bam, cram
from multigpu.formats.alignments.files import files_of, without_chr
from multigpu.formats.storage import shareable
from multigpu.formats.storage.sources import open_content, read_beginning
from multigpu.formats.tables import counts_errors
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_files import read_counts
from multigpu.formats.tables.counts_frames import counts_from_frame, is_frame
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import estimate_count_bytes
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions

COUNTING = [name for name in CountOptions().parameters() if name != "compat_r"]


@dataclass(frozen=True, eq=False)
class CountsTable:
    """One counts table: a file, or counts in memory, which have no path."""

    path: str = ""
    counts: Counts | None = None
    is_alignments: ClassVar[bool] = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,) if self.path else ()

    @property
    def name(self) -> str:
        """Name in messages."""
        return self.path or "what was given"

    def count_bytes(self, counting: CountOptions) -> int:
        """Return the bytes of the counts in memory, or of the file."""
        if self.counts is not None:
            return self.counts.values.nbytes
        return estimate_count_bytes(self.paths, counting)

    def open(self, counting: CountOptions, run: RunOptions, client: Any) -> Counts:
        """Return the counts on the chromosomes that are wanted."""
        counts = self.counts
        if counts is None:
            # Worker processes, if there are any, find the counts where they are read.
            counts = read_counts(self.path, shareable.empty)
        rename = counting.rename == "auto"
        return select_chromosomes(counts, counting.chromosomes, rename, self.name)


@dataclass(frozen=True, eq=False)
class AlignmentFiles:
    """BAM and CRAM files, one a sample, after directories and patterns were expanded."""

    paths: tuple[str, ...]
    is_alignments: ClassVar[bool] = True

    def count_bytes(self, counting: CountOptions) -> int:
        """Return about the bytes of the counts, by the regions that are asked for."""
        return estimate_count_bytes(self.paths, counting)

    def open(self, counting: CountOptions, run: RunOptions, client: Any) -> CountJob:
        """Return the job that counts them."""
        return CountJob(self.paths, counting, run, client)


CohortInput = CountsTable | AlignmentFiles  # cases or controls as they are given


def input_of(given: Any) -> CohortInput:
    """Return what is given: Counts, a table in memory, or one or several paths.

    Directories and patterns stand for their alignments.

    Raises UsageError and InputError for anything else, no files, and several tables.
    """
    if isinstance(given, Counts):
        return CountsTable(counts=given)
    if is_frame(given):
        return CountsTable(counts=counts_from_frame(given))
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
    files = tuple(files_of([os.fspath(path) for path in paths]))
    if read_beginning(files[0])[:4] in (bam.MAGIC, cram.MAGIC):
        return AlignmentFiles(files)
    if len(files) == 1:
        return CountsTable(files[0])
    with open_content(files[0]) as file:
        header = file.readline().decode("utf-8-sig", "replace")
    if problem := counts_errors.identify(files[0], header):
        raise InputError(files[0], problem)
    raise UsageError(f"{files[0]} is a counts table: give one table, or alignments")


def check_counting(given: Iterable[str], cases: CohortInput, controls: CohortInput | None) -> None:
    """Raise UsageError for parameters of counting where there is nothing to count.

    given  the parameters in COUNTING that were given
    """
    if not isinstance(cases, CountsTable):
        return
    given = set(given)
    unused = [name for name in COUNTING if name in given - {"chromosomes"}]
    if controls is not None and controls.is_alignments:
        unused = [name for name in unused if name == "sample_names"]  # of the cases
    elif "rename" in unused and (controls is not None or "chromosomes" in given):
        unused.remove("rename")
    if unused:
        options = ", ".join(option(name, name != "index") for name in unused)
        raise UsageError(f"{options}: for alignments only, and {cases.name} is a counts table")


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
    chosen = counts.take(np.concatenate([np.r_[blocks[name]] for name in wanted]))
    sizes = [blocks[name].stop - blocks[name].start for name in wanted]
    chrom = np.repeat(np.arange(len(wanted), dtype=np.int32), sizes)
    return replace(chosen, regions=replace(chosen.regions, names=tuple(wanted), chrom=chrom))


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
    return replace(controls, regions=replace(regions, names=names))

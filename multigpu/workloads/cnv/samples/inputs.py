"""Inputs of a run: counts in memory or in files, or alignments to count."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from multigpu.errors import UsageError, option, printable_name, several
from multigpu.formats.alignments import bam, cram
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.storage import shareable
from multigpu.formats.storage.sources import read_beginning
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_arrow import counts_from_frame, is_frame
from multigpu.formats.tables.counts_files import format_of, join_counts
from multigpu.formats.tables.counts_zarr import CountsStore, is_store
from multigpu.formats.tables.file_lists import COUNTS, ListedFile, list_files
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import estimate_count_bytes
from multigpu.workloads.cnv.samples.filters import name_regions
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions

WITH_NAMES = {"regions", "exclude", "gc", "mappability"}  # files that name chromosomes
COUNTING = [name for name in CountOptions().parameters() if name != "compat_r"]


@dataclass(frozen=True, eq=False)
class CohortInput:
    """Cases or controls: counts in memory, which have no path, files of counts, or alignments."""

    paths: tuple[str, ...] = ()
    counts: Counts | None = None
    # Names and sexes of the samples, one for each file; none: as files and options say, not known.
    names: tuple[str, ...] = ()
    sexes: tuple[str, ...] = ()
    read_length: int | None = None  # bases of a read, by which depths become counts
    is_alignments: bool = False  # whether the files are BAM and CRAM, one a sample

    @property
    def name(self) -> str:
        """Name in messages."""
        return self.paths[0] if self.paths else "what was given"

    @property
    def has_depths(self) -> bool:
        """Whether its files have depths in place of counts."""
        is_table = bool(self.paths) and not self.is_alignments
        return is_table and format_of(self.paths[0]).has_depths

    def count_bytes(self, counting: CountOptions) -> int:
        """Return the bytes of the counts in memory or of the files, or about those to come."""
        if self.counts is not None:
            return self.counts.values.nbytes
        return estimate_count_bytes(self.paths, counting)

    def open(self, counting: CountOptions, run: RunOptions, client: Any) -> Counts | CountJob:
        """Return the counts on the chromosomes that are wanted, or the job that counts them."""
        if self.is_alignments:
            if self.names and not counting.sample_names:
                counting = replace(counting, sample_names=self.names)
            return CountJob(self.paths, counting, run, client)
        counts = self.counts
        if counts is None:
            # Worker processes, if there are any, find the counts where they are read.
            counts = join_counts(self.paths, shareable.empty, self.read_length, self.names)
        rename = counting.rename == "auto"
        if counting.regions is not None:
            named = name_regions(counts.regions, str(counting.regions), rename)
            counts = replace(counts, regions=named)
        return select_chromosomes(counts, counting.chromosomes, rename, self.name)


def inputs_of(
    given: Any, controls: Any, read_length: int | None
) -> tuple[CohortInput, CohortInput | None]:
    """Return cases and controls, each given as Counts, a table in memory, or one or several paths.

    Directories and patterns stand for their files, lists for the files that they name; those of the
    group `control` are the controls.

    Raises UsageError and InputError for anything else, no files, and files of several kinds.
    """
    cases, others = _files_of(given), None if controls is None else _files_of(controls)
    if isinstance(cases, list):
        listed = [file for file in cases if file.is_control]
        if listed and others is not None:
            raise UsageError(f"{option('controls')}: the sample sheet names controls, too")
        others = listed or others
        cases = [file for file in cases if not file.is_control]
    found = [None if each is None else _input_of(each, read_length) for each in (cases, others)]
    assert found[0]
    if read_length and not any(each and each.has_depths for each in found):
        problem = (
            f"for depths of mosdepth and CNVkit, and {found[0].name} has none that can be read"
        )
        raise UsageError(f"{option('read_length')}: {problem}")
    return found[0], found[1]


def _files_of(given: Any) -> CohortInput | list[ListedFile]:
    """Return counts in memory, or the files that paths stand for."""
    if isinstance(given, Counts):
        return CohortInput(counts=given)
    if is_frame(given):
        return CohortInput(counts=counts_from_frame(given))
    paths: list[Any] = [None]
    if isinstance(given, str | os.PathLike):
        paths = [given]
    elif isinstance(given, Iterable) and not isinstance(given, Mapping):
        paths = list(given)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise UsageError(
            f"an input of type {type(given).__name__} has no regions: give Counts, a table with"
            " the columns chrom, start, end and samples, or files"
        )
    return list_files([os.fspath(path) for path in paths], COUNTS)


def _input_of(given: CohortInput | list[ListedFile], read_length: int | None) -> CohortInput:
    if isinstance(given, CohortInput):
        return given
    if not given:
        raise UsageError("no INPUT given: a counts table, or BAM and CRAM files")
    paths = tuple(file.path for file in given)
    beginnings = (b"" if is_store(path) else read_beginning(path)[:4] for path in paths)
    are_alignments = [start in (bam.MAGIC, cram.MAGIC) for start in beginnings]
    if True in are_alignments and False in are_alignments:
        file, table = (paths[are_alignments.index(each)] for each in (True, False))
        problem = f"{file} has alignments, and {table} is {format_of(table).name}"
        raise UsageError(f"{problem}: give files of one kind")
    names = tuple(file.name for file in given if file.name)
    sexes = tuple(file.sex for file in given) if any(file.sex for file in given) else ()
    return CohortInput(paths, None, names, sexes, read_length, are_alignments[0])


def check_counting(given: Iterable[str], cases: CohortInput, controls: CohortInput | None) -> None:
    """Raise UsageError for parameters of counting where there is nothing to count.

    given  the parameters in COUNTING that were given
    """
    if cases.is_alignments:
        return
    given = set(given)
    unused = [name for name in COUNTING if name in given - {"chromosomes", "regions"}]
    if controls is not None and controls.is_alignments:
        unused = [name for name in unused if name == "sample_names"]  # of the cases
    elif "rename" in unused and (controls is not None or given & {"chromosomes", *WITH_NAMES}):
        unused.remove("rename")
    if unused:
        options = ", ".join(option(name, name != "index") for name in unused)
        raise UsageError(f"{options}: for alignments only, and {cases.name} is a counts table")


def counting_of_cohort(
    store: CountsStore, counting: CountOptions, given: Iterable[str]
) -> CountOptions:
    """Return the options that count alignments in the regions of a cohort, as its own were.

    given  the options that were given

    Raises UsageError where one of these differs from the cohort's.
    """
    if other := {"window", "regions", "chromosomes"}.intersection(given):
        problem = f"alignments are counted in the regions of {store.path}"
        raise UsageError(f"{option(min(other))}: {problem}")
    for name, value in store.counting.items():
        if name in given and getattr(counting, name) != value:
            here = f"{option(name)} is {getattr(counting, name)}"
            raise UsageError(f"{here}, and {store.path} was counted with {value}")
    return replace(counting, **store.counting, regions=store.path)


def select_chromosomes(counts: Counts, names: Sequence[str], rename: bool, source: str) -> Counts:
    """Return the counts of the chromosomes `names`, in this order; of all if there are no names.

    rename  whether names that differ by `chr` are the same
    source  name of the counts in messages
    """
    if not names:
        return counts
    regions = counts.regions
    blocks = regions.by_name()
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

"""Cases and controls of a run: what is known before they are computed with, and checks of it."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from multigpu.errors import UsageError, option, quoted
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.names import name_problem
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
from multigpu.run.values import StrPath
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.samples.genomes import (
    Genome,
    Intervals,
    chromosome_lengths,
    find_genome,
)
from multigpu.workloads.cnv.samples.sex import Coverage
from multigpu.workloads.count.job import CountJob


@dataclass(frozen=True, eq=False, kw_only=True)
class Cohort:
    """Cases and controls, whose order is that of the columns of the counts."""

    regions: Regions  # in which reads are counted
    cases: tuple[str, ...]  # names of the cases, the samples of the results
    controls: tuple[str, ...] = ()  # names of the controls
    ploidy: tuple[int, ...] | None = None  # of each case and then control; None: two, or by sex
    sexes: tuple[str, ...] = ()  # "male", "female" or "" of cases, then controls; empty: not used
    sex_coverage: Coverage | None = None  # coverage of X and Y from which the sexes were inferred
    genome_name: str | None = None  # as given; None: recognized by the lengths of chromosomes
    # Lengths of references in bases, by name, where alignments give them
    references: Mapping[str, int] = field(default_factory=dict)
    # Of chromosomes in bases, by name, where some of their regions are left out
    lengths: Mapping[str, int] | None = None

    @classmethod
    def of(
        cls, cases: Counts | CountJob, controls: Counts | CountJob | CountsStore | None = None
    ) -> Self:
        """Return cases and controls of which nothing else is known; see `dataclasses.replace`."""
        others = () if controls is None else controls.samples
        return cls(regions=cases.regions, cases=cases.samples, controls=others)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the cases and then the controls."""
        return (*self.cases, *self.controls)

    @cached_property
    def genome(self) -> Genome | None:
        """The genome, where it is known."""
        return find_genome(self.genome_name, self.regions)

    @property
    def told_lengths(self) -> Mapping[str, int]:
        """Lengths of chromosomes in bases, by name, where references or the genome tell them."""
        return chromosome_lengths(self.genome, self.regions, self.references, by_windows=False)

    @property
    def par(self) -> Intervals:
        """Pseudoautosomal regions of X, where the genome is known."""
        return self.genome.par if self.genome else ()

    @property
    def chromosomes(self) -> list[str]:
        """Names of the chromosomes, in the order of the regions."""
        return list(self.regions.by_name())


def check_counts(counts: Counts, controls: Counts | None, options: CnvOptions) -> None:
    """Raise UsageError for tables that the model cannot take."""
    check_table(counts)
    check_samples(counts.samples, controls.samples if controls else None, options)
    if controls is not None:
        check_same_regions(counts.regions, controls.regions, "the cases", "the controls")


def check_table(counts: Counts) -> None:
    """Raise UsageError for a table without regions, or with names that are none."""
    if not len(counts.regions):
        raise UsageError("there are no regions")
    for name in (*counts.regions.names, *counts.samples):
        if problem := name_problem(name):
            raise UsageError(f"{quoted(name)} cannot be a name in tables: {problem}")


def check_samples(
    cases: Sequence[str],
    controls: Sequence[str] | None,
    options: CnvOptions,
    store: StrPath | None = None,
) -> None:
    """Raise UsageError for samples, given by their names, that the model cannot take.

    store  path of the kept cohort that the controls are from
    """
    if options.model == "single" and len(cases) != 1:
        raise UsageError(
            f"{option('model')} single takes one sample, not {len(cases)}: use"
            f" {option('model')} cn.mops"
        )
    if options.model not in ("single", "reference") and len(cases) < 2:
        raise UsageError(
            f"{option('model')} {options.model} compares samples, and there is only one: use"
            f" {option('model')} single, or compare it with {option('controls')}"
            f" ({option('model')} reference) or a {option('cohort')}"
        )
    if options.model != "reference":
        if controls is not None:
            raise UsageError(f"{option('controls')} are for {option('model')} reference only")
        return
    if controls is None:
        raise UsageError(f"{option('model')} reference needs {option('controls')}")
    if both := sorted({*cases} & {*controls}):
        if store is not None:
            raise UsageError(
                f"{both[0]} is in the cohort already: `multigpu cohort remove"
                f" {shlex.quote(str(store))} {shlex.quote(both[0])}` takes it out, or rename the"
                f" case ({option('sample_names')})"
            )
        raise UsageError(
            f"{both[0]} is a case and a control: rename one of them, or leave one out"
            f" ({option('sample_names')} are those of the cases)"
        )


def check_same_regions(one: Regions, other: Regions, of_one: str, of_other: str) -> None:
    """Raise UsageError that names the first regions that differ, and what helps.

    of_one, of_other  what the regions are of, for the message
    """
    row = one.first_difference(other)
    if row is None:
        return
    here, there = one.shown(row), other.shown(row)
    problem = (
        f"{of_one} and {of_other} have different regions: region {row + 1} of {of_one} is {here},"
        f" of {of_other} {there}"
    )
    if one.first_difference(renamed_as(other, one)) is None:
        same = f"{option('rename')} auto takes them as the same"
        problem += f" (the names differ only by `chr`: {same})"
    raise UsageError(problem)

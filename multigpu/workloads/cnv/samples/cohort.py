"""Cases and controls of a run: their names, and what is known of them without their counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.formats.tables.counts_zarr import CountsStore
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
    """Cases and controls, whose order is that of the columns of the counts.

    regions       in which reads are counted
    cases         names of the cases, the samples of the results
    controls      names of the controls
    ploidy        of each case and then control, on all chromosomes; None: two, or by sex
    sexes         "male", "female" or "" of each case and then control; empty: not used
    sex_coverage  coverage of X and Y from which the sexes were inferred
    genome_name   as given; None: recognized by the lengths of chromosomes
    references    lengths of references in bases, by name, where alignments give them
    lengths       of chromosomes in bases, by name, where some of their regions are left out
    """

    regions: Regions
    cases: tuple[str, ...]
    controls: tuple[str, ...] = ()
    ploidy: tuple[int, ...] | None = None
    sexes: tuple[str, ...] = ()
    sex_coverage: Coverage | None = None
    genome_name: str | None = None
    references: Mapping[str, int] = field(default_factory=dict)
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

"""Simulated read counts of a cohort with planted copy-number variants.

A count is negative binomial with mean `coverage x effect of the region x depth of the sample x
copy number / 2` and variance `mean + dispersion x mean^2`. The same seed gives the same counts
with any number of threads; another version of NumPy may give other counts.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

from multigpu.errors import UsageError, option
from multigpu.formats.alignments.regions import LONGEST, Regions, windows
from multigpu.formats.tables.counts import Counts
from multigpu.run.declarations import Options, declare

ROWS = 1 << 16  # regions made at a time, from a random stream of their own
USUAL_COPIES = 2
COPIES = (0, 1, 3, 4)  # of a planted variant
GAP = 10  # minimum regions between two variants
DEPTHS = (0.5, 2.0)  # range of the samples' depths, relative to the coverage
EFFECT = 0.2  # standard deviation of the logarithm of the regions' effects
EMPTY = 0.01  # share of regions in which nothing can be mapped
_PLACES, _DEPTHS, _COUNTS = range(3)  # random streams; their numbers must not change


@dataclass(frozen=True, kw_only=True)
class CohortDesign(Options, group="Data"):
    """Parameters of a simulated cohort. Raises UsageError for an impossible one."""

    regions: int = declare(100_000, "Number of regions, the rows of the table.")
    samples: int = declare(15, "Number of samples, the columns of the table.")
    chromosomes: int = declare(22, "Number of chromosomes, of about equal length.")
    coverage: float = declare(80.0, "Mean number of reads in a region with two copies.")
    dispersion: float = declare(0.005, "Variance beyond Poisson's: mean + this x mean^2.")
    cnvs: int = declare(100, "Number of planted variants; each has a place of its own.")
    min_length: int = declare(5, "Minimum number of regions of a variant.")
    max_length: int = declare(60, "Maximum number of regions of a variant.")
    max_carriers: int = declare(3, "Maximum number of samples that share a variant.")
    width: int = declare(25_000, "Width of a region in bases.")
    seed: int = declare(1, "Seed of the random numbers: another one gives other data.")

    def check(self) -> None:
        super().check()
        ones = dict.fromkeys(("regions", "samples", "chromosomes", "min_length", "max_carriers"), 1)
        for name, least in (ones | {"dispersion": 0, "cnvs": 0, "seed": 0, "width": 2}).items():
            if not (value := getattr(self, name)) >= least:
                problem = f"is {value}: it must be at least {least}"
                raise UsageError(f"{option(name)} {problem}")
        if self.width * self.regions >= LONGEST:
            raise UsageError("width x regions, the bases of the genome, must be less than 2^40")
        if not 0 < self.coverage <= 1e6:
            raise UsageError(f"coverage is {self.coverage:g}: it must be above 0, at most 1e6")
        if self.max_length < self.min_length:
            raise UsageError(f"{option('min_length')} is above {option('max_length')}")
        if self.max_carriers > self.samples:
            raise UsageError(f"{option('max_carriers')} is above {option('samples')}")
        if self.chromosomes > self.regions:
            raise UsageError(f"{self.chromosomes} chromosomes need more regions")

    def stream(self, *place: int) -> Generator:
        return Generator(PCG64(SeedSequence(self.seed, spawn_key=place)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Truth:
    """Planted variants by place; int64[n] each, a row for every carrier."""

    first: NDArray[np.int64]  # rows of the counts
    stop: NDArray[np.int64]  # rows of the counts
    sample: NDArray[np.int64]  # column of the counts
    copies: NDArray[np.int64]  # 0, 1, 3 or 4

    def lines(self, counts: Counts) -> Iterator[str]:
        """Yield the lines of a TSV: chrom, start, end, sample, copy_number."""
        yield "chrom\tstart\tend\tsample\tcopy_number\n"
        regions = counts.regions
        columns = (self.first, self.stop, self.sample, self.copies)
        for first, stop, sample, copies in zip(*map(np.ndarray.tolist, columns), strict=True):
            chrom = regions.names[regions.chrom[first]]
            start, end = regions.start[first], regions.end[stop - 1]
            yield f"{chrom}\t{start}\t{end}\t{counts.samples[sample]}\tCN{copies}\n"


def simulate_cohort(design: CohortDesign) -> tuple[Counts, Truth]:
    """Return counts and the variants planted in them. Raises UsageError for too many."""
    regions = _regions(design)
    truth = _plant(design, regions)
    low, high = np.log(DEPTHS)
    depths = np.exp(design.stream(_DEPTHS).uniform(low, high, design.samples))
    values = np.empty((design.regions, design.samples), np.int32)

    def fill(first: int) -> None:
        stop = min(first + ROWS, design.regions)
        random = design.stream(_COUNTS, first // ROWS)
        effects = np.exp(random.normal(0.0, EFFECT, stop - first))
        effects[random.random(stop - first) < EMPTY] = 0.0
        mean = effects[:, None] * (design.coverage * depths)
        for i in np.flatnonzero((truth.stop > first) & (truth.first < stop)).tolist():
            here = slice(max(0, truth.first[i] - first), truth.stop[i] - first)
            mean[here, truth.sample[i]] *= truth.copies[i] / USUAL_COPIES
        if design.dispersion:
            mean = random.gamma(1 / design.dispersion, design.dispersion * mean)
        values[first:stop] = random.poisson(mean)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(fill, range(0, design.regions, ROWS)))
    return Counts(regions, tuple(f"sample{i + 1}" for i in range(design.samples)), values), truth


def _regions(design: CohortDesign) -> Regions:
    """Return chromosomes of about equal length; the last region of each is half as wide."""
    rows = [len(part) for part in np.array_split(np.arange(design.regions), design.chromosomes)]
    lengths = [count * design.width - design.width // 2 for count in rows]
    names = [f"chr{number + 1}" for number in range(design.chromosomes)]
    return windows(list(zip(names, lengths, strict=True)), design.width)


def _plant(design: CohortDesign, regions: Regions) -> Truth:
    """Return variants in slots of their own, so that no two meet."""
    random = design.stream(_PLACES)
    slot = design.max_length + GAP
    places = np.concatenate(
        [np.arange(rows.start, rows.stop - slot + 1, slot) for rows in regions.blocks]
    )
    if design.cnvs > len(places):
        raise UsageError(
            f"there is room for {len(places)} variants of {design.max_length} regions,"
            f" not for {design.cnvs}"
        )
    rows = []
    for place in np.sort(random.choice(places, design.cnvs, replace=False)).tolist():
        length = int(random.integers(design.min_length, design.max_length + 1))
        first = place + int(random.integers(0, slot - length - GAP + 1))
        copies = int(random.choice(COPIES))
        carriers = int(random.integers(1, design.max_carriers + 1))
        samples = np.sort(random.choice(design.samples, carriers, replace=False)).tolist()
        rows += [(first, first + length, sample, copies) for sample in samples]
    columns = np.array(rows, np.int64).reshape(-1, 4).T.copy()
    return Truth(first=columns[0], stop=columns[1], sample=columns[2], copies=columns[3])

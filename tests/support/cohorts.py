"""Small simulated cohorts and their results."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from multigpu import CnvResult, Counts
from multigpu.formats.alignments.regions import windows
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.simulate import CohortDesign, Truth, simulate_cohort

SMALL: dict[str, Any] = {
    "regions": 1500, "samples": 6, "chromosomes": 3, "coverage": 80.0, "dispersion": 0.005,
    "cnvs": 12, "min_length": 5, "max_length": 40, "max_carriers": 2, "width": 25_000, "seed": 1,
}  # fmt: skip
CPU = RunOptions(gpus="none")
SEXES = ("male", "female", "female", "male", "female", "male")


@cache
def cohort(**changes: Any) -> tuple[Counts, Truth]:
    """Counts and what was planted."""
    return simulate_cohort(CohortDesign(**{**SMALL, **changes}))


def cnv_job(
    counts: Counts,
    options: CnvOptions = CnvOptions(),  # noqa: B008
    run: RunOptions = CPU,
    *,
    controls: Counts | None = None,
    ploidy: tuple[int, ...] | None = None,
    sexes: tuple[str, ...] = (),
    genome: str | None = None,
    journal: Path | None = None,
) -> CnvJob:
    """Return a job on counts of samples of which this is known."""
    cohort = replace(Cohort.of(counts, controls), ploidy=ploidy, sexes=sexes, genome_name=genome)
    return CnvJob(counts, options, run, controls=controls, cohort=cohort, journal=journal)


@cache
def result(**changes: Any) -> CnvResult:
    """Return all matrices and some figures of a small cohort, with the defaults of cn.mops."""
    counts, _ = cohort(**changes)
    job = CnvJob(counts, CnvOptions(), CPU)
    return job.result(keep=matrices.names(posterior=False), tracks=True)


def of_sexes(
    names: tuple[str, ...] = ("chr1", "chrX", "chrY"), sexes: tuple[str, ...] = SEXES,
    planted: dict[tuple[str, int], float] | None = None, coverage: int = 100, seed: int = 3,
    width: int = 1000, par: int = 0,
) -> Counts:  # fmt: skip
    """Return counts of 200 regions a chromosome: males half on X, females few on Y.

    planted  (chromosome, sample) to how many times as many reads there are in regions 90 to 110
    par      regions at the beginning of X in which males have as many reads as females
    """
    regions = windows([(name, 200 * width) for name in names], width)
    male = np.array([each == "male" for each in sexes])
    x, y = np.where(male, 0.5, 1.0), np.where(male, 0.5, 0.002)
    share = {"chr1": np.ones(len(sexes)), "chrX": x, "chrY": y}
    mean = np.array([share[names[k]] for k in regions.chrom]) * coverage
    if par:
        mean[np.flatnonzero(regions.chrom == names.index("chrX"))[:par]] = coverage
    for (name, sample), times in (planted or {}).items():
        rows = np.flatnonzero(regions.chrom == names.index(name))
        mean[rows[90:110], sample] *= times
    values = np.random.default_rng(seed).poisson(mean).astype(np.int32)
    return Counts(regions, tuple(f"s{k}" for k in range(len(sexes))), values)


def planted(
    chromosomes: dict[str, int], events: Sequence[tuple[str, int, int, Sequence[int], float]] = (),
    samples: int = 8, *, coverage: float = 200.0, width: int = 1000, depths: Sequence[float] = (),
    batches: int = 1, seed: int = 1,
) -> Counts:  # fmt: skip
    """Return counts of samples s0, s1, …, each of its own depth, in windows of chromosomes.

    chromosomes  regions of each
    events       chromosome, first region and stop, samples, and how many times as many reads
    batches      of samples that vary alike, each sample in the one after the last one's
    """
    rng, begins = np.random.default_rng(seed), np.cumsum([0, *chromosomes.values()])
    regions = windows([(name, n * width) for name, n in chromosomes.items()], width)
    effects = np.exp(rng.normal(0, 0.2, len(regions)))
    own = np.array(depths) if len(depths) else np.exp(rng.normal(0, 0.2, samples))
    mean = effects[:, None] * own * coverage
    if batches > 1:
        mean *= np.exp(rng.normal(0, 0.05, (len(mean), batches)))[:, np.arange(len(own)) % batches]
    for name, first, stop, who, times in events:
        begin = begins[[*chromosomes].index(name)]
        mean[begin + first : begin + stop, list(who)] *= times
    values = rng.poisson(rng.gamma(500, mean / 500)).astype(np.int32)
    return Counts(regions, tuple(f"s{k}" for k in range(len(own))), values)


def some_samples(counts: Counts, columns: list[int], names: str = "") -> Counts:
    """Return the counts of these columns, whose names are letters or their own."""
    samples = tuple(names) or tuple(counts.samples[k] for k in columns)
    return replace(counts, samples=samples, values=counts.values[:, columns].copy())

"""Simulated cohorts with planted events: what `cnv_truth.py` has callers look for.

The noise is not that of any caller: counts are Poisson about a mean that is disturbed log-normally,
by as much as the region and the sample have it; batches change regions alike, fragments are lost by
their share of G and C, and depth drifts along chromosomes. The same seed gives the same cohort.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from zlib import crc32

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts

USUAL = 2  # copies
LEFT = 0.02  # share of the reads that are seen where both copies are lost
BEST_GC, GC_WIDTH, FRAGMENT_GC = 0.45, 0.25, 0.06  # of fragments that are sequenced best; spreads
GENES, EXONS, LONGEST_GENE = 22, 14, 80  # of a panel: genes, median and maximum of their targets


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Size of each disturbance; all but the dispersion are deviations of a logarithm.

    dispersion  median over regions of the variance beyond Poisson's, by the squared mean
    spread      of the dispersion between regions
    quality     of the dispersion between samples
    batch       of a region in one batch
    gc          deviation of a sample's best share of G and C
    drift       of a sample along the chromosomes
    effect      of a region in all samples
    depth       of a sample in all regions
    """

    dispersion: float = 0.001
    spread: float = 0.6
    quality: float = 0.2
    batch: float = 0.04
    batches: int = 3
    gc: float = 0.02
    drift: float = 0.0
    effect: float = 0.45
    depth: float = 0.2


@dataclass(frozen=True, eq=False)
class Layout:
    """Regions and their share of G and C.

    parts  rows of every gene, or of every arm of a chromosome
    room   rows in which an event may lie: chromosomes of genes, or arms
    """

    regions: Regions
    gc: NDArray[np.float64]
    parts: list[slice]
    room: list[slice]


@dataclass(frozen=True, eq=False, kw_only=True)
class Events:
    """Planted events, int64[n] each; `label` is the place in the labels of their kind."""

    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    sample: NDArray[np.int64]
    copies: NDArray[np.int64]
    label: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int, int]]) -> "Events":
        """Return a table of (first, stop, sample, copies, label)."""
        first, stop, sample, copies, label = np.array(rows, np.int64).reshape(-1, 5).T.copy()
        return cls(first=first, stop=stop, sample=sample, copies=copies, label=label)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cohort:
    """Counts, and what is planted in them.

    copies, usual  int8[regions, samples]: copies that are there, and those without events
    """

    counts: Counts
    gc: NDArray[np.float64]
    copies: NDArray[np.int8]
    usual: NDArray[np.int8]
    events: Events


@dataclass(frozen=True, eq=False)
class Draft:
    """Places, usual copies and random numbers: what a planter starts from."""

    random: Generator
    layout: Layout
    usual: NDArray[np.int8]

    @property
    def samples(self) -> int:
        return self.usual.shape[1]


Planter = Callable[[Draft], Events]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Cohorts of one kind.

    labels    types of their events: each is a cell of the table
    preset    of multigpu, for such data
    reads     mean of a region with two copies
    shallow   share of the depth that the first sample has
    is_whole  whether events are whole chromosomes or arms, which three calls may cover
    """

    name: str
    labels: tuple[str, ...]
    preset: str
    samples: int
    reads: float
    layout: Callable[[Generator], Layout]
    plant: Planter
    noise: Noise = field(default_factory=Noise)
    shallow: float = 1.0
    is_whole: bool = False

    def cohort(self, seed: int, number: int) -> Cohort:
        """Return the cohort of a number, another one for each."""
        place = np.random.SeedSequence(seed, spawn_key=(crc32(self.name.encode()), number))
        random = np.random.Generator(np.random.PCG64(place))
        layout = self.layout(random)
        usual = _usual_copies(layout.regions, self.samples)
        events = self.plant(Draft(random, layout, usual))
        copies = usual.copy()
        for first, stop, sample, number_of in zip(
            events.first, events.stop, events.sample, events.copies, strict=True
        ):
            copies[first:stop, sample] = number_of
        depth = self.reads * np.exp(random.normal(0, self.noise.depth, self.samples))
        depth[0] *= self.shallow
        fold = np.where(copies == 0, LEFT, copies / USUAL)
        fold[usual == 0] = LEFT / 10  # women have next to no reads of Y
        mean = depth * fold * _disturbed(random, layout, self.samples, self.noise)
        values = random.poisson(mean).astype(np.int32)
        names = tuple(f"s{number:03}" for number in range(self.samples))
        counts = Counts(layout.regions, names, values)
        return Cohort(counts=counts, gc=layout.gc, copies=copies, usual=usual, events=events)


def _usual_copies(regions: Regions, samples: int) -> NDArray[np.int8]:
    """Return the copies that women and men have; every other sample is a man."""
    usual = np.full((len(regions), samples), USUAL, np.int8)
    man = np.arange(samples) % 2 == 1
    for name, copies in (("chrX", (2, 1)), ("chrY", (0, 1))):
        if name in regions.names:
            usual[regions.chrom == regions.names.index(name)] = np.where(man, copies[1], copies[0])
    return usual


def _disturbed(
    random: Generator, layout: Layout, samples: int, noise: Noise
) -> NDArray[np.float64]:
    """Return what the mean of every region and sample is multiplied by, about 1."""
    rows = len(layout.regions)
    effect = random.normal(0, noise.effect, rows) - noise.effect**2 / 2
    batch = random.normal(0, noise.batch, (rows, noise.batches))
    sizes = np.exp(random.normal(0, noise.quality, samples))
    variance = noise.dispersion * np.exp(random.normal(0, noise.spread, rows))[:, None] * sizes
    best = random.normal(BEST_GC, noise.gc, samples)
    # A Gaussian curve, seen through the shares of G and C that a region's fragments have.
    curve = -((layout.gc[:, None] - best) ** 2) / 2 / (GC_WIDTH**2 + FRAGMENT_GC**2)
    logarithm = curve + effect[:, None] + batch[:, np.arange(samples) * noise.batches // samples]
    if noise.drift:
        logarithm += _drift(random, layout.regions, samples, noise.drift)
    logarithm += random.standard_normal((rows, samples)) * np.sqrt(np.log1p(variance))
    return np.exp(logarithm - variance / 2)


def _drift(random: Generator, regions: Regions, samples: int, size: float) -> NDArray[np.float64]:
    """Return waves of a megabase and more along the chromosomes, others in each sample."""
    waves = np.zeros((len(regions), samples))
    place = (regions.start + regions.chrom.astype(np.int64) * 1_000_000_007) / 1e6
    for _ in range(3):
        period = np.exp(random.uniform(0, 3, samples))
        phase = random.uniform(0, 2 * np.pi, samples)
        waves += np.sin(2 * np.pi * place[:, None] / period + phase)
    return size * np.sqrt(2 / 3) * waves


# ---- layouts ----------------------------------------------------------------------------------


def _regions(
    names: Sequence[str],
    chrom: NDArray[np.int64],
    start: NDArray[np.int64],
    width: NDArray[np.int64],
) -> Regions:
    return Regions(tuple(names), chrom.astype(np.int32), start, start + width)


def targets(
    random: Generator, *, genes: int, chromosomes: int, intron: int, between: int
) -> Layout:
    """Return the exons of genes on chromosomes, in order; `parts` are the genes."""
    exons = np.exp(random.normal(np.log(EXONS), 0.7, genes)).astype(int).clip(5, LONGEST_GENE)
    chrom = np.sort(random.integers(0, chromosomes, genes)).repeat(exons)
    ends = np.cumsum(exons)
    width = np.exp(random.normal(np.log(150), 0.35, len(chrom))).astype(np.int64)
    step = width + random.exponential(intron, len(chrom)).astype(np.int64) + 20
    step[ends[:-1] - 1] += between  # after the last exon of a gene
    place = 1_000_000 + np.cumsum(step) - step
    start = place - place[np.searchsorted(chrom, chrom)] + 1_000_000
    gc = random.normal(0.47, 0.06, genes).repeat(exons) + random.normal(0, 0.05, len(chrom))
    parts = [slice(int(b - n), int(b)) for b, n in zip(ends, exons, strict=True)]
    names = [f"chr{number + 1}" for number in range(chromosomes)]
    regions = _regions(names, chrom, start, width)
    return Layout(regions, gc.clip(0.25, 0.75), parts, regions.blocks)


panel = partial(targets, genes=GENES, chromosomes=GENES, intron=2_500, between=3_000_000)
exome = partial(targets, genes=10_000, chromosomes=22, intron=2_500, between=100_000)


def _smooth(random: Generator, rows: int, scale: int) -> NDArray[np.float64]:
    """Return deviates of the standard normal distribution that are alike within `scale` rows."""
    kernel = np.exp(-(np.linspace(-2, 2, 4 * max(1, scale) + 1) ** 2))
    drawn = random.normal(0, 1, rows + len(kernel) - 1)
    return np.convolve(drawn, kernel / np.sqrt((kernel**2).sum()), "valid")


def bins(random: Generator, *, counts: dict[str, int], width: int, gap: int = 3_000_000) -> Layout:
    """Return bins of chromosomes, a gap in the middle of each; `parts` are the arms."""
    chrom = np.arange(len(counts)).repeat(list(counts.values()))
    row = np.concatenate([np.arange(count) for count in counts.values()])
    middle = np.array([count // 2 for count in counts.values()])[chrom]
    start = row * width + (row >= middle) * gap
    smooth = sum(_smooth(random, len(chrom), scale // width) for scale in (200_000, 20_000))
    gc = 0.42 + 0.04 * smooth + random.normal(0, 0.02, len(chrom))
    gc = gc.clip(0.25, 0.7)
    borders = np.cumsum([0, *counts.values()])
    halves = itertools.pairwise(borders)
    parts = [s for a, b in halves for m in [a + (b - a) // 2] for s in (slice(a, m), slice(m, b))]
    regions = _regions([*counts], chrom, start, np.full(len(chrom), width))
    return Layout(regions, gc, parts, parts)

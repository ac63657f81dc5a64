"""Kinds of simulated cohorts: where events are planted, and in which samples."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from cohorts import USUAL, Draft, Events, Kind, Noise, bins, exome, panel

GAP = 10  # minimum regions between two events of a sample
FAMILY = 4  # related samples, of which all but one carry what is planted
WAYS = ("lost", "gained")


def labels(*names: str) -> tuple[str, ...]:
    """Return the names with "lost" and "gained": an odd label is a gain."""
    return tuple(f"{name} {way}" for name in names for way in WAYS)


def changed(label: int) -> int:
    """Return one copy less than usual, or one more."""
    return USUAL + (1 if label % 2 else -1)


# ---- planters ---------------------------------------------------------------------------------

OF_GENES = labels("gene", "three exons", "one exon")
EXONS = (None, 3, 1)  # None: all


def plant_genes(draft: Draft, samples: Sequence[int], carriers: int = 1) -> Events:
    """Return an event in each of the samples, of all labels alike; so many samples share it."""
    random, rows = draft.random, []
    drawn = random.permutation(np.arange(len(samples)) % len(OF_GENES))
    for sample, label in zip(samples, drawn.tolist(), strict=True):
        part = draft.layout.parts[random.integers(len(draft.layout.parts))]
        exons = part.stop - part.start
        size = EXONS[label // 2] or exons
        first = part.start + int(random.integers(exons - size + 1))
        there = range(sample, sample + carriers)
        rows += [(first, first + size, each, changed(label), label) for each in there]
    return Events.of(rows)


def plant_in_half(draft: Draft) -> Events:
    """Return an event in every other sample."""
    chosen = draft.random.choice(draft.samples, draft.samples // 2, replace=False)
    return plant_genes(draft, np.sort(chosen).tolist())


def plant_in_families(draft: Draft) -> Events:
    """Return an event in all but one member of every family."""
    return plant_genes(draft, range(0, draft.samples, FAMILY), FAMILY - 1)


def plant_shallow(draft: Draft) -> Events:
    """Return genes and three exons, four events in the first sample and one in eight others."""
    others = 1 + draft.random.choice(draft.samples - 1, 8, replace=False)
    parts = draft.random.permutation(len(draft.layout.parts))
    rows = []
    for turn, sample in enumerate([0] * 4 + np.sort(others).tolist()):
        part, way = draft.layout.parts[parts[turn]], turn % 2
        first = part.start + int(draft.random.integers(part.stop - part.start - 3 + 1))
        span = (part.start, part.stop) if draft.random.integers(2) else (first, first + 3)
        rows.append((*span, sample, changed(way), way + 2 * (sample > 0)))
    return Events.of(rows)


def plant_places(
    draft: Draft, copies: Sequence[int], sizes: tuple[int, int], number: int
) -> Events:
    """Return `number` events in every sample, of all labels alike; few places are shared."""
    random, slot = draft.random, sizes[1] + GAP
    places = np.concatenate(
        [np.arange(part.start, part.stop - slot + 1, slot) for part in draft.layout.room]
    )
    rows = []
    for sample in range(draft.samples):
        size = random.integers(sizes[0], sizes[1] + 1, number)
        first = random.choice(places, number, replace=False)
        first += random.integers(0, slot - size - GAP + 1)
        label = random.permutation(np.arange(number) % len(copies))
        there = zip(first.tolist(), (first + size).tolist(), label.tolist(), strict=True)
        rows += [(a, b, sample, copies[k], k) for a, b, k in there]
    return Events.of(rows)


COMMON = (0.5, 0.6, 0.9)  # share of carriers


def plant_common(draft: Draft, sizes: tuple[int, int] = (20, 60)) -> Events:
    """Return an event of each label on an arm of its own; some carriers have it twice."""
    random, rows = draft.random, []
    for label, part in enumerate(draft.layout.parts[: 2 * len(COMMON)]):
        share, size = COMMON[label // 2], int(random.integers(*sizes))
        first = part.start + GAP + int(random.integers(part.stop - part.start - size - 2 * GAP))
        # In a population that mates at random, of the chromosomes
        chromosomes = 1 - np.sqrt(1 - share)
        carriers = random.choice(draft.samples, round(share * draft.samples), replace=False)
        twice = random.random(len(carriers)) < chromosomes**2 / share
        times = (1 + twice) * (1 if label % 2 else -1)
        there = zip(carriers.tolist(), (USUAL + times).tolist(), strict=True)
        rows += [(first, first + size, sample, copies, label) for sample, copies in there]
    return Events.of(rows)


BY_SEX = (  # label, chromosome, copies, whether men
    ("X lost, women", "chrX", 1, 0), ("X gained, women", "chrX", 3, 0),
    ("X lost, men", "chrX", 0, 1), ("X gained, men", "chrX", 2, 1),
    ("Y lost, men", "chrY", 0, 1), ("Y gained, men", "chrY", 2, 1),
)  # fmt: skip


def plant_by_sex(draft: Draft, sizes: tuple[int, int] = (10, 50)) -> Events:
    """Return an event of each label in two samples of its sex."""
    random, rows, regions = draft.random, [], draft.layout.regions
    for men in (0, 1):
        cells = [(label, *cell) for label, cell in enumerate(BY_SEX) if cell[3] == men] * 2
        samples = 2 * random.choice(draft.samples // 2, len(cells), replace=False) + men
        for sample, (label, _, name, copies, _) in zip(samples.tolist(), cells, strict=True):
            number, size = regions.names.index(name), int(random.integers(*sizes))
            arms = [arm for arm in draft.layout.parts if regions.chrom[arm.start] == number]
            arm = arms[random.integers(2)]
            first = arm.start + int(random.integers(arm.stop - arm.start - size + 1))
            rows.append((first, first + size, sample, copies, label))
    return Events.of(rows)


def plant_whole(draft: Draft) -> Events:
    """Return chromosomes and arms, one in every third sample."""
    random, arms, rows = draft.random, draft.layout.parts, []
    samples = random.choice(draft.samples, draft.samples // 3, replace=False)
    for turn, sample in enumerate(samples.tolist()):
        label, number = turn % 4, int(random.integers(len(arms)))
        even = number - number % 2
        first, last = (arms[even], arms[even + 1]) if label < 2 else (arms[number],) * 2
        rows.append((first.start, last.stop, sample, changed(label), label))
    return Events.of(rows)


# ---- kinds ------------------------------------------------------------------------------------

BINS = Noise(effect=0.2, drift=0.015, batch=0.03, gc=0.015)
WAVES = replace(BINS, gc=0.12)
LENGTHS = (  # of the chromosomes 1 to 22, Mb
    249, 243, 198, 190, 182, 171, 159, 145, 138, 134, 135,
    133, 114, 107, 102, 90, 83, 80, 59, 64, 47, 51,
)  # fmt: skip
PART = {f"chr{number}": 5_000 for number in range(1, 5)}  # bins: of a genome, but not all of it
SOME = {f"chr{number}": 3_000 for number in range(1, 4)}
SEXES = {"chr1": 1_500, "chr2": 1_500, "chrX": 1_000, "chrY": 300}
WHOLE = {f"chr{number}": length for number, length in enumerate(LENGTHS, 1)}
COPIES = (0, 1, 3, 4)
PANEL = Kind(
    name="panel, 600 reads", labels=OF_GENES, preset="panel", samples=24, reads=600, layout=panel,
    plant=plant_in_half,
)  # fmt: skip
EXOME = Kind(
    name="exome, 150 reads", labels=labels("3 to 20 targets"), preset="exome", samples=30,
    reads=150, layout=exome, plant=partial(plant_places, copies=(1, 3), sizes=(3, 20), number=20),
    noise=Noise(drift=0.01),
)  # fmt: skip


def genome(name: str, samples: int, reads: float, width: int = 1_000, **more: Any) -> Kind:
    """Return genomes with events of 5 to 100 bins."""
    given: dict[str, Any] = {
        "labels": tuple(f"CN{number}" for number in COPIES),
        "layout": partial(bins, counts=PART, width=width),
        "plant": partial(plant_places, copies=COPIES, sizes=(5, 100), number=8),
        "noise": BINS,
    }
    kept = {"name": name, "samples": samples, "reads": reads, "preset": "genome"}
    return Kind(**kept, **(given | more))


KINDS = (
    PANEL,
    replace(PANEL, name="panel, 250 reads", reads=250),
    replace(PANEL, name="panel, 150 reads", reads=150),
    replace(PANEL, name="panel, families", plant=plant_in_families),
    replace(
        PANEL, name="panel, a shallow sample", plant=plant_shallow, shallow=0.15,
        labels=(*labels("in the shallow sample"), *labels("in others")),
    ),
    EXOME,
    genome("genome, 30 reads", 100, 30),
    genome("genome, 200 reads", 100, 200),
    genome("genome, bins of 100", 100, 30, 100),
    genome("genome, bins of 10,000", 100, 400, 10_000),
    genome("genome, 5 samples", 5, 200),
    genome("genome, 500 samples", 500, 30,
           plant=partial(plant_places, copies=COPIES, sizes=(5, 100), number=4)),
    genome("genome, GC waves", 30, 200, noise=WAVES),
    genome("genome, X and Y", 24, 100, layout=partial(bins, counts=SEXES, width=1_000),
           labels=tuple(cell[0] for cell in BY_SEX), plant=plant_by_sex),
    genome("genome, common", 24, 100, layout=partial(bins, counts=SOME, width=1_000),
           labels=labels(*(f"{100 * share:.0f} %" for share in COMMON)), plant=plant_common),
    genome("genome, whole chromosomes", 24, 200,
           layout=partial(bins, counts=WHOLE, width=1_000_000),
           labels=labels("chromosome", "arm"), plant=plant_whole, is_whole=True),
)  # fmt: skip

QUICK_KINDS = tuple(
    replace(kind, layout=partial(exome, genes=1_000)) if kind is EXOME else kind for kind in KINDS
)

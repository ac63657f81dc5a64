"""Notes: what a user should know of a run although it is no error."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from multigpu.cnv.calls.segments import is_beyond_threshold, judged_value
from multigpu.cnv.chromosome import CnvSpan
from multigpu.cnv.options import CnvOptions
from multigpu.cnv.result import SegmentTable
from multigpu.cnv.samples import sex
from multigpu.cnv.samples.cohort import Cohort
from multigpu.cnv.samples.genomes import X_NAMES, genome_named
from multigpu.errors import NAMED, printable_name, quoted, several
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.run.command import number_of

FEW_REGIONS = 100  # below it R warns that normalization may not be applicable
FEWEST_SEGMENTED = 6  # regions in all; with fewer there is no segmentation
FEW_ON_CHROMOSOME = 50  # regions: most of them may change at once
FEW_READS = 50  # of a region: below it noise is as large as a change by one copy
NEAR = 0.5  # share of a threshold above which a segment may be a change


def count_notes(counts: Counts, controls: Counts | None, options: CnvOptions) -> Iterator[str]:
    """Yield notes about the counts."""
    yield from counts.notes
    if controls is not None:
        yield from controls.notes
        cases = f"{number_of(len(counts.samples), 'case')} ({several(counts.samples)})"
        others = f"{number_of(len(controls.samples), 'control')} ({several(controls.samples)})"
        yield f"{cases} and {others}"
    if len(counts.regions) < FEW_REGIONS and options.model != "single":
        found = number_of(len(counts.regions), "region")
        yield f"only {found}: normalization is unreliable with fewer than {FEW_REGIONS}"
    if len(counts.regions) < FEWEST_SEGMENTED:
        yield "there are too few regions for a segmentation: nothing is called"


def sex_notes(cohort: Cohort, spans: Sequence[CnvSpan]) -> Iterator[str]:
    """Yield notes about sexes, where they decide what is usual on a chromosome."""
    by_sex = [span for span in spans if span.copies is not None]
    if by_sex:
        males, females = cohort.sexes.count(sex.MALE), cohort.sexes.count(sex.FEMALE)
        unknown = len(cohort.sexes) - males - females
        others = f", {unknown} of unknown sex taken as female" if unknown else ""
        yield (
            f"{' and '.join(span.name for span in by_sex)}: every sample is compared with what is"
            f" usual for its sex, {males} male and {females} female{others}: --sex FILE corrects"
            f" it, --sex none leaves it out{_about_par(cohort, by_sex)}"
        )
    for span in by_sex:
        if span.columns == ():
            yield f"{span.name} is not called: too few samples with copies of it"


def _about_par(cohort: Cohort, spans: Sequence[CnvSpan]) -> str:
    """Return a clause about the pseudoautosomal regions, if X is among the chromosomes."""
    if not any(span.name in X_NAMES for span in spans):
        return ""
    name = cohort.genome_name
    if cohort.genome:
        why = ""
        if name and not genome_named(name):
            why = f", by the lengths: {quoted(name)} is not known"
        return f"; two copies in the pseudoautosomal regions of {cohort.genome.name}{why}"
    if name:
        return f"; the pseudoautosomal regions of {quoted(name)} are not known"
    return "; --genome says where the pseudoautosomal regions are"


def unused_sex_notes(given: Any, cohort: Cohort, options: CnvOptions) -> Iterator[str]:
    """Yield a note where sexes are asked for and play no part.

    given  as `read_sexes` takes it
    """
    names = [name for name in cohort.regions.names if sex.is_sex_chromosome(name)]
    if not names or given is None or cohort.ploidy is not None:
        return
    word = given if isinstance(given, str) else ""
    if not options.compares_by_sex:
        if word not in ("infer", "none"):
            yield "--sex has no effect with --norm 0 and --model haplo"
    elif word == "infer" and not options.compat_r and not any(cohort.sexes):
        yield (
            f"{' and '.join(names)}: all samples are taken alike, as their sexes cannot be inferred"
            " without reads on X and on other chromosomes: --sex FILE gives them"
        )


def doubtful_sex_notes(cohort: Cohort) -> Iterator[str]:
    """Yield a note where X and Y tell different sexes of a sample."""
    coverage = cohort.sex_coverage
    if coverage is None or coverage.y is None or cohort.ploidy is not None:
        return
    rows, sexes, names = coverage.disagreements(), coverage.sexes(), cohort.names
    if not rows:
        return
    each = [
        f"{printable_name(names[k])} (X {coverage.x[k]:.2f}, Y {coverage.y[k]:.2f} of the"
        f" autosomes' coverage: taken as {sexes[k]})"
        for k in rows[:NAMED]
    ]
    more = f" and {len(rows) - NAMED:,} more" if len(rows) > NAMED else ""
    yield f"X and Y disagree on the sex of {', '.join(each)}{more}: --sex FILE corrects it"


# ---- what to try where no CNVs were found -----------------------------------------------------


def advice_without_cnvs(
    segments: SegmentTable, regions: Regions, options: CnvOptions, reads: float
) -> str:
    """Return a note that there are no CNVs, with options that may show some.

    reads  mean of a region
    """
    found = [
        *_normalized_one_by_one(regions, options),
        *_narrow(segments, options),
        *_near(segments, options),
    ]
    if reads < FEW_READS and options.norm != 0:
        found.append(f"larger windows or regions (they have {reads:.3g} reads in the mean)")
    if not found:
        return (
            "no CNVs were found: no segment comes near the thresholds; another --norm-type or"
            " --prior-impact may show some"
        )
    return f"no CNVs were found; what may show some: {'; '.join(found)}"


def _normalized_one_by_one(regions: Regions, options: CnvOptions) -> Iterator[str]:
    """Yield advice where a chromosome is little more than a gene: its loss is divided out."""
    sizes = [block.stop - block.start for block in regions.blocks]
    one_by_one = options.is_normalized and not options.genome_wide
    if one_by_one and len(sizes) > 1 and np.median(sizes) < FEW_ON_CHROMOSOME:
        yield (
            f"--genome-wide (every chromosome is normalized by itself, and has {np.median(sizes):g}"
            " regions in the median: a change of most of one is taken for the depth of the sample)"
        )


def _narrow(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where segments lack nothing but width to be CNVs."""
    beyond = is_beyond_threshold(segments, options)
    if beyond.any():
        rows = segments.rows[beyond]
        found = f"{number_of(len(rows), 'segment')} {'is' if len(rows) == 1 else 'are'}"
        yield (
            f"--min-width {int(rows.max())} ({found} beyond the thresholds, with fewer than"
            f" {options.min_width} regions)"
        )


def _near(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where the strongest of the wide segments come near a threshold."""
    value = judged_value(segments, options)[segments.rows >= options.min_width]
    limits = (("--upper", "gain", options.upper, 1), ("--lower", "loss", options.lower, -1))
    for option, kind, limit, sign in limits:
        strongest = float((sign * value).max(initial=0.0)) * sign
        if NEAR * abs(limit) <= abs(strongest) < abs(limit):
            rounded = np.floor(abs(strongest) * 100) / 100 * sign
            yield (
                f"{option} {rounded:g} (the strongest {kind} has {strongest:.2g}, the threshold is"
                f" {limit:g})"
            )

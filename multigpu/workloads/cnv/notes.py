"""Notes: what a user should know of a run although it is no error."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from multigpu.errors import NAMED, option, printable_name, quoted, several
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import LONGEST
from multigpu.formats.tables.counts import Counts
from multigpu.run.command import number_of
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.plan import CnvSpan
from multigpu.workloads.cnv.records import CnvPart, Floats, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import is_beyond_threshold, is_large, judged_value
from multigpu.workloads.cnv.samples import sex
from multigpu.workloads.cnv.samples.cohort import Cohort
from multigpu.workloads.cnv.samples.genomes import X_NAMES, genome_named
from multigpu.workloads.cnv.stages.whole_chromosomes import unusual_chromosomes

FEW_REGIONS = 100  # below it R warns that normalization may not be applicable
FEWEST_SEGMENTED = 6  # regions in all; with fewer there is no segmentation
FEW_ON_CHROMOSOME = 50  # regions: most of them may change at once
FEW_READS = 50  # of a region: below it noise is as large as a change by one copy
FEW_SAMPLES = 6  # below it nobody can tell well what is usual
UNCALLABLE_READS, UNCALLABLE_SHARE = 20, 0.25  # of a region; and of what the median sample has
LARGEST_LOGARITHM = 40  # log2 of the most reads of a region
NEAR = 0.5  # share of a threshold above which a segment may be a change


def count_notes(
    counts: Counts, controls: Counts | None, options: CnvOptions, totals: Floats
) -> Iterator[str]:
    """Yield notes about the counts; totals are float64[cases and then controls]: their reads."""
    yield from counts.notes
    if controls is not None:
        # Both may tell the same of the BED file in which they were counted.
        yield from (note for note in controls.notes if note not in counts.notes)
        cases = f"{number_of(len(counts.samples), 'case')} ({several(counts.samples)})"
        others = f"{number_of(len(controls.samples), 'control')} ({several(controls.samples)})"
        yield f"{cases} and {others}"
    compared, noun = (counts, "sample") if controls is None else (controls, "control")
    # One control is enough for the mixture of a tumour and its normal sample.
    is_few = len(compared.samples) < FEW_SAMPLES and (controls is None or options.is_hmm)
    if is_few and options.model != "single":
        yield (
            f"only {number_of(len(compared.samples), noun)}: with fewer than {FEW_SAMPLES} it is"
            " uncertain which copies are usual and which are changed"
        )
    tables = [each for each in (counts, controls) if each is not None]
    if options.norm != 0:
        yield from dict.fromkeys(note for each in tables for note in fraction_notes(each))
    columns = [column for each in tables for column in each.values.T]
    names = [name for each in tables for name in each.samples]
    twins = [
        f"{printable_name(names[a])} and {printable_name(names[b])}"
        for a, b in pairwise(np.argsort(totals, kind="stable").tolist())
        if totals[a] == totals[b] > 0 and np.array_equal(columns[a], columns[b])
    ]
    if twins:
        why = "leave one of them out if it is one sample, as each hides the changes of the other"
        yield f"the same counts have {_listed(twins)}: {why}"
    reads = totals / len(counts.regions)
    usual = float(np.median(reads))
    few = np.flatnonzero(reads < min(UNCALLABLE_READS, UNCALLABLE_SHARE * usual)).tolist()
    if few:
        each = _listed([f"{printable_name(names[k])} ({reads[k]:.2g})" for k in few])
        yield (
            f"too few reads a region to be called, where the median sample has {usual:.3g}: {each};"
            " what is called there may be chance: leave them out"
        )
    if len(counts.regions) < FEW_REGIONS and options.model != "single":
        only = f"only {number_of(len(counts.regions), 'region')}"
        yield f"{only}: normalization is unreliable with fewer than {FEW_REGIONS}"
    if len(counts.regions) < FEWEST_SEGMENTED and not options.is_hmm:
        yield "there are too few regions for a segmentation: nothing is called"


def fraction_notes(counts: Counts) -> Iterator[str]:
    """Yield a note where counts are not whole numbers."""
    values = counts.values
    # A chromosome at a time: of all of them the remainders are many bytes.
    blocks = counts.regions.blocks if values.dtype != np.int32 else []
    if any((values[rows] % 1).any() for rows in blocks):
        like = "logarithms or ratios" if values.max() < LARGEST_LOGARITHM else "normalized"
        yield (
            f"the counts have fractions, as if they were {like}: give the numbers of reads, by"
            " which the model tells changes from noise"
        )


def _listed(each: Sequence[str]) -> str:
    more = f" and {len(each) - NAMED:,} more" if len(each) > NAMED else ""
    return f"{', '.join(each[:NAMED])}{more}"


def sex_notes(cohort: Cohort, spans: Sequence[CnvSpan]) -> Iterator[str]:
    """Yield notes about sexes, where they decide what is usual on a chromosome."""
    by_sex = [span for span in spans if span.copies is not None]
    if by_sex:
        males, females = cohort.sexes.count(sex.MALE), cohort.sexes.count(sex.FEMALE)
        unknown = len(cohort.sexes) - males - females
        others = f", {unknown} of unknown sex taken as female" if unknown else ""
        yield (
            f"{' and '.join(span.name for span in by_sex)}: every sample is compared with what is"
            f" usual for its sex, {males} male and {females} female{others}: {option('sex')} FILE"
            f" corrects it, {option('sex')} none leaves it out{_about_par(cohort, by_sex)}"
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
    return f"; {option('genome')} says where the pseudoautosomal regions are"


def genome_notes(cohort: Cohort) -> Iterator[str]:
    """Yield a note where the genome of --genome is not that of the regions."""
    name = cohort.genome_name
    if name is None or (genome := genome_named(name)) is None:
        return
    lengths = genome.by_name()
    ends = [cohort.regions.end[rows].max() for rows in cohort.regions.blocks]
    chromosomes = zip(cohort.chromosomes, ends, strict=True)
    longer = [c for c, end in chromosomes if end > lengths.get(without_chr(c), LONGEST)]
    if longer:
        problem = f"regions end after the end of its {several(longer)}: is it another?"
        yield f"{option('genome')} {name}: {problem}"


def unused_sex_notes(given: Any, cohort: Cohort, options: CnvOptions) -> Iterator[str]:
    """Yield a note where sexes are asked for and play no part.

    given  as `read_sexes` takes it
    """
    names = [name for name in cohort.regions.names if sex.is_sex_chromosome(name)]
    if not names or given is None:
        return
    word = given if isinstance(given, str) else ""
    if cohort.ploidy is not None or not options.compares_by_sex:
        if word not in ("infer", "none"):
            without = f"{option('ploidy')}, {option('norm')} 0 and {option('model')} haplo"
            yield f"{option('sex')} has no effect with {without}"
    elif word not in ("infer", "none") and not any(cohort.sexes):
        alike = f"{' and '.join(names)}: all samples are taken alike"
        yield f"{alike}, as {option('sex')} gives none of them a sex: male or female, in PED 1 or 2"
    elif word == "infer" and not options.compat_r and not any(cohort.sexes):
        yield (
            f"{' and '.join(names)}: all samples are taken alike, as their sexes cannot be inferred"
            f" without reads on X and on other chromosomes: {option('sex')} FILE gives them"
        )


def doubtful_sex_notes(cohort: Cohort) -> Iterator[str]:
    """Yield a note where X and Y tell different sexes of a sample, or X alone tells males."""
    coverage = cohort.sex_coverage
    if coverage is None or coverage.y is None or cohort.ploidy is not None:
        return
    rows, sexes, names = coverage.disagreements(), coverage.sexes(), cohort.names
    problem = "X and Y disagree on the sex of"
    if not coverage.y_is_informative:
        rows = [k for k, each in enumerate(sexes) if each == sex.MALE]
        problem = "hardly any Y is read in any sample, which leaves X to tell the sex of"
    if not rows:
        return
    each = [
        f"{printable_name(names[k])} (X {coverage.x[k]:.2f}, Y {coverage.y[k]:.2f} of the"
        f" autosomes' coverage: taken as {sexes[k]})"
        for k in rows
    ]
    yield f"{problem} {_listed(each)}: {option('sex')} FILE corrects it"


def contradicted_sex_notes(cohort: Cohort, coverage: sex.Coverage | None) -> Iterator[str]:
    """Yield a note where sexes that are given are not those that the coverage tells."""
    if coverage is None or not any(cohort.sexes):
        return
    pairs = zip(cohort.names, cohort.sexes, coverage.sexes(), coverage.shares(), strict=True)
    each = [
        f"{printable_name(name)} (given as {given}; X {x:.2f}"
        f"{'' if np.isnan(y) else f', Y {y:.2f}'} of the autosomes' coverage: {told})"
        for name, given, told, (x, y) in pairs
        if given and told and given != told
    ]
    if each:
        yield f"the coverage contradicts the sex that is given of {_listed(each)}: mixed up?"


def notes_by_chromosome(parts: Iterable[CnvPart]) -> Iterator[str]:
    """Yield the notes of parts, each once for all chromosomes that it is about."""
    names: dict[str, list[str]] = {}
    for part in parts:
        left_out = part.left_out.partition("; ")[0].replace(": ", ": not called, ", 1)
        for note in filter(None, (*part.notes, left_out)):
            name, _, text = note.partition(": ")
            names.setdefault(text, []).append(name)
    for text, listed in names.items():
        yield f"{several(list(dict.fromkeys(listed)))}: {text}"


def advice(
    segments: SegmentTable, cohort: Cohort, spans: list[CnvSpan], sums: Floats, options: CnvOptions
) -> Iterator[str]:
    """Yield a note with options that may show CNVs which were not found.

    sums  float64[chromosomes, columns]: reads
    """
    found: list[str] = []
    has_cnvs = bool(segments.cnv.any())
    if not options.is_hmm:
        if options.is_normalized and not (options.genome_wide or options.whole_chromosomes):
            found += _genome_wide(cohort, spans, sums)
        if not has_cnvs:
            found += [*_small(segments, options), *_near(segments, options)]
        found += _near_by_median(segments, cohort, options)
    reads = float(np.median(sums.sum(axis=0)[: len(cohort.cases)])) / len(cohort.regions)
    if reads < FEW_READS and options.norm != 0 and not (sums % 1).any():
        found.append(
            f"larger windows or regions (they have {reads:.3g} reads in the mean), as noise hides"
            " gains and losses of one copy"
        )
    if found:
        some = "no CNVs were found; what may show some"
        others = "what may show CNVs that were not found"
        yield f"{others if has_cnvs else some}: {'; '.join(found)}"
    elif not has_cnvs and options.is_hmm:
        limits = [name for name in ("min_length", "min_quality") if getattr(options, name)]
        shown = " and ".join(f"{option(name)} {getattr(options, name):,g}" for name in limits)
        why = "all samples have the usual copies, as far as their reads tell"
        yield f"no CNVs were found{f' that pass {shown}' if shown else f': {why}'}"
    elif not has_cnvs:
        yield (
            "no CNVs were found: no segment comes near the thresholds; another"
            f" {option('norm_type')} or {option('prior_impact')} may show some"
        )


def _genome_wide(cohort: Cohort, spans: Sequence[CnvSpan], sums: Floats) -> Iterator[str]:
    """Yield advice where normalizing each chromosome may hide a change of most or all of one.

    A chromosome may be little more than a gene, or a case has unusual reads there, by those
    elsewhere.
    """
    found = [
        f"{printable_name(cohort.names[k])} has {share:.2f} times the usual reads on {span.name}"
        for span, k, share in unusual_chromosomes(cohort, spans, sums)
        if k < len(cohort.cases)
    ]
    if found:
        yield (
            f"{option('genome_wide')} ({_listed(found)}: a change of all of a chromosome is hidden"
            " where every chromosome is normalized by itself)"
        )
        return
    regions = np.median([span.stop - span.first for span in spans])
    if len(spans) > 1 and regions < FEW_ON_CHROMOSOME:
        yield (
            f"{option('genome_wide')} (every chromosome is normalized by itself, and"
            f" has few regions, {regions:g} in the median: a change of most of one is taken for the"
            " depth of the sample)"
        )


def _near_by_median(segments: SegmentTable, cohort: Cohort, options: CnvOptions) -> Iterator[str]:
    """Yield advice where the median of a segment is beyond a threshold and its mean is not."""
    by_median = is_beyond_threshold(segments, replace(options, use_median=True))
    near = segments.take(by_median & ~segments.cnv & is_large(segments, options))
    names = cohort.regions.names
    if len(near) and not options.use_median:
        places = zip(near.sample, near.chrom, near.start + 1, near.end, near.median, strict=True)
        each = [
            f"{printable_name(cohort.cases[k])} {names[c]}:{start}-{end}, {median:.2g}"
            for k, c, start, end, median in places
        ]
        why = "the median is beyond a threshold, the mean not"
        yield f"{option('use_median')} ({why}: {_listed(each)})"


def _small(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where segments lack nothing but regions or bases to be CNVs."""
    beyond = segments.take(is_beyond_threshold(segments, options))
    limits = (
        ("min_width", "regions", options.min_width, beyond.rows),
        ("min_length", "bases", options.min_length, beyond.end - beyond.start),
    )
    for name, unit, limit, every in limits:
        sizes = every[every < limit]
        if len(sizes):
            found = f"{number_of(len(sizes), 'segment')} {'is' if len(sizes) == 1 else 'are'}"
            yield (
                f"{option(name)} {int(sizes.max())} ({found} beyond the thresholds,"
                f" with fewer than {limit} {unit})"
            )


def _near(segments: SegmentTable, options: CnvOptions) -> Iterator[str]:
    """Yield advice where the strongest of the large segments come near a threshold."""
    value = judged_value(segments, options)[is_large(segments, options)]
    limits = (
        (option("upper"), "gain", options.upper, 1),
        (option("lower"), "loss", options.lower, -1),
    )
    for name, kind, limit, sign in limits:
        strongest = float((sign * value).max(initial=0.0)) * sign
        if NEAR * abs(limit) <= abs(strongest) < abs(limit):
            rounded = np.floor(abs(strongest) * 100) / 100 * sign
            yield (
                f"{name} {rounded:g} (the strongest {kind} has {strongest:.2g}, the threshold is"
                f" {limit:g})"
            )

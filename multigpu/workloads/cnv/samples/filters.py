"""Regions of a cohort before the calls: they are named, neighbours joined, and some left out.

Counts are corrected for the waves that GC content and mappability make in each sample.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from multigpu.errors import InputError, UsageError, option, quoted, several
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.alignments.regions import Regions, read_bed
from multigpu.formats.alignments.tracks import track_means
from multigpu.formats.sequences.gc_content import gc_content
from multigpu.formats.tables.counts import COLUMNS, LARGEST, Counts, Values, narrow
from multigpu.kernels.normalization.covariates import correction
from multigpu.workloads.cnv.records import Floats, Mask, Rows
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.results.intervals import overlaps, touch, union
from multigpu.workloads.cnv.samples.sex import is_sex_chromosome

LEAST_MAPPABILITY = 0.5  # below it most reads of a region may be of other places


@dataclass(frozen=True, eq=False, kw_only=True)
class FilteredRegions:
    """Regions that a cohort is called in, and where they are in its table."""

    regions: Regions
    first: Rows | None  # int64[joined]: first row of those that are joined; None: each row alone
    kept: Mask  # bool[joined]: those that stay
    mappability: Floats | None  # float64[regions]; None: not asked for
    notes: tuple[str, ...]  # what was left out, a sentence each

    def counts(self, table: Counts) -> Counts:
        values = table.values
        if self.first is not None:
            values = _sums(values, self.first)
        if not self.kept.all():
            values = values[self.kept]
        return replace(table, regions=self.regions, values=values)


def filter_regions(regions: Regions, request: CnvRequest) -> FilteredRegions:
    """Return the regions that are left of a table's. Raises UsageError where none are.

    The order is `--rebin`, `--exclude`, `--mappability`.
    """
    rename, first, mappability, notes = request.rename == "auto", None, None, []
    before = len(regions)
    if request.rebin > 1:
        regions, first = join_neighbours(regions, request.rebin)
        notes.append(f"{option('rebin')} {request.rebin}: {before:,} regions are {len(regions):,}")
    kept = np.ones(len(regions), np.bool_)

    def leave_out(name: str, wrong: Mask) -> None:
        kept[wrong] = False
        notes.append(f"{option(name)} leaves out {wrong.sum():,} of {len(regions):,} regions")
        if not kept.any():
            raise UsageError(f"{notes[-1]}: none is left")

    if request.exclude is not None:
        listed, _ = read_bed(request.exclude)
        listed = renamed_as(listed, regions) if rename else listed
        leave_out("exclude", are_touched(regions, listed))
        if not regions.by_name().keys() & listed.by_name():
            helps = f"is it of another genome, or does {option('rename')} auto help?"
            notes.append(f"{request.exclude} has none of the chromosomes of the counts: {helps}")
    if request.mappability is not None:
        mappability = track_means(request.mappability, regions, rename)
        leave_out("mappability", kept & (mappability < LEAST_MAPPABILITY))
        mappability = mappability[kept]
    if not kept.all():
        regions = regions.take(np.flatnonzero(kept))
        # Chromosomes that have none of the regions have no name.
        used, chrom = np.unique(regions.chrom, return_inverse=True)
        names = tuple(regions.names[k] for k in used.tolist())
        regions = replace(regions, names=names, chrom=chrom.astype(np.int32))
    return FilteredRegions(
        regions=regions, first=first, kept=kept, mappability=mappability, notes=tuple(notes)
    )


def join_neighbours(regions: Regions, count: int) -> tuple[Regions, Rows]:
    """Return regions of `count` neighbours that touch each other, and the first row of each.

    They are joined from the first region of each chromosome on, and again after a gap; before a gap
    and at the end of a chromosome those that remain are joined, fewer than `count`.
    """
    chrom, start, end = regions.chrom, regions.start, regions.end
    rows = np.arange(len(regions))
    begins = np.ones(len(regions), np.bool_)
    begins[1:] = (chrom[1:] != chrom[:-1]) | (start[1:] != end[:-1])
    first = np.flatnonzero((rows - np.maximum.accumulate(np.where(begins, rows, 0))) % count == 0)
    stop = np.append(first[1:], len(regions))
    genes: tuple[str, ...] = ()
    if regions.genes:
        spans = zip(first.tolist(), stop.tolist(), strict=True)
        genes = tuple(",".join(filter(None, dict.fromkeys(regions.genes[a:b]))) for a, b in spans)
    gc = None
    if regions.gc is not None:
        known = ~np.isnan(regions.gc)
        sums = [(end - start) * known, np.where(known, regions.gc, 0) * (end - start)]
        bases, of_gc = (np.add.reduceat(each, first) for each in sums)
        gc = np.divide(of_gc, bases, out=np.full(len(first), np.nan), where=bases > 0)
    return Regions(regions.names, chrom[first], start[first], end[stop - 1], genes, gc), first


def are_touched(regions: Regions, listed: Regions) -> Mask:
    """Return bool[regions]: whether each shares a base with a listed one."""
    found, blocks = np.zeros(len(regions), np.bool_), listed.by_name()
    for name, rows in regions.by_name().items():
        if others := blocks.get(name):
            spans = union(listed.start[others], listed.end[others])
            found[rows] = touch(regions.start[rows], regions.end[rows], spans)
    return found


def _sums(values: Values, first: Rows) -> Values:
    """Return [joined, samples]: sums of the rows from each first one to the next."""
    most = int(np.diff(first, append=len(values)).max()) * float(values.max())
    is_whole = values.dtype == np.int32 and most <= LARGEST
    return np.asarray(np.add.reduceat(values, first, axis=0, dtype="i4" if is_whole else "f8"))


def name_regions(regions: Regions, path: str, rename: bool) -> Regions:
    """Return the regions with the names that a BED file or an interval list has for them.

    A region has the names of all regions of the file that share a base with it, with commas between
    them; only its own where the file has the very same regions.

    rename  whether names of chromosomes that differ by `chr` are the same

    Raises InputError where the file has no names for other regions, or shares no base with them.
    """
    named, _ = read_bed(path)
    named = renamed_as(named, regions) if rename else named
    if regions.first_difference(named) is None:
        return replace(regions, genes=named.genes or regions.genes)
    if not named.genes:
        raise InputError(path, "its regions have no names: column 4 of a BED file is for these")
    found: list[dict[str, None]] = [{} for _ in range(len(regions))]
    blocks = regions.by_name()
    for name, theirs in named.by_name().items():
        ours = blocks.get(name, slice(0, 0))
        here = (named.start[theirs], named.end[theirs], regions.start[ours], regions.end[ours])
        for region, other in overlaps(*here):
            for row, gene in sorted(zip(region.tolist(), other.tolist(), strict=True)):
                found[ours.start + row][named.genes[theirs.start + gene]] = None
    genes = tuple(",".join(filter(None, each)) for each in found)
    if not any(genes):
        raise InputError(path, "none of its names are of regions that the counts have")
    return replace(regions, genes=genes)


def with_gc_column(table: Counts, name: str, is_required: bool) -> Counts:
    """Return a table whose column `name` is the GC content of its regions, and no sample.

    Raises UsageError where there is no such column and it is required.
    """
    samples = list(table.samples)
    if name in samples and len(samples) > 1:
        k = samples.index(name)
        regions = replace(table.regions, gc=table.values[:, k].astype(np.float64))
        values = narrow(np.delete(table.values, k, axis=1))
        return Counts(regions, (*samples[:k], *samples[k + 1 :]), values, table.notes)
    if is_required:
        problem = f"there is no such file, and no column {quoted(name)} of the counts: they have"
        raise UsageError(f"{option('gc')} {name}: {problem} {several([*COLUMNS, *samples])}")
    return table


def with_gc_of_bed(regions: Regions, request: CnvRequest) -> Regions:
    """Return the regions of the BED file with the GC content in one of its columns."""
    if request.regions is None:
        name = f"{option('gc')} {request.gc}"
        raise UsageError(f"{name}: there is no such file, and no {option('regions')} with columns")
    return replace(regions, gc=read_bed(str(request.regions), request.gc_column)[0].gc)


def correct(
    tables: Sequence[Counts],
    request: CnvRequest,
    mappability: Floats | None,
    lengths: Mapping[str, int],
    threads: int,
) -> list[str]:
    """Correct cases, and controls if there are any, in place; return notes.

    lengths  of chromosomes in bases, by name, where they are known

    Raises UsageError for a GC content that is no share, and InputError as `gc_content` does.
    """
    regions, notes = tables[0].regions, list[str]()
    gc = regions.gc
    if request.gc is not None and gc is None:
        gc = gc_content(request.gc, regions, request.rename == "auto", lengths)
    chosen = np.array([not is_sex_chromosome(name) for name in regions.names])[regions.chrom]
    chosen |= not chosen.any()
    borders = np.cumsum([0, *(len(table.samples) for table in tables)]).tolist()
    is_reference = np.arange(borders[-1]) >= borders[-2]  # controls, if there are any
    for name, covariate in (("gc", gc), ("mappability", mappability)):
        if covariate is None:
            continue
        _check_shares(name, covariate, regions)
        values = [table.values for table in tables]
        found = correction(values, covariate, chosen, is_reference, threads)
        for table, begin, stop in zip(values, borders, borders[1:], strict=False):
            found.apply(table, slice(begin, stop), threads)
        if found.bins < 2:
            notes.append(f"{option(name)} corrects nothing: too few regions, or all are alike")
    return notes


def _check_shares(name: str, covariate: Floats, regions: Regions) -> None:
    """Raise UsageError for a value outside of 0 to 1."""
    wrong = (covariate < 0) | (covariate > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"{covariate[row]:g} at {regions.shown(row)}; it must be a share from 0 to 1"
        raise UsageError(f"{option(name)} is {problem}")

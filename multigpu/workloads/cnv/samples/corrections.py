"""Counts of a cohort without the waves that GC content and mappability make in each sample."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from multigpu.errors import UsageError, option, quoted, several
from multigpu.formats.alignments.regions import Regions, read_bed
from multigpu.formats.sequences.gc_content import gc_content
from multigpu.formats.tables.counts import COLUMNS, Counts, narrow
from multigpu.kernels.normalization.covariates import correction
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.samples.sex import is_sex_chromosome


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

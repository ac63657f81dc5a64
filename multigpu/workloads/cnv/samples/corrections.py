"""Counts of a cohort without the waves that GC content and mappability make in each sample."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multigpu.errors import UsageError, option, quoted, several
from multigpu.formats.alignments.regions import Regions, read_bed_column
from multigpu.formats.sequences.gc_content import gc_content
from multigpu.formats.tables.counts import COLUMNS, Counts
from multigpu.kernels.normalization.covariates import correction
from multigpu.workloads.cnv.records import Floats
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.samples.sex import is_sex_chromosome


def with_gc_column(table: Counts, name: str, is_required: bool = True) -> Counts:
    """Return a table whose column `name` is the GC content of its regions, and no sample.

    Raises UsageError where there is no such column and it is required.
    """
    if name in table.samples and len(table.samples) > 1:
        return table.with_gc_column(name)
    if not is_required:
        return table
    has = several([*COLUMNS, *table.samples])
    raise UsageError(
        f"{option('gc')} {name}: there is no such file, and no column {quoted(name)} of the counts:"
        f" they have {has}"
    )


def with_gc_of_bed(regions: Regions, request: CnvRequest) -> Regions:
    """Return the regions of the BED file with the GC content in one of its columns."""
    if request.regions is None:
        name = f"{option('gc')} {request.gc}"
        raise UsageError(f"{name}: there is no such file, and no {option('regions')} with columns")
    return replace(regions, gc=read_bed_column(str(request.regions), request.gc_column))


def correct(
    tables: Sequence[Counts], request: CnvRequest, mappability: Floats | None, threads: int
) -> list[str]:
    """Correct cases, and controls if there are any, in place; return notes.

    Raises UsageError for a GC content that is no share, and InputError as `gc_content` does.
    """
    covariates, notes = {}, list[str]()
    regions = tables[0].regions
    if request.gc is not None:
        gc = regions.gc
        if gc is None:
            gc = gc_content(request.gc, regions, request.rename == "auto")
        covariates["gc"] = gc
    if mappability is not None:
        covariates["mappability"] = mappability
    on_autosomes = np.array([not is_sex_chromosome(name) for name in regions.names])
    chosen = on_autosomes[regions.chrom]
    if not chosen.any():
        chosen[:] = True
    samples = [len(table.samples) for table in tables]
    is_reference = np.arange(sum(samples)) >= sum(samples[:-1])  # controls, if there are any
    values = [table.values for table in tables]
    for name, covariate in covariates.items():
        _check_shares(name, covariate, regions)
        found = correction(values, covariate, chosen, is_reference, threads)
        if found.bins < 2:
            notes.append(f"{option(name)} corrects nothing: too few regions, or all are alike")
            continue
        for k, table in enumerate(values):
            columns = slice(sum(samples[:k]), sum(samples[: k + 1]))
            found.apply(table, columns, threads)
    return notes


def _check_shares(name: str, covariate: Floats, regions: Regions) -> None:
    """Raise UsageError for a value outside of 0 to 1."""
    wrong = (covariate < 0) | (covariate > 1)
    if wrong.any():
        row = int(np.argmax(wrong))
        problem = f"{covariate[row]:g} at {regions.shown(row)}; it must be a share from 0 to 1"
        raise UsageError(f"{option(name)} is {problem}")

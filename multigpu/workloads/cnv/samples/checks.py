"""Checks of samples and counts before anything is computed."""

from collections.abc import Sequence

import numpy as np

from multigpu.errors import UsageError, option, printable_name, quoted
from multigpu.formats.alignments.files import without_chr
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.names import name_problem
from multigpu.formats.tables.counts import Counts
from multigpu.workloads.cnv.options import CnvOptions


def check_counts(counts: Counts, controls: Counts | None, options: CnvOptions) -> None:
    """Raise UsageError for tables that the model cannot take."""
    if not len(counts.regions):
        raise UsageError("there are no regions")
    for name in (*counts.regions.names, *counts.samples):
        if problem := name_problem(name):
            raise UsageError(f"{quoted(name)} cannot be a name in tables: {problem}")
    check_samples(counts.samples, controls.samples if controls else None, options)
    if controls is not None:
        _check_same_regions(counts.regions, controls.regions)


def check_samples(
    cases: Sequence[str], controls: Sequence[str] | None, options: CnvOptions
) -> None:
    """Raise UsageError for samples, given by their names, that the model cannot take."""
    if options.model == "single" and len(cases) != 1:
        raise UsageError(
            f"{option('model')} single takes one sample, not {len(cases)}: use"
            f" {option('model')} cn.mops"
        )
    if options.model not in ("single", "reference") and len(cases) < 2:
        raise UsageError(
            f"{option('model')} {options.model} compares samples, and there is only one: use"
            f" {option('model')} single, or {option('model')} reference with {option('controls')}"
        )
    if options.model != "reference":
        if controls is not None:
            raise UsageError(f"{option('controls')} are for {option('model')} reference only")
        return
    if controls is None:
        raise UsageError(f"{option('model')} reference needs {option('controls')}")
    if both := sorted({*cases} & {*controls}):
        raise UsageError(
            f"{both[0]} is a case and a control: rename one of them, or leave one out"
            f" ({option('sample_names')} are those of the cases)"
        )


def _check_same_regions(cases: Regions, controls: Regions) -> None:
    """Raise UsageError that names the first regions that differ, and what helps."""
    row = _first_difference(cases, controls)
    if row is None:
        return
    problem = (
        f"the cases and the {option('controls')} have different regions: region"
        f" {row + 1} of the cases is"
        f" {_region(cases, row)}, of the controls {_region(controls, row)}"
    )
    if _first_difference(_without_chr(cases), _without_chr(controls)) is None:
        problem += (
            f" (the names differ only by `chr`: {option('rename')} auto takes them as the same)"
        )
    raise UsageError(problem)


def _first_difference(cases: Regions, controls: Regions) -> int | None:
    """Return the first row that differs, or that one of them lacks; None where there is none."""
    rows = min(len(cases), len(controls))
    numbers = {name: number for number, name in enumerate(cases.names)}
    number = np.array([numbers.get(name, -1) for name in controls.names], np.int64)
    differ = cases.chrom[:rows] != number[controls.chrom[:rows]]
    differ |= cases.start[:rows] != controls.start[:rows]
    differ |= cases.end[:rows] != controls.end[:rows]
    if differ.any():
        return int(np.argmax(differ))
    return rows if len(cases) != len(controls) else None


def _region(regions: Regions, row: int) -> str:
    if row >= len(regions):
        return "missing"
    name = printable_name(regions.names[regions.chrom[row]])
    return f"{name}:{regions.start[row]}-{regions.end[row]}"


def _without_chr(regions: Regions) -> Regions:
    names = tuple(map(without_chr, regions.names))
    return Regions(names, regions.chrom, regions.start, regions.end)

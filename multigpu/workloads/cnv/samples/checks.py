"""Checks of samples and counts before anything is computed."""

from collections.abc import Sequence
from dataclasses import replace

from multigpu.errors import UsageError, option, quoted
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
    row = cases.first_difference(controls)
    if row is None:
        return
    here, there = cases.shown(row), controls.shown(row)
    problem = (
        f"the cases and the {option('controls')} have different regions: region {row + 1} of the"
        f" cases is {here}, of the controls {there}"
    )
    plain = [replace(each, names=tuple(map(without_chr, each.names))) for each in (cases, controls)]
    if plain[0].first_difference(plain[1]) is None:
        same = f"{option('rename')} auto takes them as the same"
        problem += f" (the names differ only by `chr`: {same})"
    raise UsageError(problem)

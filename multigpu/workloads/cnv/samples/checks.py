"""Checks of samples and counts before anything is computed."""

import shlex
from collections.abc import Sequence

from multigpu.errors import UsageError, option, quoted
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.names import name_problem
from multigpu.formats.tables.counts import Counts
from multigpu.run.values import StrPath
from multigpu.workloads.cnv.options import CnvOptions


def check_counts(counts: Counts, controls: Counts | None, options: CnvOptions) -> None:
    """Raise UsageError for tables that the model cannot take."""
    check_table(counts)
    check_samples(counts.samples, controls.samples if controls else None, options)
    if controls is not None:
        check_same_regions(counts.regions, controls.regions, "the cases", "the controls")


def check_table(counts: Counts) -> None:
    """Raise UsageError for a table without regions, or with names that are none."""
    if not len(counts.regions):
        raise UsageError("there are no regions")
    for name in (*counts.regions.names, *counts.samples):
        if problem := name_problem(name):
            raise UsageError(f"{quoted(name)} cannot be a name in tables: {problem}")


def check_samples(
    cases: Sequence[str],
    controls: Sequence[str] | None,
    options: CnvOptions,
    store: StrPath | None = None,
) -> None:
    """Raise UsageError for samples, given by their names, that the model cannot take.

    store  path of the kept cohort that the controls are from
    """
    if options.model == "single" and len(cases) != 1:
        raise UsageError(
            f"{option('model')} single takes one sample, not {len(cases)}: use"
            f" {option('model')} cn.mops"
        )
    if options.model not in ("single", "reference") and len(cases) < 2:
        raise UsageError(
            f"{option('model')} {options.model} compares samples, and there is only one: use"
            f" {option('model')} single, or compare it with {option('controls')}"
            f" ({option('model')} reference) or a {option('cohort')}"
        )
    if options.model != "reference":
        if controls is not None:
            raise UsageError(f"{option('controls')} are for {option('model')} reference only")
        return
    if controls is None:
        raise UsageError(f"{option('model')} reference needs {option('controls')}")
    if both := sorted({*cases} & {*controls}):
        if store is not None:
            raise UsageError(
                f"{both[0]} is in the cohort already: `multigpu cohort remove"
                f" {shlex.quote(str(store))} {shlex.quote(both[0])}` takes it out, or rename the"
                f" case ({option('sample_names')})"
            )
        raise UsageError(
            f"{both[0]} is a case and a control: rename one of them, or leave one out"
            f" ({option('sample_names')} are those of the cases)"
        )


def check_same_regions(one: Regions, other: Regions, of_one: str, of_other: str) -> None:
    """Raise UsageError that names the first regions that differ, and what helps.

    of_one, of_other  what the regions are of, for the message
    """
    row = one.first_difference(other)
    if row is None:
        return
    here, there = one.shown(row), other.shown(row)
    problem = (
        f"{of_one} and {of_other} have different regions: region {row + 1} of {of_one} is {here},"
        f" of {of_other} {there}"
    )
    if one.first_difference(renamed_as(other, one)) is None:
        same = f"{option('rename')} auto takes them as the same"
        problem += f" (the names differ only by `chr`: {same})"
    raise UsageError(problem)

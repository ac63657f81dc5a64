"""Cohorts that are kept, from Python; `multigpu.read_counts` reads one."""

from multigpu.run.declarations import function_of
from multigpu.workloads.cohort import building
from multigpu.workloads.cohort.request import AddRequest, BuildRequest, RemoveRequest


@function_of(BuildRequest)
def build_cohort(request: BuildRequest) -> None:
    """Keep counts as a cohort, with which `multigpu.cnv(…, cohort=…)` compares new samples.

    {options}

    Raises UsageError and InputError for wrong counts, and where there is something of its name.
    """
    building.build(request)


@function_of(AddRequest)
def add_to_cohort(request: AddRequest) -> None:
    """Add samples to a cohort.

    {options}

    Raises UsageError and InputError for samples that are there already, and for other regions.
    """
    building.add(request)


@function_of(RemoveRequest)
def remove_from_cohort(request: RemoveRequest) -> None:
    """Remove samples from a cohort.

    {options}

    Raises UsageError for names that it does not have.
    """
    building.remove(request)

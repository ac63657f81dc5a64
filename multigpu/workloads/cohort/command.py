"""The commands `multigpu cohort …`."""

from functools import partial
from typing import TYPE_CHECKING

import click

from multigpu.run.command import Reporting, Summary, answer, command_of, number_of
from multigpu.run.options import RunOptions
from multigpu.run.values import StrPath
from multigpu.workloads.cohort.request import AddRequest, BuildRequest, CohortRequest, RemoveRequest
from multigpu.workloads.count.command import count_alignments

if TYPE_CHECKING:
    from multigpu.formats.tables.counts import Counts

NO_PLAN = ("dry_run", "json")
NO_RUN = (Summary, "log_json", "trace", "progress", *NO_PLAN)
REGIONS = ("window", "regions", "chromosomes", "compat_r")  # a cohort keeps its own


@click.group("cohort")
def command() -> None:
    """Keep the counts of a cohort, with which `multigpu cnv --cohort` compares new samples.

    \b
        multigpu cohort build *.bam --window 25kb -o cohort.zarr
        multigpu cnv new.bam --cohort cohort.zarr -o calls
        multigpu cohort add cohort.zarr new.bam
    """  # noqa: D301 - \b is a character that click wants


@command_of(
    example="multigpu cohort build counts.parquet -o cohort.zarr",
    without=(RunOptions, Summary, *NO_PLAN),
)
def build(request: BuildRequest, reporting: Reporting) -> None:
    """Make a cohort of counts tables, or of BAM and CRAM files, which are counted."""
    from multigpu.workloads.cohort import building

    with reporting.notes():
        counts = building.build(request, partial(count_alignments, reporting))
    _print_outcome(reporting, counts, request.output)


@command_of(
    example="multigpu cohort add cohort.zarr new.bam",
    without=(RunOptions, Summary, *NO_PLAN, *REGIONS),
)
def add(request: AddRequest, reporting: Reporting) -> None:
    """Add samples to a COHORT. Alignments are counted in its regions, as its own were."""
    from multigpu.workloads.cohort import building

    with reporting.notes():
        counts = building.add(request, partial(count_alignments, reporting))
    _print_outcome(reporting, counts, request.cohort)


@command_of(example="multigpu cohort remove cohort.zarr sample7", without=NO_RUN)
def remove(request: RemoveRequest, reporting: Reporting) -> None:
    """Remove samples from a COHORT."""
    from multigpu.workloads.cohort import building

    left = number_of(building.remove(request), "sample")
    reporting.say(f"{left} left in {request.cohort}")


@command_of(example="multigpu cohort list cohort.zarr", without=NO_RUN)
def list_(request: CohortRequest, reporting: Reporting) -> None:
    """Print the names of the samples in a COHORT, one a line."""
    from multigpu.formats.tables.counts_zarr import CountsStore

    store = CountsStore(str(request.cohort))
    answer(store.samples)
    samples = number_of(len(store.samples), "sample")
    reporting.say(f"{samples} in {number_of(len(store.regions), 'region')}")


@command_of(example="multigpu cohort qc cohort.zarr", without=NO_RUN)
def qc(request: CohortRequest, reporting: Reporting) -> None:
    """Print a table about the samples of a COHORT: reads, noise, correlation, sex."""
    from multigpu.formats.tables.counts_zarr import CountsStore
    from multigpu.workloads.cohort.qc import qc_lines

    with reporting.notes():
        answer(qc_lines(CountsStore(str(request.cohort))))


def _print_outcome(reporting: Reporting, counts: "Counts", cohort: StrPath) -> None:
    reporting.say(*(f"note: {note}" for note in counts.notes))
    samples = number_of(len(counts.samples), "sample")
    found = f"{samples} in {number_of(len(counts.regions), 'region')}"
    reporting.say_outcome(found, str(cohort))


for each in (build, add, remove, list_, qc):
    command.add_command(each, str(each.name).strip("_"))

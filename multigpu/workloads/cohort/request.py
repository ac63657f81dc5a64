"""Requests about a cohort that is kept, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from multigpu.run.declarations import Options, declaration, declare
from multigpu.run.options import Request
from multigpu.run.values import Bases, FilePath, NameList
from multigpu.workloads.count.options import CountOptions

COHORT = declaration(
    "Cohort that `multigpu cohort build` has made.", "COHORT", argument=True, required=True
)
COUNTS = declaration(
    "Counts tables, or BAM and CRAM files, one a sample; as `cnv` takes them.", "INPUT...",
    argument=True,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CohortOptions(CountOptions, Request, group="Input"):
    """Options of reading and counting the samples of a cohort."""

    read_length: Bases | None = declare(
        None, "Length of the sequenced reads, by which mean depths (of mosdepth, CNVkit) become"
        " counts; the same for all samples of a cohort.", "BASES", at_least=1,
    )  # fmt: skip


@dataclass(frozen=True)
class BuildRequest(CohortOptions, group="Input"):
    """Everything that a cohort is made of."""

    counts_or_bams: Any = field(metadata=COUNTS)
    _: KW_ONLY
    output: FilePath = declare(
        "", "Folder for the cohort, a Zarr store.", "COHORT", short="o", required=True,
        group="Output",
    )  # fmt: skip


@dataclass(frozen=True)
class AddRequest(CohortOptions, group="Input"):
    """Samples to add to a cohort; alignments are counted in its regions, and as its own were."""

    cohort: FilePath = field(metadata=COHORT)
    counts_or_bams: Any = field(metadata=COUNTS)


@dataclass(frozen=True)
class RemoveRequest(Options, group="Input"):
    """Samples to remove from a cohort."""

    cohort: FilePath = field(metadata=COHORT)
    names: NameList = field(metadata=declaration(
        "Names of the samples.", "NAME...", argument=True, required=True,
    ))  # fmt: skip


@dataclass(frozen=True)
class CohortRequest(Options, group="Input"):
    """A cohort to look at."""

    cohort: FilePath = field(metadata=COHORT)

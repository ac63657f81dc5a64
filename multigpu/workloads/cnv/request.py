"""Request for a copy-number run, by the command line or by Python."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from multigpu.run.declarations import Option
from multigpu.run.options import Client, RunOptions
from multigpu.workloads.cnv.options import CnvOptions, completed, estimate_count_bytes
from multigpu.workloads.count.options import CountOptions

if TYPE_CHECKING:
    from multigpu.workloads.cnv.samples.inputs import SampleInput


@dataclass(frozen=True, eq=False)
class CnvRequest(CnvOptions, CountOptions, RunOptions, group="Input"):
    """Everything that decides on the results of a run, and how it is carried out.

    For ploidies and sexes see `samples.facts`.
    """

    counts_or_bams: Annotated[
        Any,
        Option(
            "A `Counts` object, a counts table (a file, or one of pyarrow or pandas), or BAM and"
            " CRAM files, one a sample.",
            "INPUT...",
            argument=True,
        ),
    ]
    _: KW_ONLY
    controls: Annotated[
        Any,
        Option(
            "Controls, as INPUT; give the option once for each file.",
            many=True,
            r="controls",
        ),
    ] = None
    preset: Annotated[
        Literal["gcnmops"] | None,
        Option("gcnmops: the parameters of that program.", group="Model"),
    ] = None
    ploidy: Annotated[
        Any,
        Option(
            "Ploidy on all chromosomes: a number for all samples, or a file with lines `sample TAB"
            " number`; 2 for samples left out. In Python also a mapping, or a number for each.",
            "N|FILE",
            r="ploidy",
        ),
    ] = None
    sex: Annotated[
        Any,
        Option(
            "Sex of the samples, by which X and Y are normalized. infer: by their coverage of X"
            " and Y; none: do not use sexes; male or female: for all samples; a file: lines `sample"
            " TAB male|female|unknown`, where samples left out are taken as female. In Python also"
            " a mapping.",
            "SEX|FILE",
        ),
    ] = "infer"
    genome: Annotated[
        str | None,
        Option(
            "IGV's name of the genome, for its pseudoautosomal regions and the IGV session.",
            "ID",
            default="recognized by the lengths of its chromosomes",
        ),
    ] = None
    keep_matrices: Annotated[
        bool, Option("Whether the result has the matrices.", only="Python")
    ] = True
    client: Client = None

    @classmethod
    def completed(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for what a user gave, with the defaults of its model and preset."""
        return completed(given, given.get("preset"))

    @property
    def options(self) -> CnvOptions:
        """What decides the calls in a table of counts."""
        return self.part(CnvOptions)

    @property
    def count_options(self) -> CountOptions:
        """How alignments are counted."""
        return self.part(CountOptions)

    @property
    def run(self) -> RunOptions:
        """Where and how it is computed."""
        return self.part(RunOptions)

    @cached_property
    def cases(self) -> "SampleInput":
        """Counts or alignments of the samples. Raises UsageError and InputError."""
        from multigpu.workloads.cnv.samples.inputs import SampleInput

        return SampleInput.from_given(self.counts_or_bams)

    @cached_property
    def control_samples(self) -> "SampleInput | None":
        """Counts or alignments of the controls, if there are any."""
        from multigpu.workloads.cnv.samples.inputs import SampleInput

        return None if self.controls is None else SampleInput.from_given(self.controls)

    @property
    def inputs(self) -> "list[SampleInput]":
        """Cases, and controls if there are any."""
        return [each for each in (self.cases, self.control_samples) if each is not None]

    @property
    def paths(self) -> list[str]:
        """Files of the cases and then of the controls."""
        return [path for each in self.inputs for path in each.paths]

    @property
    def count_bytes(self) -> int:
        """About the bytes of all counts, by which workers are chosen."""
        tables = [each.table.values.nbytes for each in self.inputs if each.table is not None]
        files = [estimate_count_bytes(each.paths, self) for each in self.inputs]
        return sum(tables) + sum(files)

    @property
    def has_alignments(self) -> bool:
        """Whether there is anything to count."""
        return any(each.is_alignments for each in self.inputs)

    @property
    def counting_parameters(self) -> dict[str, Any]:
        """Parameters of counting: all of them for alignments, else those that were given."""
        return {
            name: value
            for name, value in self.count_options.parameters().items()
            if self.has_alignments or (name in self.given and name != "compat_r")
        }

"""Request for a copy-number run, by the command line or by Python."""

import shlex
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from multigpu.errors import UsageError, option
from multigpu.run.declarations import declaration, declare, declared
from multigpu.run.options import Request
from multigpu.run.values import Bases, FilePath, texts_of
from multigpu.workloads.cnv.options import PRESETS, CnvOptions, FilterOptions, completed
from multigpu.workloads.count.options import CountOptions

if TYPE_CHECKING:
    from multigpu.workloads.cnv.samples.inputs import CohortInput


@dataclass(frozen=True, eq=False)
class CnvRequest(CnvOptions, FilterOptions, CountOptions, Request, group="Input"):
    """Everything that decides on the results of a run, and how it is carried out.

    For ploidies and sexes see `samples.annotations`.
    """

    counts_or_bams: Any = field(metadata=declaration(
        "A `Counts` object, counts tables (files, or one of pyarrow or pandas), or BAM and CRAM"
        " files, one a sample; or folders, lists and sample sheets of them.", "INPUT...",
        argument=True,
    ))  # fmt: skip
    _: KW_ONLY
    controls: Any = declare(
        None, f"Controls, as INPUT, for {option('model')} reference; give the option once for each"
        " file.", many=True, r="controls",
    )  # fmt: skip
    cohort: FilePath | None = declare(
        None, "Cohort that is kept, whose samples are the controls; alignments are counted in its"
        f" regions, as its own were. {option('model')} is then reference.", "COHORT",
    )  # fmt: skip
    preset: Literal["r", "panel", "exome", "genome", "gcnmops", "gatk-sv"] | None = declare(
        None, "Parameters that fit the data. panel, exome, genome: for gene panels, exomes and"
        " genomes, by a hidden Markov model; r: R's defaults, as without a preset; gcnmops: those"
        " of that program; gatk-sv: a batch of GATK-SV, in place of its workflow CNMOPS.wdl.",
        group="Model",
    )  # fmt: skip
    read_length: Bases | None = declare(
        None, "Length of the sequenced reads, by which mean depths (of mosdepth, CNVkit) become"
        " counts.", "BASES", at_least=1,
    )  # fmt: skip
    ploidy: Any = declare(
        None, "Ploidy on all chromosomes: a number for all samples, or a file with lines `sample"
        " TAB number`; 2 for samples left out. In Python also a mapping, or a number for each.",
        "N|FILE", r="ploidy",
    )  # fmt: skip
    sex: Any = declare(
        "infer", "Sex of the samples, by which X and Y are normalized. infer: by their coverage of"
        " X and Y; none: do not use sexes; male or female: for all samples; a file: PED, or"
        " lines `sample TAB male|female|unknown`; samples left out are taken as female. In Python"
        " also a mapping.", "SEX|FILE",
    )  # fmt: skip
    genome: str | None = declare(
        None, "IGV's name of the genome, for its pseudoautosomal regions and the IGV session.",
        "ID", default="recognized by the lengths of its chromosomes",
    )  # fmt: skip
    keep_matrices: bool = declare(True, "Whether the result has the matrices.", only="Python")

    @classmethod
    def completed(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values for what a user gave, with the defaults of its model and preset."""
        is_hmm = PRESETS.get(str(given.get("preset")), {}).get("segmentation") == "hmm"
        has_controls = is_hmm and given.get("controls") is not None
        if (has_controls or given.get("cohort") is not None) and given.get("model") is None:
            given = {**given, "model": "reference"}
        return completed(given, given.get("preset"))

    def check(self) -> None:
        super().check()
        if self.cohort is None:
            return
        if self.controls is not None:
            raise UsageError(f"give {option('cohort')} or {option('controls')}, not both")
        if self.model != "reference":
            raise UsageError(f"{option('cohort')} is for {option('model')} reference only")

    @property
    def options(self) -> CnvOptions:
        """Options that decide the calls in a table of counts."""
        return self.part(CnvOptions)

    @property
    def count_options(self) -> CountOptions:
        return self.part(CountOptions)

    @property
    def command_line(self) -> str:
        """The command for these results, without options that change none: devices and the like."""
        words = ["multigpu", "cnv", *texts_of(self.counts_or_bams, "counts_or_bams")]
        for each in declared(CnvRequest):
            if each.name in self.given and not (each.argument or issubclass(Request, each.owner)):
                words += each.words(getattr(self, each.name))
        return shlex.join(words)

    @cached_property
    def _cases_and_controls(self) -> "tuple[CohortInput, CohortInput | None]":
        from multigpu.workloads.cnv.samples.inputs import inputs_of

        controls = self.controls if self.cohort is None else self.cohort
        return inputs_of(self.counts_or_bams, controls, self.read_length)

    @property
    def cases(self) -> "CohortInput":
        """Counts or alignments of the samples. Raises UsageError and InputError."""
        return self._cases_and_controls[0]

    @property
    def control_samples(self) -> "CohortInput | None":
        """Counts or alignments of the controls, if there are any."""
        return self._cases_and_controls[1]

    @property
    def inputs(self) -> "list[CohortInput]":
        """Cases, and controls if there are any."""
        return [each for each in (self.cases, self.control_samples) if each is not None]

    @property
    def control_paths(self) -> tuple[str, ...]:
        return () if self.control_samples is None else self.control_samples.paths

    @property
    def paths(self) -> list[str]:
        """Files of the cases and then of the controls."""
        return [*self.cases.paths, *self.control_paths]

    @property
    def count_bytes(self) -> int:
        """About the bytes of all counts, by which workers are chosen."""
        return sum(each.count_bytes(self) for each in self.inputs)

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

"""Requests: what a copy-number run is asked to do, from the command line or from Python."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from multigpu.errors import UsageError, quoted
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import FIELDS, CnvOptions, estimate_count_bytes, flag
from multigpu.workloads.cnv.samples.inputs import COUNTING, SampleInput
from multigpu.workloads.count.command import count_options
from multigpu.workloads.count.options import CountOptions


@dataclass(frozen=True, eq=False, kw_only=True)
class CnvRequest:
    """Everything that decides on the results of a run, and how it is carried out.

    counting         how alignments are counted
    counting_given   parameters of counting that were given
    ploidy, sex      as given; see `samples.facts`
    genome           its name; None: recognized by the lengths of chromosomes
    given            all parameters that were given, for notes on those that have no effect
    """

    cases: SampleInput
    controls: SampleInput | None
    options: CnvOptions
    run: RunOptions
    counting: CountOptions
    counting_given: tuple[str, ...] = ()
    ploidy: Any = None
    sex: Any = "infer"
    genome: str | None = None
    given: tuple[str, ...] = ()

    @property
    def inputs(self) -> list[SampleInput]:
        """Cases, and controls if there are any."""
        return [self.cases] if self.controls is None else [self.cases, self.controls]

    @property
    def paths(self) -> list[str]:
        """Files of the cases and then of the controls."""
        return [path for each in self.inputs for path in each.paths]

    @property
    def count_bytes(self) -> int:
        """About the bytes of all counts, by which workers are chosen."""
        tables = [each.table.values.nbytes for each in self.inputs if each.table is not None]
        window, regions = self.counting.window, self.counting.regions
        files = [estimate_count_bytes(each.paths, window, regions) for each in self.inputs]
        return sum(tables) + sum(files)

    @property
    def has_alignments(self) -> bool:
        """Whether there is anything to count."""
        return any(each.is_alignments for each in self.inputs)

    @property
    def counting_parameters(self) -> dict[str, Any]:
        """Parameters of counting: all of them for alignments, else those that were given."""
        parameters = self.counting.parameters()
        names = parameters if self.has_alignments else self.counting_given
        return {name: parameters[name] for name in names}


# ---- from the command line --------------------------------------------------------------------


def request_from_command(values: Mapping[str, Any], run: RunOptions) -> CnvRequest:
    """Return the request of a command with the options of `multigpu cnv`.

    Raises UsageError and InputError.
    """
    source = click.get_current_context().get_parameter_source
    cases = SampleInput.from_paths(values["inputs"])
    controls = SampleInput.from_paths(values["controls"]) if values["controls"] else None
    return CnvRequest(
        cases=cases,
        controls=controls,
        options=options_from_command(values),
        run=run,
        counting=count_options(values),
        counting_given=tuple(
            name for name in COUNTING if source(name) == ParameterSource.COMMANDLINE
        ),
        ploidy=values["ploidy"] or None,
        sex=values["sex"],
        genome=values["genome"],
        given=tuple(name for name, value in values.items() if value is not None),
    )


def options_from_command(values: Mapping[str, Any]) -> CnvOptions:
    """Return the parameters; those that were not given have the model's default."""
    names = [*FIELDS, "preset", "compat"]
    given = {name: values[name] for name in names if name in values}
    for name in ("fold_changes", "seg_median"):
        if given[name] is not None:
            given[name] = _numbers(name, given[name])
    given["classes"] = given["classes"].split(",") if given["classes"] else None
    return CnvOptions.of(**given)


def _numbers(name: str, text: str) -> list[float]:
    """Return the numbers of a text that are separated by commas."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError as error:
        problem = f"expected numbers separated by commas, not {quoted(text)}"
        raise UsageError(f"{flag(name)}: {problem}") from error

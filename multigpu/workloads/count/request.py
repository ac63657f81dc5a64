"""Request for a count, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from multigpu.run.declarations import Option
from multigpu.run.options import Client, RunOptions
from multigpu.run.values import Paths
from multigpu.workloads.count.options import CountOptions


@dataclass(frozen=True)
class CountRequest(CountOptions, RunOptions, group="Input"):
    """Everything that a count is asked for; GPUs are not used."""

    files: Annotated[
        Paths,
        Option(
            "BAM or CRAM files, one a sample, all with the same references; or directories.",
            "ALIGNMENTS...",
            argument=True,
        ),
    ]
    _: KW_ONLY
    client: Client = None

    @property
    def options(self) -> CountOptions:
        """What decides the result."""
        return self.part(CountOptions)

    @property
    def run(self) -> RunOptions:
        """Where and how it is computed."""
        return self.part(RunOptions)

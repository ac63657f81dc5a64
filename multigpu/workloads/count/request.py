"""Request for a count, by the command line or by Python."""

from dataclasses import dataclass, field

from multigpu.run.declarations import declaration
from multigpu.run.options import Request
from multigpu.run.values import Paths
from multigpu.workloads.count.options import CountOptions


@dataclass(frozen=True)
class CountRequest(CountOptions, Request, group="Input"):
    """Everything that a count is asked for; GPUs are not used."""

    files: Paths = field(metadata=declaration(
        "BAM or CRAM files, one a sample, all with the same references; or directories.",
        "ALIGNMENTS...", argument=True,
    ))  # fmt: skip

    @property
    def options(self) -> CountOptions:
        """Options that decide the result."""
        return self.part(CountOptions)

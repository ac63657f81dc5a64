"""Request for a scan, by the command line or by Python."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

from multigpu.run.declarations import Option
from multigpu.run.options import Client, JournalPath, RunOptions
from multigpu.run.values import Paths
from multigpu.workloads.scan.options import ScanOptions


@dataclass(frozen=True)
class ScanRequest(ScanOptions, RunOptions, group="Input"):
    """Everything that a scan is asked for."""

    samples: Annotated[
        Paths,
        Option(
            "FASTQ or FASTA files, directories, patterns or URLs, plain, gzip or zstd.",
            argument=True,
        ),
    ]
    signatures: Annotated[
        Paths,
        Option("FASTA file with signatures; may be given several times.", short="s", many=True),
    ]
    _: KW_ONLY
    client: Client = None
    journal: JournalPath = None

    @property
    def options(self) -> ScanOptions:
        """What decides the result."""
        return self.part(ScanOptions)

    @property
    def run(self) -> RunOptions:
        """Where and how it is computed."""
        return self.part(RunOptions)

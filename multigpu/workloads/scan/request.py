"""Request for a scan, by the command line or by Python."""

from dataclasses import dataclass, field

from multigpu.run.declarations import declaration
from multigpu.run.options import Request, Resumable
from multigpu.run.values import Paths
from multigpu.workloads.scan.options import ScanOptions


@dataclass(frozen=True)
class ScanRequest(ScanOptions, Resumable, Request, group="Input"):
    """Everything that a scan is asked for."""

    samples: Paths = field(metadata=declaration(
        "FASTQ or FASTA files, directories, patterns or URLs, plain, gzip or zstd.", argument=True
    ))  # fmt: skip
    signatures: Paths = field(metadata=declaration(
        "FASTA file with signatures; may be given several times.", short="s", many=True
    ))  # fmt: skip

    @property
    def options(self) -> ScanOptions:
        """Options that decide the result."""
        return self.part(ScanOptions)

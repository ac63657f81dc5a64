"""Request for a scan, by the command line or by Python."""

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Literal

from multigpu.run.declarations import declaration, declare
from multigpu.run.options import Request, Resumable
from multigpu.run.values import ANYTHING, StrPath
from multigpu.workloads.scan.options import ScanOptions

Record = tuple[str | bytes, str | bytes] | tuple[str | bytes, str | bytes, str | bytes]
Pairs = Literal["auto", "files", "interleaved", "none"]
PathsOrRecords = Annotated[StrPath | Sequence[StrPath] | Iterable[Record], ANYTHING]


@dataclass(frozen=True)
class ScanRequest(ScanOptions, Resumable, Request, group="Input"):
    """Everything that a scan is asked for."""

    samples: PathsOrRecords = field(metadata=declaration(
        "FASTQ or FASTA files, directories, patterns or URLs, plain, gzip or zstd."
        " In Python also records, as tuples of name, sequence and, if known, quality.",
        argument=True,
    ))  # fmt: skip
    signatures: PathsOrRecords = field(metadata=declaration(
        "File with signatures: FASTA, a table (TSV, CSV), a list or a primer scheme (BED); may be"
        " given several times."
        " In Python also records, as tuples of name and sequence.",
        short="s", many=True,
    ))  # fmt: skip
    _: KW_ONLY
    pairs: Pairs = declare(
        "auto", "Samples that are paired reads: FASTQ files whose names differ in _R1 and _R2, or"
        " _1 and _2, alone; all files, two by two; each file, with mates in turns; or none.",
    )  # fmt: skip

    @property
    def options(self) -> ScanOptions:
        """Options that decide the result."""
        return self.part(ScanOptions)

"""Request for a scan, by the command line or by Python."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal

from multigpu.kernels.compiled.parallel import cores
from multigpu.run.declarations import declaration, declare
from multigpu.run.options import Request, Resumable, RunOptions
from multigpu.run.values import ANYTHING, StrPath
from multigpu.workloads.scan.options import ScanOptions

# Of one process. More of them wait for the interpreter, and take 2 GB of memory.
BARCODE_THREADS = 10
Pairs = Literal["auto", "files", "interleaved", "none"]
# What records may be is in `multigpu.formats.sequences.memory_records`.
PathsOrRecords = Annotated[StrPath | Iterable[Any], ANYTHING]


@dataclass(frozen=True)
class ScanRequest(ScanOptions, Resumable, Request, group="Input"):
    """Everything that a scan is asked for."""

    samples: PathsOrRecords = field(metadata=declaration(
        "FASTQ, FASTA, BAM or CRAM files, directories, patterns or URLs, plain, gzip or zstd."
        " In Python also records: tuples of name, sequence and, if known, quality; objects of"
        " pysam, dnaio or Biopython; an Arrow table.",
        argument=True,
    ))  # fmt: skip
    signatures: PathsOrRecords = declare(
        (), "File with signatures: FASTA, a table (TSV, CSV), a list or a primer scheme (BED); may"
        " be given several times."
        " In Python also records, as tuples of name and sequence.",
        short="s", many=True,
    )  # fmt: skip
    _: KW_ONLY
    pairs: Pairs = declare(
        "auto", "Samples that are paired reads: FASTQ files whose names differ in _R1 and _R2, or"
        " _1 and _2, alone; all files, two by two; each file, with mates in turns; or none.",
    )  # fmt: skip

    @property
    def run(self) -> RunOptions:
        """Place and manner of the run; barcodes are compared on CPUs, whatever GPUs are given."""
        run = super().run
        if self.sample_sheet is None:
            return run
        few = 0 if run.workers else min(cores(), BARCODE_THREADS)
        return run.changed(gpus="none", threads=run.threads or few)

    @property
    def options(self) -> ScanOptions:
        """Options that decide the result."""
        return self.part(ScanOptions)

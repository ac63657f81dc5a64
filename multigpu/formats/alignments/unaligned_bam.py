"""FASTQ as unaligned BAM, made by the samtools that pysam has inside."""

import errno
from dataclasses import dataclass
from pathlib import Path

from multigpu.errors import first_line


@dataclass(frozen=True)
class ReadGroup:
    """The read group of a file, which is one sample's.

    name      its ID and its sample
    barcodes  of the sample, with - between two; empty for none
    """

    name: str
    barcodes: str = ""

    def line(self) -> str:
        """Return the line of the header, without its end."""
        barcodes = f"\tBC:{self.barcodes}" if self.barcodes else ""
        return f"@RG\tID:{self.name}\tSM:{self.name}{barcodes}"


def fastq_to_bam(path: Path, group: ReadGroup, *, are_pairs: bool) -> None:
    """Replace FASTQ by BAM of its records; are_pairs: mates follow each other. Raises OSError."""
    import pysam

    bam = path.with_name(f"{path.name}.bam")
    if path.stat().st_size:
        kind = "-s" if are_pairs else "-0"
        try:
            pysam.fqimport(
                "--no-PG", kind, str(path), "-r", group.line(), "-o", str(bam), catch_stdout=False
            )
        except pysam.SamtoolsError as error:
            raise OSError(errno.EIO, first_line(error)) from error
    else:  # samtools takes it for a broken file
        header = f"@HD\tVN:1.6\tSO:unsorted\tGO:query\n{group.line()}\n"
        pysam.AlignmentFile(str(bam), "wb", header=pysam.AlignmentHeader.from_text(header)).close()
    bam.replace(path)

"""Rows of a scan as SAM and BAM files.

Samples of FASTQ are the reads, aligned to the signatures; workers make their lines. Samples of
FASTA are the references that signatures are aligned to: the header names all of them with their
lengths, which are known when the last one was read, and only the client knows which line of a
signature is the first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, BinaryIO

from multigpu import __version__
from multigpu.cluster.files import is_replaced
from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.alignment_lines import SamOfSignatures
from multigpu.formats.tables.sam import misnamed_query, open_sam
from multigpu.formats.tables.writers import split_format, with_columns
from multigpu.workloads.scan.job import ScanJob
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import OutputNeeds

SAM_FORMATS = ("sam", "bam")


class SamOutput:
    """Rows as a SAM or BAM file.

    Raises UsageError where samples are FASTQ and FASTA, and InputError for the name of a signature
    that SAM does not allow.
    """

    def __init__(self, job: ScanJob, fmt: str) -> None:
        self._job = job
        kind, self._requested = split_format(fmt)
        self._kind = kind.name
        layouts = {source.layout for source in job.sources}
        if len(layouts) > 1:
            raise UsageError(
                f"{option('format')} {self._kind}: FASTQ samples are reads there, and"
                " FASTA samples are"
                f" references: scan them one after the other, or choose {option('format')} paf"
            )
        self._are_reads = layouts == {"fastq"}
        names, lengths = job.signatures.names, job.signatures.letters.lengths.tolist()
        if self._are_reads:
            self.needs = OutputNeeds(fmt=with_columns("sam", self._requested), cigars=True)
            for file, which in job.signatures.by_file():
                job.references.add(file, names[which], lengths[which])
        else:
            self.needs = OutputNeeds(cigars=True, records=True)
            for file, which in job.signatures.by_file():
                lines = b"".join([name + b"\n" for name in names[which]])
                if error := misnamed_query(file, lines, are_all=True):
                    raise error

    @contextmanager
    def open(self, file: BinaryIO, path: str | None) -> Iterator[Callable[[Any], object]]:
        """Yield a function that writes rows, of reads as text; `path` names the file."""
        program = program_line(self._job.options)
        with open_sam(
            file,
            self._kind,
            compression_of(path),
            lambda: self._job.references.header(program),
            header_last=not self._are_reads,
            path=path if is_replaced(path) else None,
        ) as write:
            if self._are_reads:
                yield write
            else:
                lines = SamOfSignatures(self._job.signatures, self._requested).lines
                yield lambda rows: write(lines(rows))


def program_line(options: ScanOptions) -> bytes:
    """Return the fields of the header's line about the program.

    The command has the options on which rows depend, and no paths: equal rows are equal bytes.
    """
    command = ["multigpu scan"]
    for field in fields(options):
        value = getattr(options, field.name)
        if value != field.default:
            command.append(f"--{field.name.replace('_', '-')} {value}")
    return f"ID:multigpu\tPN:multigpu\tVN:{__version__}\tCL:{' '.join(command)}".encode()

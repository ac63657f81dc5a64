"""Rows of a scan as SAM and BAM files.

Samples of FASTQ are the reads, aligned to the signatures; workers make their lines. Samples of
FASTA are the references that signatures are aligned to: the header names all of them with their
lengths, which are known when the last one was read, and only the client knows which line of a
signature is the first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.cluster.files import is_replaced
from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.sam import References, misnamed_query, open_sam
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.alignment_lines import sam_of_signatures
from multigpu.workloads.scan.output.row_sink import RowSink, TextSink, Write
from multigpu.workloads.scan.sink import Findings

Aligned = tuple[Batch, str, list[bytes], NDArray[np.int64]]  # rows; records with their file


def sam_sink(layouts: frozenset[str], **fields: Any) -> "ReadSink | ReferenceSink":
    """Return the output for these samples, with the fields of a `RowSink`.

    Raises UsageError where they are FASTQ and FASTA, and InputError for the name of a signature
    that SAM does not allow.
    """
    if "fasta" in layouts and len(layouts) > 1:
        raise UsageError(
            f"{option('format')} {fields['format'].name}: FASTQ samples are reads there, and FASTA"
            " samples are references: scan them one after the other, or choose"
            f" {option('format')} paf"
        )
    kind = ReadSink if "fasta" not in layouts else ReferenceSink
    sink = kind(layouts=layouts, **fields)
    sink.check_signatures()
    return sink


class ReadSink(TextSink):
    """Reads aligned to the signatures."""

    def check_signatures(self) -> References:
        """Return them as references."""
        references = References()
        names, lengths = self.signatures.names, self.signatures.letters.lengths.tolist()
        for file, which in self.signatures.by_file():
            references.add(file, names[which], lengths[which])
        return references

    def collect(self, found: Findings) -> bytes:
        if error := misnamed_query(found.path, found.rows.sample_names(), are_all=False):
            raise error
        return super().collect(found)

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[bytes]]:
        with _open(file, self, self.check_signatures(), header_last=False) as write:
            yield lambda lines, _: write(lines)


class ReferenceSink(RowSink[Aligned]):
    """Signatures aligned to the samples."""

    def check_signatures(self) -> None:
        for file, which in self.signatures.by_file():
            lines = b"".join([name + b"\n" for name in self.signatures.names[which]])
            if error := misnamed_query(file, lines, are_all=True):
                raise error

    def collect(self, found: Findings) -> Aligned:
        return found.rows, found.path, found.names(), found.lengths

    @contextmanager
    def write_to(self, file: BinaryIO) -> Iterator[Write[Aligned]]:
        references = References()
        seen = np.zeros(len(self.signatures), np.bool_)
        with _open(file, self, references, header_last=True) as write_lines:

            def write(aligned: Aligned, _: int) -> None:
                rows, path, names, lengths = aligned
                references.add(path, names, lengths.tolist())
                write_lines(sam_of_signatures(self.rows_of(rows), seen))

            yield write


@contextmanager
def _open(
    file: BinaryIO, to: RowSink[Any], references: References, *, header_last: bool
) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes lines; see `open_sam`."""
    with open_sam(
        file,
        to.format.name,
        compression_of(to.path),
        lambda: references.header(program_line(to.options)),
        header_last=header_last,
        path=to.path if is_replaced(to.path) else None,
    ) as write:
        yield write


def program_line(options: ScanOptions) -> bytes:
    """Return the fields of the header's line about the program.

    The command has the options on which rows depend, and no paths: equal rows are equal bytes.
    """
    command = " ".join(["multigpu scan", *options.unusual])
    return f"ID:multigpu\tPN:multigpu\tVN:{__version__}\tCL:{command}".encode()

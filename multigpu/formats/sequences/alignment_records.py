"""BAM and CRAM files as samples: their reads as they were sequenced, through pysam."""

from collections.abc import Iterator
from functools import cache, cached_property
from typing import Any, Self

from multigpu.errors import InputError
from multigpu.formats.alignments import cram
from multigpu.formats.optional import import_pysam
from multigpu.formats.sequences.record_source import FLAGGED, Fields, GivenRecords, RecordSource
from multigpu.formats.sequences.sequence_format import RecordFormat
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.stored_streams import is_regular

PAIRED = 0x1  # flag of SAM
THREADS = 2  # that decompress a file
NO_NAME = "*"
NOT_A_FILE = "can be read from a file only: `samtools fastq` makes text of it on the way"
NO_REFERENCE = (
    "a CRAM file needs the reference that it was made with, at the place that its header names or"
    " in the folder REF_PATH=DIR/%2s/%2s/%s, where seq_cache_populate.pl puts it; or make BAM of it"
)


class AlignmentRecords(RecordSource):
    """The primary records of a BAM or CRAM file, aligned or not, in the order of the file."""

    @classmethod
    def of(cls, source: Source) -> Self:
        """Return the records of a source. Raises InputError where it is no file, or is cut."""
        if not is_regular(source.path):
            raise InputError(source.path, f"{source.layout.upper()} {NOT_A_FILE}")
        if source.layout == CRAM.name:
            cram.check_end(source.path)
        return cls(source.path, source.size, source.compression, source.layout)

    def __reduce__(self) -> Any:
        return AlignmentRecords, (*self.facts().values(), self.in_blocks)

    @cached_property
    def has_mates(self) -> bool:
        first = next(self._fields(0), None)
        return first is not None and bool(first[-1] & PAIRED)

    def given(self, size: int, phred_offset: int) -> Iterator[GivenRecords]:
        return self.in_pieces(self._fields(phred_offset), FLAGGED, size)

    def _fields(self, phred_offset: int) -> Iterator[Fields]:
        path, is_cram = cram.absolute(self.path), self.layout == CRAM.name
        try:
            with import_pysam().AlignmentFile(
                path, "rc" if is_cram else "rb", check_sq=False, threads=THREADS
            ) as file:
                for record in file.fetch(until_eof=True):
                    yield fields_of_alignment(record, phred_offset)
        except (OSError, ValueError) as error:
            problem = NO_REFERENCE if is_cram else f"cannot be decoded: {error}"
            raise InputError(self.path, problem) from error


@cache
def characters(phred_offset: int) -> bytes:
    """Return the quality character of every Phred score, for `bytes.translate`."""
    return bytes(min(score + phred_offset, 255) for score in range(256))


def fields_of_alignment(record: Any, phred_offset: int) -> Fields:
    """Return the fields of a pysam.AlignedSegment, bases and quality as they were sequenced."""
    # `get_forward_qualities` fails where a record on the reverse strand has none.
    values = record.query_qualities and record.get_forward_qualities()
    quality = values.tobytes().translate(characters(phred_offset)) if values else None
    bases = record.get_forward_sequence() or ""
    return record.query_name or NO_NAME, bases, quality, record.flag


BAM, CRAM = (
    RecordFormat(name=name, suffixes=(), mark=mark, has_qualities=True, bases_per_byte=0.5)
    for name, mark in (("bam", b"BAM\x01"), ("cram", cram.MAGIC))
)

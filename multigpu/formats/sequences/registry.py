"""All formats of sequences. A new one is a module that ends with its object, and one line."""

import re
from collections.abc import Mapping

from multigpu.errors import QUOTED, InputError
from multigpu.formats.sequences.alignment_records import BAM, CRAM, AlignmentRecords
from multigpu.formats.sequences.fasta import FASTA
from multigpu.formats.sequences.fastq import FASTQ
from multigpu.formats.sequences.sequence_format import RecordFormat, SequenceFormat
from multigpu.formats.storage.sources import (
    BYTE_ORDER_MARK,
    STRANGERS,
    FileKind,
    Source,
    inspect_source,
    refuse_utf_16,
)

FORMATS: dict[str, SequenceFormat] = {each.name: each for each in (FASTA, FASTQ)}  # of text
RECORD_FORMATS: dict[str, RecordFormat] = {**FORMATS, BAM.name: BAM, CRAM.name: CRAM}

SAM = re.compile(rb"@(HD|SQ|RG|PG|CO)\t")
SEQUENCE = re.compile("[ACGTUN]{4,}", re.IGNORECASE)
# A list of sequences, or a table with names before them, with a line of titles or without.
LISTED = re.compile(rb'(.*\n)?([^,;\t\n]*[,;\t])?"?[ACGTUN]{8,}"?\s*([,;\t\n]|\Z)', re.IGNORECASE)
LIST_CURE = r"""is a list, and not FASTA: awk '{print ">" NR "\n" $1}' makes that of sequences,
 awk -F '[,;\t]' '{print ">" $1 "\n" $2}' of names and sequences""".replace("\n ", " ")


def refuse_other_text(path: str, start: bytes) -> None:
    """Raise InputError for a beginning of SAM, of UTF-16 or of lines without newlines."""
    is_foreign = start.startswith(tuple(STRANGERS))
    if b"\n" not in start and b"\r" in start.rstrip() and not is_foreign:
        raise InputError(path, "its lines end with carriage returns: convert them to newlines")
    refuse_utf_16(path, start)
    if SAM.match(start):
        raise InputError(path, "is a SAM file: convert it with `samtools fastq`")


def layout_of_records(start: bytes, formats: Mapping[str, RecordFormat] = FORMATS) -> str:
    """Return the name of the format of records that begin so; "" for none."""
    return next((name for name, each in formats.items() if start.startswith(each.mark)), "")


def _layout(path: str, start: bytes) -> str:
    refuse_other_text(path, start)
    if not start.startswith((b"@", b">", BYTE_ORDER_MARK)) and LISTED.match(start):
        raise InputError(path, LIST_CURE)
    return layout_of_records(start, RECORD_FORMATS)


def _missing(path: str) -> str:
    if not SEQUENCE.fullmatch(path):
        return ""
    shown = path if len(path) <= QUOTED else path[:QUOTED] + "…"
    how = rf"printf '>name\n{shown}\n' > sequence.fa"
    return f"a sequence has to stand in a FASTA file: {how}"


SEQUENCES = FileKind(
    name="sequence",
    suffixes=tuple(suffix for each in FORMATS.values() for suffix in each.suffixes),
    layout=_layout,
    unknown="neither FASTQ nor FASTA",
    missing=_missing,
)


def inspect_samples(given: str | Source) -> Source:
    """Return the source of a path, or the source given. Raises InputError; see `inspect_source`."""
    source = inspect_source(given, SEQUENCES)
    if source.layout not in FORMATS:
        return AlignmentRecords.of(source)
    if source.layout == FASTA.name and source.compression == "bgzf":
        source.in_blocks = True  # ranges of it would be pieces of records
    return source

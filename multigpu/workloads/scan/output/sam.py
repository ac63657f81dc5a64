"""Rows of a scan as SAM and BAM files, and as lines of PAF.

Samples of FASTQ are the reads, aligned to the signatures; workers make their lines. Samples of
FASTA are the references that signatures are aligned to: the header names all of them with their
lengths, which are known when the last one was read, and only the client knows which line of a
signature is the first.

The CIGAR of a row reads along the sample: I is a base of the sample alone, D one of the signature.
SAM and PAF have the CIGAR of a query along a reference (PAF: target). Where the signature is the
query, I and D change places; where the read is, they stay, and the CIGAR of a match on the strand -
reads from right to left.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from multigpu import __version__
from multigpu.cluster.files import is_replaced
from multigpu.errors import UsageError, option
from multigpu.formats.storage.compressed import compression_of
from multigpu.formats.tables.sam import References, misnamed_query, open_sam
from multigpu.kernels.bases import encode, reverse_complement
from multigpu.workloads.scan.batch import RUN, Batch, spelled_out
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.output.row_lines import (
    Column,
    ScanRows,
    lines_of,
    scores_of,
    signatures_of,
    strands_of,
)
from multigpu.workloads.scan.output.row_sink import RowSink, TextSink, Write
from multigpu.workloads.scan.sink import Findings

UNKNOWN = 255  # mapping quality
REVERSE, SECONDARY = 16, 256  # flags of SAM
PAIRED, MATE_UNMAPPED, MATES = 1, 8, (0, 64, 128)
LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)  # of the 16 sets of bases
MATCHING = re.compile(rb"(\d+)=")
UNLIKE = re.compile(rb"(X|D+)")
PLACED, COUNT = re.compile(rb"(?:\d+[=X])+"), re.compile(rb"\d+")
NUMBER = re.compile(rb"/[1-9]$")  # of a mate
SWAPPED = bytes.maketrans(b"ID", b"DI")

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


# ---- lines --------------------------------------------------------------------------------------


def sam_of_reads(rows: ScanRows) -> bytes:
    """Return lines of SAM for samples that are reads, aligned to the signatures."""
    batch = rows.batch
    is_first = np.diff(batch.sample_index, prepend=-2) != 0
    has_mate = np.isin(batch.sample_index ^ 1, batch.sample_index)
    flags = np.where(batch.reverse, REVERSE, 0) + np.where(is_first, 0, SECONDARY)
    flags += np.where(batch.mate > 0, PAIRED, 0) + np.array(MATES)[batch.mate]
    flags += np.where((batch.mate > 0) & ~has_mate, MATE_UNMAPPED, 0)
    after = batch.sample_length - batch.end
    ends = (batch.start.tolist(), after.tolist(), batch.reverse.tolist())
    return lines_of(
        _reads_of(batch), b"\t", flags, b"\t", signatures_of(rows),
        b"\t1\t%d\t" % UNKNOWN, list(map(_clip, _shown(rows), *ends)),
        b"\t*\t0\t0\t*\t*", *_tags(rows, _count_matching(batch.cigar)),
        *(_md_of_reads(rows) if "md" in rows.requested else ()),
        b"\n",
    )  # fmt: skip


def sam_of_signatures(rows: ScanRows, seen: NDArray[np.bool_]) -> bytes:
    """Return lines of SAM for samples that are references, to which the signatures are aligned.

    seen  bool[signatures]  those that have lines before, to which these are added: the first line
          of each signature is the primary one
    """
    batch = rows.batch
    which, first = np.unique(batch.signature, return_index=True)
    flags = np.where(batch.reverse, REVERSE, 0) + SECONDARY
    flags[first[~seen[which]]] -= SECONDARY
    seen[which] = True
    return lines_of(
        signatures_of(rows), b"\t", flags, b"\t", batch.sample, b"\t", batch.start + 1,
        b"\t%d\t" % UNKNOWN, _swap_operations(_shown(rows)),
        b"\t*\t0\t0\t", _sequences(rows),
        b"\t*", *_tags(rows, _count_matching(batch.cigar)),
        *(_md_of_samples(rows) if "md" in rows.requested else ()),
        b"\n",
    )  # fmt: skip


def paf(rows: ScanRows) -> bytes:
    """Return lines of PAF: signatures aligned to samples."""
    batch = rows.batch
    lengths = rows.signatures.letters.lengths[batch.signature]
    matching = _count_matching(batch.cigar)
    return lines_of(
        signatures_of(rows), b"\t", lengths, b"\t0\t", lengths, b"\t", strands_of(rows), b"\t",
        batch.sample, b"\t", batch.sample_length, b"\t", batch.start, b"\t", batch.end, b"\t",
        matching, b"\t", matching + batch.edits, b"\t%d" % UNKNOWN, *_tags(rows, matching),
        b"\tcg:Z:", _swap_operations(_shown(rows)),
        *(_md_of_samples(rows) if "md" in rows.requested else ()),
        b"\n",
    )  # fmt: skip


# ---- parts of lines ---------------------------------------------------------------------------


def _reads_of(batch: Batch) -> list[bytes]:
    """Return the names of the reads: mates have one, without their numbers."""
    if not batch.mate.any():
        return batch.sample
    return [NUMBER.sub(b"", name) for name in batch.sample]


def _count_matching(cigars: Sequence[bytes]) -> NDArray[np.int64]:
    """Return the number of bases that match in each alignment."""
    return np.array([sum(map(int, MATCHING.findall(each))) for each in cigars], np.int64)


def _shown(rows: ScanRows) -> Sequence[bytes]:
    """Return the alignments with = and X, or with M for both on request."""
    cigars = rows.batch.cigar
    if "plain_cigar" not in rows.requested:
        return cigars
    return [PLACED.sub(_as_m, each) for each in cigars]


def _as_m(run: re.Match[bytes]) -> bytes:
    return b"%dM" % sum(map(int, COUNT.findall(run[0])))


def _md_of_samples(rows: ScanRows) -> list[Column]:
    """Return the tag MD of signatures that are aligned to samples."""
    texts = [each.upper().replace(b"U", b"T") for each in rows.batch.bases]
    # Bases of the sample alone are deleted, those of the signature alone are left out.
    along = [spelled_out(each).translate(SWAPPED, b"D") for each in rows.batch.cigar]
    return [b"\tMD:Z:", list(map(_md, along, texts))]


def _md_of_reads(rows: ScanRows) -> list[Column]:
    """Return the tag MD of reads that are aligned to signatures."""
    batch, letters = rows.batch, rows.signatures.letters
    texts = {i: LETTERS[encode(letters[i])].tobytes() for i in set(batch.signature.tolist())}
    along = map(spelled_out, batch.cigar, batch.reverse.tolist())
    mds = [
        _md(operations.translate(None, b"I"), texts[which])
        for operations, which in zip(along, batch.signature.tolist(), strict=True)
    ]
    return [b"\tMD:Z:", mds]


def _md(operations: bytes, reference: bytes) -> bytes:
    """Return the value of MD: counts of bases that match, letters of the reference that do not.

    operations  =, X or D for each letter of the reference
    """
    found, at = b"", 0
    for run in UNLIKE.split(operations):
        letters, at = reference[at : at + len(run)], at + len(run)
        is_same = run[:1] in b"="  # or nothing
        found += b"%d" % len(run) if is_same else b"^" * run.startswith(b"D") + letters
    return found


def _swap_operations(cigars: Sequence[bytes]) -> list[bytes]:
    """Return alignments with the sample as the reference."""
    return [each.translate(SWAPPED) for each in cigars]


def _clip(cigar: bytes, before: int, after: int, is_reverse: bool) -> bytes:
    """Return the alignment of a whole read: bases before and after the match are clipped.

    before, after  bases in the order of the file
    """
    if is_reverse:
        before, after = after, before
        cigar = b"".join([count + kind for count, kind in RUN.findall(cigar)[::-1]])
    clips = [b"%dS" % bases if bases else b"" for bases in (before, after)]
    return clips[0] + cigar + clips[1]


def _sequences(rows: ScanRows) -> list[bytes]:
    """Return the bases of each row's signature as they lie on the sample, T for U."""
    patterns = (2 * rows.batch.signature.astype(np.int64) + rows.batch.reverse).tolist()
    texts = {}
    for pattern in set(patterns):
        bases = encode(rows.signatures.letters[pattern // 2])
        texts[pattern] = LETTERS[reverse_complement(bases) if pattern % 2 else bases].tobytes()
    return [texts[pattern] for pattern in patterns]


def _tags(rows: ScanRows, matching: NDArray[np.int64]) -> list[Column]:
    """Return NM, AS, qs where there are qualities, and xa on request, each with a tab before it."""
    batch = rows.batch
    qualities = scores_of(rows, "\tqs:f:{!r}".format, b"")
    tags: list[Column] = [b"\tNM:i:", batch.edits, b"\tAS:i:", matching - batch.edits, qualities]
    return [*tags, b"\txa:i:", batch.ambiguous] if "ambiguous" in rows.requested else tags

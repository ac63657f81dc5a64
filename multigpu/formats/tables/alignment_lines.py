"""Rows of a scan as lines of SAM and PAF.

The CIGAR of a row reads along the sample: I is a base of the sample alone, D one of the signature.
SAM and PAF have the CIGAR of a query along a reference (PAF: target). Where the signature is the
query, I and D change places; where the read is, they stay, and the CIGAR of a match on the strand -
reads from right to left.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, quoted
from multigpu.formats.tables.batch import Batch
from multigpu.formats.tables.columns import Requested, Rows, columns, latin1, per_row
from multigpu.kernels.bases import encode, reverse_complement

if TYPE_CHECKING:
    from multigpu.formats.sequences.signatures import Signatures

UNKNOWN = 255  # mapping quality
REVERSE, SECONDARY = 16, 256  # flags of SAM
LETTERS = np.frombuffer(b"=ACMGRSVTWYHKDBN", np.uint8)  # of the 16 sets of bases
MATCHING = re.compile(r"(\d+)=")
OPERATION = re.compile(r"\d+[=XID]")
SWAPPED = str.maketrans("ID", "DI")


def sam_of_reads(rows: Rows) -> bytes:
    """Return lines of SAM for samples that are reads, aligned to the signatures."""
    batch = rows.batch
    reads, signatures, starts, *_ = columns(rows)
    flags = np.where(batch.reverse, REVERSE, 0) + np.where(rows.is_first, 0, SECONDARY)
    after = (batch.sample_length - batch.end).tolist()
    texts = latin1(batch.cigar)
    clipped = map(_clip, texts, starts, after, batch.reverse.tolist())
    tags = _tags(rows, _count_matching(texts))
    lines = zip(reads, flags.tolist(), signatures, clipped, tags, strict=True)
    return "".join(
        f"{read}\t{flag}\t{signature}\t1\t{UNKNOWN}\t{cigar}\t*\t0\t0\t*\t*{tag}\n"
        for read, flag, signature, cigar, tag in lines
    ).encode("latin-1")


class SamOfSignatures:
    """Renderer of SAM for samples that are references, to which the signatures are aligned.

    The first line of each signature is the primary one. So rows must come in their order, and all
    of them to one renderer.
    """

    def __init__(self, signatures: "Signatures", requested: Requested) -> None:
        self._signatures, self._requested = signatures, requested
        self._seen = np.zeros(len(signatures), bool)

    def lines(self, batch: Batch) -> bytes:
        """Return the lines of some rows. Raises UsageError for a sample without a base."""
        if len(empty := np.flatnonzero(batch.sample_length == 0)):
            raise UsageError(
                f"SAM has no references without a base, but {quoted(batch.sample[empty[0]])} has"
                " none and matches: allow fewer errors, or choose --format paf"
            )
        rows = Rows.of(batch, self._signatures, self._requested)
        return b"".join([self._lines(piece) for piece in rows.pieces()])

    def _lines(self, rows: Rows) -> bytes:
        batch = rows.batch
        samples, signatures, starts, *_ = columns(rows)
        flags = np.where(batch.reverse, REVERSE, 0) + np.where(self._is_primary(rows), 0, SECONDARY)
        texts = latin1(batch.cigar)
        lines = zip(
            signatures,
            flags.tolist(),
            samples,
            starts,
            _swap_operations(texts),
            _sequences(rows),
            _tags(rows, _count_matching(texts)),
            strict=True,
        )
        return "".join(
            f"{signature}\t{flag}\t{sample}\t{start + 1}\t{UNKNOWN}\t{cigar}\t*\t0\t0\t{bases}"
            f"\t*{tags}\n"
            for signature, flag, sample, start, cigar, bases, tags in lines
        ).encode("latin-1")

    def _is_primary(self, rows: Rows) -> NDArray[np.bool_]:
        """Return bool[n]: whether a row is the first one of its signature."""
        which, first = np.unique(rows.batch.signature, return_index=True)
        is_primary = np.zeros(len(rows), bool)
        is_primary[first] = ~self._seen[which]
        self._seen[which] = True
        return is_primary


def paf(rows: Rows) -> bytes:
    """Return lines of PAF: signatures aligned to samples."""
    batch = rows.batch
    samples, signatures, starts, ends, strands = columns(rows)
    lengths = rows.signatures.letters.lengths[batch.signature].tolist()
    texts = latin1(batch.cigar)
    matching = _count_matching(texts)
    blocks = (np.array(matching, np.int64) + batch.errors).tolist()
    lines = zip(
        signatures,
        lengths,
        strands,
        samples,
        batch.sample_length.tolist(),
        starts,
        ends,
        matching,
        blocks,
        _tags(rows, matching),
        _swap_operations(texts),
        strict=True,
    )
    return "".join(
        f"{signature}\t{length}\t0\t{length}\t{strand}\t{sample}\t{sample_length}\t{start}\t{end}"
        f"\t{same}\t{block}\t{UNKNOWN}{tags}\tcg:Z:{cigar}\n"
        for signature, length, strand, sample, sample_length, start, end, same, block, tags, cigar
        in lines
    ).encode("latin-1")  # fmt: skip


# ---- parts of lines ---------------------------------------------------------------------------


def _count_matching(cigars: Sequence[str]) -> list[int]:
    """Return the number of bases that match in each alignment."""
    counts = {each: sum(map(int, MATCHING.findall(each))) for each in set(cigars)}
    return [counts[each] for each in cigars]


def _swap_operations(cigars: Sequence[str]) -> list[str]:
    """Return alignments with the sample as the reference."""
    return "\n".join(cigars).translate(SWAPPED).split("\n") if cigars else []


def _clip(cigar: str, before: int, after: int, is_reverse: bool) -> str:
    """Return the alignment of a whole read: bases before and after the match are clipped.

    before, after  bases in the order of the file
    """
    if is_reverse:
        cigar, before, after = "".join(OPERATION.findall(cigar)[::-1]), after, before
    return f"{f'{before}S' if before else ''}{cigar}{f'{after}S' if after else ''}"


def _sequences(rows: Rows) -> list[str]:
    """Return the bases of each row's signature as they lie on the sample, T for U."""
    pattern, row = np.unique(2 * rows.batch.signature + rows.batch.reverse, return_inverse=True)
    texts = []
    for each in pattern.tolist():
        bases = encode(rows.signatures.letters[each // 2])
        texts.append(LETTERS[reverse_complement(bases) if each % 2 else bases].tobytes().decode())
    found: list[str] = np.array(texts, object)[row].tolist()
    return found


def _tags(rows: Rows, matching: Sequence[int]) -> list[str]:
    """Return NM, AS, qs where there are qualities, and xa on request, each with a tab before it."""
    batch = rows.batch
    qualities = per_row(batch.score, "\tqs:f:{!r}".format, "")
    tags = [
        f"\tNM:i:{errors}\tAS:i:{same - errors}{quality}"
        for errors, same, quality in zip(batch.errors.tolist(), matching, qualities, strict=True)
    ]
    if "ambiguous" not in rows.requested:
        return tags
    return [f"{tag}\txa:i:{n}" for tag, n in zip(tags, batch.ambiguous.tolist(), strict=True)]

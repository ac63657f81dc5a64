"""Notes on signatures, or samples of a sheet, so near that something may be taken for both."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import quoted
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels import bases
from multigpu.kernels.scan import allowed_bases
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.patterns import patterns_of

COMPARED = 2000  # signatures of one length, or samples
Pair = tuple[int, int, int]  # distance, and the numbers of both


def note_on_signatures(signatures: Signatures, options: ScanOptions) -> Iterator[str]:
    """Yield a note where a sample may be within the errors allowed of two signatures."""
    patterns = patterns_of(signatures, options)
    strands, most = patterns.strands, allowed_bases(options.most_errors, patterns.lengths)
    found: list[Pair] = []
    for length in np.unique(patterns.lengths).tolist():
        number = np.flatnonzero(patterns.lengths == length)[:COMPARED]
        sets = patterns.sets[patterns.offsets[number, None] + np.arange(length)]
        near = _near_pairs([sets], [most[number]], strands)
        found += [(distance, *(number[[i, j]] // strands).tolist()) for distance, i, j in near]
    yield from _note(found, signatures.names, "signatures", "a sample")


def note_on_sheet(sheet: SampleSheet, options: ScanOptions) -> Iterator[str]:
    """Yield a note where a read may be within the errors allowed of two samples."""
    columns, most = [], []
    for barcodes in (column[:COMPARED] for column in sheet.barcodes):
        lengths = np.array([len(barcode) for barcode in barcodes])
        most.append(allowed_bases(options.most_errors, lengths))
        padded = b"".join(barcode.ljust(lengths.max(), b"N") for barcode in barcodes)
        sets = bases.encode(np.frombuffer(padded, np.uint8))
        columns.append(sets.reshape(len(barcodes), -1))
    yield from _note(_near_pairs(columns, most), sheet.samples, f"{sheet.path}: samples", "a read")


def _note(pairs: Iterable[Pair], names: Sequence[bytes], what: str, found: str) -> Iterator[str]:
    if pairs := list(pairs):
        distance, *pair = min(pairs)
        one, other = (quoted(names[each]) for each in pair)
        yield (
            f"{what} so near to another one that {found} may be within the errors allowed of both:"
            f" {len(pairs):,}, e.g. {one} and {other}, at a distance of {distance:,}"
        )


def _near_pairs(
    columns: Sequence[NDArray[np.uint8]], most: Sequence[NDArray[np.int64]], strands: int = 1
) -> Iterator[Pair]:
    """Yield the distance of each row that has a later one so near, and the numbers of both.

    Two rows are near if something may be within the errors allowed of both, in every column.

    columns  of sets of bases, uint8[rows, bases] each
    most     of each column int64[rows]: errors allowed
    strands  with 2 every second row is the reverse complement of the one before
    """
    for i in range(0, len(columns[0]), strands):
        later = slice(i + strands, None)
        total = np.zeros(len(columns[0][later]), np.int64)
        is_near = np.ones(len(total), bool)
        for sets, allowed in zip(columns, most, strict=True):
            distance = ((sets[i] & sets[later]) == 0).sum(axis=1)
            is_near &= distance <= allowed[i] + allowed[later]
            total += distance
        if is_near.any():
            at = int(np.where(is_near, total, np.iinfo(np.int64).max).argmin())
            yield int(total[at]), i, i + strands + at

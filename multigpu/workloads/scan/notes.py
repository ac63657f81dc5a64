"""Notes on a scan: what a user should know although it is no error, one line each."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, option, quoted
from multigpu.formats.sequences.registry import FORMATS, RECORD_FORMATS
from multigpu.formats.sequences.sample_sheets import SampleSheet
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.storage.sources import Source
from multigpu.formats.storage.suffixes import FOREIGN, uncompressed_suffix
from multigpu.kernels.bases import encode
from multigpu.kernels.compiled.text.records import LENGTH, QUALITY
from multigpu.kernels.scan import allowed_bases
from multigpu.workloads.scan.join import ScanTotals
from multigpu.workloads.scan.options import PHRED_OFFSETS, ScanOptions
from multigpu.workloads.scan.output.registry import FORMATS as ROW_FORMATS
from multigpu.workloads.scan.output.row_sink import RowFormat
from multigpu.workloads.scan.patterns import patterns_of

AMBIGUOUS_SHARE = 0.5  # of all rows: a note is made above it
PLAIN_BASES = np.frombuffer(b"ACGTUacgtu", np.uint8)
SPACERS = range(17, 22)  # lengths of guides without a PAM
OLD_OFFSET, OLD_HIGHEST = 64, 105  # qualities of Illumina 1.3 to 1.7
LOOKED_AT, LOOKED_AT_BYTES = 20, 1 << 20  # files whose qualities are looked at, and bytes of each
LOOKED_AT_SIGNATURES = 10_000
COMPARED = 2000  # signatures of one length, or samples

Pair = tuple[int, int, int]  # distance, and the numbers of both


def notes_before(
    sources: Sequence[Source], signatures: Signatures, options: ScanOptions
) -> Iterator[str]:
    """Yield the notes on the inputs."""
    sources = [file for source in sources for file in source.files]
    yield from _same_files(sources, "sample")
    yield from _same_files([source for source, _ in signatures.files], "signature")
    yield from _repeated_signatures(signatures)
    yield from _exact_ends(signatures, options)
    if options.hits == "top":
        yield from note_on_signatures(signatures, options)
    if nameless := signatures.names.count(b""):
        yield f"signatures without a name: {nameless:,}; their column is empty"
    are_fasta = not any(RECORD_FORMATS[source.layout].has_qualities for source in sources)
    if options.phred_offset == PHRED_OFFSETS[0]:
        yield from _old_qualities(sources)
    if inosines := signatures.with_inosine:
        what = f"signatures with I (inosine), which is searched as N: {len(inosines):,}"
        yield f"{what}, e.g. {quoted(inosines[0])}"
    reads = (each.path for each, _ in signatures.files if each.layout == "fastq")
    if path := next(reads, None):
        what = f" and the samples ({sources[0].path}) FASTA: are the two swapped?"
        yield f"the signatures ({path}) are FASTQ" + (what if are_fasta else ": are they reads?")
    if are_fasta and options.min_score is not None:
        why = "FASTA samples have no scores, and their rows stay"
        yield f"{option('min_score')} has no effect: {why}"
    if not options.has_errors and (options.exact_prefix or options.exact_suffix):
        yield (
            f"{option('exact_prefix')} and {option('exact_suffix')} have no effect"
            f" without {option('max_mismatches')} or"
            f" {option('max_edits')}: all bases must match"
        )


def _old_qualities(sources: Sequence[Source]) -> Iterator[str]:
    """Yield a note where the first qualities of a file look like those of old Illumina machines."""
    for source in sources[:LOOKED_AT]:
        if source.layout != "fastq" or not source.is_file:
            continue
        with suppress(InputError):
            raw = next(source.blocks(LOOKED_AT_BYTES))
            final = len(raw) < LOOKED_AT_BYTES
            table = FORMATS[source.layout].parse(raw, final, PHRED_OFFSETS[0]).table
            values = [raw[at : at + n] for at, n in table[:, [QUALITY, LENGTH]].tolist()]
            first = np.concatenate([raw[:0], *values])
            first = first[first > ord(" ")]  # they may stand on several lines
            if len(first) and OLD_OFFSET <= first.min() < first.max() <= OLD_HIGHEST:
                what = f"no quality in the first {LOOKED_AT_BYTES:,} bytes is below"
                cure = f"as in old Illumina files, which need {option('phred_offset')} 64"
                yield f"{source.path}: {what} {chr(OLD_OFFSET)!r}, {cure}"
                return


def _exact_ends(signatures: Signatures, options: ScanOptions) -> Iterator[str]:
    """Yield a note where the exact part seems to be at the wrong end, or no PAM to be there."""
    prefix, suffix = options.exact_prefix, options.exact_suffix
    if not options.has_errors or bool(prefix) == bool(suffix):
        return
    bases, letters = prefix or suffix, signatures.letters.joined
    borders = signatures.letters.offsets[: LOOKED_AT_SIGNATURES + 1]
    first = letters[borders[:-1, None] + np.arange(bases)]
    last = letters[borders[1:, None] - np.arange(bases, 0, -1)]
    kept, other = (first, last) if prefix else (last, first)
    is_exact = np.isin(kept, PLAIN_BASES).all(axis=1)
    is_turned = is_exact & ~np.isin(other, PLAIN_BASES).all(axis=1)
    at = int(is_turned.argmax())
    one, two = map(option, ("exact_prefix", "exact_suffix"))
    here = f"{one if prefix else two} {bases} keeps {kept[at].tobytes().decode()}"
    here += f" of {quoted(signatures.names[at])}"
    if is_turned.any():
        rest, there = other[at].tobytes().decode(), two if prefix else one
        yield f"{here}, whose other end is {rest}: if that is the PAM, give {there}"
    elif is_exact.all() and options.max_mismatches and np.isin(np.diff(borders), SPACERS).all():
        pam = "TTTV…" if prefix else "…NGG"
        yield f"{here}: if the signatures are guides, the PAM has to be a part of them, as in {pam}"


def notes_on_format(fmt: RowFormat, path: str | None, ambiguous: bool) -> Iterator[str]:
    """Yield the notes on the format of the output.

    path       of the output, or None
    ambiguous  whether a column with the ambiguous bases was asked for
    """
    if ambiguous and fmt.name == "cas-offinder":
        yield f"{option('ambiguous')} has no effect: {fmt.name} has its own columns"
    suffix = uncompressed_suffix(path)
    promises = FOREIGN.union(*(each.suffixes for each in ROW_FORMATS.values()))
    if suffix in promises.difference(fmt.suffixes):
        although = f"although its name ends in {suffix}"
        yield f"{path} is written as {fmt.name}, as {option('format')} says, {although}"


def notes_after(signatures: Signatures, options: ScanOptions, totals: ScanTotals) -> Iterator[str]:
    """Yield the notes on the rows and on the lengths of the samples."""
    if not options.index_reads:  # there barcodes are not in the samples
        yield from _too_long(signatures, options, totals.longest)
    if totals.repeated:
        yield (
            f"samples with the name of an earlier one: {totals.repeated:,}, e.g."
            f" {quoted(totals.example)}; only Parquet and Python (sample_index) tell them apart"
        )
    if totals.left_out:
        yield (
            f"secondary and supplementary records are left out: {totals.left_out:,}; what they"
            " have stands in the primary ones"
        )
    if totals.nameless:
        yield f"samples without a name that have rows: {totals.nameless:,}; their column is empty"
    yield from note_on_ambiguity(totals)


def note_on_ambiguity(totals: ScanTotals) -> Iterator[str]:
    """Yield a note, once, where most matches so far lie on ambiguous bases."""
    if totals.mostly_ambiguous > AMBIGUOUS_SHARE * totals.hits and not totals.ambiguity_noted:
        totals.ambiguity_noted = True
        yield (
            f"{totals.mostly_ambiguous:,} of {totals.hits:,} matches lie mostly on ambiguous bases"
            f" of the samples, which match others: {option('max_ambiguous')} 0.1 allows"
            " 10 % of a match"
        )


def _same_files(sources: Sequence[Source], what: str) -> Iterator[str]:
    """Yield a note on files that are read more than once."""
    places = [source.place for source in sources]
    times = Counter(places)
    if again := len(places) - len(times):
        repeated = (each.path for each, at in zip(sources, places, strict=True) if times[at] > 1)
        files = f"{what} files given more than once: {again:,}, e.g. {next(repeated)}"
        yield f"{files}; rows are repeated"


def _repeated_signatures(signatures: Signatures) -> Iterator[str]:
    """Yield a note on names that several signatures have."""
    again = len(signatures) - len(set(signatures.names))
    if again:
        (name, count), *_ = Counter(signatures.names).most_common(1)
        yield (
            f"signatures with the name of an earlier one: {again:,}, e.g. {quoted(name)}"
            f" ({count:,} times); only Parquet and Python (signature_index) tell them apart"
        )


def _too_long(signatures: Signatures, options: ScanOptions, longest: int) -> Iterator[str]:
    """Yield a note on signatures that are longer than every sample."""
    lengths = signatures.letters.lengths
    shortest_matches = lengths - allowed_bases(options.max_edits or options.max_rna_bulges, lengths)
    if options.overhang:
        shortest_matches = np.minimum(lengths, options.min_overlap)
    count = int((shortest_matches > longest).sum())
    if not count:
        return
    at, swapped = int(lengths.argmax()), "; are samples and signatures swapped?"
    yield (
        f"{count:,} of {len(lengths):,} signatures cannot occur: they are longer than the longest"
        f" sample ({longest:,} bases), e.g. {quoted(signatures.names[at])} with {lengths[at]:,}"
        + swapped
        * (count == len(lengths))
    )


# ---- signatures, or samples of a sheet, so near that something may be taken for both ------------


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
        sets = encode(np.frombuffer(padded, np.uint8))
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

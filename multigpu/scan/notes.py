"""Notes on a scan: what a user should know although it is no error, one line each."""

import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from multigpu.errors import quoted
from multigpu.formats.sequences.signatures import Signatures
from multigpu.formats.storage.sources import Source, inspect_source, is_regular
from multigpu.formats.storage.stored_streams import STDIN, is_remote, status_of
from multigpu.formats.storage.suffixes import FOREIGN, uncompressed_suffix
from multigpu.formats.tables.writers import FORMATS
from multigpu.kernels.scan import allowed_bases
from multigpu.scan.join import ScanTotals
from multigpu.scan.options import ScanOptions

AMBIGUOUS_SHARE = 0.5  # of all rows: a note is made above it


def notes_before(
    sources: Sequence[Source], paths: Sequence[str], signatures: Signatures, options: ScanOptions
) -> Iterator[str]:
    """Yield the notes on the inputs; `paths` are the files of the signatures."""
    yield from _same_files([source.path for source in sources], "sample")
    yield from _same_files(paths, "signature")
    yield from _repeated_signatures(signatures)
    if not options.most_errors and (options.exact_prefix or options.exact_suffix):
        yield (
            "--exact-prefix and --exact-suffix have no effect without --max-mismatches or"
            " --max-edits: all bases must match"
        )
    if any(source.layout != "fasta" for source in sources):
        return
    if options.min_score is not None:
        yield "--min-score has no effect: FASTA samples have no scores, and their rows stay"
    for path in paths[:1]:
        if is_regular(path) and inspect_source(path).layout == "fastq":
            yield (
                f"the signatures ({path}) are FASTQ and the samples ({sources[0].path}) FASTA:"
                " are the two swapped?"
            )


def notes_on_format(
    fmt: str, path: str | None, options: ScanOptions, ambiguous: bool
) -> Iterator[str]:
    """Yield the notes on the format of the output.

    path       of the output, or None
    ambiguous  whether a column with the ambiguous bases was asked for
    """
    if fmt == "text":
        if ambiguous:
            yield "--ambiguous has no effect: text has no columns"
        if options.error_columns:
            columns = " and ".join(options.error_columns)
            yield f"text has no columns {columns}: choose --format tsv, csv, bed or jsonl"
    suffix = uncompressed_suffix(path)
    promises = FOREIGN.union(*(each.suffixes for each in FORMATS.values())) - {".txt"}
    if suffix in promises.difference(FORMATS[fmt].suffixes):
        yield f"{path} is written as {fmt}, as --format says, although its name ends in {suffix}"


def notes_after(signatures: Signatures, options: ScanOptions, totals: ScanTotals) -> Iterator[str]:
    """Yield the notes on the rows and on the lengths of the samples."""
    yield from _too_long(signatures, options, totals.longest)
    if totals.repeated:
        yield (
            f"samples with the name of an earlier one: {totals.repeated:,}, e.g."
            f" {quoted(totals.example)}; only Parquet and Python (sample_index) tell them apart"
        )
    if totals.mostly_ambiguous > AMBIGUOUS_SHARE * totals.hits:
        yield (
            f"{totals.mostly_ambiguous:,} of {totals.hits:,} matches lie mostly on ambiguous bases"
            " of the samples, which match others: --max-ambiguous 0.1 allows 10 % of a match"
        )


def _same_files(paths: Sequence[str], what: str) -> Iterator[str]:
    """Yield a note on files that are read more than once."""
    places = [_place(path) for path in paths]
    times = Counter(places)
    again = len(paths) - len(times)
    if again:
        example = next(path for path, place in zip(paths, places, strict=True) if times[place] > 1)
        yield f"{what} files given more than once: {again:,}, e.g. {example}; rows are repeated"


def _place(path: str) -> tuple[int, int] | str:
    """Return a value that is equal for all paths of one regular file."""
    if path != STDIN and not is_remote(path):
        with suppress(OSError):
            status = status_of(path)
            if stat.S_ISREG(status.st_mode):
                return status.st_dev, status.st_ino
    return path


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
    shortest_matches = lengths - allowed_bases(options.max_edits or 0, lengths)
    count = int((shortest_matches > longest).sum())
    if not count:
        return
    rest = f"longer than the longest sample ({longest:,} bases)"
    if count == len(lengths):
        least = int(lengths.min())
        yield (
            f"no signature can occur: the shortest has {least:,} bases and is {rest};"
            " are samples and signatures swapped?"
        )
        return
    at = int(lengths.argmax())
    name = quoted(signatures.names[at])
    yield (
        f"{count:,} of {len(lengths):,} signatures cannot occur: they are {rest},"
        f" e.g. {name} with {lengths[at]:,}"
    )

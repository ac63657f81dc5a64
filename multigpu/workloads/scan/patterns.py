"""Signatures as the patterns that are searched, on one strand or both; limits of errors."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, quoted
from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.scan import Limits, Patterns, allowed_bases
from multigpu.workloads.scan.options import ScanOptions


def patterns_of(signatures: Signatures, options: ScanOptions) -> Patterns:
    letters = signatures.letters
    return Patterns.of_joined(letters.joined, letters.offsets, options.strand == "both")


def pattern_lengths(signatures: Signatures, options: ScanOptions) -> NDArray[np.int64]:
    """Return the length of each pattern, without making the patterns."""
    return np.repeat(signatures.letters.lengths, 2 if options.strand == "both" else 1)


def limits_of(patterns: Patterns, options: ScanOptions) -> Limits:
    """Return the errors that each pattern is searched with."""
    limits = Limits.of(patterns, options.most_errors, options.exact_prefix, options.exact_suffix)
    return replace(limits, most=searched_errors(patterns.lengths, options))


def searched_errors(lengths: NDArray[np.int64], options: ScanOptions) -> NDArray[np.int64]:
    """Return int64[n]: the most errors that patterns of these lengths are searched with."""
    return np.minimum(allowed_bases(options.most_errors, lengths) + options.spare_errors, lengths)


def longest_match(lengths: NDArray[np.int64], options: ScanOptions) -> int:
    """Return the most bases that a match of patterns of these lengths may have."""
    most = searched_errors(lengths, options) if options.max_edits else 0
    return int((lengths + most).max())


def check_errors(signatures: Signatures, options: ScanOptions) -> None:
    """Raise UsageError for limits that a signature is too short for."""
    if not options.has_errors:
        return
    lengths = signatures.letters.lengths
    shortest = int(np.argmin(lengths))
    name = quoted(signatures.names[shortest])
    for part, bases in (("prefix", options.exact_prefix), ("suffix", options.exact_suffix)):
        if bases > lengths[shortest]:
            raise UsageError(
                f"exact {part} of {_bases(bases)}: the signature {name} has only"
                f" {_bases(lengths[shortest])}"
            )
    if options.exact_prefix or options.exact_suffix:
        return
    spare = lengths - searched_errors(lengths, options)
    at = int(np.argmin(spare))
    if spare[at] <= 0:
        kind = "edits" if options.max_edits else "mismatches"
        more = f", and {options.spare_errors} for ties" if options.spare_errors else ""
        raise UsageError(
            f"up to {options.most_errors} {kind}{more}: the signature"
            f" {quoted(signatures.names[at])} has only {_bases(lengths[at])} and would match"
            " everywhere; allow fewer, or a share of the length (e.g. 0.1)"
        )


def _bases(count: int) -> str:
    return f"{count:,} base" if count == 1 else f"{count:,} bases"

"""Signatures as the patterns that are searched, on one strand or both; limits of errors."""

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import UsageError, option, quoted
from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.scan import Limits, Patterns, allowed_bases
from multigpu.kernels.scan.approximate.bulges import BulgeRules, Variants
from multigpu.workloads.scan.options import ScanOptions

MOST_VARIANT_BASES = 1 << 26  # of all signatures with their bulges: 2 GiB of memory


def patterns_of(signatures: Signatures, options: ScanOptions) -> Patterns:
    letters = signatures.letters
    return Patterns.of_joined(letters.joined, letters.offsets, options.strand == "both")


def variants_of(signatures: Signatures, options: ScanOptions) -> Variants:
    """Return the signatures with every bulge that they may have."""
    letters, both = signatures.letters, options.strand == "both"
    return Variants.of(letters.joined, letters.offsets, bulge_rules(options), both)


def bulge_rules(options: ScanOptions) -> BulgeRules:
    return BulgeRules(
        most=options.max_mismatches or 0,
        prefix=options.exact_prefix,
        suffix=options.exact_suffix,
        dna=options.max_dna_bulges,
        rna=options.max_rna_bulges,
    )


def pattern_lengths(signatures: Signatures, options: ScanOptions) -> NDArray[np.int64]:
    """Return the length of each pattern, without making the patterns; with bulges in no order."""
    lengths = signatures.letters.lengths
    if options.has_bulges:
        lengths = bulge_rules(options).lengths(lengths)
    return np.repeat(lengths, 2 if options.strand == "both" else 1)


def limits_of(patterns: Patterns, options: ScanOptions) -> Limits:
    """Return the errors that each pattern is searched with."""
    limits = Limits.of(patterns, options.most_errors, options.exact_prefix, options.exact_suffix)
    return limits._replace(most=searched_errors(patterns.lengths, options))


def searched_errors(lengths: NDArray[np.int64], options: ScanOptions) -> NDArray[np.int64]:
    """Return int64[n]: the most errors that patterns of these lengths are searched with.

    Where the best signature of a read is looked for, any other that has as few errors is tied, also
    where these are more than its own share.
    """
    most = allowed_bases(options.most_errors, lengths)
    if options.are_top and not options.overhang:
        most = np.full_like(most, most.max(initial=0))
    return np.minimum(most + options.spare_errors, lengths)


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
    if options.has_bulges:
        _check_variants(lengths, options)
    if options.exact_prefix or options.exact_suffix:
        return
    spare = lengths - searched_errors(lengths, options) - options.max_rna_bulges
    at = int(np.argmin(spare))
    if spare[at] <= 0:
        most, cures = options.most_errors, ["allow fewer"]
        if isinstance(most, float):
            most = int(allowed_bases(most, lengths).max())
            cures += ["scan long and short signatures apart"] * options.are_top
        else:
            cures.append("a share of the length (e.g. 0.1)")
        kind = "edit" if options.max_edits else "mismatch"
        kind += "" if most == 1 else "s" if options.max_edits else "es"
        more = ""
        if options.spare_errors:
            more = f", and {options.spare_errors} for ties"
            cures.append(f"a smaller {option('min_delta')}")
        if options.max_rna_bulges:
            more = f", and {_bases(options.max_rna_bulges)} in RNA bulges"
        what = "barcode" if options.sample_sheet else "signature"
        raise UsageError(
            f"up to {most} {kind}{more}: the {what} {quoted(signatures.names[at])} has only"
            f" {_bases(lengths[at])} and would match everywhere; {', or '.join(cures)}"
        )


def _check_variants(lengths: NDArray[np.int64], options: ScanOptions) -> None:
    """Raise UsageError where signatures with all of their bulges are too many."""
    rules, bases = bulge_rules(options), 0
    for length, times in zip(*np.unique(lengths, return_counts=True), strict=True):
        each = rules.counts(int(length))
        bases += int(times) * sum(size * count for size, count in each.items())
    if bases > MOST_VARIANT_BASES:
        raise UsageError(
            f"{option('max_dna_bulges')} {rules.dna} and {option('max_rna_bulges')} {rules.rna}"
            f" make {bases:,} bases of signatures with bulges, more than {MOST_VARIANT_BASES:,}:"
            " allow fewer, or scan with a part of the signatures at a time"
        )


def _bases(count: int) -> str:
    return f"{count:,} base" if count == 1 else f"{count:,} bases"

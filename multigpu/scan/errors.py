"""Limits of errors in a scan: what signatures they make sense for."""

import numpy as np

from multigpu.errors import UsageError, quoted
from multigpu.formats.sequences.signatures import Signatures
from multigpu.kernels.scan import allowed_bases
from multigpu.scan.options import ScanOptions


def check_errors(signatures: Signatures, options: ScanOptions) -> None:
    """Raise UsageError for limits that a signature is too short for."""
    if not options.most_errors:
        return
    lengths = signatures.letters.lengths
    shortest = int(np.argmin(lengths))
    for name in ("exact_prefix", "exact_suffix"):
        bases = getattr(options, name)
        if bases > lengths[shortest]:
            raise UsageError(
                f"{name} is {bases}, more than the {_bases(lengths[shortest])} of the signature"
                f" {quoted(signatures.names[shortest])}"
            )
    at = int(np.argmin(lengths - allowed_bases(options.most_errors, lengths)))
    if options.hits == "all" and allowed_bases(options.most_errors, lengths)[at] >= lengths[at]:
        kind = "max_edits" if options.max_edits else "max_mismatches"
        raise UsageError(
            f"{kind} is {options.most_errors}, as many as the signature"
            f" {quoted(signatures.names[at])} has bases ({lengths[at]:,}), which then matches"
            " everywhere: give fewer, a share of the length (e.g. 0.1), or --hits best"
        )


def _bases(count: int) -> str:
    return f"{count:,} base" if count == 1 else f"{count:,} bases"

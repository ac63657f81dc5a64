"""Alignments as text: lengths and operations along the sample, = X I D."""

import re

RUN = re.compile(rb"(\d+)([=XIDM])")


def spelled_out(cigar: bytes, is_reverse: bool = False) -> bytes:
    """Return an operation for each column, as ==X for 2=1X; where it is reverse from the last."""
    columns = b"".join([int(count) * kind for count, kind in RUN.findall(cigar)])
    return columns[::-1] if is_reverse else columns


def turned(cigar: bytes) -> bytes:
    """Return the alignment as it reads on the other strand."""
    return b"".join([count + kind for count, kind in RUN.findall(cigar)[::-1]])

"""Spans of a count: a file each. Decompression, most of the work, has threads of its own."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CountSpan:
    """An alignment file, by its number."""

    file: int

"""Borders of records in a text that begins with one: what the functions of all formats share.

A function that finds ends takes a text and whether it is `final`. It returns the ends of the
records in it, in order. Without `final` the last one is left out where more of it may come.
"""

import re


def find_lines(marks: tuple[bytes, ...], text: bytes) -> list[int]:
    """Return where the lines begin that begin with one of the marks."""
    pattern = rb"\n(?=%b)" % b"|".join(map(re.escape, marks))
    first = [0] if text.startswith(marks) else []
    return first + [newline.end() for newline in re.finditer(pattern, text)]


def last_end(ends: list[int]) -> int:
    """Return where what comes after all records begins."""
    return ends[-1] if ends else 0


def add_rest(ends: list[int], text: bytes, is_record: bool) -> list[int]:
    """Return the ends, and that of the text where the rest of it is a record."""
    return [*ends, len(text)] if is_record and last_end(ends) < len(text) else ends

"""Lines of a V3000 table of SDF, which may go on in the next one."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

V30 = b"M  V30 "
PLACE = 5  # words of an atom up to its place: number, type, x y z
TOKEN = re.compile(rb"\S+")


def section(lines: Sequence[bytes], name: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Row and words of every line of a block; see `joined_lines`."""
    inside = False
    for row, said in joined_lines(lines):
        words = said.split()
        if words[:1] in ([b"BEGIN"], [b"END"]):
            inside = words == [b"BEGIN", name]
        elif inside:
            yield row, words


def joined_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """What the lines of V3000 say, and in which row each begins: behind a - it goes on."""
    begin, said = -1, b""
    for row, line in enumerate(lines):
        if line.startswith(V30):
            begin, (part, goes_on) = row if begin < 0 else begin, _part(line)
            said += part
            if not goes_on:
                yield begin, said
                begin, said = -1, b""


def _part(line: bytes) -> tuple[bytes, bool]:
    """What it says, and whether that goes on."""
    part = line[len(V30) :].rstrip()
    return part.removesuffix(b"-"), part.endswith(b"-")


def gather_place(lines: list[bytes], row: int) -> None:
    """Puts all of an atom's place into its first line, and what is behind that into the last.

    Lines between them, or without anything left, are empty.
    """
    last, said, goes_on = row, *_part(lines[row])
    while goes_on and len((said + b"x").split()) <= PLACE:  # the last word may go on
        last += 1
        if lines[last].startswith(V30):
            part, goes_on = _part(lines[last])
            said += part
    if last == row:
        return
    *_, word = islice(TOKEN.finditer(said), PLACE)
    place, more = said[: word.end()], said[word.end() :].lstrip() + b"-" * goes_on
    newline = lines[row][len(lines[row].rstrip(b"\r\n")) :]
    lines[row : last + 1] = [b""] * (last + 1 - row)
    lines[row] = V30 + place + b" -" * bool(more) + newline
    lines[last] = V30 + more + newline if more else b""

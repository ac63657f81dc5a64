"""Lines of a V3000 table of SDF, which may continue in the next line."""

from collections.abc import Iterator, Sequence
from itertools import islice

from multigpu.formats.molecules.fields import TOKEN

V30 = b"M  V30 "
PLACE = 5  # words of an atom up to its place: number, type, x y z


def read_section(lines: Sequence[bytes], name: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield row and words of every line of a block; see `join_lines`."""
    inside = False
    for row, said in join_lines(lines):
        words = said.split()
        if words[:1] in ([b"BEGIN"], [b"END"]):
            inside = words == [b"BEGIN", name]
        elif inside:
            yield row, words


def join_lines(lines: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield in which row each line of V3000 begins and what it says: after a - it continues."""
    begin, said = -1, b""
    for row, line in enumerate(lines):
        if line.startswith(V30):
            begin, (part, continues) = row if begin < 0 else begin, _part(line)
            said += part
            if not continues:
                yield begin, said
                begin, said = -1, b""


def _part(line: bytes) -> tuple[bytes, bool]:
    """Return what a line says, and whether that continues in the next line."""
    part = line[len(V30) :].rstrip()
    return part.removesuffix(b"-"), part.endswith(b"-")


def gather_place(lines: list[bytes], row: int) -> None:
    """Put all of an atom's place into its first line, and what comes after that into the last.

    Lines between them, or without anything left, become empty.
    """
    last, said, continues = row, *_part(lines[row])
    while continues and len((said + b"x").split()) <= PLACE:  # the last word may continue
        last += 1
        if lines[last].startswith(V30):
            part, continues = _part(lines[last])
            said += part
    if last == row:
        return
    *_, word = islice(TOKEN.finditer(said), PLACE)
    place, more = said[: word.end()], said[word.end() :].lstrip() + b"-" * continues
    newline = lines[row][len(lines[row].rstrip(b"\r\n")) :]
    lines[row : last + 1] = [b""] * (last + 1 - row)
    lines[row] = V30 + place + b" -" * bool(more) + newline
    lines[last] = V30 + more + newline if more else b""

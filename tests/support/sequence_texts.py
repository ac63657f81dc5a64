"""Texts of FASTQ and FASTA, and tables of their records as text."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from multigpu.formats.sequences.records import Parsed
from multigpu.formats.sequences.registry import FORMATS
from multigpu.formats.sequences.spans import BlockSpan
from multigpu.kernels.compiled.text import records
from multigpu.kernels.device.buffers import Buffers

Record = tuple[bytes, bytes, bytes | None]  # name, bases, qualities
Fields = tuple[bytes, bytes, bytes]  # the same, b"" for no qualities
Layout = Literal["fastq", "fasta"]

FASTQ = {
    "plain": b"@r1 one\nACGT\n+\nIIII\n@r2\nAC\n+r2\n!~\n",
    "crlf": b"@r1\tone\r\nACGT\r\n+\r\nIIII\r\n@r2\r\nAC\r\n+\r\nII\r\n",
    "wrapped": b"@r1\nACG\nTAC\nG\n+\nIII\nIIII\n@r2\nAC\nGT\n+\nI\nIII\n",
    "wrapped, crlf": b"@r1\r\nACG\r\nTA\r\n+\r\nIII\r\nII\r\n@r2\r\nAC\r\n+\r\nII\r\n",
    "no last line end": b"@r1\nACGT\n+\nIIII\n@r2\nAC\n+\nII",
    "quality like a header": b"@r1\nACGT\n+\n@@+@\n@r2\nAC\n+\n@r\n@r3\nA\n+\n@\n",
    "quality like a plus": b"@r1\nACGT\n+\n+@+@\n@r2\nAC\n+\n+\x7e\n@r3\nA\n+\n+\n",
    "empty sequences": b"@r1\n\n+\n\n@r2\nAC\n+\nII\n@r3\n\n+\n\n@r4\n\n+\n\n",
    "blank lines between": b"\n\n@r1\nACGT\n+\nIIII\n\n\r\n\n@r2\nAC\n+\nII\n\n\n",
    "no names": b"@\nACGT\n+\nIIII\n@ one\nAC\n+\nII\n",
    "wrapped qualities": b"@r1\nACGT\n+r1\nII\n5@\n@r2\nACG\n+\nI\r\n@I\r\n\n@r3\nA\n+\nI\n",
    "names repeated": b"@r1 one\nACGT\n+r1 two\nIIII\n@r2\nAC\n+ r3\nII\n \t\n@r\tx\nA\n+r\r\nI\n",
}
FASTA = {
    "plain": b">r1 one\nACGT\n>r2\nAC\n",
    "crlf": b">r1\tone\r\nACGT\r\nAC\r\n>r2\r\nAC\r\n",
    "wrapped": b">r1 one\nACG\nTAC\nG\n>r2\nAC\nGT\n",
    "no last line end": b">r1\nACGT\nAC\n>r2\nAC",
    "empty sequences": b">r1\n>r2\nAC\n>r3\n\n>r4\n\n\n>r5\n>r6",
    "blank lines": b"\n\r\n>r1\n\nAC\n\nGT\n\n>r2\n\n\nAC\n\n",
    "no names": b">\nACGT\n> one\nAC\n",
    "marks inside": b">r1 >x\nAC\n>r2>\nAC\n",
    "white space": b" \n\t\n>r1  \nAC \n \t\nGT\t\x0b\x0c\r\n\r\n>r2\n \nA  C\n\tA \r",
}
TEXTS = [("fastq", name) for name in FASTQ] + [("fasta", name) for name in FASTA]


def text_of(layout: str, name: str) -> bytes:
    return (FASTQ if layout == "fastq" else FASTA)[name]


def array(text: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(text, np.uint8).copy()


def parse(raw: NDArray[np.uint8], layout: str, *, final: bool = True, offset: int = 33) -> Parsed:
    """Return the records of bytes in memory."""
    return FORMATS[layout].parse(raw, final, offset)


def slices(raw: NDArray[np.uint8], parsed: Parsed) -> list[Record]:
    """Return the rows of a table as text, without a last one that is at fault."""
    table = parsed.table[:-1] if parsed.fault is records.Fault.QUALITY else parsed.table
    assert (table.dtype, table.shape[1]) == (np.int64, records.COLUMNS)
    return [one(raw, row) for row in table]


def fields_of(block: BlockSpan) -> list[Fields]:
    """Return name, bases and quality of the records of a block; raise its error."""
    if block.error:
        raise block.error
    found = [one(block.raw, row) for row in block.table]
    return [(name, bases, quality or b"") for name, bases, quality in found]


def one(raw: NDArray[np.uint8], row: NDArray[np.int64]) -> Record:
    name = raw[row[records.NAME] : row[records.NAME_END]].tobytes()
    bases = letters_at(raw, row, records.BASES)
    return name, bases, None if row[records.QUALITY] < 0 else letters_at(raw, row, records.QUALITY)


def letters_at(raw: NDArray[np.uint8], row: NDArray[np.int64], column: int) -> bytes:
    """Return a record's bases or qualities, on several lines only where the row says so."""
    text = raw[row[column] :].tobytes()
    if row[records.WRAPPED]:
        is_fasta, lines = row[records.QUALITY] < 0, text.split(b"\n")
        text = b"".join(line.rstrip() if is_fasta else line.removesuffix(b"\r") for line in lines)
    return text[: row[records.LENGTH]]


@contextmanager
def opened(text: bytes) -> Iterator[int]:
    """A descriptor of a file that holds the text."""
    file = os.memfd_create("samples")
    try:
        os.write(file, text)
        yield file
    finally:
        os.close(file)


def buffers() -> Buffers:
    return Buffers(lambda size: np.empty(size, np.uint8))


def wrapped(draw: st.DrawFn, letters: bytes, widths: list[int], end: bytes) -> bytes:
    """Return letters on lines of these widths, or on one line without any."""
    lines = []
    for width in widths:
        lines.append(letters[:width])
        letters = letters[width:]
    return b"".join(line + end for line in [*lines, letters] if line) or end


def any_text() -> st.SearchStrategy[tuple[str, bytes]]:
    """Layout and text of a file, drawn or fixed."""
    layouts: list[Layout] = ["fastq", "fasta"]
    drawn = st.sampled_from(layouts).flatmap(lambda each: st.tuples(st.just(each), texts(each)))
    return drawn | st.sampled_from(TEXTS).map(lambda each: (each[0], text_of(*each)))


@st.composite
def texts(draw: st.DrawFn, layout: Layout) -> bytes:
    """Draw a good file: wrapped or not, LF or CRLF, with blank lines, a last line end or none."""
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    quality = st.lists(st.sampled_from(b"@+!~I>5"), min_size=30, max_size=30).map(bytes)
    out = end * draw(st.integers(0, 2))
    for number in range(draw(st.integers(1, 5))):
        comment = draw(st.sampled_from([b"", b" a b", b"\tx", b" >@+"]))
        bases = bytes(draw(st.lists(st.sampled_from(b"ACGTNacgt"), max_size=30)))
        widths = st.lists(st.integers(1, 9), max_size=4) if len(bases) > 1 else st.just([])
        out += (b"@" if layout == "fastq" else b">") + b"r%d" % number + comment + end
        cuts = draw(widths)
        out += wrapped(draw, bases, cuts, end)
        if layout == "fastq":
            values = draw(quality)[: len(bases)]
            out += b"+" + draw(st.sampled_from([b"", b"r%d" % number])) + end
            out += wrapped(draw, values, draw(widths), end)
        out += end * draw(st.integers(0, 2))
    return out.rstrip(b"\r\n") if draw(st.booleans()) and bases else out

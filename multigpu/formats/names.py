"""Names that stand in inputs, of samples, signatures and ligands: what is refused, in one place."""

import re
import zlib
from urllib.parse import quote

from multigpu.errors import quoted
from multigpu.kernels.compiled.text import LONGEST_NAME

SIGNS = "+=@,"  # besides letters, digits and _.-~, in names of files
LONGEST_FILE_NAME = 200  # bytes that stand for a name
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")  # as the parsers of sequences know them, too


def name_problem(name: bytes | str) -> str:
    """Return what is wrong with a name, for a message that says whose it is; empty for nothing.

    A name may not have control characters, as it goes to tables and terminals, nor be too long.
    """
    if isinstance(name, str) and len(name) < LONGEST_NAME // 4 and name.isprintable():
        return ""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    if found := CONTROL.search(raw.decode("utf-8", "surrogateescape")):
        return f"the name has the control character {quoted(found[0])}: rename it"
    if len(raw) > LONGEST_NAME:
        return f"the name has more than {LONGEST_NAME:,} bytes: is a line end missing?"
    return ""


def file_name(name: bytes | str) -> str:
    """Return a name as a part of a path of its own: letters, digits, some signs, else %XX."""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    text = quote(raw, safe=SIGNS) or "%"
    if text.startswith("."):
        text = f"%2E{text[1:]}"
    if len(text) <= LONGEST_FILE_NAME:
        return text
    return f"{text[:LONGEST_FILE_NAME]}%{zlib.crc32(raw):08x}"

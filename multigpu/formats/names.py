"""Names that stand in inputs, of samples, signatures and ligands: what is refused, in one place."""

import re

from multigpu.errors import quoted
from multigpu.kernels.compiled.text import LONGEST_NAME

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

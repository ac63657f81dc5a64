"""Where records of ligands end, told without parsing them.

Each function takes text that begins with a record and gives the ends of those in it, in order.
Without `final` the last one is left out where more of it may come.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

SOME_COUNTS = 256  # of atoms, whose patterns are kept

ATOM = re.compile(rb"^(ATOM  |HETATM)", re.MULTILINE)
BEGUN = re.compile(rb"^(ATOM  |HETATM|MODEL\b)", re.MULTILINE)
MODEL_ENDS = (b"ENDMDL", b"END\n", b"END\r", b"END ")
ROOTS = (b"ROOT\n", b"ROOT\r", b"ROOT ")
HEADS = (b"REMARK", b"MODEL", b"USER", b"HEADER", b"COMPND", b"\n", b"\r")  # lines before a ROOT

XYZ_COUNT = re.compile(rb"\s*+(\d{1,9})[ \t\r]*+\n")
XYZ_COUNTS = re.compile(rb"^[ \t]*+\d{1,9}[ \t\r]*+\n", re.MULTILINE)
XYZ_ATOM = rb"(?:[ \t]*+\S++[ \t]++\S[^\n]*+\n)"  # two words at least: no count
XYZ_ATOMS = re.compile(rb"[^\n]*+\n%b*+" % XYZ_ATOM)
BLANKS = re.compile(rb"\s*+")
NOT_ALL, NOT_ONE = 0, -1  # of a frame: more of it may come; it is none


def sdf_ends(text: bytes, final: bool) -> list[int]:
    """Behind every line of $$$$; a .mol file needs none."""
    newlines = [text.find(b"\n", begin) for begin in _lines(text, (b"$$$$",))]
    ends = [newline + 1 for newline in newlines if newline >= 0]
    return _with_rest(ends, text, final and bool(text[_last(ends) :].strip()))


def mol2_ends(text: bytes, final: bool) -> list[int]:
    """Before every @<TRIPOS>MOLECULE but the first, and what stands directly in front of it."""
    begins = _lines(text, (b"@<TRIPOS>MOLECULE",))
    ends = [_head_of_molecule(text, at) for at in begins[1:]]
    return _with_rest(ends, text, final and bool(text.strip()))


def _head_of_molecule(text: bytes, at: int) -> int:
    """Where the comments and blank lines begin before a line that is none of these."""
    while True:
        before = text.rfind(b"\n", 0, at - 1) + 1
        if not text.startswith(b"#", before) and text[before:at].strip():
            return at
        at = before


# ---- PDB and PDBQT ----------------------------------------------------------------------------


def pdb_ends(text: bytes, final: bool) -> list[int]:
    """Behind every ENDMDL and END with atoms before it, or a model without; else one record."""
    return _model_ends(text, final, MODEL_ENDS)


def pdbqt_ends(text: bytes, final: bool) -> list[int]:
    """As of PDB, and before the remarks of a second ROOT, which files have that were joined."""
    return _model_ends(text, final, (*MODEL_ENDS, *ROOTS))


def _model_ends(text: bytes, final: bool, marks: tuple[bytes, ...]) -> list[int]:
    ends: list[int] = []
    begin, has_root = 0, False
    for at in _lines(text, marks):
        is_root = text.startswith(b"ROOT", at)
        if not is_root:
            end = _end_of_model(text, begin, at)
        else:
            end = _head_of_root(text, at) if has_root else 0
        has_root = is_root or (has_root and not end)
        if end:
            ends.append(end)
            begin = end
    return _with_rest(ends, text, final and bool(ATOM.search(text, begin)))


def _end_of_model(text: bytes, begin: int, at: int) -> int:
    """Behind the line at `at`; 0 where it ends no record."""
    end = text.find(b"\n", at) + 1
    is_mark = text.startswith(b"ENDMDL", at) or text[at:end].strip() == b"END"
    return end if is_mark and BEGUN.search(text, begin, at) else 0


def _head_of_root(text: bytes, at: int) -> int:
    """Where the remarks begin before a ROOT; 0 where it is that of a flexible residue."""
    while True:
        before = text.rfind(b"\n", 0, at - 1) + 1
        if text.startswith(b"BEGIN_RES", before):
            return 0
        if not text.startswith(HEADS, before):
            return at
        at = before


# ---- XYZ --------------------------------------------------------------------------------------


def xyz_ends(text: bytes, final: bool) -> list[int]:
    """Behind every frame; of one that is wrong, before the next line that begins one."""
    lines = text if text.endswith(b"\n") or not final else text + b"\n"
    ends: list[int] = []
    begin = 0
    while (end := _xyz_end(lines, begin, final)) > 0:
        ends.append(min(end, len(text)))
        begin = end
    return _with_rest(ends, text, final and bool(text[begin:].strip()))


def _xyz_end(text: bytes, begin: int, final: bool) -> int:
    """Of the record at `begin`; 0 where it may be longer than the text."""
    end = _frame_end(text, begin, final)
    if end > 0:
        behind = _behind_blanks(text, end)
        if behind == len(text):
            return end if final else NOT_ALL
        if XYZ_COUNT.match(text, behind):
            return end
        end = _unless_cut(text, behind, final)
    return _next_frame(text, begin, final) if end == NOT_ONE else NOT_ALL


def _frame_end(text: bytes, begin: int, final: bool) -> int:
    """Behind a count, a comment and so many atoms; else `NOT_ALL` or `NOT_ONE`."""
    count = XYZ_COUNT.match(text, begin)
    if not count:
        return _unless_cut(text, begin, final)
    if frame := _xyz_frame(int(count[1])).match(text, count.end()):
        return frame.end()
    atoms = XYZ_ATOMS.match(text, count.end())
    return _unless_cut(text, atoms.end() if atoms else count.end(), final)


@lru_cache(SOME_COUNTS)
def _xyz_frame(atoms: int) -> re.Pattern[bytes]:
    return re.compile(rb"[^\n]*+\n%b{%d}" % (XYZ_ATOM, atoms))


def _unless_cut(text: bytes, at: int, final: bool) -> int:
    """What a frame is that does not go on well in the line at `at`."""
    words = _behind_blanks(text, at)
    return NOT_ONE if final or text.find(b"\n", words) >= 0 else NOT_ALL


def _behind_blanks(text: bytes, at: int) -> int:
    blanks = BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _next_frame(text: bytes, begin: int, final: bool) -> int:
    """Where the first frame behind a wrong one begins; 0 where there is none, or not yet."""
    count = XYZ_COUNT.match(text, begin)
    line = count.end() if count else _behind_blanks(text, begin)  # a comment is no count
    at = text.find(b"\n", line) + 1
    for found in XYZ_COUNTS.finditer(text, at) if at else ():
        end = _frame_end(text, found.start(), final)
        if end != NOT_ONE:
            return found.start() if end > 0 else NOT_ALL
    return NOT_ALL


# ---- lines ------------------------------------------------------------------------------------


def _lines(text: bytes, marks: tuple[bytes, ...]) -> Sequence[int]:
    """Where the lines begin that begin with one of these."""
    pattern = rb"\n(?=%b)" % b"|".join(map(re.escape, marks))
    first = [0] if text.startswith(marks) else []
    return first + [newline.end() for newline in re.finditer(pattern, text)]


def _last(ends: Sequence[int]) -> int:
    return ends[-1] if ends else 0


def _with_rest(ends: list[int], text: bytes, is_record: bool) -> list[int]:
    return [*ends, len(text)] if is_record and _last(ends) < len(text) else ends


ENDS: dict[str, Callable[[bytes, bool], list[int]]] = {
    "sdf": sdf_ends,
    "mol2": mol2_ends,
    "pdb": pdb_ends,
    "pdbqt": pdbqt_ends,
    "xyz": xyz_ends,
}

"""Whole records as text, against plain Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.kernels.compiled.text.records import (
    copy_records,
    find_offsets,
    mask_records,
    trim_records,
)

LINES = st.lists(st.text("ACgtN", min_size=1, max_size=4), min_size=1, max_size=4)


@st.composite
def records(draw: st.DrawFn) -> tuple[list[str], list[str], str, str]:
    """Return lines of bases, lines of qualities ([]: FASTA), the header, and a line end."""
    bases = draw(LINES)
    letters = sum(map(len, bases))
    text = draw(st.text("+@>!I~", min_size=letters, max_size=letters))
    width = draw(st.integers(1, letters)) if len(bases) > 1 else letters
    qualities = [text[at : at + width] for at in range(0, letters, width)]
    is_fasta = draw(st.booleans())
    header = (">" if is_fasta else "@") + draw(st.sampled_from(["r", "r comment ACGT", ""]))
    return bases, [] if is_fasta else qualities, header, draw(st.sampled_from(["\n", "\r\n"]))


def text_of(header: str, end: str, bases: list[str], qualities: list[str]) -> bytes:
    lines = [header, *bases] if header[0] == ">" else [header, *bases, "+", *qualities]
    return "".join(line + end for line in lines).encode()


def cut(lines: list[str], begin: int, end: int) -> list[str]:
    """Return a window of letters on the lines where they stand."""
    found, at = [], 0
    for line in lines:
        if part := line[max(0, begin - at) : max(0, end - at)]:
            found.append(part)
        at += len(line)
    return found or [""] * bool(lines)


@given(st.lists(st.tuples(records(), st.integers(0, 16), st.integers(0, 16)), max_size=5))
def test_records__are_trimmed_and_masked_on_their_lines(
    cases: list[tuple[tuple[list[str], list[str], str, str], int, int]],
) -> None:
    texts, trimmed, masked, windows = [], [], [], []
    for (bases, qualities, header, end), one, other in cases:
        size = sum(map(len, bases))
        begin, stop = sorted((min(one, size), min(other, size)))
        windows.append((begin, stop))
        texts.append(text_of(header, end, bases, qualities))
        trimmed.append(text_of(header, end, cut(bases, begin, stop), cut(qualities, begin, stop)))
        letters = "".join(bases)
        letters = letters[:begin] + "N" * (stop - begin) + letters[stop:]
        places = np.cumsum([0, *map(len, bases)])
        lines = [letters[a:b] for a, b in pairwise(places)]
        masked.append(text_of(header, end, lines, qualities))
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    kept = np.array(windows, np.int64).reshape(-1, 2)
    whole = np.frombuffer(b"".join(texts), np.uint8)
    mask_records(out := whole.copy(), offsets, np.arange(len(kept)), *kept.T.copy())
    assert out.tobytes() == b"".join(masked)
    trim_records(out := whole.copy(), offsets, kept)
    assert out[: offsets[-1]].tobytes() == b"".join(trimmed)
    assert np.diff(offsets).tolist() == list(map(len, trimmed))


def test_copy__ends_a_last_line_that_has_no_end() -> None:
    raw = np.frombuffer(b"@a\nC\n+\nI\n@b\nG\n+\nI", np.uint8)
    begins, ends, chosen = np.array([0, 9]), np.array([9, 17]), np.array([1, 0])
    offsets = np.empty(3, np.int64)
    out = np.empty(find_offsets(raw, begins, ends, chosen, offsets), np.uint8)
    copy_records(raw, begins, ends, chosen, offsets, out)
    assert out.tobytes() == b"@b\nG\n+\nI\n@a\nC\n+\nI\n"

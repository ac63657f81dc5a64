"""Patterns over the ends of records, against all their places one by one, and their alignments."""

import re
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import with_edits
from support.scan_cases import chunk_of, random_letters

from multigpu.kernels.bases import encode
from multigpu.kernels.scan import Chunk, Limits, Patterns
from multigpu.kernels.scan.approximate.alignment import Layouts, align_layouts
from multigpu.kernels.scan.approximate.reference import agree
from multigpu.kernels.scan.overhang import OverhangSearch


class Overhang(NamedTuple):
    start: bool
    end: bool
    least: int
    most: int | float


Place = tuple[int, int, int, int]  # record, pattern, start, end
Case = tuple[Chunk, Patterns, Limits, Overhang, bool]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Records that end within a pattern, or have only a part of one."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ambiguous = draw(st.sampled_from([0.0, 0.1, 0.5]))
    many = draw(st.sampled_from([3, 3, 3, 150]))
    signatures = [random_letters(rng, int(rng.integers(1, 16)), ambiguous) for _ in range(many)]
    records = []
    for _ in range(rng.integers(1, 8)):
        chosen = (signatures[int(rng.integers(many))] for _ in range(2))
        first, last = (with_edits(rng, each, int(rng.integers(0, 2))) for each in chosen)
        middle = random_letters(rng, int(rng.integers(0, 12)), ambiguous)
        record = np.concatenate([first, middle, last])
        cut = int(rng.integers(0, len(record) + 1))
        records.append(record[cut : cut + int(rng.integers(0, 30))])
    patterns = Patterns.of(signatures, draw(st.booleans()))
    most = draw(st.integers(0, 6) | st.sampled_from([0.1, 0.29, 0.5]))
    exact = [draw(st.sampled_from([0, 0, 0, 2])) for _ in range(2)]
    sides = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
    overhang = Overhang(*sides, draw(st.integers(1, 4)), most)
    limits = Limits.of(patterns, most, *exact)
    return chunk_of(records), patterns, limits, overhang, draw(st.booleans())


def oracle(case: Case, record: int, p: int) -> dict[Place, tuple[int, str]]:
    """Return the fewest errors and an alignment with them for each place of a pattern."""
    chunk, patterns, limits, overhang, strict = case
    letters = encode(chunk.letters[chunk.offsets[record] : chunk.offsets[record + 1]]).tolist()
    pattern = patterns.sets[patterns.offsets[p] : patterns.offsets[p + 1]].tolist()
    length, size = len(letters), len(pattern)
    found: dict[Place, tuple[int, str]] = {}
    for at in range(1 - size, length):
        start, end = max(at, 0), min(at + size, length)
        hangs = (at < 0, at + size > length)
        if hangs == (False, False) or hangs > (overhang.start, True) or hangs[1] > overhang.end:
            continue
        steps = "".join(
            "D" if not 0 <= at + i < length
            else "X="[agree(letters[at + i], base, strict)]
            for i, base in enumerate(pattern)
        )  # fmt: skip
        kept = steps[: limits.prefix[p]] + steps[max(0, size - limits.suffix[p]) :]
        errors, seen = steps.count("X"), end - start
        most = overhang.most
        share = Fraction(min(most, size), size) if isinstance(most, int) else Fraction(str(most))
        if seen >= overhang.least and "X" not in kept and errors <= floor(share * seen):
            best = found.setdefault((record, p, start, end), (errors, steps))
            found[record, p, start, end] = min(best, (errors, steps), key=lambda each: each[0])
    return found


@given(cases())
def test_hits__are_those_of_all_places(case: Case) -> None:
    chunk, patterns, limits, overhang, strict = case
    expected: dict[Place, tuple[int, str]] = {}
    for record in range(len(chunk.offsets) - 1):
        for pattern in range(len(patterns)):
            expected |= oracle(case, record, pattern)
    ends = np.ones(len(chunk.offsets) - 1, bool)
    search = OverhangSearch(patterns, limits, overhang.most, overhang.least, strict)
    hits = search.find(chunk, ends & overhang.start, ends & overhang.end)
    hits = hits.take(np.argsort(hits.errors, kind="stable"))
    hits = hits.chosen("all", patterns.strands, by_end=False)
    *columns, errors_of = ([*each.tolist()] for each in (
        hits.record, hits.pattern, hits.start, hits.end, hits.errors))  # fmt: skip
    places = list(zip(*columns, strict=True))
    got = dict(zip(places, errors_of, strict=True))
    assert len(got) == len(places)
    assert got == {place: errors for place, (errors, _) in expected.items()}
    layouts = Layouts(patterns.sets, patterns.offsets)
    found = align_layouts(chunk.offsets, chunk.letters, layouts, hits, hits.pattern, strict)
    for (record, *rest, start, end), text in zip(places, found.texts(), strict=True):
        errors, steps = expected[record, *rest, start, end]
        shown = "".join(step * int(many) for many, step in re.findall(r"(\d+)(\D)", text.decode()))
        assert (shown.count("X"), shown.count("D")) == (errors, steps.count("D"))
        # Where all of a record is seen, there may be several ways.
        is_all = end - start == chunk.offsets[record + 1] - chunk.offsets[record]
        assert shown == steps or is_all

"""The search with errors against the plain recurrences, alignments among it."""

from functools import cache
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from support.approximate_cases import Case, cases, rows, search
from support.examples import examples
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan import Chunk, Hits, Limits, Patterns, cpu_planes
from multigpu.kernels.scan.approximate import cpu, reference
from multigpu.kernels.scan.types import Wanted


def cigar(operations: str) -> str:
    return "".join(f"{len(list(run))}{operation}" for operation, run in groupby(operations))


@pytest.mark.parametrize("edits", [False, True])
@given(case=cases())
@examples(300)
def test_hits__are_those_of_the_reference_with_their_alignments(edits: bool, case: Case) -> None:
    chunk, patterns, limits, strict = case
    expected, operations = reference.search(chunk, patterns, limits, edits=edits, strict=strict)
    hits, cigars = search(case, edits=edits)
    assert rows(hits) == rows(expected)
    assert cigars == [cigar(each) for each in operations]


@pytest.mark.parametrize("edits", [False, True])
@given(case=cases())
@examples(60)
def test_first_and_best__are_chosen_among_all(edits: bool, case: Case) -> None:
    every, _ = search(case, edits=edits)
    place = every.end if edits else every.start
    signature = every.pattern // case[1].strands
    pairs = set(zip(every.record.tolist(), signature.tolist(), strict=True))
    for wanted in ("first", "best"):
        found, _ = search(case, edits=edits, wanted=wanted)
        for pair in pairs:
            here = (every.record == pair[0]) & (signature == pair[1])
            if wanted == "best":
                here &= every.errors == every.errors[here].min()
            here &= place == place[here].min()
            expected = rows(every.take(here))
            chosen = [row for row in rows(found) if (row[0], row[1] // case[1].strands) == pair]
            assert chosen == [min(expected, key=lambda row: row[1])]
        assert len(found) == len(pairs)


@pytest.mark.parametrize("edits", [False, True])
def test_scan__of_more_hits_than_have_room(edits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_planes, "FIRST_ROOM", 2)
    patterns = Patterns.of([array("ACGTT")], False)
    case = (chunk_of([array("ACGTTACGGTAGGTT" * 5)] * 3), patterns, Limits.of(patterns, 1), False)
    expected, _ = reference.search(*case[:3], edits=edits, strict=False)
    assert len(expected) > 20
    assert rows(search(case, edits=edits)[0]) == rows(expected)


def test_limits__are_shares_of_each_length_and_change_places_on_the_reverse_strand() -> None:
    patterns = Patterns.of([array("A" * 100), array("C" * 19)], True)
    limits = Limits.of(patterns, 0.29, exact_prefix=1, exact_suffix=3)
    assert limits.most.tolist() == [29, 29, 5, 5]
    assert limits.prefix.tolist() == [1, 3, 1, 3]
    assert limits.suffix.tolist() == [3, 1, 3, 1]
    assert Limits.of(patterns, 50).most.tolist() == [50, 50, 19, 19]


def test_run__is_reported_at_its_first_end_with_the_largest_start() -> None:
    """One T of the sample is left out, and it does not matter which."""
    patterns = Patterns.of([array("GATTACA")], False)
    case = (chunk_of([array("CCGATTTACACC")]), patterns, Limits.of(patterns, 1), False)
    hits, cigars = search(case, edits=True)
    assert rows(hits) == [(0, 0, 2, 10, 1)]
    assert cigars == ["2=1I5="]


@cache
def many_records() -> tuple[Chunk, Patterns, Limits, Hits]:
    """Return records that end within a tile, reach over tiles and are empty, and all hits."""
    rng = np.random.default_rng(4)
    sizes = [int(rng.choice([0, 3, 50, 150, 2500])) for _ in range(25)]
    chunk = chunk_of([random_letters(rng, size, 0.02) for size in sizes])
    patterns = Patterns.of([random_letters(rng, size, 0.1) for size in (4, 9, 40)], True)
    limits = Limits.of(patterns, 0.5)
    expected, _ = reference.search(chunk, patterns, limits, edits=False, strict=False)
    return chunk, patterns, limits, expected


@pytest.mark.parametrize("wanted", ["first", "best", "all"])
def test_hits_with_mismatches__of_many_records_and_more_than_there_is_room_for(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_planes, "FIRST_ROOM", 3)
    chunk, patterns, limits, expected = many_records()
    scanner = cpu.ErrorScanner(patterns, limits, edits=False, strict=False, wanted=wanted)
    hits = scanner.scan(chunk)
    assert rows(hits) == rows(expected.chosen(wanted, 2, by_end=False))
    assert len(hits) > 30

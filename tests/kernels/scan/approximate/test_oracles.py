"""The search with errors against regular expressions, edlib and sassy."""

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import combinations, groupby, product
from typing import Any

import numpy as np
import pytest
from support.approximate_cases import rows, search, with_edits
from support.scan_cases import array, chunk_of, random_letters, written
from support.scanned import MEANING

from multigpu.kernels.scan import Limits, Patterns

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
NO_WHEEL = "the package is not installed: it has wheels for Linux on x86-64"
PLANTED = (0, 0, 0, 1, 2, 3, 4)  # edits
Row = tuple[int, ...]


@pytest.fixture
def backend(device: str) -> Any:
    return import_module(f"multigpu.kernels.scan.approximate.{device}")


def cases_with(seed: int, ambiguous: float, lengths: Any, plants: int = 20) -> tuple[Any, Any]:
    """Return records and signatures, which are planted in each with up to four edits."""
    rng = np.random.default_rng(seed)
    low, high = lengths
    signatures = [random_letters(rng, int(rng.integers(low, high)), ambiguous) for _ in range(6)]
    records = []
    for number in range(4):
        pieces = []
        for _ in range(plants):
            pieces.append(random_letters(rng, int(rng.integers(0, 40)), ambiguous))
            pieces.append(with_edits(rng, signatures[rng.integers(6)], int(rng.choice(PLANTED))))
        record = np.concatenate(pieces)
        if number == 0:
            record[rng.random(len(record)) < 0.8] = array("A")[0]  # repetitive
        records.append(record)
    return records, signatures


def hits(records: Any, patterns: Patterns, limits: Limits, strict: bool, **more: Any) -> list[Row]:
    return rows(search((chunk_of(records), patterns, limits, strict), **more)[0])


def text_of(patterns: Patterns, number: int) -> str:
    """Return a pattern in capital letters."""
    sets = patterns.sets[patterns.offsets[number] : patterns.offsets[number + 1]]
    return written(sets).tobytes().decode()


@cache
def agreeing(letter: str, strict: bool) -> set[str]:
    """Return the letters of samples that match a letter of a pattern."""
    bases, agree = set(MEANING[letter]), set.issuperset if strict else set.intersection
    return {other for other, meant in MEANING.items() if agree(bases, set(meant))}


def one_of(letters: set[str]) -> str:
    """Return an expression for one of the letters, none of which is special in a class."""
    return "." if letters == set(MEANING) else f"[{''.join(sorted(letters))}]"


# ---- mismatches: regular expressions ----------------------------------------------------------


def expression(pattern: str, errors: int, prefix: int, suffix: int, strict: bool) -> re.Pattern:
    """Return an expression for every start with at most so many mismatches, in capital letters."""
    classes = [one_of(agreeing(letter, strict)) for letter in pattern]
    free = range(min(prefix, len(pattern)), max(0, len(pattern) - suffix))
    alternatives = [
        "".join("." if i in chosen else each for i, each in enumerate(classes))
        for chosen in combinations(free, min(errors, len(free)))
    ]
    return re.compile(f"(?=(?:{'|'.join(alternatives)}))")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.2])
@pytest.mark.parametrize(("most", "exact"), [(0, (0, 0)), (1, (0, 0)), (2, (0, 0)), (2, (3, 4))])
def test_mismatches__are_those_of_regular_expressions(
    backend: Any, most: int, exact: tuple[int, int], ambiguous: float, strict: bool
) -> None:
    records, signatures = cases_with(most, ambiguous, (6, 20))
    patterns = Patterns.of(signatures, True)
    limits = Limits.of(patterns, most, *exact)
    found = hits(records, patterns, limits, strict, edits=False, backend=backend)
    expected = {}
    for errors in range(most, -1, -1):
        for p in range(len(patterns)):
            ends = (int(limits.prefix[p]), int(limits.suffix[p]))
            expected_start = expression(text_of(patterns, p), errors, *ends, strict)
            for r, record in enumerate(records):
                for match in expected_start.finditer(record.tobytes().decode().upper()):
                    expected[r, p, match.start()] = errors
    assert len(expected) > 10
    assert {(r, p, start): errors for r, p, start, _, errors in found} == expected


# ---- edits: edlib -----------------------------------------------------------------------------


@cache
def equalities(
    pattern: frozenset[str], text: frozenset[str], strict: bool
) -> list[tuple[str, str]]:
    """Return what matches: the letters of patterns are small ones, as it depends on the side."""
    return [(p.lower(), t) for p in pattern for t in agreeing(p, strict) & text]


@pytest.fixture
def edlib_distance() -> Callable[..., int]:
    """Edits between a pattern and a text, in one of edlib's modes."""
    edlib = pytest.importorskip("edlib", reason=NO_WHEEL)

    def distance(pattern: str, text: str, mode: str, strict: bool) -> int:
        equal = equalities(frozenset(pattern), frozenset(text), strict)
        found = edlib.align(pattern.lower(), text, mode=mode, additionalEqualities=equal)
        return found["editDistance"]

    return distance


def distances_to_ends(
    distance: Any, text: str, pattern: str, suffix: int, strict: bool
) -> list[int]:
    """Return the fewest edits of the pattern before each end; the last `suffix` bases are exact."""
    rest, exact = pattern[: len(pattern) - suffix], pattern[len(pattern) - suffix :]
    is_exact = re.compile("".join(one_of(agreeing(letter, strict)) for letter in exact))
    found: list[int] = []
    for end in range(len(text) + 1):
        border = end - suffix
        best = found[-1] + 1 if found else 1 << 30
        if border >= 0 and is_exact.fullmatch(text[border:end]):
            # Mode SHW leaves the end of a text free. Of what is reversed, that is its begin.
            nearby = text[max(0, border - 2 * len(rest)) : border]
            best = min(best, distance(rest[::-1], nearby[::-1], "SHW", strict))
        found.append(best)
    return found


def first_ends(distances: list[int], most: int) -> dict[int, int]:
    """Return the edits at the first end of each run that has fewer than its neighbours."""
    runs, end = [], 0
    for edits, run in groupby(distances):
        runs.append((end, edits))
        end += len(list(run))
    return {
        end: edits
        for i, (end, edits) in enumerate(runs)
        if edits <= most and all(each[1] > edits for each in runs[max(0, i - 1) : i + 2 : 2])
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1])
@pytest.mark.parametrize(("most", "suffix"), [(0, 0), (2, 0), (3, 3), (0.3, 0)])
def test_edits__are_those_of_edlib_before_every_end(
    backend: Any, edlib_distance: Any, most: float, suffix: int, ambiguous: float, strict: bool
) -> None:
    records, signatures = cases_with(7, ambiguous, (6, 40), plants=10)
    patterns = Patterns.of(signatures, False)
    limits = Limits.of(patterns, most, exact_suffix=suffix)
    found = hits(records, patterns, limits, strict, edits=True, backend=backend)
    expected = set()
    for r, record in enumerate(records):
        text = record.tobytes().decode().upper()
        for p in range(len(patterns)):
            edits = distances_to_ends(edlib_distance, text, text_of(patterns, p), suffix, strict)
            ends = first_ends(edits, int(limits.most[p]))
            expected |= {(r, p, end, errors) for end, errors in ends.items()}
    assert len(expected) > 10
    assert {(r, p, end, errors) for r, p, _, end, errors in found} == expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("strict", [False, True])
def test_starts__are_the_largest_by_edlib(backend: Any, edlib_distance: Any, strict: bool) -> None:
    records, signatures = cases_with(9, 0.1, (6, 40))
    patterns = Patterns.of(signatures, True)
    found = hits(records, patterns, Limits.of(patterns, 0.3), strict, edits=True, backend=backend)
    assert len(found) > 50
    for r, p, start, end, errors in found:
        pattern, text = text_of(patterns, p), records[r].tobytes().decode().upper()
        edits = [edlib_distance(pattern, text[at:end], "NW", strict) for at in range(start, end)]
        assert edits[0] == errors
        assert min([*edits[1:], len(pattern)]) > errors


# ---- edits: sassy -----------------------------------------------------------------------------


def sassy_hits(searcher: Any, pattern: bytes, text: bytes, most: int) -> set[tuple[int, int]]:
    """Return end and edits of all hits, at the first ends of runs, where sassy says the last."""
    at_ends = {match.text_end: match.cost for match in searcher.search_all(pattern, text, most)}
    found = set()
    for match in searcher.search(pattern, text, most):
        end = match.text_end
        while at_ends.get(end - 1) == match.cost:
            end -= 1
        found.add((end, match.cost))
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("most", [0, 1, 4])
@pytest.mark.parametrize("lengths", [(8, 33), (33, 65), (65, 200)])
def test_edits__are_those_of_sassy(backend: Any, lengths: Any, most: int, ambiguous: float) -> None:
    sassy = pytest.importorskip("sassy", reason=NO_WHEEL)
    records, signatures = cases_with(11, ambiguous, lengths)
    patterns = Patterns.of(signatures, True)
    limits = Limits.of(patterns, most)
    found = hits(records, patterns, limits, False, edits=True, backend=backend)
    # Each strand by itself: sassy looks for the fewest edits among starts on the other one.
    searcher, theirs = sassy.Searcher("iupac", rc=False), []
    for (r, record), p in product(enumerate(records), range(len(patterns))):
        hits_here = sassy_hits(searcher, text_of(patterns, p).encode(), record.tobytes(), most)
        theirs += [(r, p, *hit) for hit in hits_here]
    assert len(theirs) > 5
    assert sorted((r, p, end, errors) for r, p, _, end, errors in found) == sorted(theirs)

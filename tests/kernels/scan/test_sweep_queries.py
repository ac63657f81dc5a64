"""Queries of the search for mismatches on GPUs: their bases, and which are counted together."""

import numpy as np
import pytest
from hypothesis import given
from support.approximate_cases import Case, cases
from support.examples import examples
from support.scan_cases import array, random_letters

from multigpu.kernels.scan import Limits, Patterns
from multigpu.kernels.scan import sweep_queries as queries

Bases = dict[int, int]  # sets of bases by their places


def bases_of(sweep: queries.Sweep, steps: np.ndarray) -> Bases:
    """Return the bases for which rows of the table stand."""
    found = {}
    for row in steps.tolist():
        assert row < sweep.rows
        if row < queries.BASES * sweep.places:
            found[row // queries.BASES] = 1 << row % queries.BASES
        elif row > queries.BASES * sweep.places:
            code = int(sweep.sets[row - queries.BASES * sweep.places - 1])
            found[code // queries.MOST_SETS] = code % queries.MOST_SETS
    return found


def expected_bases(patterns: Patterns, limits: Limits, p: int, piece: int) -> tuple[Bases, Bases]:
    """Return the bases of a piece that may differ, and those that must match."""
    begin, length = queries.WORD * max(0, piece), int(patterns.lengths[p])
    counted, exact = {}, {}
    for place in range(begin, min(begin + queries.WORD, length)):
        bases = int(patterns.sets[patterns.offsets[p] + place])
        must_match = place < limits.prefix[p] or place >= length - limits.suffix[p]
        if bases != queries.ANY_BASE:
            (exact if must_match else counted)[place - begin] = bases
    return counted, exact


def count_of(patterns: Patterns, limits: Limits, p: int) -> int:
    """Return the number of queries of a pattern."""
    return max(1, min(int(patterns.lengths[p]) // queries.WORD, int(limits.most[p]) + 1))


def check(patterns: Patterns, limits: Limits) -> list[queries.Sweep]:
    """Check that all patterns are searched, with their own bases; return the sweeps."""
    pieces: dict[int, list[int]] = {p: [] for p in range(len(patterns))}
    sweeps = queries.plan_sweeps(patterns, limits)
    for sweep in sweeps:
        assert sweep.rows <= queries.MOST_ROWS
        assert 1 <= sweep.look <= sweep.counted.shape[1] // queries.STEPS
        selected = {int(c) // queries.MOST_SETS: int(c) % queries.MOST_SETS for c in sweep.selected}
        for query, counted, exact in zip(sweep.queries, sweep.counted, sweep.exact, strict=True):
            p, piece = int(query["pattern"]), int(query["piece"])
            pieces[p].append(piece)
            expected = expected_bases(patterns, limits, p, piece)
            assert bases_of(sweep, counted[: queries.STEPS * int(query["counted"])]) == expected[0]
            assert bases_of(sweep, exact[: queries.STEPS * int(query["exact"])]) == expected[1]
            assert selected in ({}, expected[1])
            assert sweep.most == min(limits.most[p] // count_of(patterns, limits, p), queries.WORD)
    for p, found in pieces.items():
        count, length = count_of(patterns, limits, p), int(patterns.lengths[p])
        assert sorted(found) == ([-1] if length <= queries.WORD else list(range(count)))
    return sweeps


@given(cases())
@examples(200)
def test_queries__have_the_bases_of_their_patterns(case: Case) -> None:
    check(*case[1:3])


@pytest.mark.parametrize("length", [31, 32, 33, 63, 64, 65, 200])
@pytest.mark.parametrize("most", [0, 2, 40])
def test_long_patterns__are_searched_by_pieces(length: int, most: int) -> None:
    rng = np.random.default_rng(length)
    patterns = Patterns.of([random_letters(rng, length, 0.2) for _ in range(3)], True)
    limits = Limits.of(patterns, most, 3, 40)
    check(patterns, limits)


def test_sets_of_several_bases__have_rows_as_far_as_there_is_room() -> None:
    """Ten sets at each of 32 places are too many for one table."""
    rng = np.random.default_rng(0)
    signatures = [array("RYSWKMBDHV")[rng.integers(0, 10, 32)] for _ in range(40)]
    patterns = Patterns.of(signatures, False)
    assert len(check(patterns, Limits.of(patterns, 2))) > 5


def test_guides__are_counted_where_their_pam_matches() -> None:
    rng = np.random.default_rng(0)
    guides = [np.append(random_letters(rng, 20, 0), array("NGG")) for _ in range(40)]
    patterns = Patterns.of(guides, True)
    sweeps = check(patterns, Limits.of(patterns, 4, 0, 3))
    assert [len(sweep.queries) for sweep in sweeps] == [40, 40]
    codes = [[code // queries.MOST_SETS for code in sweep.selected.tolist()] for sweep in sweeps]
    assert sorted(codes) == [[0, 1], [21, 22]]
    few = Patterns.of(guides[:10], True)
    (sweep,) = check(few, Limits.of(few, 4, 0, 3))
    assert not len(sweep.selected)


def test_selecting__pays_for_many_queries_that_share_rare_bases() -> None:
    gg, g = np.array([4, 4], np.uint8), np.array([4], np.uint8)
    assert not queries.selecting_pays(1, np.repeat(g, 20))
    assert queries.selecting_pays(20, np.repeat(g, 20))
    assert not queries.selecting_pays(10, gg)
    assert queries.selecting_pays(64, gg)
    assert not queries.selecting_pays(10_000, g)


@pytest.mark.parametrize(("most", "look"), [(0, 1), (2, 2), (4, 2), (7, 3), (20, 3)])
def test_look__is_after_the_block_that_leaves_hardly_a_position(most: int, look: int) -> None:
    patterns = Patterns.of([array("ACGTACGTACGTACGTACGTACG")], False)
    (sweep,) = check(patterns, Limits.of(patterns, most))
    assert sweep.look == look

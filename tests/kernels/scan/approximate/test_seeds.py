"""The search with errors by seeds, against the plain recurrences and the sweep."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import FREE, Case, cases, rows, search, swept, with_edits
from support.examples import examples
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan import Limits, Patterns, cpu_planes
from multigpu.kernels.scan.approximate import cpu, cpu_seeds, reference, seeds
from multigpu.kernels.scan.approximate.cpu_seeds import count_windows, make_table
from multigpu.kernels.scan.cpu_planes import Samples, pack, pack_patterns
from multigpu.kernels.scan.types import Wanted


@pytest.fixture
def by_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pattern that can be is found by seeds."""
    monkeypatch.setattr(cpu, "COSTS", FREE)


def planned(case: Case, edits: bool, costs: seeds.SearchCosts = FREE) -> seeds.SearchPlan:
    _, patterns, limits, strict = case
    windows = count_windows(pack_patterns(patterns))
    return seeds.plan_seeds(windows, patterns, limits, costs, edits=edits, strict=strict)


@st.composite
def long_cases(draw: st.DrawFn) -> Case:
    """Samples and signatures that are long enough for seeds, with errors of every kind."""
    rng = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    ambiguous = draw(st.sampled_from([0.0, 0.02, 0.1, 0.3]))
    longest = draw(st.sampled_from([8, 40, 120]))
    lengths = rng.integers(4, longest + 1, int(rng.integers(1, 6)))
    signatures = [random_letters(rng, int(length), ambiguous / 2) for length in lengths]
    if draw(st.booleans()):
        signatures[0][:] = array("A")[0]
    records = []
    for _ in range(int(rng.integers(1, 4))):
        pieces = [random_letters(rng, int(rng.integers(0, 40)), ambiguous)]
        for number in rng.integers(0, len(signatures), int(rng.integers(0, 4))).tolist():
            pieces += [with_edits(rng, signatures[number], int(rng.integers(0, 5)))]
            pieces += [random_letters(rng, int(rng.integers(0, 20)), ambiguous)]
            pieces += [np.full(int(rng.integers(250) * rng.integers(2)), ord("N"), np.uint8)]
        records.append(np.concatenate(pieces))
        records[-1][rng.random(len(records[-1])) < ambiguous] = array("N")[0]
    patterns = Patterns.of(signatures, draw(st.booleans()))
    exact = [draw(st.sampled_from([0, 0, 0, 1, 7])) for _ in range(2)]
    limits = Limits.of(patterns, draw(st.integers(0, 6) | st.floats(0, 0.2)), *exact)
    return chunk_of(records), patterns, limits, draw(st.booleans())


@pytest.mark.usefixtures("by_seeds")
@pytest.mark.parametrize("edits", [False, True])
@given(case=cases() | long_cases())
@examples(60)
def test_hits__are_those_of_the_reference(edits: bool, case: Case) -> None:
    chunk, patterns, limits, strict = case
    expected, _ = reference.search(chunk, patterns, limits, edits=edits, strict=strict)
    assert rows(search(case, edits=edits)[0]) == rows(expected)
    scanner = partial(cpu.ErrorScanner, patterns, limits, edits=edits, strict=strict)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_planes, "FIRST_ROOM", 2)
        wanted: list[Wanted] = ["first", "best"]
        for choice in wanted:
            every = scanner(wanted="all").scan(chunk)
            chosen = every.chosen(choice, patterns.strands, by_end=edits)
            assert rows(scanner(wanted=choice).scan(chunk)) == rows(chosen)


@pytest.mark.parametrize("edits", [False, True])
def test_short_patterns_with_many_errors__have_no_seeds(edits: bool) -> None:
    patterns = Patterns.of([array("ACGTACGTACGTACGTACG"), array("ACGTACGTACGTACGTACGT")])
    limits = Limits.of(patterns, 4)
    plan = planned((chunk_of([]), patterns, limits, False), edits)
    assert plan.swept.tolist() == [0]
    assert [table.k for table in plan.tables] == [4]


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("length", "most"), [(300, 0.05), (700, 2), (2500, 0.04), (9969, 0.02)])
def test_long_patterns__have_the_hits_of_the_sweep(
    length: int, most: float, strict: bool, edits: bool, by_seeds: None
) -> None:
    """Signatures with Ns, planted with errors where samples have Ns, too, and overlap."""
    rng = np.random.default_rng(length)
    signatures = [random_letters(rng, length + extra, 0.03) for extra in (0, 31)]
    records = [random_letters(rng, 40, 0)]
    for number in (0, 1, 0):
        limit = int(length * most) if most < 1 else int(most)
        copy = with_edits(rng, signatures[number], limit)
        copy[rng.random(len(copy)) < 0.05] = array("N")[0]
        records.append(np.concatenate([random_letters(rng, 150, 0.1), copy, copy[: length // 2]]))
        records[-1] = np.concatenate([records[-1], random_letters(rng, length, 0.0)])
        substituted = signatures[number].copy()
        places = rng.choice(length, limit, replace=False)
        substituted[places] = random_letters(rng, limit, 0)
        records.append(np.concatenate([substituted, random_letters(rng, 60, 0.0), substituted]))
    patterns = Patterns.of(signatures, True)
    case = (chunk_of(records), patterns, Limits.of(patterns, most), strict)
    assert not len(planned(case, edits).swept)
    expected, found = swept(case, edits), search(case, edits=edits)
    assert len(expected[0]) >= 6 or strict
    assert (rows(found[0]), found[1]) == (rows(expected[0]), expected[1])


def found_by_seeds(case: Case, edits: bool) -> Any:
    """Return the rows of `cpu_seeds.Search`."""
    chunk, patterns, limits, strict = case
    packed = pack_patterns(patterns)
    (plan,) = planned(case, edits).tables
    table = make_table(packed, limits, plan)
    planes = np.empty((len(chunk.letters) // 64 + 3, 4), np.uint64)
    pack(chunk.letters, planes)
    samples = Samples(planes, chunk.offsets, chunk.letters)
    how: dict[str, Any] = {"edits": edits, "strict": strict, "wanted": "all"}
    return cpu_seeds.search(samples, packed, limits, table, **how)


@pytest.mark.parametrize("edits", [False, True])
@given(st.integers(0, 1 << 32))
@examples(200)
def test_errors_in_all_pieces_but_few__leave_a_seed(edits: bool, seed: int) -> None:
    """As many errors as there may be, each in a piece of its own where it does most harm."""
    rng = np.random.default_rng(seed)
    most = int(rng.integers(0, 12))
    signature = random_letters(rng, (most + 4) * int(rng.integers(6, 40)), 0)
    signature[rng.random(len(signature)) < 0.02] = array("N")[0]
    patterns = Patterns.of([signature])
    limits = Limits.of(patterns, most)
    plan = planned((chunk_of([]), patterns, limits, False), edits)
    assert not len(plan.swept)
    table = make_table(pack_patterns(patterns), limits, plan.tables[0])
    hurt = np.sort(rng.choice(len(table.begin), most, replace=False))[::-1]
    copy = signature.tolist()
    for begin in table.begin[hurt].tolist():
        at, kind = begin + int(rng.integers(0, table.k)), int(rng.integers(3)) if edits else 0
        letter = int(rng.choice(np.setdiff1d(array("ACGT"), signature[at])))
        copy[at : at + (kind != 1)] = [letter] if kind < 2 else []
    before = random_letters(rng, int(rng.integers(0, 50)), 0)
    record = np.concatenate([before, np.array(copy, np.uint8), random_letters(rng, 7, 0)])
    found = found_by_seeds((chunk_of([record]), patterns, limits, False), edits)
    end = len(before) + len(copy)
    if edits:
        assert np.abs(found[:, 2] - end).min() <= most
    else:
        assert found[:, 2:].tolist() == [[len(before), most]]


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1])
def test_samples_without_hits__leave_next_to_no_candidates(ambiguous: float, edits: bool) -> None:
    """Each filter is sharp: one that lets all pass would find the same hits, slowly."""
    rng = np.random.default_rng(7)
    signatures = [random_letters(rng, 2000, ambiguous) for _ in range(10)]
    patterns, chunk = Patterns.of(signatures), chunk_of([random_letters(rng, 200_000, ambiguous)])
    case = (chunk, patterns, Limits.of(patterns, 0.05), False)
    assert len(found_by_seeds(case, edits)) <= 3

"""The search with errors by seeds, against the plain recurrences and the sweep."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from hypothesis import given
from hypothesis import strategies as st
from support.approximate_cases import Case, cases, rows, search, with_edits
from support.examples import examples
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan import Limits, Patterns
from multigpu.kernels.scan.approximate import cpu, cpu_seeds, reference, seeds
from multigpu.kernels.scan.approximate.cpu_seed_tables import count_windows, make_table
from multigpu.kernels.scan.cpu_patterns import pack, pack_patterns
from multigpu.kernels.scan.types import Wanted

FREE = replace(
    seeds.CPU,
    position=0.0,
    lookup=0.0,
    candidate=0.0,
    settled=0.0,
    entry=0.0,
    mismatch=1e6,
    edit=1e6,
)
NEVER = replace(seeds.CPU, position=1e12)


@pytest.fixture
def by_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pattern that can be is found by seeds."""
    monkeypatch.setattr(cpu, "COSTS", FREE)


def swept(case: Case, edits: bool) -> tuple[Any, list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "COSTS", NEVER)
        return search(case, edits=edits)


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "FIRST_ROOM", 2)
        wanted: list[Wanted] = ["first", "best"]
        for choice in wanted:
            scanner = cpu.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted=choice)
            every = cpu.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted="all")
            chosen = every.scan(chunk).chosen(choice, patterns.strands, by_end=edits)
            assert rows(scanner.scan(chunk)) == rows(chosen)


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
    return cpu_seeds.search(
        planes,
        chunk.offsets,
        packed,
        limits,
        table,
        edits=edits,
        strict=strict,
        wanted="all",
        room=1,
    )


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
    patterns = Patterns.of(signatures)
    case = (
        chunk_of([random_letters(rng, 200_000, ambiguous)]),
        patterns,
        Limits.of(patterns, 0.05),
    )
    assert len(found_by_seeds((*case, False), edits)) <= 3


# ---- on a GPU, emulated -------------------------------------------------------------------------

emulates = pytest.mark.skipif(bool(emulated.why_not()), reason=emulated.why_not())


@pytest.fixture(scope="session")
def machine() -> tuple[Gpu, Any]:
    gpu, scan = emulated.load("scan")
    scan.EMPTY_TABLE = 256
    return emulated.load("scan/approximate", gpu, {"multigpu.kernels.scan.cuda": scan})


@pytest.fixture
def cuda(machine: tuple[Gpu, Any], gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(machine[1], "COSTS", FREE)
    return machine[1]


def planted(seed: int, lengths: list[int], most: float, ambiguous: float, strict: bool) -> Case:
    """Return samples in which signatures of these lengths are planted with errors."""
    rng = np.random.default_rng(seed)
    signatures = [random_letters(rng, length, ambiguous / 2) for length in lengths]
    records = [random_letters(rng, 3, 0)]
    for _ in range(3):
        pieces = [random_letters(rng, int(rng.integers(0, 200)), ambiguous)]
        for number in rng.permutation(len(signatures))[:3].tolist():
            pieces += [with_edits(rng, signatures[number], int(rng.integers(0, 4)))]
            pieces += [random_letters(rng, int(rng.integers(0, 60)), ambiguous)]
            pieces += [np.full(int(rng.integers(400)), ord("N"), np.uint8)]
        records.append(np.concatenate(pieces))
    patterns = Patterns.of(signatures, bool(rng.integers(2)))
    exact = rng.choice([0, 0, 1, 3], 2).tolist()
    return chunk_of(records), patterns, Limits.of(patterns, most, *exact), strict


@emulates
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.4])
@pytest.mark.parametrize(
    ("lengths", "most"), [([8, 11, 24, 33], 1), ([24, 31, 40], 0.1), ([64, 90, 200, 300], 0.05)]
)
@pytest.mark.parametrize("edits", [False, True])
def test_hits_on_a_gpu__are_those_of_cpus(
    cuda: Any, machine: tuple[Gpu, Any], edits: bool, lengths: list[int], most: float,
    ambiguous: float, strict: bool,
) -> None:  # fmt: skip
    case = planted(len(lengths), lengths, most, ambiguous, strict)
    expected = swept(case, edits)
    before = machine[0].launched["find_seeds"]
    found = search(case, edits=edits, backend=cuda)
    assert machine[0].launched["find_seeds"] > before
    assert len(expected[0]) > 0
    assert (rows(found[0]), found[1]) == (rows(expected[0]), expected[1])
    for wanted in ("first", "best"):
        scanners = (
            backend.ErrorScanner(*case[1:3], edits=edits, strict=strict, wanted=wanted)
            for backend in (cpu, cuda)
        )
        on_cpu, on_gpu = (scanner.scan(case[0]) for scanner in scanners)
        assert rows(on_gpu) == rows(on_cpu), wanted


@emulates
@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.5])
def test_tables_made_on_a_gpu__are_those_of_cpus(
    cuda: Any, monkeypatch: pytest.MonkeyPatch, ambiguous: float, edits: bool
) -> None:
    """The order of the entries of a key is the only difference."""
    made = []
    make_on_gpu = cuda.SeededPatterns.make_table

    def make(patterns: Any, plan: seeds.TablePlan) -> Any:
        made.append((plan, make_on_gpu(patterns, plan)))
        return made[-1][1]

    monkeypatch.setattr(cuda.SeededPatterns, "make_table", make)
    _, patterns, limits, strict = planted(1, [4, 9, 31, 64, 150, 500], 0.05, ambiguous, False)
    cuda.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted="all")
    packed = pack_patterns(patterns)
    assert made
    for plan, (_, arrays) in made:
        assert np.array_equal(plan.windows, count_windows(packed)[plan.k])
        expected = make_table(packed, limits, plan)
        found = {name: array.get() for name, array in arrays.items()}
        keys = np.repeat(np.arange(4**plan.k), np.diff(found["heads"]))
        order = np.lexsort((found["entries"][:, 3], keys))
        found["entries"] = found["entries"][order]
        assert len(found["entries"]) > 0
        for name, found_array in found.items():
            assert np.array_equal(found_array, getattr(expected, name)), name


@emulates
@pytest.mark.parametrize("edits", [False, True])
def test_samples_full_of_ns__have_the_hits_of_cpus(cuda: Any, edits: bool) -> None:
    """All choices of a window would be more than the seeds that there are."""
    rng = np.random.default_rng(1)
    signatures = [random_letters(rng, length, 0) for length in (24, 40)]
    records = [random_letters(rng, 120, 0), random_letters(rng, 30, 1.0)]
    records[0][40:70] = array("N")[0]
    patterns = Patterns.of(signatures, True)
    case = (chunk_of(records), patterns, Limits.of(patterns, 2), False)
    expected, found = swept(case, edits), search(case, edits=edits, backend=cuda)
    assert len(expected[0]) > 0
    assert (rows(found[0]), found[1]) == (rows(expected[0]), expected[1])

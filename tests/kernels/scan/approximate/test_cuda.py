"""The CUDA search with errors without a GPU, against the search on CPUs."""

from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from support.approximate_cases import FREE, Case, rows, search, swept, with_edits
from support.scan_cases import array, chunk_of, random_letters

from multigpu.kernels.scan import BadBaseError, Limits, Patterns, sweep_queries
from multigpu.kernels.scan.approximate import cpu, seeds
from multigpu.kernels.scan.approximate.cpu_seeds import count_windows, make_table
from multigpu.kernels.scan.cpu_planes import pack_patterns

pytestmark = pytest.mark.skipif(bool(emulated.why_not()), reason=emulated.why_not())


@pytest.fixture(scope="session")
def machine() -> tuple[Gpu, Any]:
    gpu, scan = emulated.load("scan")
    scan.EMPTY_TABLE = 256
    return emulated.load("scan/approximate", gpu, {"multigpu.kernels.scan.cuda": scan})


@pytest.fixture
def by_seeds(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, where every pattern that can be is found by seeds."""
    monkeypatch.setattr(cuda, "COSTS", FREE)
    return cuda


def case_of(
    seed: int, lengths: list[int], ambiguous: float, most: float, strict: bool, gaps: bool = False
) -> Case:
    """Return samples in which signatures of these lengths are planted with errors.

    gaps: between them are runs of N
    """
    rng = np.random.default_rng(seed)
    signatures = [random_letters(rng, length, ambiguous / 2) for length in lengths]
    records = []
    for _ in range(4):
        pieces = [random_letters(rng, int(rng.integers(0, 400)), ambiguous)]
        for number in rng.permutation(len(signatures))[:4].tolist():
            pieces += [with_edits(rng, signatures[number], int(rng.integers(0, 4)))]
            pieces += [random_letters(rng, int(rng.integers(0, 90)), ambiguous)]
            pieces += [np.full(int(rng.integers(400)) if gaps else 0, ord("N"), np.uint8)]
        records.append(np.concatenate(pieces))
    patterns = Patterns.of(signatures, bool(rng.integers(2)))
    exact = rng.choice([0, 0, 1, 3], 2).tolist()
    return chunk_of(records), patterns, Limits.of(patterns, most, *exact), strict


def assert_as_on_cpus(cuda: Any, case: Case, edits: bool, wanted: str = "all") -> Any:
    """Compare hits and alignments with those of CPUs, and return them."""
    expected = search(case, edits=edits, wanted=wanted)
    found = search(case, edits=edits, wanted=wanted, backend=cuda)
    assert (rows(found[0]), found[1]) == (rows(expected[0]), expected[1])
    return expected


SHORT = [1, 2, 5, 12, 20, 23, 23, 24, 31, 32]
LONG = [33, 40, 48, 49, 64, 65, 96, 130, 300]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.5])
@pytest.mark.parametrize(("lengths", "most"), [(SHORT, 3), (SHORT, 0.2), (LONG, 4), (LONG, 0.05)])
@pytest.mark.parametrize("edits", [False, True])
def test_hits__are_those_of_cpus(
    cuda: Any, edits: bool, lengths: list[int], most: float, ambiguous: float, strict: bool
) -> None:
    expected = assert_as_on_cpus(cuda, case_of(1, lengths, ambiguous, most, strict), edits)
    assert len(expected[0]) > 0


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("wanted", ["first", "best"])
def test_first_and_best__are_those_of_cpus(cuda: Any, wanted: str, edits: bool) -> None:
    assert_as_on_cpus(cuda, case_of(2, SHORT, 0.05, 2, False), edits, wanted)


@pytest.mark.parametrize("edits", [False, True])
def test_borders__of_stretches_and_blocks_are_no_borders(cuda: Any, edits: bool) -> None:
    """A stretch has 2,048 bases, a block of threads up to 4,096."""
    rng = np.random.default_rng(3)
    signature = random_letters(rng, 30, 0)
    sample = random_letters(rng, 13_000, 0)
    for at in (2035, 4066, 4096, 6130, 8164, 8200, 10_210, 12_970):
        sample[at : at + 30] = signature
        sample[at + 7] = array("N")[0]
    patterns = Patterns.of([signature], True)
    case = (chunk_of([sample]), patterns, Limits.of(patterns, 3), True)
    assert len(assert_as_on_cpus(cuda, case, edits)[0]) >= 8


def guides(seed: int, sample: str, ambiguous: float, strict: bool) -> Case:
    """Return guides with a PAM, in a sample in which every position or some match it."""
    rng = np.random.default_rng(seed)
    pams = [array(each) for each in ("NGG", "RGG", "YGG")]
    guides = [
        np.concatenate([random_letters(rng, length, ambiguous / 4), pams[length % 3]])
        for length in rng.integers(8, 33, 12).tolist()
    ]
    record = random_letters(rng, 4000, ambiguous)
    record[rng.random(len(record)) < (0.9 if sample == "rich" else 0.0)] = array("G")[0]
    for guide in guides:
        at = int(rng.integers(len(record) - len(guide)))
        record[at : at + len(guide)] = guide
    patterns = Patterns.of([*guides, array("ACGG"), array("GG")], True)
    return chunk_of([record, record[:70]]), patterns, Limits.of(patterns, 4, 0, 3), strict


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("sample", ["random", "rich"])
def test_positions__are_selected_by_exact_bases(
    cuda: Any, sample: str, ambiguous: float, strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rich samples have more positions than there is room for, and are searched everywhere."""
    for name in ("SELECT", "GATHER"):
        monkeypatch.setattr(sweep_queries, name, 0.0)
    case = guides(4, sample, ambiguous, strict)
    sweeps = sweep_queries.plan_sweeps(*case[1:3])
    assert sum(len(each.queries) for each in sweeps if len(each.selected)) > 10
    assert len(assert_as_on_cpus(cuda, case, False)[0]) > 0


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("edits", [False, True])
def test_scan__of_an_illegal_letter_says_where(cuda: Any, edits: bool, device: str) -> None:
    patterns = Patterns.of([array("ACGT")], False)
    case = (chunk_of([array("ACGTAC!T")]), patterns, Limits.of(patterns, 1), False)
    with pytest.raises(BadBaseError) as error:
        search(case, edits=edits, backend=cpu if device == "cpu" else cuda)
    assert error.value.position == 6


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.4])
@pytest.mark.parametrize(
    ("lengths", "most"), [([8, 11, 24, 33], 1), ([24, 31, 40], 0.1), ([64, 90, 200, 300], 0.05)]
)
@pytest.mark.parametrize("edits", [False, True])
def test_hits_on_a_gpu__are_those_of_cpus(
    by_seeds: Any, machine: tuple[Gpu, Any], edits: bool, lengths: list[int], most: float,
    ambiguous: float, strict: bool,
) -> None:  # fmt: skip
    case = case_of(len(lengths), lengths, ambiguous, most, strict, gaps=True)
    expected = swept(case, edits)
    before = machine[0].launched["find_seeds"]
    found = search(case, edits=edits, backend=by_seeds)
    assert machine[0].launched["find_seeds"] > before
    assert len(expected[0]) > 0
    assert (rows(found[0]), found[1]) == (rows(expected[0]), expected[1])
    for wanted in ("first", "best"):
        scanners = (
            backend.ErrorScanner(*case[1:3], edits=edits, strict=strict, wanted=wanted)
            for backend in (cpu, by_seeds)
        )
        on_cpu, on_gpu = (scanner.scan(case[0]) for scanner in scanners)
        assert rows(on_gpu) == rows(on_cpu), wanted


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("ambiguous", [0.0, 0.1, 0.5])
def test_tables_made_on_a_gpu__are_those_of_cpus(
    by_seeds: Any, monkeypatch: pytest.MonkeyPatch, ambiguous: float, edits: bool
) -> None:
    """The order of the entries of a key is the only difference."""
    made = []
    make_on_gpu = by_seeds.SeededPatterns.make_table

    def make(patterns: Any, plan: seeds.TablePlan) -> Any:
        made.append((plan, make_on_gpu(patterns, plan)))
        return made[-1][1]

    monkeypatch.setattr(by_seeds.SeededPatterns, "make_table", make)
    _, patterns, limits, strict = case_of(1, [4, 9, 31, 64, 150, 500], ambiguous, 0.05, False)
    by_seeds.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted="all")
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

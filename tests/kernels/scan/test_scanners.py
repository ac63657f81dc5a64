"""The search kernels against the plain search, and what that one rests on."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.backends import DEVICES, backend_of
from support.examples import examples
from support.halving import scan_halving
from support.scan_cases import (
    LEGAL,
    Case,
    array,
    assert_same,
    cases,
    chunk_of,
    letters_of,
    planted,
    random_letters,
    rows,
)
from support.scanned import starts

from multigpu.kernels.bases import encode
from multigpu.kernels.scan import BadBaseError, Chunk, Hits, Patterns, ScanRules, reference, seeds
from multigpu.kernels.scan.seeds import SeedPlan

NATIVE = [DEVICES[0], DEVICES[2]]  # the emulated one is slow
PLANNERS = {name: f"multigpu.kernels.scan.{name}.plan_seeds" for name in ("cpu", "cuda")}
ALL_RULES = [ScanRules(first, strict) for first in (True, False) for strict in (False, True)]


def scanner(device: str, patterns: Patterns, rules: ScanRules) -> Any:
    return backend_of("scan", device).ExactScanner(patterns, rules)


def word_lengths() -> Case:
    """Signatures about as long as machine words, at the start and the end of their records."""
    rng = np.random.default_rng(7)
    lengths = [1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 97, 127, 128, 129, 256, 257]
    signatures = [random_letters(rng, length, 0.05) for length in lengths]
    flank = random_letters(rng, 37, 0.05)
    records = [*signatures]
    for signature in signatures:
        records += [np.concatenate([signature, flank]), np.concatenate([flank, signature])]
        records += [signature[1:], signature[:-1]]
    return records, signatures


def repeats() -> Case:
    signatures = ["A", "AAAA", "A" * 70, "ACACACAC", "AC" * 40, "N" * 5, "N" * 90, "W" * 20]
    records = ["A" * 200, "AC" * 90, "N" * 130, "a" * 69, "T" * 71, "", "ACAC" + "N" * 90 + "CACA"]
    return [array(record) for record in records], [array(signature) for signature in signatures]


def long_ones(ambiguous: float) -> Case:
    rng = np.random.default_rng(int(100 * ambiguous))
    signatures = [random_letters(rng, int(rng.integers(300, 700)), ambiguous) for _ in range(25)]
    sizes = (9000, 200, 4321)
    return [planted(rng, size, signatures, ambiguous, size // 700) for size in sizes], signatures


def under_n(share: float) -> Case:
    """Most of the sample is N, so that its few single bases tell more than the signatures'."""
    rng = np.random.default_rng(int(1000 * share))
    clean = random_letters(rng, 8000, 0)
    signatures = []
    for length in (150, 900, 2500, 5000):
        begin = int(rng.integers(len(clean) - length))
        signature = clean[begin : begin + length].copy()
        other = signature.copy()
        other[rng.integers(length)] = ord("A")
        some_n = signature.copy()
        some_n[rng.random(length) < 0.1] = ord("N")
        signatures += [signature, other, some_n, random_letters(rng, length, 0.1)]
    sample = clean.copy()
    sample[rng.random(len(clean)) < share] = ord("N")
    return [sample[:50], sample, clean[:3000], sample[3000:]], [*signatures, clean[100:400]]


FIXED = {
    "word lengths": word_lengths(),
    "repeats": repeats(),
    "long, no N": long_ones(0.0),
    "long, 10 % N": long_ones(0.1),
    "long, 60 % N": long_ones(0.6),
    "long, 97 % N": under_n(0.97),
}


def chunk_and_patterns(name: str, both: bool) -> tuple[Chunk, Patterns]:
    records, signatures = FIXED[name]
    return chunk_of(records), Patterns.of(signatures, both)


@cache
def all_hits(name: str, strict: bool, both: bool) -> Hits:
    """Return what the reference finds in fixed data; asked once, because it takes a while."""
    chunk, patterns = chunk_and_patterns(name, both)
    return reference.scan(chunk, patterns, ScanRules(first=False, strict=strict))


def expected_of(name: str, rules: ScanRules, both: bool) -> Hits:
    """Return all hits of the reference, or the first of every record and signature."""
    return all_hits(name, rules.strict, both).chosen(rules.wanted, 1 + both, by_end=False)


@pytest.mark.parametrize("device", NATIVE)
@examples(300)
@given(case=cases(), rules=st.sampled_from(ALL_RULES), both=st.booleans())
def test_scan__finds_what_the_reference_finds_in_random_data(
    device: str, case: Case, rules: ScanRules, both: bool
) -> None:
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures, both)
    expected = reference.scan(chunk, patterns, rules)
    assert_same(scanner(device, patterns, rules).scan(chunk), expected)


@pytest.mark.parametrize("device", NATIVE)
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both strands"])
@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("name", FIXED)
def test_scan__is_right_in_fixed_data(device: str, name: str, rules: ScanRules, both: bool) -> None:
    chunk, patterns = chunk_and_patterns(name, both)
    expected = expected_of(name, rules, both)
    assert len(expected) > 0
    assert_same(scanner(device, patterns, rules).scan(chunk), expected)


@pytest.mark.parametrize("device", NATIVE)
@examples(300)
@given(
    case=cases(),
    rules=st.sampled_from(ALL_RULES),
    k=st.sampled_from(seeds.WINDOWS),
    stride=st.sampled_from(seeds.STRIDES),
    blanks=st.integers(0, 3),
)
def test_scan__is_exact_whatever_the_seeds(
    device: str, case: Case, rules: ScanRules, k: int, stride: int, blanks: int
) -> None:
    """Some signatures have a seed of the plan, others not, whatever would be fast."""
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLANNERS[device], lambda *_: SeedPlan(k, stride, blanks))
        found = scanner(device, patterns, rules).scan(chunk)
    assert_same(found, reference.scan(chunk, patterns, rules))


@pytest.mark.parametrize("device", NATIVE)
@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__of_very_many_hits_gives_them_all(device: str, first: bool) -> None:
    """More than any first guess of how much room they need, in the first and in a later record."""
    records = [array("A" * 9000), array("AC"), array("A" * 40_000), array("AAAA")]
    chunk, patterns = chunk_of(records), Patterns.of([array("A"), array("N"), array("AAAA")])
    expected = reference.scan(chunk, patterns, ScanRules(first))
    assert len(expected) == (11 if first else 147_006)
    assert_same(scanner(device, patterns, ScanRules(first)).scan(chunk), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("records", "signatures", "first", "expected"), [
    *((records, ["NNNN"], True, []) for records in ([], [""], ["", ""], ["ACG"], ["", "ACG", ""])),
    (["ACGTAC", "GTACG"], ["ACGT"], False, [(0, 0, 0)]),  # nothing across a border
    (["TTACGTGGTTAACC"], ["ACGT", "AACC"], True, [(0, 0, 2), (0, 3, 6)]),  # forward on a tie
])  # fmt: skip
def test_scan__of_few_bases(
    device: str, records: list[str], signatures: list[str], first: bool, expected: Any
) -> None:
    patterns = Patterns.of([*map(array, signatures)], both_strands=len(signatures) > 1)
    found = scanner(device, patterns, ScanRules(first)).scan(chunk_of([*map(array, records)]))
    assert rows(found) == expected


@pytest.mark.parametrize("device", DEVICES)
def test_scan__from_several_threads_at_once_gives_the_same(device: str) -> None:
    records, signatures = FIXED["long, 10 % N"]
    patterns = Patterns.of(signatures, both_strands=True)
    shared = scanner(device, patterns, ScanRules(first=False))
    chunks = [chunk_of(records[first:]) for first in range(3)] * 4
    expected = [rows(shared.scan(chunk)) for chunk in chunks]
    with ThreadPoolExecutor(4) as pool:
        assert [rows(hits) for hits in pool.map(shared.scan, chunks)] == expected


@pytest.mark.gpu
@pytest.mark.parametrize("most_hits", [1 << 10, 1 << 13])
@pytest.mark.parametrize("name", ["word lengths", "long, 10 % N", "long, 60 % N"])
@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_cuda_scan__with_little_room_for_hits_grows_splits_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, rules: ScanRules, most_hits: int
) -> None:
    from multigpu.kernels.scan import cuda

    monkeypatch.setattr(cuda, "EMPTY_TABLE", 64)
    monkeypatch.setattr(cuda, "MOST_HITS", most_hits)
    chunk, patterns = chunk_and_patterns(name, both=True)
    expected = expected_of(name, rules, both=True)
    reused = cuda.ExactScanner(patterns, rules)
    for _ in range(2):
        assert_same(scan_halving(reused, chunk), expected)


def test_cpu_scanner__chunks_with_many_ambiguous_bases_after_some_with_few() -> None:
    rng = np.random.default_rng(0)
    signatures = [random_letters(rng, 60, 0.0) for _ in range(30)]
    patterns = Patterns.of(signatures)
    searched = scanner("cpu", patterns, ScanRules())
    for ambiguous in (0.0, 0.2, 0.0005, 0.02):
        chunk = chunk_of([planted(rng, 3000, signatures, ambiguous, 3) for _ in range(4)])
        assert_same(searched.scan(chunk), reference.scan(chunk, patterns, ScanRules()))
    assert searched.index(0.0005) is not searched.index(0.2)


ILLEGAL = [value for value in range(256) if chr(value) not in LEGAL]


@pytest.mark.parametrize("device", DEVICES)
def test_scan__refuses_every_other_letter(device: str) -> None:
    search = scanner(device, Patterns.of([array("ACGT")]), ScanRules())
    for value in ILLEGAL:
        letters = array("ACGT" * 20)
        letters[37] = value
        with pytest.raises(BadBaseError, match=r"^37$"):
            search.scan(Chunk(letters, np.array([0, 30, 80])))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("position", [0, 1, 31, 32, 63, 64, 65, 127, 128, 190, 199])
def test_scan__tells_the_position_of_the_first_illegal_letter(device: str, position: int) -> None:
    letters = array("ACGTN" * 40)
    letters[position:] = ord("!")
    patterns = Patterns.of([array("ACGT")])
    search = scanner(device, patterns, ScanRules())
    chunk = Chunk(letters, np.array([0, 60, 60, 200]))
    for scan in (search.scan, lambda _: reference.scan(chunk, patterns, ScanRules())):
        with pytest.raises(BadBaseError, match=rf"^{position}$") as caught:
            scan(chunk)
        assert caught.value.position == position
    assert rows(search.scan(chunk_of([array("TACGT")]))) == [(0, 0, 1)]  # works on


# ---- what the reference rests on --------------------------------------------------------------


@examples(300)
@given(sample=letters_of, signature=letters_of.filter(bool), strict=st.booleans())
@example(sample="N", signature="A", strict=True)
@example(sample="A", signature="N", strict=True)
@example(sample="uU", signature="T", strict=False)
def test_reference__compares_bases_as_sets(sample: str, signature: str, strict: bool) -> None:
    found = reference.occurrences(encode(array(sample)), encode(array(signature)), strict)
    assert [(i, "+") for i in found.tolist()] == starts(sample, signature, "+", strict)

"""The search kernels against the plain search, and the pieces they are made of."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from halving import scan_halving
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernels import bases
from kernels.bases import COMPLEMENTS, encode, reverse_complement
from kernels.scan import BadBaseError, Chunk, Hits, Patterns, Rules, cpu, reference, seeds
from kernels.scan.cpu_patterns import COSTS
from kernels.scan.seeds import LONGEST_RUN, Costs, SeedPlan, choices, plan_seeds
from kernels.scan.types import Part, TooManyHitsError, split

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
PLANNERS = {"cpu": "kernels.scan.cpu_patterns.plan_seeds", "cuda": "kernels.scan.cuda.plan_seeds"}
SINGLE = b"ACGT"
AMBIGUOUS = b"NNNNNNNNRYSWKMBDHVnryswkmbdhvUuacgt"  # mostly N, as in life
MEANING = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT",
    "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
ALL_RULES = [Rules(first, strict) for first in (True, False) for strict in (False, True)]

Letters = NDArray[np.uint8]


def scanner(device: str, patterns: Patterns, rules: Rules) -> Any:
    if device == "cpu":
        return cpu.Scanner(patterns, rules)
    from kernels.scan import cuda

    return cuda.Scanner(patterns, rules)


def array(text: bytes | str) -> Letters:
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8).copy()


def chunk_of(records: Sequence[Letters]) -> Chunk:
    offsets = np.zeros(len(records) + 1, np.int64)
    np.cumsum([len(record) for record in records], out=offsets[1:])
    return Chunk(np.concatenate([np.empty(0, np.uint8), *records]), offsets)


def rows(hits: Hits) -> list[tuple[int, int, int]]:
    columns = (hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist())
    return list(zip(*columns, strict=True))


def assert_same(got: Hits, expected: Hits) -> None:
    assert rows(got) == rows(expected)
    dtypes = (got.record.dtype, got.pattern.dtype, got.start.dtype)
    assert dtypes == (np.int32, np.int32, np.int64)


# ---- random data ------------------------------------------------------------------------------


def random_letters(rng: np.random.Generator, size: int, ambiguous: float) -> Letters:
    letters = array(SINGLE)[rng.integers(0, 4, size)]
    chosen = rng.random(size) < ambiguous
    letters[chosen] = array(AMBIGUOUS)[rng.integers(0, len(AMBIGUOUS), int(chosen.sum()))]
    return letters


def planted(
    rng: np.random.Generator,
    size: int,
    signatures: list[Letters],
    ambiguous: float,
    plants: int | None = None,
) -> Letters:
    """A record with some signatures in it, on either strand; some of them damaged at one place."""
    record = random_letters(rng, size, ambiguous)
    for _ in range(int(rng.integers(0, 4)) if plants is None else plants):
        signature = signatures[rng.integers(len(signatures))]
        if len(signature) > size:
            continue
        if rng.integers(2):
            signature = written(reverse_complement(encode(signature)))
        start = int(rng.choice([0, size - len(signature), rng.integers(size - len(signature) + 1)]))
        record[start : start + len(signature)] = signature
        if rng.integers(3) == 0:
            record[start + rng.integers(len(signature))] = array(SINGLE)[rng.integers(4)]
    return record


def written(sets: NDArray[np.uint8]) -> Letters:
    """Sets as capital letters."""
    letter_of = {bases.SETS[letter]: letter for letter in reversed(MEANING)}
    return array("".join(letter_of[value] for value in sets.tolist()))


Case = tuple[list[Letters], list[Letters]]


@st.composite
def cases(draw: st.DrawFn, most_records: int = 6, most_signatures: int = 20) -> Case:
    """(records, signatures). Sizes come from the seed: Hypothesis draws mostly small ones."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ambiguous = draw(st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.6, 0.9, 1.0]))
    longest = draw(st.sampled_from([40, 12, 70, 150, 3]))
    reads = draw(st.sampled_from([400, 150, 64, 20, 1]))
    signatures = [
        random_letters(rng, int(rng.integers(1, longest + 1)), ambiguous)
        for _ in range(rng.integers(1, most_signatures + 1))
    ]
    records = [
        planted(rng, int(rng.integers(0, reads + 1)), signatures, ambiguous)
        for _ in range(rng.integers(0, most_records + 1))
    ]
    return records, signatures


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
    clean = random_letters(rng, 12_000, 0)
    signatures = []
    for length in (150, 500, 900, 2500, 5000, 7000):
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
    "long, 96 % N": under_n(0.96),  # more single bases than are listed
    "long, 99.8 % N": under_n(0.998),
}


# ---- the search -------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=300)
@given(case=cases(), rules=st.sampled_from(ALL_RULES), both=st.booleans())
def test_scan__finds_what_the_reference_finds_in_random_data(
    device: str, case: Case, rules: Rules, both: bool
) -> None:
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures, both)
    expected = reference.scan(chunk, patterns, rules)
    assert_same(scanner(device, patterns, rules).scan(chunk), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("both", [False, True], ids=["forward", "both strands"])
@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
@pytest.mark.parametrize("name", FIXED)
def test_scan__finds_what_the_reference_finds(
    device: str, name: str, rules: Rules, both: bool
) -> None:
    records, signatures = FIXED[name]
    chunk, patterns = chunk_of(records), Patterns.of(signatures, both)
    expected = reference.scan(chunk, patterns, rules)
    assert len(expected) > 0
    assert_same(scanner(device, patterns, rules).scan(chunk), expected)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=300)
@given(
    case=cases(),
    rules=st.sampled_from(ALL_RULES),
    k=st.sampled_from(seeds.WINDOWS),
    stride=st.sampled_from(seeds.STRIDES),
    blanks=st.integers(0, 3),
)
def test_scan__is_exact_whatever_the_seeds(
    device: str, case: Case, rules: Rules, k: int, stride: int, blanks: int
) -> None:
    """Some signatures have a seed of the plan, others not, whatever would be fast."""
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLANNERS[device], lambda *_: SeedPlan(k, stride, blanks))
        found = scanner(device, patterns, rules).scan(chunk)
    assert_same(found, reference.scan(chunk, patterns, rules))


@pytest.mark.parametrize("device", DEVICES)
def test_scan__finds_many_short_signatures_in_many_short_reads(device: str) -> None:
    rng = np.random.default_rng(3)
    signatures = [random_letters(rng, int(rng.integers(16, 33)), 0.02) for _ in range(400)]
    records = [planted(rng, int(rng.integers(20, 60)), signatures, 0.02) for _ in range(200)]
    chunk, patterns = chunk_of(records), Patterns.of(signatures)
    expected = reference.scan(chunk, patterns, Rules())
    assert len(expected) > 50
    assert_same(scanner(device, patterns, Rules()).scan(chunk), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__of_very_many_hits_gives_them_all(device: str, first: bool) -> None:
    """More than any first guess of how much room they need, in the first and in a later record."""
    records = [array("A" * 9000), array("AC"), array("A" * 40_000), array("AAAA")]
    chunk, patterns = chunk_of(records), Patterns.of([array("A"), array("N"), array("AAAA")])
    expected = reference.scan(chunk, patterns, Rules(first))
    assert len(expected) == (11 if first else 147_006)
    assert_same(scanner(device, patterns, Rules(first)).scan(chunk), expected)


@pytest.mark.parametrize("bases", [0, 1, 1e4, 1e12])
def test_scan__finds_the_same_however_many_bases_are_expected(bases: float) -> None:
    records, signatures = FIXED["long, 10 % N"]
    chunk, patterns = chunk_of(records), Patterns.of(signatures, both_strands=True)
    expected = reference.scan(chunk, patterns, Rules())
    assert_same(cpu.Scanner(patterns, Rules(), bases).scan(chunk), expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("records", [[], [b""], [b"", b""], [b"ACG"], [b"", b"ACG", b""]], ids=str)
def test_scan__of_records_shorter_than_the_signature_finds_nothing(
    device: str, records: list[bytes]
) -> None:
    chunk, patterns = chunk_of([array(r) for r in records]), Patterns.of([array("NNNN")])
    assert_same(scanner(device, patterns, Rules()).scan(chunk), Hits.joined([empty()]))


def empty() -> Hits:
    return Hits(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int64))


@pytest.mark.parametrize("device", DEVICES)
def test_scan__finds_nothing_across_a_record_border(device: str) -> None:
    patterns = Patterns.of([array("ACGT")])
    found = scanner(device, patterns, Rules(first=False)).scan(
        chunk_of([array("ACGTAC"), array("GTACG")])
    )
    assert rows(found) == [(0, 0, 0)]


@pytest.mark.parametrize("device", DEVICES)
def test_scan__on_a_tie_of_the_strands_gives_the_forward_one(device: str) -> None:
    patterns = Patterns.of([array("ACGT"), array("AACC")], both_strands=True)
    found = scanner(device, patterns, Rules()).scan(chunk_of([array("TTACGTGGTTAACC")]))
    assert rows(found) == [(0, 0, 2), (0, 3, 6)]


@pytest.mark.parametrize("device", DEVICES)
def test_scan__from_several_threads_at_once_gives_the_same(device: str) -> None:
    records, signatures = FIXED["long, 10 % N"]
    patterns = Patterns.of(signatures, both_strands=True)
    shared = scanner(device, patterns, Rules(first=False))
    chunks = [chunk_of(records[first:]) for first in range(3)] * 4
    expected = [rows(shared.scan(chunk)) for chunk in chunks]
    with ThreadPoolExecutor(4) as pool:
        assert [rows(hits) for hits in pool.map(shared.scan, chunks)] == expected


@pytest.mark.gpu
@pytest.mark.parametrize("most_hits", [1 << 10, 1 << 13])
@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("rules", ALL_RULES, ids=str)
def test_cuda_scan__with_little_room_for_hits_grows_splits_and_finds_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, rules: Rules, most_hits: int
) -> None:
    from kernels.scan import cuda

    monkeypatch.setattr(cuda, "EMPTY_TABLE", 64)
    monkeypatch.setattr(cuda, "MOST_HITS", most_hits)
    records, signatures = FIXED[name]
    chunk, patterns = chunk_of(records), Patterns.of(signatures, both_strands=True)
    expected = reference.scan(chunk, patterns, rules)
    reused = cuda.Scanner(patterns, rules)
    for _ in range(2):
        assert_same(scan_halving(reused, chunk), expected)


@pytest.mark.gpu
def test_cuda_scan__of_more_hits_than_one_search_may_have_splits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kernels.scan import cuda

    monkeypatch.setattr(cuda, "EMPTY_TABLE", 64)
    monkeypatch.setattr(cuda, "MOST_HITS", 1 << 10)
    chunk = chunk_of([array("A" * 3000), array("A" * 500)])
    patterns = Patterns.of([array("A"), array("AAAA"), array("A" * 100)])
    expected = reference.scan(chunk, patterns, Rules(first=False))
    assert len(expected) > 1 << 10
    scanner = cuda.Scanner(patterns, Rules(first=False))
    with pytest.raises(TooManyHitsError):
        scanner.scan(chunk)
    assert_same(scan_halving(scanner, chunk), expected)


# ---- illegal letters --------------------------------------------------------------------------

LETTER_SETS = encode(np.arange(256, dtype=np.uint8))
LEGAL = set(MEANING) | {letter.lower() for letter in MEANING}
ILLEGAL = [value for value in range(256) if chr(value) not in LEGAL]


def test_letters__are_the_iupac_codes_in_both_cases() -> None:
    assert np.flatnonzero(LETTER_SETS).tolist() == sorted(ord(letter) for letter in LEGAL)


@pytest.mark.parametrize("device", DEVICES)
def test_scan__refuses_every_other_letter(device: str) -> None:
    search = scanner(device, Patterns.of([array("ACGT")]), Rules())
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
    search = scanner(device, Patterns.of([array("ACGT")]), Rules())
    with pytest.raises(BadBaseError, match=rf"^{position}$") as caught:
        search.scan(Chunk(letters, np.array([0, 60, 60, 200])))
    assert caught.value.position == position


def test_reference__tells_the_position_of_the_first_illegal_letter() -> None:
    with pytest.raises(BadBaseError, match=r"^2$"):
        reference.scan(chunk_of([array("AC"), array("!T!")]), Patterns.of([array("A")]), Rules())


@pytest.mark.parametrize("device", DEVICES)
def test_scan__works_on_after_an_illegal_letter(device: str) -> None:
    search = scanner(device, Patterns.of([array("ACGT")]), Rules())
    with pytest.raises(BadBaseError, match=r"^4$"):
        search.scan(chunk_of([array("ACGT?")]))
    assert rows(search.scan(chunk_of([array("TACGT")]))) == [(0, 0, 1)]


# ---- what the reference rests on --------------------------------------------------------------


def plain(sample: str, signature: str, strict: bool) -> list[int]:
    """Sets of characters, letter by letter."""

    def agree(ours: str, theirs: str) -> bool:
        mine, wanted = set(MEANING[ours.upper()]), set(MEANING[theirs.upper()])
        return mine <= wanted if strict else bool(mine & wanted)

    starts = range(len(sample) - len(signature) + 1)
    return [i for i in starts if all(map(agree, sample[i : i + len(signature)], signature))]


letters_of = st.text("".join(sorted(LEGAL)), max_size=30)


@settings(max_examples=300)
@given(sample=letters_of, signature=letters_of.filter(bool), strict=st.booleans())
@example(sample="N", signature="A", strict=True)
@example(sample="A", signature="N", strict=True)
@example(sample="uU", signature="T", strict=False)
def test_reference__compares_bases_as_sets(sample: str, signature: str, strict: bool) -> None:
    found = reference.occurrences(encode(array(sample)), encode(array(signature)), strict)
    assert found.tolist() == plain(sample, signature, strict)


def test_sets__are_those_of_iupac() -> None:
    for letter, meaning in MEANING.items():
        value = sum(1 << "ACGT".index(base) for base in meaning)
        assert LETTER_SETS[ord(letter)] == LETTER_SETS[ord(letter.lower())] == value


def test_complements__pair_the_bases() -> None:
    pairs = dict(zip("ACGTRYKMBVDHSWN", "TGCAYRMKVBHDSWN", strict=True))
    for letter, other in pairs.items():
        assert COMPLEMENTS[LETTER_SETS[ord(letter)]] == LETTER_SETS[ord(other)]
    assert COMPLEMENTS[0] == 0


@given(letters_of)
def test_reverse_complement__twice_changes_nothing(letters: str) -> None:
    sets = encode(array(letters))
    assert reverse_complement(reverse_complement(sets)).tolist() == sets.tolist()


# ---- patterns and hits ------------------------------------------------------------------------


@given(st.lists(letters_of.filter(bool), min_size=1, max_size=6), st.booleans())
def test_patterns__hold_every_signature_and_its_reverse_complement(
    signatures: list[str], both: bool
) -> None:
    patterns = Patterns.of([array(signature) for signature in signatures], both)
    assert patterns.strands == 1 + both
    assert len(patterns) == len(patterns.lengths) == patterns.strands * len(signatures)
    assert (patterns.offsets[0], patterns.offsets[-1]) == (0, len(patterns.sets))
    assert (patterns.sets.dtype, patterns.offsets.dtype) == (np.uint8, np.int64)
    for p, (begin, end) in enumerate(pairwise(patterns.offsets.tolist())):
        expected = encode(array(signatures[p // patterns.strands]))
        if p % patterns.strands:
            expected = reverse_complement(expected)
        assert patterns.sets[begin:end].tolist() == expected.tolist()
        assert patterns.lengths[p] == end - begin


@pytest.mark.parametrize("wrong", ["", "ACGX", "AC GT", "-"])
def test_patterns__refuse_what_is_no_signature(wrong: str) -> None:
    with pytest.raises(ValueError, match="empty or has a letter that is no IUPAC base"):
        Patterns.of([array("ACGT"), array(wrong)])


def random_hits(draw: np.random.Generator, count: int) -> Hits:
    return Hits(
        draw.integers(0, 4, count).astype(np.int32),
        draw.integers(0, 6, count).astype(np.int32),
        draw.integers(0, 5, count),
    )


@given(st.integers(0, 2**32), st.integers(0, 60), st.sampled_from([1, 2]), st.booleans())
def test_hits__are_ordered_by_record_signature_start_and_strand(
    seed: int, count: int, strands: int, first: bool
) -> None:
    hits = random_hits(np.random.default_rng(seed), count)
    expected = sorted(rows(hits), key=lambda row: (row[0], row[1] // strands, row[2], row[1]))
    if first:
        pairs = [(record, pattern // strands) for record, pattern, _ in expected]
        expected = [row for i, row in enumerate(expected) if pairs.index(pairs[i]) == i]
    assert_same(hits.ordered(strands, first), Hits(*columns(expected)))


def columns(table: list[tuple[int, int, int]]) -> Iterator[NDArray[Any]]:
    for number, dtype in enumerate((np.int32, np.int32, np.int64)):
        yield np.array([row[number] for row in table], dtype)


# ---- cutting a chunk in two -------------------------------------------------------------------


def before(chunk: Chunk, patterns: Patterns, limit: int) -> Hits:
    """The reference's hits, all of them, that begin before a position of the chunk."""
    hits = reference.scan(chunk, patterns, Rules(first=False))
    kept = chunk.offsets[hits.record] + hits.start < limit
    return Hits(hits.record[kept], hits.pattern[kept], hits.start[kept])


def divided(chunk: Chunk, patterns: Patterns, limit: int, smallest: int) -> Hits:
    """The same, cut in two again and again."""
    if limit <= smallest:
        return before(chunk, patterns, limit)
    parts = split(chunk, limit, int(patterns.lengths.max()))
    for part in parts:
        check_contract(part)
    return Hits.joined(
        [part.moved(divided(part.chunk, patterns, part.limit, smallest)) for part in parts]
    )


def check_contract(part: Part) -> None:
    offsets = part.chunk.offsets
    assert (offsets[0], offsets[-1]) == (0, len(part.chunk.letters))
    assert (np.diff(offsets) >= 0).all()
    assert 0 <= part.limit <= len(part.chunk.letters)
    assert (offsets.dtype, part.chunk.letters.dtype) == (np.int64, np.uint8)


SMALL = ["AAAACC", "", "ACCAAACAC", "", "", "C", "AACCAACCAAC", ""]


@pytest.mark.parametrize("longest", [1, 2, 3, 5, 12])
def test_split__at_every_border_keeps_every_hit_once(longest: int) -> None:
    chunk = chunk_of([array(record) for record in SMALL])
    patterns = Patterns.of([array("A"), array("AACC"[:longest]), array("N" * longest)])
    for limit in range(len(chunk.letters) + 1):
        expected = before(chunk, patterns, limit).ordered(1, first=False)
        assert_same(divided(chunk, patterns, limit, max(1, limit - 1)).ordered(1, False), expected)
        assert_same(divided(chunk, patterns, limit, 1).ordered(1, first=False), expected)


@settings(max_examples=60)
@given(case=cases(most_records=5, most_signatures=4), smallest=st.integers(1, 40))
def test_split__again_and_again_keeps_every_hit_once(case: Case, smallest: int) -> None:
    records, signatures = case
    chunk, patterns = chunk_of(records), Patterns.of(signatures)
    expected = reference.scan(chunk, patterns, Rules(first=False))
    got = divided(chunk, patterns, len(chunk.letters), smallest)
    assert_same(got.ordered(1, first=False), expected)


def test_split__keeps_the_first_hit_of_a_record_that_is_cut() -> None:
    chunk, patterns = chunk_of([array("CCACCACC")]), Patterns.of([array("AC"), array("CC")])
    expected = reference.scan(chunk, patterns, Rules())
    parts = split(chunk, len(chunk.letters), 2)
    found = [part.moved(reference.scan(part.chunk, patterns, Rules())) for part in parts]
    assert_same(Hits.joined(found).ordered(1, first=True), expected)


# ---- seeds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [4, 7, 10, 16])
@pytest.mark.parametrize("blanks", [0, 1, 2, 4])
def test_masks__are_all_choices_of_blanked_places_each_once(k: int, blanks: int) -> None:
    masks = SeedPlan(k, 1, blanks).masks()
    blanked = [mask.bit_count() for mask in masks.tolist()]
    assert masks.dtype == np.uint32
    assert len(set(masks.tolist())) == len(masks) == choices(k, blanks)
    assert masks[0] == 0
    assert blanked == sorted(blanked)
    assert (max(blanked), int(masks.max()) < 1 << k) == (blanks, True)


any_costs = st.builds(
    Costs,
    probe=st.floats(0.1, 100),
    candidate=st.floats(0.1, 1000),
    direct=st.floats(0.01, 100),
    entry=st.floats(0.1, 1000),
    max_entries=st.sampled_from([1 << 14, 1 << 20, 1 << 24]),
)


@settings(max_examples=200)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50), costs=any_costs)
def test_plan__is_possible_and_fits(runs: list[int], costs: Costs) -> None:
    plan = plan_seeds(np.array(runs, np.int64), costs)
    assert plan.k in seeds.WINDOWS
    assert plan.stride in seeds.STRIDES
    assert 0 <= plan.blanks <= min(plan.k, seeds.MOST_BLANKS)
    assert plan.run == plan.k + plan.stride - 1 <= 32
    seeded = sum(run >= plan.run for run in runs)
    assert seeded * plan.stride * choices(plan.k, plan.blanks) <= costs.max_entries


@settings(max_examples=50)
@given(runs=st.lists(st.integers(0, LONGEST_RUN), min_size=1, max_size=50))
def test_plan__for_few_bases_makes_no_larger_index_than_for_many(runs: list[int]) -> None:
    sizes = []
    for expected_bases in (1e3, 1e6, 1e9):
        plan = plan_seeds(np.array(runs, np.int64), COSTS, expected_bases)
        seeded = sum(run >= plan.run for run in runs)
        sizes.append(seeded * plan.stride * choices(plan.k, plan.blanks))
    assert sizes == sorted(sizes)


def test_cpu_scanner__chunks_with_many_ambiguous_bases_after_some_with_few() -> None:
    rng = np.random.default_rng(0)
    signatures = [random_letters(rng, 60, 0.0) for _ in range(30)]
    patterns = Patterns.of(signatures)
    searched = cpu.Scanner(patterns, Rules())
    for ambiguous in (0.0, 0.2, 0.0005, 0.02):
        chunk = chunk_of([planted(rng, 3000, signatures, ambiguous, 3) for _ in range(4)])
        assert_same(searched.scan(chunk), reference.scan(chunk, patterns, Rules()))
    few, many = searched.way(0.0).plan, searched.way(0.2).plan
    assert few.stride >= many.stride
    assert few.blanks < many.blanks


def test_plan__without_any_clean_run_seeds_nothing() -> None:
    runs = np.zeros(20, np.int64)
    assert (runs >= plan_seeds(runs, COSTS).run).sum() == 0

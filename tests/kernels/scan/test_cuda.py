"""The CUDA scan without a GPU: its host code and its kernels, emulated, against the reference.

This checks the logic, in any order of lanes, warps and blocks; `emulation/cuda_emulator.hpp` says
what it cannot check.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from emulation import emulated
from emulation.device import Gpu
from numpy.typing import NDArray
from support.halving import scan_halving
from support.scan_cases import array, assert_same

from multigpu.kernels import bases
from multigpu.kernels.scan import reference
from multigpu.kernels.scan.seeds import MOST_BLANKS, STRIDES, WINDOWS, SeedPlan, choices
from multigpu.kernels.scan.types import BadBaseError, Chunk, Hits, Patterns, ScanRules

pytestmark = pytest.mark.skipif(bool(emulated.why_not()), reason=emulated.why_not())

SHARES_OF_N = (0.0, 0.05, 0.1, 0.3, 0.6, 0.9, 1.0)
LENGTHS = (1, 2, 3, 5, 8, 12, 16, 21, 31, 32, 33, 40, 50, 64, 65, 80, 97, 128, 150)
LONG = (257, 300, 513, 1025, 1300, 2047, 2100, 2600)
TABLE = 2048  # first room for hits; more than twice the threads that run at once
LETTER_OF = np.frombuffer(b"-ACMGRSVTWYHKDBN", np.uint8)  # of a set

Letters = NDArray[np.uint8]


@pytest.fixture(scope="session")
def machine() -> tuple[Gpu, Any]:
    return emulated.load("scan")


@pytest.fixture
def cuda(machine: tuple[Gpu, Any], gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `multigpu.kernels.scan.cuda`, with little of everything."""
    monkeypatch.setattr(machine[1], "BLOCKS_PER_SM", 1)
    monkeypatch.setattr(machine[1], "EMPTY_TABLE", TABLE)
    return machine[1]


Use = Callable[..., None]


@pytest.fixture
def use_plan(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Use:
    """Sets k, stride and blanks of the seeds."""
    return lambda *plan: monkeypatch.setattr(cuda, "plan_seeds", lambda *_: SeedPlan(*plan))


def cut(letters: Letters, lengths: Sequence[int]) -> Chunk:
    """Return as many of the letters as there are in records of these lengths."""
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return Chunk(np.ascontiguousarray(letters[: offsets[-1]]), offsets)


def blurred(clean: Letters, share_of_n: float, rng: np.random.Generator) -> Letters:
    """Bases under N, more in some places than in others, and under other letters that hold them."""
    out = widened(clean, 0.01, rng)
    density = np.repeat(rng.choice([0.0, 0.5, 1.0, 2.0], -(-len(clean) // 512)), 512)[: len(clean)]
    out[rng.random(len(out)) < share_of_n * (density if share_of_n < 1 else 1)] = ord("N")
    out[(out == ord("T")) & (rng.random(len(out)) < 0.1)] = ord("U")
    out[rng.random(len(out)) < 0.1] |= 0x20
    return out


def widened(letters: Letters, share: float, rng: np.random.Generator) -> Letters:
    """Some bases become sets that hold them."""
    sets = bases.encode(letters)
    chosen = rng.random(len(sets)) < share
    sets[chosen] |= rng.integers(16, size=int(chosen.sum()), dtype=np.uint8)
    return LETTER_OF[sets]


def other_strand(signature: Letters) -> Letters:
    return LETTER_OF[bases.reverse_complement(bases.encode(signature))]


def taken_from(clean: Letters, lengths: Sequence[int], rng: np.random.Generator) -> list[Letters]:
    """A signature of each length: most occur in `clean`, some but for their last base."""
    out = []
    for length in lengths:
        begin = int(rng.integers(max(1, len(clean) - length + 1)))
        signature = np.resize(clean[begin : begin + length], length)
        kind = rng.integers(10)
        if kind == 0:
            signature = rng.choice(array("ACGT"), length)
        elif kind == 1:
            signature[rng.choice([0, -1])] = rng.choice(array("ACGT"))
        elif kind == 2:
            signature = widened(signature, 0.9, rng)  # has no seed
        elif kind < 6:
            signature = widened(signature, 0.05, rng)
        if rng.random() < 0.4:
            signature = other_strand(signature)
        out.append(signature)
    return out


def random_case(
    share_of_n: float, both_strands: bool, rng: np.random.Generator
) -> tuple[Chunk, Patterns]:
    """Short, empty and long records; signatures of all kinds."""
    few = share_of_n > 0.5  # or else there would be too many hits for the reference
    long = (3500,) if few else (2100, 1024, 5000)
    short = rng.integers(0, 120, 6 if few else 25)
    lengths = rng.permutation([*short, 0, 0, *long, rng.integers(1, 500)]).tolist()
    clean = rng.choice(array("ACGT"), sum(lengths))
    signatures = taken_from(clean, rng.choice(LENGTHS, 7 if few else 20).tolist(), rng)
    chunk = cut(blurred(clean, share_of_n, rng), lengths)
    return chunk, Patterns.of(signatures, both_strands)


def random_plan(stride: int, rng: np.random.Generator) -> tuple[int, int, int]:
    while True:
        k, blanks = int(rng.choice(WINDOWS)), int(rng.integers(MOST_BLANKS + 1))
        if blanks <= k and choices(k, blanks) <= 300:
            return k, stride, blanks


def check(cuda: Any, chunk: Chunk, patterns: Patterns, rules: ScanRules) -> Hits:
    """Check that the hits are those of the reference, and return them."""
    found: Hits = cuda.ExactScanner(patterns, rules).scan(chunk)
    assert_same(found, reference.scan(chunk, patterns, rules))
    return found


@pytest.mark.parametrize(("share_of_n", "stride", "strict"), [
    *(pytest.param(share, stride, False, marks=[pytest.mark.slow] * (i % 2))
      for share in SHARES_OF_N for i, stride in enumerate(STRIDES)),
    *((share, stride, True) for share in (0.0, 0.1, 1.0) for stride in (2, 8)),
])  # fmt: skip
@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__equals_the_reference(
    cuda: Any, gpu: Gpu, use_plan: Use, first: bool, share_of_n: float, stride: int, strict: bool
) -> None:
    """With every second stride, and with the others where there is time."""
    gpu.seed = stride
    rng = np.random.default_rng([stride, int(100 * share_of_n), first])
    use_plan(*random_plan(stride, rng))
    chunk, patterns = random_case(share_of_n, bool(rng.integers(2)), rng)
    check(cuda, chunk, patterns, ScanRules(first=first, strict=strict))
    assert not (strict and "direct" in gpu.launched)


@pytest.mark.parametrize("share_of_n", [0.02, 0.1, 0.3, 0.9, 0.97, 0.995])
@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__long(cuda: Any, use_plan: Use, first: bool, share_of_n: float) -> None:
    """Tiles are crowded with N before signatures begin, or after; of some little is known."""
    rng = np.random.default_rng([7, int(100 * share_of_n), first])
    use_plan(8, 4, 0 if share_of_n < 0.1 else 1)
    clean = rng.choice(array("ACGT"), 9000)
    signatures = []
    for length in LONG:
        begin = int(rng.integers(len(clean) - length))
        signature = clean[begin : begin + length].copy()
        near = signature.copy()  # differs in the end only
        at = -1 - int(rng.integers(3))
        near[at] = ord("A") if near[at] != ord("A") else ord("C")
        sparse = np.full(length, ord("N"), np.uint8)  # a base here and there: no seed
        sparse[::37] = signature[::37]
        signatures += [signature, near, widened(signature, 0.02, rng), sparse]
    samples = blurred(clean, share_of_n, rng)
    chunk, patterns = cut(samples, [300, 8000, 700]), Patterns.of(signatures)
    check(cuda, chunk, patterns, ScanRules(first=first))


@pytest.mark.parametrize("share_of_n", [0.05, 0.3, 0.9])
def test_scan__all_found_early(cuda: Any, use_plan: Use, share_of_n: float) -> None:
    rng = np.random.default_rng(int(100 * share_of_n))
    use_plan(6, 2, 0)
    clean = rng.choice(array("ACGT"), 24000)
    chunk = cut(blurred(clean, share_of_n, rng), [9000, 50, 6000, 8950])
    chunk.letters[:150] = clean[:150]
    short, long = [array("ACG"), array("GNAT"), array("TTTT")], [clean[30:50], clean[100:130]]
    for signatures in (short, long, [*short, *long]):
        patterns = Patterns.of(signatures, both_strands=True)
        check(cuda, chunk, patterns, ScanRules())


@pytest.mark.parametrize("rest", ["ACGT", "N"])
def test_scan__earlier_start_found_late(cuda: Any, use_plan: Use, rest: str) -> None:
    """All is found, with the greatest start below the position that tells a lower one.

    The signature's anchor is after its hundred N. Few N lead to `direct`, many to `sweep`.
    """
    use_plan(6, 2, 1)
    letters = np.random.default_rng(9).choice(array("ACGT"), 3000)
    bases_of_it = array("ACGTTGCAGATCCTAGGCTA")
    letters[1034:1054] = letters[1074:1094] = bases_of_it
    letters[1034:1054:2] = ord("N")
    letters[1100:] = np.resize(array(rest), 1900)
    patterns = Patterns.of([np.r_[array("N" * 100), bases_of_it]])
    got = cuda.ExactScanner(patterns, ScanRules()).scan(cut(letters, [3000]))
    assert got.start.tolist() == [934]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 64, 65])
def test_scan__positions_direct(cuda: Any, gpu: Gpu, use_plan: Use, count: int) -> None:
    use_plan(4, 1, 3)  # only NNNN is not in the index
    rng = np.random.default_rng(count)
    letters = rng.choice(array("ACGT"), 1000)
    letters[10 * count : 10 * count + 4] = array("ACGT")
    signature = letters[10 * count : 10 * count + 20].copy()
    for i in range(1, count + 1):
        letters[10 * i : 10 * i + 4] = ord("N")
    patterns, chunk = Patterns.of([signature]), cut(letters, [1000])
    for rules in (ScanRules(first=True), ScanRules(first=False)):
        assert 10 * count in check(cuda, chunk, patterns, rules).start


@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
@pytest.mark.parametrize("lengths", [[], [0], [0, 0, 0], [1], [0, 1, 0], [31, 0], [32], [1023, 1]])
def test_scan__little(cuda: Any, use_plan: Use, lengths: list[int], first: bool) -> None:
    use_plan(4, 2, 1)
    chunk = cut(array("ACGTN" * 300), lengths)
    patterns = Patterns.of([*map(array, ("A", "GTNACG", "N" * 32, "ACGTAACGTT"))], True)
    check(cuda, chunk, patterns, ScanRules(first=first))


@pytest.mark.parametrize("most", [1 << 26, TABLE], ids=["grown", "split"])
@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__more_hits_than_there_is_room_for(
    cuda: Any, use_plan: Use, monkeypatch: pytest.MonkeyPatch, first: bool, most: int
) -> None:
    use_plan(4, 4, 1)
    monkeypatch.setattr(cuda, "MOST_HITS", most)
    rng = np.random.default_rng(5)
    clean = rng.choice(array("ACGT"), 6000)
    lengths = [*rng.integers(20, 40, 120), 1500]
    chunk = cut(blurred(clean, 0.6, rng), lengths)
    lengths = [3, 4, 5, 6, 7, 8, 9, 20] * 2 if first else [5, 6, 7, 8, 9, 20]
    patterns = Patterns.of(taken_from(clean, lengths, rng), True)
    rules = ScanRules(first=first)
    expected = reference.scan(chunk, patterns, rules)
    assert len(expected) > TABLE / 2 if first else len(expected) > TABLE
    scanner = cuda.ExactScanner(patterns, rules)
    for _ in range(2):
        assert_same(scan_halving(scanner, chunk), expected)


@pytest.mark.parametrize("first", [True, False], ids=["first", "all"])
def test_scan__no_memory(
    cuda: Any, gpu: Gpu, use_plan: Use, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    use_plan(4, 4, 1)
    monkeypatch.setattr(cuda, "EMPTY_TABLE", TABLE // 2)
    rng = np.random.default_rng(6)
    clean = rng.choice(array("ACGT"), 60_000)
    chunk = cut(blurred(clean, 0.05, rng), [100, 40_000, 19_900])
    patterns = Patterns.of(taken_from(clean, [50, 60, 70], rng), True)
    rules = ScanRules(first=first)
    scanner = cuda.ExactScanner(patterns, rules)
    gpu.memory_limit = gpu.used() + 80_000
    got = scan_halving(scanner, chunk)
    assert gpu.launched["pack"] > 1
    assert_same(got, reference.scan(chunk, patterns, rules))


@pytest.mark.parametrize("why", ["memory", "bases"])
def test_scan__first_illegal_letter_of_a_split_chunk(
    cuda: Any, gpu: Gpu, use_plan: Use, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    use_plan(4, 1, 0)
    letters = np.resize(array("ACGT"), 60_000)
    letters[50_000] = ord("-")
    scanner = cuda.ExactScanner(Patterns.of([array("ACGTA")]), ScanRules())
    if why == "memory":
        monkeypatch.setattr(cuda, "EMPTY_TABLE", TABLE // 2)
        gpu.memory_limit = gpu.used() + 80_000
    else:
        monkeypatch.setattr(cuda, "MAX_BASES", 40_000)
    with pytest.raises(BadBaseError) as caught:
        scan_halving(scanner, cut(letters, [60_000]))
    assert caught.value.position == 50_000


def test_scan__masks_with_the_same_tag(cuda: Any, use_plan: Use) -> None:
    """Blanked at 2, 6, 13 and at 4, 5, 9, 14: keys of one tag, in one bucket of 4,096."""
    use_plan(16, 1, 4)
    patterns = Patterns.of([array("CTTGTTATCGTCCAAA")])
    scanner = cuda.ExactScanner(patterns, ScanRules(first=False))
    assert len(scanner.scan(cut(array("CTNGTTNTCGTCCNAA"), [16]))) == 1


def test_scan__table_that_many_fill_at_once(cuda: Any, use_plan: Use) -> None:
    """More than half of the table: threads that had seen room for one more go on to take it."""
    use_plan(4, 1, 0)
    letters = np.random.default_rng(0).choice(array("ACGT"), 400 * 32)
    chunk = cut(letters, [32] * 400)
    patterns = Patterns.of([array(f"{a}{b}{c}A") for a in "ACGT" for b in "ACGT" for c in "ACGT"])
    check(cuda, chunk, patterns, ScanRules())


def test_lane__list_never_becomes_shorter(cuda: Any) -> None:
    lane = cuda.ScanLane()
    lane._scanner = SimpleNamespace(rules=ScanRules(first=False))
    assert not lane._grow(1000) or lane.capacity > TABLE


WRONG = r"""
using u32 = unsigned;
extern "C" __global__ void part(u32* out) {
  if (threadIdx.x % 2) __syncwarp();
  else out[0] = __any_sync(0xFFFFFFFFu, 1);
}
extern "C" __global__ void leave(u32* out) {
  if (threadIdx.x == 40) return;
  out[0] = __ballot_sync(0xFFFFFFFFu, 1);
}
extern "C" __global__ void overrun(u32* out) { out[threadIdx.x] = 0; }
extern "C" __global__ void shift(u32* out) { out[0] = 1u << threadIdx.x; }
extern "C" __global__ void endless(u32* out) { while (atomicAdd(out, 0) < 256) {} }
extern "C" __global__ void apart(u32* out) {
  if (threadIdx.x < 32) __syncthreads();
  else __syncthreads();
}
extern "C" __global__ void deserted(u32* out) { if (threadIdx.x < 32) __syncthreads(); }
"""


@pytest.mark.parametrize(("name", "problem"), [
    ("part", r"part, block 0, thread \d+: lane \d+ is at .* in line 4, lane 0 at __any_sync"),
    ("leave", r"leave, .* a lane has ended, lane \d+ waits at __ballot_sync in line 9"),
    ("overrun", r"overrun, .* touches memory outside of its arrays at 0x"),
    ("shift", "shift, .* undefined behaviour"),
    ("endless", "endless, .* does not end: 1 seconds"),
    ("apart", r"apart, .* thread 32 is at __syncthreads in line 16, thread 0 in line 15"),
    ("deserted", "deserted, .* 1 warps wait at __syncthreads, the others have ended"),
    ("twice", "takes 1 arguments, got 2"),
    ("number", r"argument 0 is 8 bytes \(a pointer\), got 8"),
])  # fmt: skip
def test_emulator__finds(machine: tuple[Gpu, Any], name: str, problem: str) -> None:
    cupy = machine[1].cupy
    module = cupy.RawModule(code=WRONG, options=("-DEMULATED_SECONDS=1",))
    out = cupy.empty(16, np.uint32)
    out.data.memset_async(0, 64)
    arguments = {"twice": (out, out), "number": (np.uint64(1),)}.get(name, (out,))
    kernel = name if name not in ("twice", "number") else "endless"
    module.get_function(kernel)((1,), (64,), arguments)
    with pytest.raises(emulated.EmulationError, match=problem):
        out.get()

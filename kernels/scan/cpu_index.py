"""The index of the seeds on a CPU: a bit filter before chains of entries."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit, jit_no_alloc
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.scan.cpu_patterns import ONE, PackedPatterns, is_single, window
from multigpu.kernels.scan.seeds import SeedPlan, bits_of

FILTER_BITS = 128  # of each window, as long as
CACHED_BITS = 1 << 23  # are in the filter; a larger one does not stay in a core's cache, so it has
FEWEST_FILTER_BITS = 16
NOTHING = -1


class SeedIndex(NamedTuple):
    """Windows of the seeds by the hash of their bases.

    Entry e is window e % stride of seed e // stride.
    """

    known: NDArray[np.uint64]  # the filter: two bits per window
    heads: NDArray[np.int32]  # [2^bucket_bits], the last entry of the bucket or NOTHING
    entries: NDArray[np.int32]  # [entries, 2]: the window's bases; the next of its bucket
    known_shift: int
    bucket_shift: int
    k: int
    stride: int
    blanks: int
    anchors: NDArray[np.int32]  # [patterns], where the seed of each begins
    seeded: NDArray[np.int64]  # patterns with a seed
    unseeded: NDArray[np.int64]  # and those without


def make_index(packed: PackedPatterns, plan: SeedPlan) -> SeedIndex:
    """Return the index of a plan. Raises MemoryError."""
    seeded = np.flatnonzero(packed.runs >= plan.run)
    anchors, entries = _anchors(packed, plan.run), len(seeded) * plan.stride
    known_bits = bits_of(max(min(FILTER_BITS * entries, CACHED_BITS), FEWEST_FILTER_BITS * entries))
    bucket_bits = bits_of(entries)
    index = SeedIndex(
        known=np.zeros(1 << (known_bits - 6), np.uint64),
        heads=np.full(1 << bucket_bits, NOTHING, np.int32),
        entries=np.empty((entries, 2), np.int32),
        known_shift=64 - known_bits,
        bucket_shift=64 - bucket_bits,
        k=plan.k,
        stride=plan.stride,
        blanks=plan.blanks,
        anchors=anchors,
        seeded=seeded,
        unseeded=np.flatnonzero(packed.runs < plan.run),
    )
    _fill_index(index, packed)
    return index


@jit_no_alloc
def bases_of(low: Any, high: Any) -> Any:
    """Return two bits a base of up to 16 bases as one number, uint64."""
    return low | (high << np.uint64(16))


@jit_no_alloc
def hashed(bases: Any) -> Any:
    """Return 64 bits, of which the high ones are mixed best."""
    return np.uint64(bases) * np.uint64(0x9E3779B97F4A7C15)


@jit_no_alloc
def may_have(known: Any, shift: Any, key: Any) -> Any:
    """Return 1 where a filter has both bits of a hash, else 0."""
    i = key >> np.uint64(shift)
    word = known[i >> np.uint64(6)]
    other = key >> np.uint64(26)
    return (word >> (i & np.uint64(63))) & (word >> (other & np.uint64(63))) & ONE


@jit_no_alloc
def _remember(known: Any, shift: Any, key: Any) -> None:
    """Set the two bits of a hash in a filter, both in one word."""
    i, other = key >> np.uint64(shift), key >> np.uint64(26)
    known[i >> np.uint64(6)] |= (ONE << (i & np.uint64(63))) | (ONE << (other & np.uint64(63)))


@jit_no_alloc
def _fill_index(index: Any, packed: Any) -> None:
    entry = 0
    k_bits = (ONE << np.uint64(index.k)) - ONE
    for p in index.seeded:
        _, c, g, t = window(packed.planes, packed.words[p], index.anchors[p])
        low, high = c | t, g | t
        for phase in range(index.stride):
            shift = np.uint64(phase)
            bases = bases_of((low >> shift) & k_bits, (high >> shift) & k_bits)
            key = hashed(bases)
            _remember(index.known, index.known_shift, key)
            bucket = key >> np.uint64(index.bucket_shift)
            index.entries[entry, 0] = np.int32(bases)
            index.entries[entry, 1] = index.heads[bucket]
            index.heads[bucket] = entry
            entry += 1


# ---- anchors ------------------------------------------------------------------------------------


@jit
def _anchors(packed: Any, run: Any) -> Any:
    """Return where the seeds begin: the first one of enough variety, else the best one."""
    planes, words, lengths = packed.planes, packed.words, packed.lengths
    anchors = np.zeros(lengths.shape[0], np.int32)
    enough = min(8, run - 1)
    for p in range(lengths.shape[0]):
        clean = best = 0
        for i in range(lengths[p]):
            clean = clean + 1 if is_single(planes, words[p], i) else 0
            if clean >= run:
                _, c, g, t = window(planes, words[p], i + 1 - run)
                variety = 1 + _variety(c | t, g | t, run)
                if variety > best:
                    anchors[p], best = i + 1 - run, variety
                if variety > enough:
                    break
    return anchors


@jit_no_alloc
def _variety(low: Any, high: Any, run: Any) -> Any:
    """Return the number of different pairs of neighbours: seeds of few are found everywhere."""
    seen, two = np.uint64(0), np.uint64(3)
    for i in range(run - 1):
        pair = ((low >> np.uint64(i)) & two) | (((high >> np.uint64(i)) & two) << np.uint64(2))
        seen |= ONE << pair
    return popcount(seen)

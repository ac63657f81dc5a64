"""The index of the seeds on a CPU: a bit filter before chains of entries."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.cpu_patterns import NOTHING, Target, window
from multigpu.kernels.scan.seeds import SeedPlan

FILTER_BITS = 128  # of each window, as long as
CACHED_BITS = 1 << 23  # are in the filter; a larger one does not stay in a core's cache, so it has
FEWEST_FILTER_BITS = 16


class Index(NamedTuple):
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


def make_index(target: Target, plan: SeedPlan) -> Index:
    entries = len(target.seeded) * plan.stride
    known_bits = _bits(max(min(FILTER_BITS * entries, CACHED_BITS), FEWEST_FILTER_BITS * entries))
    bucket_bits = _bits(entries)
    index = Index(
        np.zeros(1 << (known_bits - 6), np.uint64),
        np.full(1 << bucket_bits, NOTHING, np.int32),
        np.empty((entries, 2), np.int32),
        64 - known_bits,
        64 - bucket_bits,
        plan.k,
        plan.stride,
        plan.blanks,
    )
    _fill_index(index, target)
    return index


def _bits(count: int) -> int:
    """Return the bits that number `count` things; six at least, as of a filter's word."""
    return max(6, count.bit_length())


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
    return (word >> (i & np.uint64(63))) & (word >> (other & np.uint64(63))) & np.uint64(1)


@jit_no_alloc
def _remember(known: Any, shift: Any, key: Any) -> None:
    """Set the two bits of a hash in a filter, both in one word."""
    i, other = key >> np.uint64(shift), key >> np.uint64(26)
    one = np.uint64(1)
    known[i >> np.uint64(6)] |= (one << (i & np.uint64(63))) | (one << (other & np.uint64(63)))


@jit_no_alloc
def _fill_index(index: Any, target: Any) -> None:
    entry = 0
    k_bits = (np.uint64(1) << np.uint64(index.k)) - np.uint64(1)
    for p in target.seeded:
        _, c, g, t = window(target.packed.planes, target.packed.words[p], target.anchors[p])
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

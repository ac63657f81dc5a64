"""The indexed way on a CPU: windows of the samples are looked up."""

from typing import Any

import numpy as np

from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.compiled.native import popcount
from multigpu.kernels.scan.cpu_compare import check
from multigpu.kernels.scan.cpu_direct import compare_at
from multigpu.kernels.scan.cpu_index import bases_of, hashed, may_have
from multigpu.kernels.scan.cpu_patterns import TILE, bases_from, two_bits


@jit_no_alloc
def probe(search: Any, tile: Any, reach: Any) -> None:
    """Look every `stride`-th window of the record up that begins in the tile.

    Positions that only a window with too many ambiguous bases could find become `wanted`.
    """
    index = search.seeds
    _, begin, end = reach
    stride = index.stride
    q = (max(begin, 64 * tile) + stride - 1) // stride * stride
    stop = min(end, 64 * (tile + TILE) + index.k - 1)  # of the last window that begins in the tile
    while True:
        q, mask, low, high = _next_candidate(
            search.planes, q, stop, index.k, stride, index.blanks, search.is_strict, index.known,
            index.known_shift,
        )  # fmt: skip
        if q < 0:
            break
        if popcount(mask) > index.blanks:
            for position in range(max(begin, q - stride + 1), q + 1):
                if position < 64 * tile:
                    compare_at(search, position, reach)
                else:
                    i = position - 64 * tile
                    search.wanted[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        else:
            _follow_choices(search, reach, q, (mask, low, high))
        q += stride


@jit_no_alloc
def _follow_choices(search: Any, reach: Any, q: Any, window: Any) -> None:
    """Check every pattern that the index has for the window at q, whatever its ambiguous bases."""
    (mask, low, high), index = window, search.seeds
    mask, bases, chosen = bases_of(mask, mask), bases_of(low, high), np.uint64(0)
    while True:
        key = hashed(bases | chosen)
        if may_have(index.known, index.known_shift, key):
            _follow(search, reach, q, bases | chosen, key)
        chosen = (chosen - mask) & mask
        if not chosen:
            break


@jit_no_alloc
def _follow(search: Any, reach: Any, q: Any, bases: Any, key: Any) -> None:
    """Check every pattern that the index has for these bases at q."""
    index, target = search.seeds, search.target
    entry = index.heads[key >> np.uint64(index.bucket_shift)]
    while entry >= 0:
        if index.entries[entry, 0] == np.int32(bases):
            p = target.seeded[entry // index.stride]
            check(search, reach, q - entry % index.stride - target.anchors[p], p)
        entry = index.entries[entry, 1]


@jit_no_alloc
def _next_candidate(
    planes: Any, q: Any, end: Any, k: Any, stride: Any, blanks: Any, strict: Any, known: Any,
    shift: Any,
) -> Any:  # fmt: skip
    """Return the next window that the index may hold, or cannot answer for: (position, *window).

    Position -1: there is none.
    """
    # On its own: where a loop follows what it finds, too, the search takes half as long again.
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    while q + k <= end:
        word = q >> 6
        here, after = two_bits(planes, word), two_bits(planes, word + 1)
        clean = not (here[0] | (after[0] & k_bits))
        if clean and not _any_known(here, after, k_bits, stride, known, shift):
            q = 64 * (word + 1)  # every stride divides 64
            continue
        stop = min(64 * (word + 1), end - k + 1)
        while q < stop:
            mask, low, high = _window_of(here, after, q & 63, k_bits)
            low, high = low & ~mask, high & ~mask
            if strict and mask:  # a seed's single base is no superset of several
                found = False
            else:
                found = popcount(mask) > blanks or _any_choice(mask, low, high, known, shift) != 0
            if found:
                return q, mask, low, high
            q += stride
    return -1, np.uint64(0), np.uint64(0), np.uint64(0)


@jit_no_alloc
def _any_choice(mask: Any, low: Any, high: Any, known: Any, shift: Any) -> Any:
    """Whether the filter has the window with some bases in its ambiguous places.

    Subtracting the mask steps through all choices of the bits in it.
    """
    found = chosen = np.uint64(0)
    mask, bases = bases_of(mask, mask), bases_of(low, high)
    while True:
        found |= may_have(known, shift, hashed(bases | chosen))
        chosen = (chosen - mask) & mask
        if not chosen:
            break
    return found


@jit_no_alloc
def pass_over(planes: Any, word: Any, stop: Any, index: Any) -> Any:
    """Return the first word from `word` on in which a window may begin that the index has."""
    k_bits = (np.uint64(1) << np.uint64(index.k)) - np.uint64(1)
    after = two_bits(planes, word)
    while word < stop:
        here, after = after, two_bits(planes, word + 1)
        if here[0] | (after[0] & k_bits):
            break
        if _any_known(here, after, k_bits, index.stride, index.known, index.known_shift):
            break
        word += 1
    return word


@jit_no_alloc
def _any_known(here: Any, after: Any, k_bits: Any, stride: Any, known: Any, shift: Any) -> Any:
    """Whether the filter has one of the windows that begin in a word without ambiguous bases."""
    found = np.uint64(0)
    for at in range(0, 64, stride):
        _, low, high = _window_of(here, after, at, k_bits)
        found |= may_have(known, shift, hashed(bases_of(low, high)))
    return found


@jit_no_alloc
def _window_of(here: Any, after: Any, shift: Any, k_bits: Any) -> Any:
    """Return the window that begins at `shift` in the word `here`; `after` is the word after it."""
    mask, low, high = bases_from(here, after, np.uint64(shift))
    return mask & k_bits, low & k_bits, high & k_bits

"""The indexed way on a CPU: windows of the samples are looked up."""

from typing import Any

import numpy as np

from kernels.jit import lean
from kernels.native import popcount
from kernels.scan.cpu_compare import check
from kernels.scan.cpu_direct import compare
from kernels.scan.cpu_patterns import TILE, hashed, may_have, single


@lean
def probe(
    planes: Any, tile: Any, wanted: Any, target: Any, index: Any, reach: Any, sink: Any,
    first: Any, strict: Any,
) -> None:  # fmt: skip
    """Every `stride`-th window of the record that begins in the tile is looked up.

    The positions that only a window with too many ambiguous bases could find become `wanted`.
    """
    _, begin, end = reach
    stride = index.stride
    q = (max(begin, 64 * tile) + stride - 1) // stride * stride
    stop = min(end, 64 * (tile + TILE) + index.k - 1)  # of the last window that begins in the tile
    while True:
        q, key, mask = _next_candidate(
            planes, q, stop, index.k, stride, index.blanks, strict,
            index.clean_filter, index.clean_shift, index.blank_filter, index.blank_shift,
        )  # fmt: skip
        if q < 0:
            break
        if popcount(mask) > index.blanks:
            for position in range(max(begin, q - stride + 1), q + 1):
                if position < 64 * tile:
                    compare(planes, position, target, reach, sink, first, strict)
                else:
                    i = position - 64 * tile
                    wanted[i >> 6] |= np.uint64(1) << np.uint64(i & 63)
        else:
            _follow(planes, q, key, mask, target, index, reach, sink, first, strict)
        q += stride


@lean
def _follow(
    planes: Any, q: Any, key: Any, mask: Any, target: Any, index: Any, reach: Any, sink: Any,
    first: Any, strict: Any,
) -> None:  # fmt: skip
    """Checks every pattern that the index has for the window at q."""
    n_masks = index.masks.shape[0]
    entry = index.heads[key >> np.uint64(index.bucket_shift)]
    while entry >= 0:
        if index.entries[entry, 0] == np.int32(key) and index.masks[entry % n_masks] == mask:
            seed = entry // n_masks
            p = target.seeded[seed // index.stride]
            start = q - seed % index.stride - target.anchors[p]
            check(planes, start, p, target, reach, sink, first, strict)
        entry = index.entries[entry, 1]


@lean
def _next_candidate(
    planes: Any, q: Any, end: Any, k: Any, stride: Any, most_blanks: Any, strict: Any,
    clean_filter: Any, clean_shift: Any, blank_filter: Any, blank_shift: Any,
) -> Any:  # fmt: skip
    """The next window that the index may hold, or cannot: (position or -1, hash, blanked)."""
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    while q + k <= end:
        word = q >> 6
        here, behind = _two_bits(planes, word), _two_bits(planes, word + 1)
        clean = not (here[0] | (behind[0] & k_bits))
        if clean and not _any_known(here, behind, k_bits, stride, clean_filter, clean_shift):
            q = 64 * (word + 1)  # every stride divides 64
            continue
        stop = min(64 * (word + 1), end - k + 1)
        while q < stop:
            mask, low, high = _window_of(here, behind, q & 63, k_bits)
            key = hashed(mask, low & ~mask, high & ~mask)
            if mask == 0:
                found = may_have(clean_filter, clean_shift, key) != 0
            elif strict:  # a seed's single base is no superset of several
                found = False
            elif popcount(mask) > most_blanks:
                found = True
            else:
                found = may_have(blank_filter, blank_shift, key) != 0
            if found:
                return q, key, mask
            q += stride
    return -1, np.uint64(0), np.uint64(0)


@lean
def pass_over(
    planes: Any, word: Any, stop: Any, k: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    """The first word from `word` on in which a window may begin that the index has, or `stop`."""
    k_bits = (np.uint64(1) << np.uint64(k)) - np.uint64(1)
    behind = _two_bits(planes, word)
    while word < stop:
        here, behind = behind, _two_bits(planes, word + 1)
        if here[0] | (behind[0] & k_bits):
            break
        if _any_known(here, behind, k_bits, stride, clean_filter, clean_shift):
            break
        word += 1
    return word


@lean
def _any_known(
    here: Any, behind: Any, k_bits: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    """Whether the filter has one of the windows that begin in a word without ambiguous bases.

    All are looked up, without a branch in between; usual strides are literals, so that the compiler
    knows the shifts.
    """
    if stride == 16:
        return _known(here, behind, k_bits, 16, clean_filter, clean_shift)
    if stride == 8:
        return _known(here, behind, k_bits, 8, clean_filter, clean_shift)
    return _known(here, behind, k_bits, stride, clean_filter, clean_shift)


@lean
def _known(
    here: Any, behind: Any, k_bits: Any, stride: Any, clean_filter: Any, clean_shift: Any
) -> Any:
    known = np.uint64(0)
    for shift in range(0, 64, stride):
        _, low, high = _window_of(here, behind, shift, k_bits)
        known |= may_have(clean_filter, clean_shift, hashed(0, low, high))
    return known


@lean
def _two_bits(planes: Any, word: Any) -> Any:
    """A word of the sample: which bases are ambiguous, and two bits a base, A 00 C 01 G 10 T 11."""
    a, c, g, t = planes[word, 0], planes[word, 1], planes[word, 2], planes[word, 3]
    return ~single(a, c, g, t), c | t, g | t


@lean
def _window_of(here: Any, behind: Any, shift: Any, k_bits: Any) -> Any:
    """The window that begins at `shift` in the word `here`; `behind` is the word after it."""
    down, up = np.uint64(shift), np.uint64(63 - shift)
    return (
        ((here[0] >> down) | (behind[0] << np.uint64(1) << up)) & k_bits,
        ((here[1] >> down) | (behind[1] << np.uint64(1) << up)) & k_bits,
        ((here[2] >> down) | (behind[2] << np.uint64(1) << up)) & k_bits,
    )

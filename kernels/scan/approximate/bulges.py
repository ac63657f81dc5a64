"""Bulges: variants of signatures, which a search with mismatches looks for, and places that stay.

A place with a bulge has all its mismatches in the signature with some bases left out (an RNA
bulge: they are of the signature alone), or with N put between some bases (a DNA bulge: those of the
sample alone). So every such text is a pattern of its own. At one place all patterns have one
length, hence one kind of bulge and one size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import LETTER_SETS, encode
from multigpu.kernels.compiled.jit import jit_no_alloc
from multigpu.kernels.scan.approximate.alignment import (
    DELETION,
    DIFFERENT,
    INSERTION,
    SAME,
    HitAlignments,
    write_cigar,
)
from multigpu.kernels.scan.types import Hits, Limits, Patterns, allowed_bases

Choice = Literal["first", "best", "sites", "all"]
ANY_BASE = np.uint8(ord("N"))


@dataclass(frozen=True, kw_only=True)
class BulgeRules:
    """Mismatches and bulges that a place may have.

    most            mismatches: a number, or, as a float, a share of the signature's length
    prefix, suffix  bases at the ends of a signature that match exactly, without a bulge inside
    dna, rna        most bases of the sample alone, and of the signature alone
    """

    most: int | float = 0
    prefix: int = 0
    suffix: int = 0
    dna: int = 0
    rna: int = 0

    def gaps(self, length: int) -> range:
        """Return the numbers of bases before which a signature may have a DNA bulge."""
        return range(max(1, self.prefix), min(length - 1, length - self.suffix) + 1)

    def free(self, length: int) -> range:
        """Return the bases of a signature that are in no exact part."""
        return range(self.prefix, length - self.suffix)

    def counts(self, length: int) -> dict[int, int]:
        """Return the number of variants of a signature by length, equal ones counted each."""
        gaps, free = len(self.gaps(length)), len(self.free(length))
        longer = {length + k: comb(gaps + k - 1, k) for k in range(1, self.dna + 1) if gaps}
        most = min(self.rna, free, length - 1)
        return {length: 1} | longer | {length - k: comb(free, k) for k in range(1, most + 1)}

    def lengths(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the lengths of all variants of signatures of these lengths, in no order."""
        found = [np.empty(0, np.int64)]
        for length, times in zip(*np.unique(lengths, return_counts=True), strict=True):
            counts = self.counts(int(length))
            found.append(np.repeat(list(counts), np.array(list(counts.values())) * times))
        return np.concatenate(found)


@dataclass(frozen=True, eq=False, kw_only=True)
class Variants:
    """The signatures with every bulge that they may have, each text once, as patterns.

    patterns   of the variants, on one strand or both
    limits     errors that each pattern may have
    lengths    int64[signatures]
    signature  int64[variants]      which signature each is of
    steps      uint8[columns]       alignments of signatures to variants: SAME, INSERTION, DELETION
    offsets    int64[variants + 1]  where the steps of each begin

    Of bulges that make the same text the one is kept that stands first in the signature. Variants
    of a signature with as many bases are in the order of their bulges.
    """

    patterns: Patterns
    limits: Limits
    lengths: NDArray[np.int64]
    signature: NDArray[np.int64]
    steps: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        letters: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        rules: BulgeRules,
        both_strands: bool,
    ) -> "Variants":
        """Return the variants of signatures in one array of letters; offsets: int64[n + 1]."""
        lengths = np.diff(offsets)
        parts = []
        for length in np.unique(lengths).tolist():
            numbers = np.flatnonzero(lengths == length)
            rows = letters[offsets[numbers][:, None] + np.arange(length)]
            parts += list(_variants_of(rows, numbers, rules))
        texts, signature, steps = zip(*parts, strict=True)
        joined, text_offsets = _joined(texts)
        all_steps, step_offsets = _joined(steps)
        signatures = np.concatenate(signature)
        patterns = Patterns.of_joined(joined, text_offsets, both_strands)
        most = np.repeat(allowed_bases(rules.most, lengths)[signatures], patterns.strands)
        limits = Limits.of(patterns, 0, rules.prefix, rules.suffix)
        return cls(
            patterns=patterns,
            limits=replace(limits, most=np.minimum(most, patterns.lengths)),
            lengths=lengths,
            signature=signatures,
            steps=all_steps,
            offsets=step_offsets,
        )

    def merged(self, hits: Hits) -> tuple[Hits, NDArray[np.int32]]:
        """Return one hit a place, as hits of the signatures, and the pattern of each.

        It is the one with the fewest mismatches, then with the bulge that stands first in the
        signature.
        """
        strands = self.patterns.strands
        variant = hits.pattern // strands
        pattern = (self.signature[variant] * strands + hits.pattern % strands).astype(np.int32)
        places = (hits.end, hits.start, pattern, hits.record)
        order = np.lexsort((variant, hits.errors, *places))
        order = order[_is_new(*(each[order] for each in places))]
        return replace(hits, pattern=pattern).take(order), hits.pattern[order]

    def align(
        self,
        offsets: NDArray[np.int64],
        letters: NDArray[np.uint8],
        hits: Hits,
        patterns: NDArray[np.int32],
        strict: bool,
    ) -> HitAlignments:
        """Return the alignments of places; see `multigpu.kernels.scan.approximate.alignment.align`.

        patterns  int32[hits]: the pattern of each, see `merged`
        """
        variant = patterns // self.patterns.strands
        bulges = np.add.reduceat(self.steps != SAME, self.offsets[:-1])[variant]
        longest = int(np.diff(self.offsets).max())
        runs = int((2 * (hits.errors + bulges) + 1).sum())
        found = HitAlignments(
            start=hits.start,
            cigar=np.empty(runs * (len(str(longest)) + 1), np.uint8),
            offsets=np.zeros(len(hits) + 1, np.int64),
        )
        places = _PlacesToAlign(
            letters=letters,
            begins=offsets[hits.record] + hits.start,
            pattern=patterns,
            is_reverse=patterns % self.patterns.strands == 1,
            variant=variant,
            sets=self.patterns.sets,
            offsets=self.patterns.offsets,
            steps=self.steps,
            step_offsets=self.offsets,
            strict=strict,
            path=np.empty(longest, np.uint8),
        )
        _align_all(places, found)
        return found._replace(cigar=found.cigar[: found.offsets[-1]])


class _PlacesToAlign(NamedTuple):
    """Places to align."""

    letters: NDArray[np.uint8]  # of the samples
    begins: NDArray[np.int64]  # [hits] in the letters
    pattern: NDArray[np.int32]  # [hits]
    is_reverse: NDArray[np.bool_]  # [hits]
    variant: NDArray[np.int32]  # [hits]
    sets: NDArray[np.uint8]  # of the patterns
    offsets: NDArray[np.int64]  # [patterns + 1]
    steps: NDArray[np.uint8]  # of the variants
    step_offsets: NDArray[np.int64]  # [variants + 1]
    strict: bool
    path: NDArray[np.uint8]  # takes the operations, from the end


@jit_no_alloc
def _align_all(places: Any, found: Any) -> None:
    for i in range(places.begins.shape[0]):
        base, under = places.offsets[places.pattern[i]], places.begins[i]
        variant = places.variant[i]
        first, stop = places.step_offsets[variant], places.step_offsets[variant + 1]
        count = stop - first
        for column in range(count):
            step = places.steps[stop - 1 - column if places.is_reverse[i] else first + column]
            if step != DELETION:
                expected, letters = places.sets[base], LETTER_SETS[places.letters[under]]
                agrees = letters & ~expected == 0 if places.strict else letters & expected != 0
                step = step if agrees else DIFFERENT
                base, under = base + 1, under + 1
            places.path[count - 1 - column] = step
        found.offsets[i + 1] = write_cigar(places.path, count, found.cigar, found.offsets[i])


# ---- making variants --------------------------------------------------------------------------


def _variants_of(
    rows: NDArray[np.uint8], numbers: NDArray[np.int64], rules: BulgeRules
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8]]]:
    """Yield the variants of signatures of one length, by their own lengths.

    rows     uint8[n, length]  letters of the signatures
    numbers  int64[n]          their numbers

    Yields uint8[variants, bases], int64[variants] numbers and uint8[variants, columns] steps.
    """
    padded = np.column_stack([rows, np.full(len(rows), ANY_BASE)])
    for bases, steps in _layouts(rows.shape[1], rules):
        texts = padded[:, bases].reshape(-1, bases.shape[1])
        number = np.repeat(numbers, len(bases))
        keys = np.column_stack([number[:, None].view(np.uint8), encode(texts)])
        _, first = np.unique(keys, axis=0, return_index=True)
        first.sort()
        yield texts[first], number[first], steps[first % len(steps)]


def _layouts(
    length: int, rules: BulgeRules
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.uint8]]]:
    """Yield the variants of a signature as the numbers of their bases and as steps, by lengths.

    The base after the last one stands for an N.
    """
    plain = np.arange(length)
    yield plain[None], np.full((1, length), SAME, np.uint8)
    gaps, free = rules.gaps(length), rules.free(length)
    for size in range(1, rules.dna + 1 if gaps else 1):
        places = combinations_with_replacement(gaps, size)
        bases = np.array([np.insert(plain, each, length) for each in places])
        yield bases, np.where(bases == length, INSERTION, SAME).astype(np.uint8)
    for size in range(1, min(rules.rna, len(free), length - 1) + 1):
        bases = np.array([np.delete(plain, each) for each in combinations(free, size)])
        steps = np.full((len(bases), length), DELETION, np.uint8)
        np.put_along_axis(steps, bases, SAME, axis=1)
        yield bases, steps


def _joined(tables: tuple[NDArray[np.uint8], ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the rows of tables one after the other, and where each begins and the last ends."""
    widths = [np.full(len(each), each.shape[1]) for each in tables]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64)
    return np.concatenate([each.reshape(-1) for each in tables]), offsets


# ---- choosing places --------------------------------------------------------------------------


class Places(NamedTuple):
    """Places of signatures as columns of the same length, `bulge` below 0 for an RNA bulge."""

    record: NDArray[np.integer]
    signature: NDArray[np.integer]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    is_reverse: NDArray[np.bool_]
    mismatches: NDArray[np.int32]
    bulge: NDArray[np.integer]


def choose(wanted: Choice, places: Places, exact_suffix: bool) -> NDArray[np.intp]:
    """Return the numbers of the wanted places, by record, signature, start and end.

    wanted        "first": of each record and signature the place with the lowest start, then the
                  fewest bulges; "best": with the fewest bulges, then the fewest mismatches, then
                  the lowest start; "sites": of those that share their exact end on a strand the
                  one with the fewest bulges, then the fewest mismatches. Of equal ones that on
                  the strand +, then that with a DNA bulge
    exact_suffix  whether the exact end is the end of the signature, not its begin
    """
    record, signature, start, end, is_reverse, mismatches, bulge = places
    sizes, is_rna = np.abs(bulge), bulge < 0
    pair = (signature, record)
    if wanted == "all":
        return np.lexsort((is_reverse, end, start, *pair))
    group: tuple[NDArray[Any], ...] = pair
    if wanted == "sites":
        group = (np.where(is_reverse == exact_suffix, start, end), is_reverse, *pair)
        rank: tuple[NDArray[Any], ...] = (is_rna, mismatches, sizes)
    elif wanted == "best":
        rank = (is_rna, is_reverse, start, mismatches, sizes)
    else:
        rank = (is_rna, is_reverse, mismatches, sizes, start)
    order = np.lexsort((*rank, *group))
    order = order[_is_new(*(each[order] for each in group))]
    return order[np.lexsort(tuple(each[order] for each in (is_reverse, end, start, *pair)))]


def _is_new(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return bool[n]: whether a row differs from the one before."""
    is_new = np.ones(len(columns[0]), bool)
    is_new[1:] = np.any([each[1:] != each[:-1] for each in columns], axis=0)
    return is_new

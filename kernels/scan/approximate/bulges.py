"""Bulges: variants of signatures, which a search with mismatches looks for.

A place with a bulge has all its mismatches in the signature with some bases left out (an RNA
bulge: they are of the signature alone), or with N put between some bases (a DNA bulge: those of the
sample alone). So every such text is a pattern of its own. At one place all patterns have one
length, hence one kind of bulge and one size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.bases import COMPLEMENTS, encode
from multigpu.kernels.scan.approximate.alignment import DELETED, INSERTED, Layouts
from multigpu.kernels.scan.choice import first_of_each
from multigpu.kernels.scan.types import Hits, Limits, Patterns, allowed_bases

ANY_BASE = np.uint8(15)  # the set that matches everything
COMPLEMENTS_OF_COLUMNS = np.append(COMPLEMENTS, INSERTED)


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
    signature  int64[variants]: which signature each is of
    layouts    of the patterns, in their order

    Of bulges that make the same text the one is kept that stands first in the signature. Variants
    of a signature with as many bases are in the order of their bulges.
    """

    patterns: Patterns
    limits: Limits
    lengths: NDArray[np.int64]
    signature: NDArray[np.int64]
    layouts: Layouts

    @classmethod
    def of(
        cls,
        letters: NDArray[np.uint8],
        offsets: NDArray[np.int64],
        rules: BulgeRules,
        both_strands: bool,
    ) -> "Variants":
        """Return the variants of signatures in one array of letters; offsets: int64[n + 1]."""
        lengths, sets, strands = np.diff(offsets), encode(letters), 1 + both_strands
        flat, widths, numbers = [], [], []
        for length in np.unique(lengths).tolist():
            those = np.flatnonzero(lengths == length)
            rows = sets[offsets[those][:, None] + np.arange(length)]
            for columns, number in _variants_of(rows, those, rules):
                both = [columns, COMPLEMENTS_OF_COLUMNS[columns[:, ::-1]]][:strands]
                flat.append(np.stack(both, 1).ravel())
                widths.append(np.full(strands * len(columns), columns.shape[1]))
                numbers.append(number)
        joined, signature = np.concatenate(flat), np.concatenate(numbers)
        borders, kept = np.r_[0, np.cumsum(np.concatenate(widths))], joined != DELETED
        bases_before = np.r_[0, np.cumsum(kept)]
        sets = np.minimum(joined[kept], ANY_BASE)
        patterns = Patterns(sets, bases_before[borders], strands)
        most = np.repeat(allowed_bases(rules.most, lengths)[signature], strands)
        limits = Limits.of(patterns, 0, rules.prefix, rules.suffix)
        return cls(
            patterns=patterns,
            limits=limits._replace(most=np.minimum(most, patterns.lengths)),
            lengths=lengths,
            signature=signature,
            layouts=Layouts(joined, borders, max(rules.dna, rules.rna)),
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
        order = first_of_each(places, (variant, hits.errors))
        return replace(hits, pattern=pattern).take(order), hits.pattern[order]


def _variants_of(
    sets: NDArray[np.uint8], numbers: NDArray[np.int64], rules: BulgeRules
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Yield the columns of variants as long as each other, and the signatures that they are of.

    sets     uint8[n, length]  signatures of one length
    numbers  int64[n]          their numbers
    """
    ends = np.tile(np.array([INSERTED, DELETED], np.uint8), (len(sets), 1))
    for layouts in _layouts(sets.shape[1], rules):
        columns = np.hstack([sets, ends])[:, layouts].reshape(-1, layouts.shape[1])
        number = np.repeat(numbers, len(layouts))
        texts = np.minimum(columns[columns != DELETED], ANY_BASE).reshape(len(columns), -1)
        keys = np.column_stack([number[:, None].view(np.uint8), texts])
        first = np.sort(np.unique(keys, axis=0, return_index=True)[1])
        yield columns[first], number[first]


def _layouts(length: int, rules: BulgeRules) -> Iterator[NDArray[np.intp]]:
    """Yield the variants of a signature as numbers of its bases, by their lengths.

    The number after the last base stands for an N, the one after that for a base that is left out.
    """
    plain, gaps, free = np.arange(length), rules.gaps(length), rules.free(length)
    yield plain[None]
    for size in range(1, rules.dna + 1 if gaps else 1):
        places = combinations_with_replacement(gaps, size)
        yield np.array([np.insert(plain, each, length) for each in places])
    for size in range(1, min(rules.rna, len(free), length - 1) + 1):
        left_out = np.array(list(combinations(free, size)))
        layouts = np.tile(plain, (len(left_out), 1))
        np.put_along_axis(layouts, left_out, length + 1, axis=1)
        yield layouts

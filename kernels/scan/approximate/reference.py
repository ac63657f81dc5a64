"""The plain search with errors, base by base. The tests' oracle."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.scan.types import Chunk, Hits, Limits, Patterns

Sets = NDArray[np.uint8]
IMPOSSIBLE = 1 << 30  # errors


class Alignment(NamedTuple):
    """A piece of a sample against a pattern."""

    start: int
    end: int
    errors: int
    operations: str  # one letter a column: = X, I (a base of the sample alone), D (of the pattern)


def agree(sample: int, pattern: int, strict: bool) -> bool:
    """Whether two sets match: they share a base, or with `strict` the sample's is a subset."""
    return sample & ~pattern == 0 if strict else sample & pattern != 0


def mismatch_hits(
    sample: Sets, pattern: Sets, most: int, prefix: int, suffix: int, strict: bool
) -> Iterator[Alignment]:
    """Yield every start with at most `most` mismatches, none in the prefix and the suffix."""
    n = len(pattern)
    for start in range(len(sample) - n + 1):
        same = [agree(int(sample[start + i]), int(pattern[i]), strict) for i in range(n)]
        exact = same[: min(prefix, n)] + same[max(0, n - suffix) :]
        if all(exact) and same.count(False) <= most:
            operations = "".join("=" if each else "X" for each in same)
            yield Alignment(start, start + n, same.count(False), operations)


def bulge_hits(
    sample: Sets, signature: Sets, most: int, prefix: int, suffix: int, strict: bool, dna: int,
    rna: int,
) -> Iterator[Alignment]:  # fmt: skip
    """Yield every place with at most `most` mismatches and bulges of one kind.

    dna, rna  most bases of the sample alone, and of the signature alone
    """
    n = len(signature)

    @cache
    def align_rest(i: int, at: int, end: int) -> tuple[int, str]:
        """Return the fewest mismatches from base i on, and operations with the bulge first."""
        if i == n and at == end:
            return 0, ""
        ways = []
        is_exact = i < prefix or i >= n - suffix
        is_between = 0 < i < n and prefix <= i <= n - suffix
        if bulge > 0 and at < end and is_between:
            ways.append((0, "I", i, at + 1))
        if bulge < 0 and i < n and not is_exact:
            ways.append((0, "D", i + 1, at))
        if i < n and at < end:
            agrees = agree(int(sample[at]), int(signature[i]), strict)
            if agrees or not is_exact:
                ways.append((int(not agrees), "=" if agrees else "X", i + 1, at + 1))
        found = [
            (errors + rest, operation + operations)
            for errors, operation, i_after, at_after in ways
            for rest, operations in [align_rest(i_after, at_after, end)]
        ]
        return min(found, key=lambda way: way[0], default=(IMPOSSIBLE, ""))

    for start in range(len(sample)):
        for bulge in range(max(-rna, 1 - n), min(dna, len(sample) - start - n) + 1):
            errors, operations = align_rest(0, start, start + n + bulge)
            align_rest.cache_clear()
            if errors <= most:
                yield Alignment(start, start + n + bulge, errors, operations)


def edit_hits(
    sample: Sets, pattern: Sets, most: int, prefix: int, suffix: int, strict: bool
) -> Iterator[Alignment]:
    """Yield the first end of every run of ends with the fewest edits around, at most `most`."""
    table = distances(sample, pattern, prefix, suffix, strict)
    ends = [errors for errors, _ in table[-1]]
    end = 0
    while end < len(ends):
        stop = end
        while stop < len(ends) and ends[stop] == ends[end]:
            stop += 1
        rises = (end == 0 or ends[end - 1] > ends[end]) and (
            stop == len(ends) or ends[stop] > ends[end]
        )
        if rises and ends[end] <= most:
            yield align(table, end, sample, pattern, prefix, suffix, strict)
        end = stop


Cell = tuple[int, int]  # edits, minus the start: the least is the one with the largest start


def distances(
    sample: Sets, pattern: Sets, prefix: int, suffix: int, strict: bool
) -> list[list[Cell]]:
    """Return for i bases of the pattern and every end the fewest edits, and the largest start."""
    table = [[(0, -end) for end in range(len(sample) + 1)]]
    for i in range(1, len(pattern) + 1):
        table.append([])
        for end in range(len(sample) + 1):
            steps = _steps(table, i, end, sample, pattern, prefix, suffix, strict)
            table[i].append(min((cell for cell, _, _, _ in steps), default=(IMPOSSIBLE, 0)))
    return table


def _steps(
    table: list[list[Cell]], i: int, end: int, sample: Sets, pattern: Sets, prefix: int,
    suffix: int, strict: bool,
) -> Iterator[tuple[Cell, str, int, int]]:  # fmt: skip
    """Yield the ways to a cell, the preferred first: its value, the operation, the cell before."""
    n = len(pattern)
    is_exact = i <= prefix or i > n - suffix
    is_inside_exact = 0 < i < min(prefix, n) or max(0, n - suffix) < i < n
    if end:
        (errors, start) = table[i - 1][end - 1]
        if agree(int(sample[end - 1]), int(pattern[i - 1]), strict):
            yield (errors, start), "=", i - 1, end - 1
        elif not is_exact:
            yield (errors + 1, start), "X", i - 1, end - 1
        if not is_inside_exact:
            (errors, start) = table[i][end - 1]
            yield (errors + 1, start), "I", i, end - 1
    if not is_exact:
        (errors, start) = table[i - 1][end]
        yield (errors + 1, start), "D", i - 1, end


def align(
    table: list[list[Cell]], end: int, sample: Sets, pattern: Sets, prefix: int, suffix: int,
    strict: bool,
) -> Alignment:  # fmt: skip
    """Return the alignment before `end` with the largest start, by the preferred steps."""
    errors, start = table[-1][end]
    operations, i, at = "", len(pattern), end
    while i:
        wanted = table[i][at]
        steps = _steps(table, i, at, sample, pattern, prefix, suffix, strict)
        operation, i, at = next(step[1:] for step in steps if step[0] == wanted)
        operations = operation + operations
    return Alignment(-start, end, errors, operations)


def search(
    chunk: Chunk, patterns: Patterns, limits: Limits, *, edits: bool, strict: bool
) -> tuple[Hits, list[str]]:
    """Return all hits in order, and their operations. Raises BadBaseError."""
    sets = chunk.sets()
    find = edit_hits if edits else mismatch_hits
    rows = [
        (record, p, *found)
        for record in range(len(chunk.offsets) - 1)
        for p in range(len(patterns))
        for found in find(
            sets[chunk.offsets[record] : chunk.offsets[record + 1]],
            patterns.sets[patterns.offsets[p] : patterns.offsets[p + 1]],
            int(limits.most[p]),
            int(limits.prefix[p]),
            int(limits.suffix[p]),
            strict,
        )
    ]
    rows.sort(key=lambda row: (row[0], row[1] // patterns.strands, row[2], row[3], row[1]))
    record, pattern, start, end, errors = (
        np.array([row[:5] for row in rows], np.int64).reshape(-1, 5).T
    )
    hits = Hits.at_places(record, pattern, start, errors, patterns.lengths)
    return replace(hits, end=end), [row[5] for row in rows]

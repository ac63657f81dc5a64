"""Searches of a chunk as by the engine: what does not fit is halved."""

import contextlib
from typing import Any

from multigpu.kernels.scan import BadBaseError, Chunk, Half, Hits, split


def scan_halving(scanner: Any, chunk: Chunk, limit: int | None = None) -> Hits:
    """Return all hits of the chunk, with a scanner of little room. Raises BadBaseError.

    The halves are searched when nothing of the failed attempt is left, its exception included.
    """
    limit = len(chunk.letters) if limit is None else limit
    with contextlib.suppress(MemoryError):
        hits: Hits = scanner.scan(chunk, limit=limit)
        return hits.take(chunk.offsets[hits.record] + hits.start < limit)
    found = []
    for half in split(chunk, limit, int(scanner.patterns.lengths.max())):
        try:
            found.append(moved(half, scan_halving(scanner, half.chunk, half.limit)))
        except BadBaseError as error:
            raise BadBaseError(half.begin + error.position) from None
    return Hits.joined(found).chosen(scanner.rules.wanted, scanner.patterns.strands, by_end=False)


def moved(half: Half, hits: Hits) -> Hits:
    """Return hits of a half of a chunk as hits of the chunk."""
    return hits.moved(half.first_record, half.cut)

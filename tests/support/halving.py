"""Searches of a chunk as by the engine: what does not fit is halved."""

import contextlib
from typing import Any

from multigpu.kernels.scan import BadBaseError, Chunk, Hits, split


def scan_halving(scanner: Any, chunk: Chunk, limit: int | None = None) -> Hits:
    """Return all hits of the chunk, with a scanner of little room. Raises BadBaseError.

    The halves are searched when nothing of the failed attempt is left, its exception included.
    """
    limit = len(chunk.letters) if limit is None else limit
    with contextlib.suppress(MemoryError):
        hits: Hits = scanner.scan(chunk, limit)
        return hits
    found = []
    for part in split(chunk, limit, int(scanner.patterns.lengths.max())):
        try:
            found.append(part.moved(scan_halving(scanner, part.chunk, part.limit)))
        except BadBaseError as error:
            raise BadBaseError(part.begin + error.position) from None
    return Hits.joined(found).ordered(scanner.patterns.strands, scanner.rules.first)

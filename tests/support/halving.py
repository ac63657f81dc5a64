"""Searches of a chunk as by the engine: what does not fit is halved."""

import contextlib
from typing import Any

from multigpu.kernels.scan import BadBaseError, Chunk, Hits
from multigpu.kernels.scan.approximate.pieces import Portion, join_halves


def scan_halving(scanner: Any, chunk: Chunk) -> Hits:
    """Return all hits of the chunk, with a scanner of little room. Raises BadBaseError.

    The halves are searched when nothing of the failed attempt is left, its exception included.
    """
    with contextlib.suppress(MemoryError):
        hits: Hits = scanner.scan(chunk)
        return hits
    halves, found = Portion(chunk=chunk).halves(int(scanner.patterns.lengths.max()) - 1), []
    assert halves, "too small to be halved"
    for half in halves:
        try:
            found.append(scan_halving(scanner, half.chunk))
        except BadBaseError as error:
            raise BadBaseError(half.begin + error.position) from None
    joined = join_halves(halves, found)
    return joined.chosen(scanner.rules.wanted, scanner.patterns.strands, by_end=False)

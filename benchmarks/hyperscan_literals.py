"""The rival of the exact scan: Hyperscan, on literals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from searches import Letters

BATCH = 4  # samples that a process takes at a time


class Hyperscan:
    """Hyperscan on literals: database and samples, which forked processes inherit.

    What makes it fast here: the compiler of pure literals; no start of match, as end and length say
    it; only the first match of each pair; processes, because the wheel's `scan` keeps the GIL; a
    few samples at a time, so that all processes end together. Compiling and forking do not count.
    """

    database: Any
    samples: list[bytes]
    lengths: list[int]

    @classmethod
    def compile(cls, data: Letters, signatures: Sequence[NDArray[np.uint8]]) -> None:
        import hyperscan

        cls.samples = [data.record(i).tobytes() for i in range(len(data))]
        cls.lengths = [len(signature) for signature in signatures]
        cls.database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        cls.database.compile(
            expressions=[signature.tobytes() for signature in signatures],
            ids=list(range(len(signatures))),
            elements=len(signatures),
            flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(signatures),
            literal=True,
        )

    @classmethod
    def scan_batch(cls, first: int) -> list[tuple[int, int, int]]:
        """Return (sample, signature, start) of every hit in some samples."""
        hits: list[tuple[int, int, int]] = []
        for sample in range(first, min(first + BATCH, len(cls.samples))):

            def found(signature: int, _: int, end: int, *__: Any, sample: int = sample) -> None:
                hits.append((sample, signature, end - cls.lengths[signature]))

            cls.database.scan(cls.samples[sample], match_event_handler=found)
        return hits

    @classmethod
    def scan_all(cls, pool: Any) -> list[tuple[int, int, int]]:
        each = pool.map(cls.scan_batch, range(0, len(cls.samples), BATCH), chunksize=1)
        return sorted(hit for hits in each for hit in hits)

"""The search for signatures in samples: sets of bases against sets of bases, exactly.

`reference.py` says what is right, `cpu.py` and `cuda.py` do it fast by the same scheme:

* Bases are packed into four bit planes, one a base; an N sets all four. Some dozens of positions
  are then compared by a handful of logical instructions.
* Every pattern is represented by a **seed**: a run of k + stride - 1 unambiguous bases at its
  **anchor**. All its `stride` windows of k bases go into a hashed index, so only every
  `stride`-th position of the samples has to look its window up.
* A window of the samples with up to `blanks` ambiguous bases is looked up too. On a GPU the index
  has every window of the seeds again for each choice of blanked places; on a CPU the ambiguous
  places are filled with all choices of bases, and each is looked up.
* **Tiles** with positions that only windows with more ambiguous bases could find, and patterns
  without a seed, are left to the **sweep** that counts mismatches, of which there may be none
  (`cpu_sweep.py`, `sweep.cu`). On a GPU, where a tile has few such positions, they are compared
  with all patterns instead.

Every way ends in a complete comparison, so the result is exact whatever the speed. `approximate` is
the search with errors.
"""

from multigpu.kernels.scan.types import (
    BadBaseError,
    Chunk,
    ChunkScanner,
    Hits,
    Limits,
    Patterns,
    ScanRules,
    TooManyPatternsError,
    Wanted,
    allowed_bases,
)

__all__ = [
    "BadBaseError", "Chunk", "ChunkScanner", "Hits", "Limits", "Patterns", "ScanRules",
    "TooManyPatternsError", "Wanted", "allowed_bases",
]  # fmt: skip

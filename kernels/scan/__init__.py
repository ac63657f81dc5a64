"""Where signatures occur in samples: sets of bases against sets of bases, exactly.

`reference.py` says what is right, `cpu.py` and `cuda.py` do it fast by the same scheme:

* Bases are packed into four bit planes, one a base; an N sets all four. Some dozens of positions
  are then compared by a handful of logical instructions.
* Every pattern is represented by a **seed**: a run of k + stride - 1 unambiguous bases at its
  **anchor**. All its `stride` windows of k bases go into a hashed index, so only every
  `stride`-th position of the samples has to look its window up.
* Ambiguous bases of the samples are met by expanding the index, not the sample: a window enters
  once for every choice of up to `blanks` blanked places.
* Windows with more ambiguous bases, and patterns without a seed, take the **direct** comparison.

Every way ends in the same complete comparison, so the result is exact whatever the speed.
"""

from kernels.scan.types import BadBaseError, Chunk, Hits, Part, Patterns, Rules, split

__all__ = ["BadBaseError", "Chunk", "Hits", "Part", "Patterns", "Rules", "split"]

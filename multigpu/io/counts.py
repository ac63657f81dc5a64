"""Read counts of regions and samples: the table between counting and calling."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from multigpu.io.regions import Regions


@dataclass(frozen=True, eq=False)
class Counts:
    """Reads of every region in every sample.

    regions  grouped by chromosome, ascending within each
    samples  their names, each once
    values   int32 where all counts are whole, else float64; [regions, samples], C-contiguous,
             finite, not negative
    notes    what was noticed in the input: one sentence each

    Raises ValueError on any other dtype or shape; nothing is converted.
    """

    regions: Regions
    samples: tuple[str, ...]
    values: NDArray[np.int32] | NDArray[np.float64]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.values.dtype not in (np.int32, np.float64) or not self.values.flags.c_contiguous:
            raise ValueError(f"values: {self.values.dtype} instead of contiguous int32 or float64")
        if self.values.shape != (len(self.regions), len(self.samples)):
            raise ValueError(
                f"values: {list(self.values.shape)}"
                f" instead of [{len(self.regions)}, {len(self.samples)}]"
            )

"""Counts of single alignment files that an interrupted run keeps, found again by their content."""

from dataclasses import astuple
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.fingerprints import digest, fingerprint
from multigpu.formats.storage.npy import UNREADABLE, read_arrays
from multigpu.kernels.counting.types import Counting

VERSION = 1  # of the files, and of what counting means


class KeptCounts:
    """Folder of counts, by alignment file, regions and options."""

    def __init__(
        self, folder: str, regions: Regions, numbers: list[int], options: Counting
    ) -> None:
        """Make the folder, where there is none.

        numbers  of the references that the chromosomes of the regions stand for
        """
        self._folder, self._count = Path(folder), len(regions)
        self._folder.mkdir(exist_ok=True)
        self._asked = (VERSION, numbers, astuple(options), regions)

    def get(self, path: str) -> NDArray[np.int32] | None:
        """Return int32[regions], the counts of a file, or None where they cannot be read."""
        try:
            counts = read_arrays(self._place(path).read_bytes(), "counts")["counts"]
        except UNREADABLE:
            return None
        right = counts.dtype == np.int32 and counts.shape == (self._count,)
        return counts if right and counts.min(initial=0) >= 0 else None

    def put(self, path: str, counts: NDArray[np.int32]) -> None:
        """Keep the counts of a file."""
        with atomic_output(str(self._place(path))) as file:
            np.savez_compressed(file, counts=counts)

    def _place(self, path: str) -> Path:
        return self._folder / f"{digest((self._asked, fingerprint(path)))}.npz"

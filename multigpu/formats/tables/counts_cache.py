"""Counts of single samples kept in a folder, found again by what they were counted from."""

import os
from dataclasses import astuple
from pathlib import Path
from stat import S_IWOTH

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output
from multigpu.errors import UsageError
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.storage.fingerprints import digest, fingerprint
from multigpu.formats.storage.npy import UNREADABLE, read_arrays
from multigpu.kernels.counting.types import Counting

VERSION = 1  # of the files, and of what counting means


class CountsCache:
    """Folder of counts. Raises UsageError where it cannot be made, or everybody may write to it.

    One that is made is for the user alone. A group that shares its own is no concern of ours: there
    are numbers in it, no code.
    """

    def __init__(
        self, folder: str, regions: Regions, numbers: list[int], options: Counting
    ) -> None:
        """Make the folder, where there is none.

        numbers  of the references that the chromosomes of the regions stand for
        """
        self._folder = Path(folder)
        try:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            open_to_all = self._folder.stat().st_mode & S_IWOTH
        except OSError as error:
            raise UsageError(f"{folder}: no folder for counts: {error.strerror}") from error
        if not os.access(self._folder, os.W_OK | os.X_OK):  # asked before hours of work
            raise UsageError(f"{folder}: no folder for counts: it cannot be written")
        if open_to_all:
            raise UsageError(
                f"{folder}: no folder for counts: everybody may write to it: "
                "chmod o-w, or name another"
            )
        self._count = len(regions)
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

"""Lists of rotations in files: quaternions, one a line."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.formats.storage.input_paths import expand_one
from multigpu.formats.storage.sources import FileKind, inspect_source

LARGEST = 1e100  # of a component: its square must be a number
ROTATIONS = FileKind("rotation", (".txt", ".tsv", ".csv"), lambda *_: "text", "no rotations")


def read_quaternions(path: str) -> NDArray[np.float64]:
    """Return float64[n, 4]: w x y z, as given, four numbers a line with blanks or commas between.

    Empty lines and those that begin with # are left out. Raises InputError that names the line.
    """
    path = expand_one(path, ROTATIONS)
    found = list(_rows(path, inspect_source(path, ROTATIONS).content()))
    if not found:
        raise InputError(path, "there is no rotation in it")
    return np.array(found)


def _rows(path: str, content: bytes) -> Iterator[list[float]]:
    for number, line in enumerate(content.splitlines(), 1):
        words = line.replace(b",", b" ").split()
        if not words or words[0].startswith(b"#"):
            continue
        try:
            row = [float(word) for word in words]
        except ValueError:
            row = []
        if len(row) != 4 or not (np.abs(row) < LARGEST).all() or not any(row):
            problem = f"{quoted(line)} is no quaternion: four numbers w x y z, not all 0"
            raise InputError(path, problem, f"line {number}")
        yield row

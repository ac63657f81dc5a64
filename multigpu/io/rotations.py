"""Rotations in files: quaternions, one a line."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, quoted
from multigpu.io.sources import Kind, blocks, expand, inspect

READ_BYTES = 4 << 20
NOTHING = 1e-12  # below it a part of a quaternion is rounding

ROTATIONS = Kind("rotation", (".txt", ".tsv", ".csv"), lambda *_: "text", "no rotations")


def read_quaternions(path: str) -> NDArray[np.float64]:
    """float64[n, 4] w x y z, as given: four numbers a line, parted by blanks or commas.

    Empty lines and those that begin with # are left out. Raises InputError that names the line.
    """
    (path,) = expand([path], ROTATIONS)
    content = b"".join(block.tobytes() for block in blocks(inspect(path, ROTATIONS), READ_BYTES))
    found = list(_rows(path, content))
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
        if len(row) != 4 or not np.isfinite(row).all() or not any(row):
            problem = f"{quoted(line)} is no quaternion: four numbers w x y z, not all 0"
            raise InputError(path, problem, f"line {number}")
        yield row


def quaternions_of(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """float64[k, 4] w x y z of rotation matrices float64[k, 3, 3]; the first that is not 0 is
    positive.

    Of the outer product 4 q qᵀ, which is linear in the matrix, the row with the largest square
    is taken (Shepperd, Quaternion from rotation matrix, 1978).
    """
    (a, b, c), (d, e, f), (g, h, i) = matrices.transpose(1, 2, 0)
    products = np.array(
        [
            [1 + a + e + i, h - f, c - g, d - b],
            [h - f, 1 + a - e - i, b + d, c + g],
            [c - g, b + d, 1 - a + e - i, f + h],
            [d - b, c + g, f + h, 1 - a - e + i],
        ]
    )
    largest = np.argmax(np.diagonal(products), axis=1)
    rows = products[largest, :, np.arange(len(matrices))]
    rows = rows / np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    first = np.argmax(np.abs(rows) > NOTHING, axis=1)
    signs = np.sign(rows[np.arange(len(rows)), first])
    found: NDArray[np.float64] = rows * signs[:, None] + 0.0  # no -0.0
    return found

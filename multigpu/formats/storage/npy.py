"""Arrays of .npy and .npz files; no header makes room for more than the file has."""

import io
import math
import tokenize
import warnings
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

ZIP_MAGIC = b"PK"
SUFFIX = ".npy"
# Others, which a damaged entry may claim to have, raise errors of their own.
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
UNREADABLE = (  # what a damaged file may raise
    OSError, ValueError, TypeError, KeyError, EOFError, SyntaxError, OverflowError, RecursionError,
    NotImplementedError, RuntimeError, zipfile.BadZipFile, zlib.error, tokenize.TokenError,
)  # fmt: skip


def read_arrays(content: bytes, *wanted: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a .npz file by name, or that of a .npy file by the empty name.

    wanted: names of those that are inflated; all others are empty. An only one always is

    Raises one of UNREADABLE for what holds anything else.
    """
    if not content.startswith(ZIP_MAGIC):
        return {"": read_array(content)}
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if any(entry.compress_type not in COMPRESSIONS for entry in file.infolist()):
            raise ValueError("it is compressed as no .npz file is")
        names = [name.removesuffix(SUFFIX) for name in file.namelist() if name.endswith(SUFFIX)]
        return {
            name: read_array(file.read(name + SUFFIX))
            if name in wanted or len(names) == 1
            else np.empty(0)
            for name in names
        }


def read_array(content: bytes) -> NDArray[Any]:
    """Return the array of a .npy file. Raises one of UNREADABLE."""
    stored = io.BytesIO(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about old ways to write a header, which a damaged one has
        major, _ = npy.read_magic(stored)
        # A header of version 3 differs from one of version 2 in the names of fields alone.
        read_header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
        shape, _, dtype = read_header(stored)
        there, wanted = len(content) - stored.tell(), math.prod(shape) * dtype.itemsize
        if there < wanted:
            raise ValueError(f"it ends early: {there:,} bytes where its header says {wanted:,}")
        stored.seek(0)
        array: NDArray[Any] = npy.read_array(stored, allow_pickle=False)
    return array

"""NumPy arrays: a grid in .npy, or in .npz, which may say where it stands."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError, UsageError, first_line
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    single_precision,
)
from multigpu.formats.storage.npy import UNREADABLE, read_arrays


def read(file: PocketFile) -> Pocket:
    """Return the array of a .npy file, or `grid` (with `origin` and `spacing`, if there) of a .npz.

    Raises InputError, and UsageError where neither the file nor the options say where it stands.
    """
    path, content = file.path, file.content()
    try:
        arrays = read_arrays(content, "grid", "origin", "spacing")
    except UNREADABLE as error:
        raise InputError(path, f"no array: {first_line(error)}") from error
    grid = _grid(path, arrays)
    origin = _vector(path, "origin", arrays.get("origin") if file.origin is None else file.origin)
    spacing = arrays.get("spacing") if file.spacing is None else file.spacing
    with np.errstate(all="ignore"):  # what is no number is refused later, with its place
        values = grid.astype(np.float64)
    return Pocket(
        path=path,
        layout=NUMPY.name,
        values=single_precision(values)[None],
        origin=origin,
        spacing=_vector(path, "spacing", spacing),
    )


def _vector(path: str, name: str, value: Any) -> NDArray[np.float64]:
    """Return float64[3] of one number or three. Raises UsageError for None, else InputError."""
    if value is None:
        raise UsageError(f"{path} does not say its {name}: give --{name}")
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.shape not in ((3,), ()):
        raise InputError(path, f"its {name} is not one number, or three")
    with np.errstate(all="ignore"):
        return np.broadcast_to(array.astype(np.float64), 3).copy()


def _grid(path: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array called grid, or the only one. Raises InputError."""
    names = ", ".join(arrays) or "nothing"
    if "grid" not in arrays and len(arrays) != 1:
        raise InputError(path, f"which array is the grid? Call it 'grid'; there is {names}")
    grid = arrays.get("grid", next(iter(arrays.values())))
    if grid.ndim != 3 or grid.dtype.kind not in "fiub":
        raise InputError(path, f"the grid is {grid.dtype}{list(grid.shape)}: three axes are needed")
    return grid


NUMPY = PocketFormat(name="numpy", suffixes=(".npy", ".npz"), read=read, has_place=False)

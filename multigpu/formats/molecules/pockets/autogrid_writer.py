"""AutoGrid's files of a pocket: .maps.fld, .maps.xyz and a .map for each type, as `autogrid` reads.

AutoDock 4, AutoDock-GPU and Vina read them, too.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output, check_output
from multigpu.errors import UsageError
from multigpu.formats.molecules.pockets.autogrid import ENERGIES, MAP_HEADER
from multigpu.formats.molecules.pockets.pocket import Pocket
from multigpu.formats.storage.stored_streams import is_remote

SUFFIX = ".maps.fld"
LABELS = {letter: name.capitalize() for name, letter in ENERGIES.items()}
LONGEST_PATH = 80  # AutoDock has room for some 128 characters
WRITTEN = 1 << 16  # values that become text at once


def check_field(path: str) -> None:
    """Raise UsageError for a name that no field file has, or where none can be written."""
    check_output(path)
    if not path.endswith(SUFFIX) or Path(path).name == SUFFIX:
        raise UsageError(f"{path}: a pocket is written to a file that ends in {SUFFIX}")


def write_pocket(path: str | os.PathLike[str], pocket: Pocket) -> None:
    """Write a pocket of maps: a field file, .maps.fld, and beside it maps and corners of the box.

    The files appear when all are complete, the field file last; an older one goes before that, so
    that maps of two pockets are never taken for one. Raises UsageError where one cannot be written,
    DiskFull where the disk is full.
    """
    path = os.fspath(path)
    check_field(path)
    stem, name = path.removesuffix(SUFFIX), _receptor_of(path, pocket)
    # Vina has neither of the last two.
    labels = {**{kind: f"{kind}-affinity" for kind in pocket.types}, **LABELS}
    paths = {f"{stem}.{kind}.map": labels[kind] for kind in list(labels)[: len(pocket.values)]}
    corners = f"{stem}.maps.xyz"
    geometry = (
        f"SPACING {float(pocket.spacing[0])}",
        f"NELEMENTS {' '.join(str(points - 1) for points in pocket.shape)}",
        f"CENTER {' '.join(f'{x:.3f}' for x in pocket.center)}",
    )
    about = ("GRID_PARAMETER_FILE none", f"GRID_DATA_FILE {Path(path).name}")
    header = "\n".join([*about, f"MACROMOLECULE {name}", *geometry, ""]).encode()
    with ExitStack() as outputs:  # what is opened last appears first
        names = (path, corners, *paths)
        files = [outputs.enter_context(atomic_output(name)) for name in names]
        field, box, *maps = files
        lines = _field_lines(pocket, geometry, name, corners, paths)
        field.writelines(f"{line}\n".encode() for line in lines)
        for low, high in zip(pocket.origin, pocket.end, strict=True):
            box.write(f"{low:.3f} {high:.3f}\n".encode())
        for out, values in zip(maps, pocket.values, strict=True):
            out.write(header)
            out.writelines(_value_lines(values))
        for file in files:  # a full disk shows before any of them appears
            file.flush()
        Path(path).resolve().unlink(missing_ok=True)


def _field_lines(
    pocket: Pocket, geometry: Sequence[str], name: str, corners: str, labels: dict[str, str]
) -> Iterator[str]:
    """Yield the lines of a field file, in the order in which AutoGrid writes them.

    labels: of the maps, by their files
    """
    yield from ("# AVS field file", "#", "# AutoDock Atomic Affinity and Electrostatic Grids", "#")
    yield from ("# Created by multigpu", "#", *(f"#{line}" for line in geometry))
    yield from (f"#MACROMOLECULE {name}", "#GRID_PARAMETER_FILE none", "#", "ndim=3")
    yield from (f"dim{axis}={points}" for axis, points in enumerate(pocket.shape, 1))
    yield from ("nspace=3", f"veclen={len(labels)}", "data=float", "field=uniform")
    for axis in range(3):
        yield f"coord {axis + 1} file={Path(corners).name} filetype=ascii offset={2 * axis}"
    for number, label in enumerate(labels.values(), 1):
        yield f"label={label}\t# component label for variable {number}"
    yield "#"
    for number, file in enumerate(labels, 1):
        yield f"variable {number} file={Path(file).name} filetype=ascii skip={MAP_HEADER}"


def _value_lines(values: NDArray[np.float32]) -> Iterator[bytes]:
    """Yield the values of a map with three decimals, a line each, x fastest."""
    flat = values.transpose(2, 1, 0).ravel()
    for begin in range(0, len(flat), WRITTEN):
        part = flat[begin : begin + WRITTEN].tolist()
        yield (b"%.3f\n" * len(part)) % tuple(part)


def _receptor_of(path: str, pocket: Pocket) -> str:
    """Return the receptor's path as seen from a field file: its name where that is long or far."""
    name = Path(pocket.receptor).name
    if is_remote(pocket.receptor) or not name:
        return name or "none"
    beside = os.path.relpath(pocket.receptor, Path(path).parent)
    return beside if len(beside) <= LONGEST_PATH else name

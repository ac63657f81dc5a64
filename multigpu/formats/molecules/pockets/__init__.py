"""Score grids of pockets: AutoGrid, OpenDX, MRC/CCP4 and NumPy files to arrays.

All end as value [ix, iy, iz] at origin + spacing * (ix, iy, iz), in Å. Axes that are not those of
the coordinates, and grids with values that are no numbers, are refused.

A format is a function that ends with its `PocketFormat`, and one name in POCKET_FORMATS.
"""

import re
from pathlib import Path

from multigpu.errors import InputError, UsageError, option
from multigpu.formats.molecules.pockets.autogrid import AUTOGRID, AUTOGRID_MAP
from multigpu.formats.molecules.pockets.grids import MRC, NUMPY, OPENDX
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    Vector,
    check_pocket,
)
from multigpu.formats.storage.input_paths import expand_one, suffix_of
from multigpu.formats.storage.sources import FileKind, inspect_source

__all__ = ["POCKETS", "Pocket", "Vector", "read_pocket"]

POCKET_FORMATS: dict[str, PocketFormat] = {
    each.name: each for each in (AUTOGRID, AUTOGRID_MAP, OPENDX, MRC, NUMPY)
}
SUFFIXES = {suffix: each for each in POCKET_FORMATS.values() for suffix in each.suffixes}
STRUCTURE = re.compile(rb"^(ATOM  |HETATM|@<TRIPOS>)", re.MULTILINE)
NO_GRID = (
    "this is a structure, and a pocket is a grid of scores: give a receptor with"
    f" {option('receptor')}, or make its maps with `multigpu pocket`"
)


def _layout(path: str, start: bytes) -> str:
    for each in POCKET_FORMATS.values():
        if each.is_marked and each.is_marked(start):
            return each.name
    if suffix := suffix_of(Path(path).name, POCKETS):
        return SUFFIXES[suffix].name
    if STRUCTURE.search(start):
        raise InputError(path, NO_GRID)
    return ""


POCKETS = FileKind(
    name="pocket",
    suffixes=tuple(SUFFIXES),
    layout=_layout,
    unknown="no pocket by its name (.maps.fld, .dx, .mrc, .ccp4, .npy, .npz)",
)


def read_pocket(path: str, origin: Vector | None = None, spacing: float | None = None) -> Pocket:
    """Return a grid; origin, spacing: Å, if it has none. Raises InputError, UsageError."""
    path = expand_one(path, POCKETS)
    pocket_format = POCKET_FORMATS[inspect_source(path, POCKETS).layout]
    if pocket_format.has_place and (origin is not None or spacing is not None):
        raise UsageError(
            f"{path} says itself where it stands: leave out {option('origin')} and"
            f" {option('spacing')}"
        )
    file = PocketFile(path=path, kind=POCKETS, origin=origin, spacing=spacing)
    return check_pocket(pocket_format.read(file))

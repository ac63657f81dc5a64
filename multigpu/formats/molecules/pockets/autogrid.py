"""AutoGrid: a field file, .maps.fld, and the maps of atom types that it names.

Maps of Vina's atom types come in the same files, without electrostatics and desolvation.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multigpu.errors import InputError
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    parse_floats,
    parse_values,
)
from multigpu.formats.molecules.scoring import scoring_of

ENERGIES = {"electrostatics": "e", "desolvation": "d"}  # maps that are of no atom type
GEOMETRY = ("SPACING", "NELEMENTS", "CENTER")
MAP_HEADER = 6  # lines
MOST_STEPS = 1_000_000_000  # along an axis: more are a slip, and a message would have 900 digits
Geometry = dict[str, tuple[float, ...]]


def read(file: PocketFile) -> Pocket:
    """Return the grids of a `*.maps.fld` and of the maps that it names, which must agree with it.

    Maps of atom types may be missing: which ones are needed depends on the ligands. Raises
    InputError.
    """
    path, lines = file.path, file.content().decode("latin-1").splitlines()
    header = [line[1:] if line.startswith("#") else "" for line in lines]
    geometry = _geometry(path, header)
    maps = dict(_maps(file, lines))
    energies = {} if scoring_of(maps) == "vina" else ENERGIES
    for name, letter in energies.items():
        if letter not in maps:
            raise InputError(path, f"there is no map of {name} (.{letter}.map)")
    if set(maps) == {"e", "d"}:
        raise InputError(path, "there is no map of an atom type")
    present = {name: stored for name in maps if (stored := maps[name].stored())}
    types = tuple(name for name in present if name not in ("e", "d"))
    needed = (*types, *energies.values()) if types else maps
    values = [_read_map(present.get(name, maps[name]), path, geometry) for name in needed]
    spacing = np.full(3, geometry["SPACING"][0])
    origin = np.array(geometry["CENTER"]) - spacing * (np.array(_points(geometry)) - 1) / 2
    absent = tuple(name for name in maps if name not in present)
    return Pocket(
        path=path,
        layout=AUTOGRID.name,
        values=np.ascontiguousarray(values),
        origin=origin,
        spacing=spacing,
        types=types,
        absent=absent,
        receptor=_receptor(file, header),
    )


def _maps(field: PocketFile, lines: Sequence[str]) -> Iterator[tuple[str, PocketFile]]:
    """Yield each map's atom type ("e" and "d": electrostatics, desolvation) and file."""
    labels = [match[1] for line in lines if (match := re.match(r"label=(\S+)", line))]
    files = [match[1] for line in lines if (match := re.match(r"variable\s.*file=(\S+)", line))]
    if not files:
        raise InputError(field.path, "it names no maps (variable 1 file=…)")
    if len(labels) != len(files):
        raise InputError(field.path, f"it has {len(labels)} labels for {len(files)} maps")
    for label, file in zip(labels, files, strict=True):
        name = ENERGIES.get(label.lower(), label.removesuffix("-affinity"))
        yield name, field.beside(file)


def _receptor(field: PocketFile, header: Sequence[str]) -> str:
    """Return the path of the receptor that a header names, "" where it names none."""
    names = [line.partition(" ")[2].strip() for line in header if line.startswith("MACROMOLECULE")]
    return field.beside(names[0]).path if names and names[0] else ""


def _geometry(path: str, lines: Sequence[str]) -> Geometry:
    """Return spacing, steps along the axes and center. Raises InputError."""
    found: Geometry = {}
    for number, line in enumerate(lines, 1):
        name, _, rest = line.partition(" ")
        if name in GEOMETRY and name not in found:
            found[name] = parse_floats(path, rest.split(), number)
    for name, count in zip(GEOMETRY, (1, 3, 3), strict=True):
        if len(found.get(name, ())) != count:
            raise InputError(path, f"it does not say {name} as AutoGrid does")
    steps = found["NELEMENTS"]
    if not all(number.is_integer() and 1 <= number <= MOST_STEPS for number in steps):
        problem = f"NELEMENTS is {_shown(steps)}: they must be whole numbers from 1 to"
        raise InputError(path, f"{problem} {MOST_STEPS:,}")
    return found


def _points(geometry: Geometry) -> tuple[int, ...]:
    """Return the points along x, y and z; AutoGrid counts the steps between them."""
    return tuple(int(steps) + 1 for steps in geometry["NELEMENTS"])


def _read_map(file: PocketFile, field: str, geometry: Geometry) -> NDArray[np.float32]:
    """Return the values of a map. Raises InputError where its geometry is not that of the field."""
    path = file.path
    *header, body = file.content().split(b"\n", MAP_HEADER)
    here = _geometry(path, [line.decode("latin-1").strip() for line in header])
    for name in GEOMETRY:
        if here[name] != geometry[name]:
            problem = f"{name} is {_shown(here[name])}, but {_shown(geometry[name])} in {field}"
            raise InputError(path, f"{problem}: the maps are not of one grid")
    nx, ny, nz = _points(geometry)
    return parse_values(path, body, (nz, ny, nx), MAP_HEADER + 1, "NELEMENTS").transpose(2, 1, 0)


def _shown(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


def refuse_map(file: PocketFile) -> Pocket:
    """Raise InputError: one map is not a pocket."""
    raise InputError(file.path, "this is one map of several: give the .maps.fld that names them")


AUTOGRID = PocketFormat(name="autogrid", suffixes=(".maps.fld", ".fld"), read=read)
AUTOGRID_MAP = PocketFormat(name="map", suffixes=(".map",), read=refuse_map)

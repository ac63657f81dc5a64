"""AutoGrid: a field file, .maps.fld, and the maps of atom types that it names, read and written.

Maps of Vina's atom types come in the same files, without electrostatics and desolvation. What is
written, AutoDock 4, AutoDock-GPU and Vina read, too; for them there is a .maps.xyz.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from multigpu.cluster.files import atomic_output, check_output
from multigpu.errors import InputError, UsageError
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    parse_floats,
    parse_values,
)
from multigpu.formats.molecules.scoring import scoring_of
from multigpu.formats.storage.stored_streams import is_remote

ENERGIES = {"electrostatics": "e", "desolvation": "d"}  # maps that are of no atom type
GEOMETRY = ("SPACING", "NELEMENTS", "CENTER")
MAP_HEADER = 6  # lines
MOST_STEPS = 1_000_000_000  # along an axis: more are a slip, and a message would have 900 digits
SUFFIX = ".maps.fld"
LABELS = {letter: name.capitalize() for name, letter in ENERGIES.items()}
LONGEST_PATH = 80  # AutoDock has room for some 128 characters
WRITTEN = 1 << 16  # values that become text at once
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
    return Pocket(
        path=path,
        layout=AUTOGRID.name,
        values=np.ascontiguousarray(values),
        origin=origin,
        spacing=spacing,
        types=types,
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
    """Yield a field file's lines, in AutoGrid's order. labels: of the maps, by their files."""
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


AUTOGRID = PocketFormat(name="autogrid", suffixes=(SUFFIX, ".fld"), read=read)
AUTOGRID_MAP = PocketFormat(name="map", suffixes=(".map",), read=refuse_map)

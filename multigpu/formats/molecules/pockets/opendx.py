"""OpenDX, a scalar field as APBS and others write it."""

import re

import numpy as np

from multigpu.errors import InputError
from multigpu.formats.molecules.pockets.pocket import (
    Pocket,
    PocketFile,
    PocketFormat,
    parse_floats,
    parse_values,
)

COUNTS = re.compile(rb"class\s+gridpositions\s+counts" + 3 * rb"\s+(\d{1,18})" + rb"(?!\S)")
DATA = re.compile(rb"^\s*object\s.*class\s+array\s.*data\s+follows\s*$", re.MULTILINE)
END = re.compile(rb"^\s*(attribute|component|object)\b", re.MULTILINE)


def read(file: PocketFile) -> Pocket:
    """Return the field of a file, in which z is fastest. Raises InputError."""
    content, path = file.content(), file.path
    counts, data = COUNTS.search(content), DATA.search(content)
    if counts is None:
        raise InputError(path, "it has no 'class gridpositions counts nx ny nz'")
    if data is None:
        raise InputError(path, "it has no array with 'data follows' as text")
    header = content[: data.start()]
    shape = tuple(int(word) for word in counts.groups())
    (origin,) = _rows(path, header, "origin", 1)
    steps = np.array(_rows(path, header, "delta", 3))
    if np.any(steps != np.diag(np.diag(steps))):
        raise InputError(path, "its axes are not parallel to x, y and z: this is not read")
    end = END.search(content, data.end())
    body = content[data.end() : end.start() if end else len(content)]
    line = content.count(b"\n", 0, data.end()) + 1
    values = parse_values(path, body, shape, line, "'gridpositions counts'")
    step = np.diag(steps)
    ways = tuple(slice(None, None, -1 if each < 0 else 1) for each in step)  # an axis may run down
    return Pocket(
        path=path,
        layout=OPENDX.name,
        values=np.ascontiguousarray(values[ways])[None],
        origin=origin + np.minimum(step, 0) * (np.array(shape) - 1),
        spacing=np.abs(step),
    )


def _rows(path: str, header: bytes, name: str, count: int) -> list[tuple[float, ...]]:
    """Return the numbers of all lines of this name. Raises InputError for another count."""
    rows = []
    for number, line in enumerate(header.decode("latin-1").splitlines(), 1):
        words = line.split()
        if words[:1] == [name]:
            rows.append(parse_floats(path, words[1:], number))
    if len(rows) != count or any(len(row) != 3 for row in rows):
        raise InputError(path, f"it needs {count} line(s) '{name} x y z'")
    return rows


OPENDX = PocketFormat(name="dx", suffixes=(".dx",), read=read)

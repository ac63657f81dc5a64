"""Small grids as DX, MRC and maps of AutoGrid."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHAPE = (3, 4, 5)
ORIGIN, SPACING = (-1.5, 2.0, 0.25), 0.5
VALUES = np.arange(60, dtype=np.float32).reshape(SHAPE) / 8
DTYPES = {0: "i1", 1: "i2", 2: "f4", 6: "u2"}  # of the modes of MRC


def dx(values: NDArray[Any] = VALUES, **changes: str) -> bytes:
    """Return a grid as DX; `changes` replace lines by their names."""
    lines = {
        "counts": "object 1 class gridpositions counts {} {} {}".format(*values.shape),
        "origin": "origin {} {} {}".format(*ORIGIN),
        "x": f"delta {SPACING} 0 0",
        "y": f"delta 0 {SPACING} 0",
        "z": f"delta 0 0 {SPACING}",
        "connections": "object 2 class gridconnections counts {} {} {}".format(*values.shape),
        "data": f"object 3 class array type double rank 0 items {values.size} data follows",
        "body": "\n".join(" ".join(map(str, row)) for row in values.reshape(-1, 3).tolist()),
        "end": 'attribute "dep" string "positions"\nobject "a" class field',
    }
    return ("# made by a test\n" + "\n".join({**lines, **changes}.values()) + "\n").encode()


def mrc_bytes(mode: int = 2, big: bool = False, extended: int = 0, **words: float) -> bytes:
    """Return VALUES * 8, as the format's description has it; `words` replace the header's."""
    order = ">" if big else "<"
    header = np.zeros(256, f"{order}i4")
    real = header.view(f"{order}f4")
    header[:10] = [*SHAPE, mode, 0, 0, 0, *SHAPE]
    real[10:16] = [size * SPACING for size in SHAPE] + [90] * 3
    header[16:19], header[23], real[49:52] = (1, 2, 3), extended, ORIGIN
    header.view("S4")[52:54] = b"MAP ", b"\x11\x11" if big else b"\x44\x44"
    for word, value in words.items():
        (header if isinstance(value, int) else real)[int(word.removeprefix("word_")) - 1] = value
    values = (VALUES * 8).transpose(2, 1, 0).astype(order + DTYPES.get(mode, "f4"))
    return header.tobytes() + b"x" * extended + values.tobytes()


def autogrid(
    folder: Path, types: Sequence[str], grid_of: Callable[[int], NDArray[np.float64]],
    origin: Sequence[float], spacing: float,
) -> str:  # fmt: skip
    """Write p.maps.fld and its maps; return its path. grid_of: number of a map, from 1 → values."""
    names = [*types, "e", "d"]
    shape = grid_of(1).shape
    center = " ".join(str(o + spacing * (n - 1) / 2) for o, n in zip(origin, shape, strict=True))
    steps = " ".join(str(n - 1) for n in shape)
    geometry = f"SPACING {spacing}\nNELEMENTS {steps}\nCENTER {center}\n"
    labels = [*(f"{name}-affinity" for name in types), "Electrostatics", "Desolvation"]
    field = "# AVS field file\n" + "".join(f"#{line}\n" for line in geometry.splitlines())
    field += "".join(f"label={label}\t# component\n" for label in labels)
    for i, name in enumerate(names, 1):
        field += f"variable {i} file=p.{name}.map filetype=ascii skip=6\n"
        head = f"GRID_PARAMETER_FILE g.gpf\nGRID_DATA_FILE p.maps.fld\nMACROMOLECULE p\n{geometry}"
        values = "\n".join(map(str, grid_of(i).transpose(2, 1, 0).ravel().tolist()))
        (folder / f"p.{name}.map").write_text(f"{head}{values}\n")
    (folder / "p.maps.fld").write_text(field)
    return str(folder / "p.maps.fld")

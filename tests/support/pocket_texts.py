"""Maps of AutoGrid."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def autogrid(
    folder: Path,
    types: Sequence[str],
    grid_of: Callable[[int], NDArray[np.float64]],
    origin: Sequence[float],
    spacing: float,
) -> str:
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

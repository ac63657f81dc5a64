"""Inputs and helpers of tests of docking."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.workloads.dock.rows import PoseBatch

COUNT = 30  # ligands of the library
SOME_SKIPPED = 3  # exit status

ATOM = "HETATM{:5d}  C   LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 C\n"

Dock = Callable[..., int]
NAN = float("nan")


def table(path: str) -> list[dict[str, str]]:
    names, *rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def files(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def molecules(path: Path) -> list[Any]:
    text = path.read_bytes()
    ends = FORMATS["sdf"].find_ends(text, True)
    return [parse(text[a:b], "sdf") for a, b in zip([0, *ends], ends, strict=False)]


def pdbqt(number: int, molecule: Any) -> str:
    atoms = [ATOM.format(i, *place) for i, place in enumerate(molecule.positions.tolist(), 1)]
    said = f"REMARK  Name = {molecule.name}\n" if number % 3 else ""
    return "".join([f"MODEL {number}\n{said}ROOT\n", *atoms, "ENDROOT\nTORSDOF 0\nENDMDL\n"])


def sdf(number: int, molecule: Any) -> str:
    text: str = molecule.text.decode()
    return text if number % 3 else "\n" + text.partition("\n")[2]


def rows_with(**change: Any) -> PoseBatch:
    """Return two rows, the second without angles."""
    columns: dict[str, Any] = {
        "ligand": ["lig é", "b"],
        "source": ["a\tb.pdbqt", "b\udcff.pdbqt"],
        "ligand_index": np.array([0, 1]),
        "conformer": np.array([1, 3], np.int32),
        "pose": np.array([1, 2], np.int32),
        "rotation": np.array([7, 1 << 40]),
        "score": np.array([0.1, -1e-20]),
        "unrefined": np.array([0.0, -0.5]),
        "electrostatic": np.array([-0.25, 0.5]),
        "angles": np.array([[0.0, 12.5, 350.0], [NAN, NAN, NAN]]),
        "quaternion": np.array([[1.0, 0.0, 0.0, 0.0], [0.5, -0.5, 0.5, -0.5]]),
        "place": np.array([[-0.00004, 2.00006, -3.0], [1e8, 0.0, 0.0]]),
        "rmsd_to_input": np.array([0.00004, 1.25]),
        "rmsd_to_reference": np.array([1.5, NAN]),
        "strain": np.array([NAN, 0.0]),
        "atoms": np.array([3, 4], np.int32),
        "heavy": np.array([3, 0], np.int32),
        "atoms_outside": np.array([0, 4], np.int32),
        "coordinates": np.empty((0, 3)),
    }
    return PoseBatch(**{**columns, **change})

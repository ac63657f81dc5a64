"""autogrid4, the oracle of maps, where it is installed; receptors as it reads them."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multigpu.kernels.maps import GridBox, Receptor

PROGRAM = shutil.which("autogrid4")
MOST_TYPES = 14  # of one run
HEADER = 6  # lines of a map
KINDS = (
    "C", "A", "N", "NA", "NS", "OA", "OS", "S", "SA", "H", "HD", "HS", "P", "F", "Cl", "Br", "Mg",
    "Ca", "Mn", "Fe", "Zn", "I",
)  # fmt: skip

Maps = dict[str, NDArray[np.float64]]


def receptor_of(pdbqt: str) -> Receptor:
    """Return the atoms of a PDBQT."""
    lines = [line for line in pdbqt.splitlines() if line.startswith(("ATOM", "HETATM"))]
    columns = ((30, 38), (38, 46), (46, 54))
    return Receptor(
        positions=np.array([[float(line[a:b]) for a, b in columns] for line in lines]),
        charges=np.array([float(line[70:76]) for line in lines]),
        types=tuple(line[77:79].strip() for line in lines),
    )


def pdbqt_of(receptor: Receptor) -> str:
    """Return the text of a PDBQT with these atoms."""
    lines = [
        f"ATOM  {number % 100000:5d}  X   REC A   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00    "
        f"{charge:6.3f} {kind}\n"
        for number, ((x, y, z), charge, kind) in enumerate(
            zip(receptor.positions, receptor.charges, receptor.types, strict=True), 1
        )
    ]
    return "".join(lines)


def random_receptor(seed: int, atoms: int, length: float, kinds: Sequence[str]) -> Receptor:
    """Return atoms in a cube about 0, so dense that they are bonded in every way."""
    rng = np.random.default_rng(seed)
    places: list[Any] = []
    while len(places) < atoms:
        place = np.round(rng.uniform(-length / 2, length / 2, 3), 3)
        if all(np.linalg.norm(place - other) > 0.85 for other in places):
            places.append(place)
    charges = np.round(rng.uniform(-0.5, 0.5, atoms), 3)
    return Receptor(np.array(places), charges, tuple(rng.choice(kinds, atoms).tolist()))


def autogrid(folder: Path, pdbqt: str, box: GridBox, types: Sequence[str]) -> Maps:
    """Return the maps that autogrid4 writes; the box needs even numbers of elements."""
    maps: Maps = {}
    for begin in range(0, len(types), MOST_TYPES):
        maps |= _run(folder, pdbqt, box, types[begin : begin + MOST_TYPES])
    return maps


def _run(folder: Path, pdbqt: str, box: GridBox, types: Sequence[str]) -> Maps:
    (folder / "r.pdbqt").write_text(pdbqt)
    lines = [
        "npts {} {} {}".format(*box.elements), "gridfld r.maps.fld", f"spacing {box.spacing}",
        "receptor_types " + " ".join(sorted(set(receptor_of(pdbqt).types))),
        "ligand_types " + " ".join(types), "receptor r.pdbqt",
        "gridcenter {:.3f} {:.3f} {:.3f}".format(*box.center), "smooth 0.5",
        *(f"map r.{name}.map" for name in types), "elecmap r.e.map", "dsolvmap r.d.map",
        "dielectric -0.1465",
    ]  # fmt: skip
    (folder / "r.gpf").write_text("\n".join(lines) + "\n")
    command = ["autogrid4", "-p", "r.gpf", "-l", "r.glg"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return {name: _read(folder / f"r.{name}.map", box) for name in (*types, "e", "d")}


def _read(path: Path, box: GridBox) -> NDArray[np.float64]:
    values = np.array(path.read_text().split("\n")[HEADER:-1], np.float64)
    return values.reshape(box.shape[::-1]).transpose(2, 1, 0)


def assert_close(got: Any, expected: Maps) -> None:
    """Fail unless maps agree: to 0.005 kcal/mol, or 1e-5 of a value, wherever it is below 1,000."""
    assert set(got) == set(expected)
    for name, values in expected.items():
        off = np.abs(got[name].astype(np.float64) - values)
        wrong = (off > np.maximum(0.005, 1e-5 * np.abs(values))) & (np.abs(values) < 1000)
        assert not wrong.any(), f"{name}: {wrong.sum()} values, by up to {off[wrong].max()}"

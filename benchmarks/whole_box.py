"""The figures of the search of a whole box: poses are compared with the CPU's, then it is timed.

    python benchmarks/whole_box.py FOLDER [--device gpu|cpu] [--only 1ac8 …] [--runs 5] [--check]
        [--json FILE]

FOLDER has a folder for each complex, with receptor.maps.fld, its maps and crystal.pdbqt. The box is
20 Å around the middle of the maps, in steps of 0.5 Å, with 10,000 rotations and a band of 3
kcal/mol; maps and kernels are on the device. Prints one Markdown table.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import Figure, Report, repeated, require

from multigpu.formats.molecules.ligands import open_sources, read_records
from multigpu.formats.molecules.pockets import read_pocket
from multigpu.kernels.rotation.rotations import Shifts, near_uniform
from multigpu.kernels.rotation.types import Field, Ligands, PoseSearch
from multigpu.workloads.dock.ligands import LigandLoader
from multigpu.workloads.dock.options import DockOptions
from multigpu.workloads.dock.search import field_of

BOX, STEP, ROTATIONS, BAND, TOP, MIN_RMSD = 20.0, 0.5, 10_000, 3.0, 50, 1.0
CONFORMERS, NOISE = 20, 0.25  # how many; Å, by which their atoms differ from the crystal's
LIGANDS = 10  # of a call
THREADS = 4


def case(folder: Path) -> tuple[Field, PoseSearch, Ligands]:
    """Return maps, poses and the crystal's conformation."""
    pocket = read_pocket(str(folder / "receptor.maps.fld"))
    (source,), _ = open_sources([str(folder / "crystal.pdbqt")], skip=False)
    loader = LigandLoader(sources=[source], types=pocket.types)
    bodies = loader.load([next(iter(read_records(0, source)))], first=0).bodies
    x, y, z = pocket.center.tolist()
    search = PoseSearch(near_uniform(ROTATIONS), Shifts(BOX / 2, STEP), (x, y, z), TOP, MIN_RMSD)
    return field_of(pocket, DockOptions()), search, bodies


def conformers(body: Ligands, many: int, seed: int) -> Ligands:
    """Return a body many times, with atoms moved at random but in the first."""
    noise = np.random.default_rng(seed).normal(0, NOISE, (many, len(body.positions), 3))
    noise[0] = 0
    return Ligands(
        (body.positions + noise).reshape(-1, 3),
        np.arange(many + 1) * len(body.positions),
        np.tile(body.channels, (many, 1)),
        np.tile(body.weights, (many, 1)),
    )


def searcher(device: str, field: Field, search: PoseSearch) -> Any:
    if device == "gpu":
        from multigpu.kernels.rotation.whole_box import cuda

        return cuda.BandSearcher(field, search, BAND)
    from multigpu.kernels.rotation.whole_box import cpu

    return cpu.BandSearcher(field, search, BAND)


def require_same(found: Any, expected: Any, what: str) -> None:
    for name in ("ligand", "pose", "score"):
        same = np.array_equal(getattr(found, name), getattr(expected, name))
        require(same, f"{what}: another {name} than on the CPU")


def figures(folder: Path, device: str, runs: int, check: bool) -> Iterator[Figure]:
    """Yield the figures of one complex."""
    field, search, body = case(folder)
    finder, name = searcher(device, field, search), folder.name
    one, many = np.zeros(1, np.int64), np.zeros(CONFORMERS, np.int64)
    several = conformers(body, CONFORMERS, 1)
    found, shared = finder.best(body, one), finder.best(several, many)
    if check and device == "gpu":
        plain = searcher("cpu", field, search)
        require_same(found, plain.best(body, one), name)
        require_same(shared, plain.best(several, many), f"{name}, {CONFORMERS} conformers")
    note = f"{len(body.positions)} atoms, {len(found)} poses, the best {found.score[0]:.3f}"
    ms = [1e3 * each for each in repeated(lambda: finder.best(body, one), runs)]
    yield Figure(name, f"{name}: one conformer", "ms", ms, 5.0, note=note)
    ms = [1e3 * each for each in repeated(lambda: finder.best(several, many), runs)]
    yield Figure(
        name, f"{name}: {CONFORMERS} conformers", "ms", ms, 20.0, note=f"{len(shared)} poses"
    )
    if device == "cpu":
        return
    library = conformers(body, LIGANDS * CONFORMERS, 2)
    ligand_of = np.repeat(np.arange(LIGANDS), CONFORMERS)
    calls: Callable[[int], Any] = lambda _: finder.best(library, ligand_of)  # noqa: E731
    with ThreadPoolExecutor(THREADS) as threads:
        rates = []
        for _ in range(runs + 1):
            begin = time.perf_counter()
            list(threads.map(calls, range(THREADS)))
            rates.append(THREADS * LIGANDS * CONFORMERS / (time.perf_counter() - begin))
    what = f"{name}: conformers a second, {THREADS} threads"
    yield Figure(name, what, "/s", rates[1:], 1000.0, at_most=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="compare with the CPU's poses first")
    parser.add_argument("--json", type=Path, help="write figures and the machine here")
    options = parser.parse_args()
    settings = {"folder": str(options.folder), "device": options.device, "runs": options.runs}
    report = Report(common.machine(), settings, options.json)
    for folder in sorted(path.parent for path in options.folder.glob("*/receptor.maps.fld")):
        if options.only and folder.name not in options.only:
            continue
        about = folder, options.device, options.runs, options.check
        report.measure(folder.name, partial(figures, *about))
    report.end(full_size=True)


if __name__ == "__main__":
    main()

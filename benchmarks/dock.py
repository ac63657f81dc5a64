"""The figures of docking: results are checked, then runs are timed.

    python benchmarks/dock.py [--device gpu|cpu] [--only nearest linear …] [--json FILE] [--runs 5]

Prints one Markdown table. Parts that cannot run here are skipped, with the reason.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import ROOT, Figure, NotHereError, repeated, require
from data import made
from processes import process, python

from multigpu.formats.molecules.pockets import read_pocket
from multigpu.formats.molecules.registry import parse
from multigpu.formats.molecules.sdf import SDF
from multigpu.kernels.rotation import reference
from multigpu.kernels.rotation.rotations import EulerRotations
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch
from multigpu.workloads.dock.simulate import ligands, pocket

GOLDEN = Path(os.environ.get("MULTIGPU_GOLDEN", ROOT.parent / "shared" / "golden"))
POCKET = GOLDEN / "dock" / "real_1stp" / "1stp_protein.maps.fld"
ATOMS, POINTS, SPACING, SEED = 64, 100, 0.375, 1
CHECKED = 3  # ligands of the library that the plain search docks again
LIBRARY = 10_000
FEWEST, MOST = 25, 35  # atoms of the library's ligands: 30 on average
TYPES = {"C": "C", "N": "N", "O": "OA", "S": "SA", "F": "HD", "Cl": "A"}  # that the pocket has
CHARGES = {"C": 0.05, "A": 0.03, "N": -0.35, "OA": -0.4, "SA": -0.15, "HD": 0.2}


class Bench(common.Bench):
    """Bench of docking."""

    def searcher(self, field: Field, search: PoseSearch) -> Any:
        if self.gpu:
            from multigpu.kernels.rotation import cuda

            return cuda.PoseSearcher(field, search)
        from multigpu.kernels.rotation import cpu

        return cpu.PoseSearcher(field, search)


Part = Callable[[Bench], Iterator[Figure]]


def library(folder: Path, count: int) -> Path:
    """Return a library of PDBQT with the atom types of the pocket."""
    return made(folder / f"library-{count}.pdbqt", lambda part: _write_library(part, count))


def _write_library(path: Path, count: int) -> None:
    sdf = path.with_suffix(".sdf")
    with sdf.open("wb") as out:
        ligands(out, count, FEWEST, MOST, SEED)
    text, begin = sdf.read_bytes(), 0
    with path.open("w") as file:
        for number, end in enumerate(SDF.find_ends(text, True)):
            file.write(_as_pdbqt(number, text[begin:end]))
            begin = end
    sdf.unlink()


def _as_pdbqt(number: int, record: bytes) -> str:
    molecule = parse(record, "sdf")
    lines = [f"MODEL {number + 1}", f"REMARK  Name = {molecule.name}", "ROOT"]
    for i, (element, place) in enumerate(
        zip(molecule.elements, molecule.positions.tolist(), strict=True), 1
    ):
        kind, (x, y, z) = TYPES[element], place
        lines.append(
            f"HETATM{i:5d} {element:<4} LIG A   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
            f"    {CHARGES[kind]:6.3f} {kind:<2}"
        )
    return "\n".join([*lines, "ENDROOT", "TORSDOF 0", "ENDMDL\n"])


# ---- one structure ----------------------------------------------------------------------------


def structure(bench: Bench) -> tuple[Any, Ligands]:
    """Return a grid of 100³ points, and 64 atoms in the middle of it."""
    grid = bench.output / "pocket.npz"
    _write_pocket(grid)
    text = bench.output / "structure.sdf"
    with text.open("wb") as out:
        ligands(out, 1, ATOMS, ATOMS, SEED)
    places = parse(text.read_bytes(), "sdf").positions
    channels = np.zeros((ATOMS, 1), np.int32)
    return read_pocket(str(grid)), Ligands(places, np.array([0, ATOMS]), channels, channels + 1.0)


def part_nearest(bench: Bench) -> Iterator[Figure]:
    yield from _one_structure(bench, "nearest", 1.0, 4.0)


def part_linear(bench: Bench) -> Iterator[Figure]:
    yield from _one_structure(bench, "linear", 1.0, 8.0)


def _one_structure(
    bench: Bench, interpolation: Any, precision: float, asked: float
) -> Iterator[Figure]:
    """Time the search alone, from atoms to the exact winner, both in host memory."""
    bench.need_gpu()
    grid, body = structure(bench)
    field = Field(grid.values, grid.origin, grid.spacing, interpolation)
    _check_against_plain(bench, field, body)
    search = PoseSearch(EulerRotations(precision))
    searcher = bench.searcher(field, search)
    found = searcher.best(body)
    _check_against_cpu(field, search, body, found)
    seconds = repeated(lambda: searcher.best(body), bench.runs)
    tried = search.stop
    yield Figure(
        interpolation,
        f"{ATOMS} atoms, {POINTS}³ grid, p = {precision:g}°, {interpolation}: the search",
        "ms", [1e3 * s for s in seconds], asked,
        note=f"{tried:,} of {search.count:,} rotations: the others repeat these;"
        f" {tried * ATOMS / np.median(seconds):.3g} look-ups/s",
    )  # fmt: skip


def _check_against_plain(bench: Bench, field: Field, body: Ligands) -> None:
    search = PoseSearch(EulerRotations(15.0))
    ours = bench.searcher(field, search).best(body)
    _require_same(ours, reference.PoseSearcher(field, search).best(body), "at 15°")


def _check_against_cpu(field: Field, search: PoseSearch, body: Ligands, found: Poses) -> None:
    from multigpu.kernels.rotation import cpu

    _require_same(found, cpu.PoseSearcher(field, search).best(body), "from the CPU's")


def _require_same(a: Poses, b: Poses, what: str) -> None:
    same = all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("ligand", "pose", "score"))
    require(same, f"another best pose than the plain search {what}: {a} {b}")


def part_cpu(bench: Bench) -> Iterator[Figure]:
    """Time the search on one core and the process on two, with kernels that are cached."""
    from multigpu.kernels.rotation import cpu

    grid, body = structure(bench)
    field = Field(grid.values, grid.origin, grid.spacing)
    search = PoseSearch(EulerRotations(10.0))
    searcher = cpu.PoseSearcher(field, search)
    _require_same(searcher.best(body), reference.PoseSearcher(field, search).best(body), "at 10°")
    seconds = repeated(lambda: searcher.best(body), bench.runs)
    what = f"{ATOMS} atoms, {POINTS}³ grid, p = 10°, linear, CPU"
    yield Figure("cpu", f"{what}: the search, one core", "s", seconds, 0.5)
    command = _command(
        bench.output / "structure.sdf", bench.output / "pocket.npz", bench.output / "cpu.sdf",
        "--gpus", "none", "--threads", "2",
    )  # fmt: skip
    whole = repeated(lambda: process(command, use_cores=2), bench.runs)
    yield Figure("cpu", f"{what}: whole process, 2 cores", "s", whole, note="kernels cached")


# ---- libraries --------------------------------------------------------------------------------


def _command(library: Path, grid: Path, output: Path, *options: str) -> list[str]:
    return python(
        "-m", "multigpu", "dock", str(library), "--pocket", str(grid), "-o", str(output), *options
    )


def center(grid: Path) -> str:
    """Return the middle of a pocket, for the command line."""
    return ",".join(f"{x:.3f}" for x in read_pocket(str(grid)).center)


def pocket_options(folder: Path) -> tuple[str, ...]:
    """Return options with the real pocket, or a random one where golden data are absent."""
    grid = POCKET if POCKET.is_file() else made(folder / "random.npz", _write_pocket)
    return ("--pocket", str(grid), "--center", center(grid))


def _write_pocket(path: Path) -> None:
    with path.open("wb") as out:
        pocket(out, points=POINTS, spacing=SPACING, wells=200, seed=SEED)


def part_library(bench: Bench) -> Iterator[Figure]:
    """Time the process of 10,000 ligands in a real AutoGrid pocket."""
    bench.need_gpu_or_time()
    if not POCKET.is_file():
        raise NotHereError(f"needs the golden data: {POCKET}")
    count = round(LIBRARY * bench.scale)
    output = bench.output / "poses.pdbqt"
    command = _command(
        library(bench.folder, count), POCKET, output,
        "--center", center(POCKET), "--gpus", "0" if bench.gpu else "none",
    )  # fmt: skip
    process(command)
    rows = output.with_name(f"{output.stem}.scores.tsv").read_text().splitlines()[1:]
    require(len(rows) == count, f"{len(rows)} of {count} ligands were docked")
    _check_plain_search(bench, count, rows[:CHECKED])
    seconds = repeated(lambda: process(command), min(bench.runs, 3), warm_up=False)
    what = f"{count:,} ligands of about 30 atoms, AutoGrid, p = 10°: process, {bench.where}"
    note = f"{count / np.median(seconds):,.0f} ligands/s"
    yield Figure("library", what, "s", seconds, 2.0 if bench.gpu else None, note=note)


def _check_plain_search(bench: Bench, count: int, rows: list[str]) -> None:
    """Require that the plain search agrees on the first ligands."""
    from multigpu.formats.molecules.ligands import open_sources, read_records
    from multigpu.workloads.dock.ligands import LigandLoader
    from multigpu.workloads.dock.options import DockOptions
    from multigpu.workloads.dock.search import field_of, search_of

    grid = read_pocket(str(POCKET))
    options = DockOptions(center=tuple(float(f"{x:.3f}") for x in grid.center))
    field, search = field_of(grid, options), search_of(options, grid, None)
    (source,), _ = open_sources([str(library(bench.folder, count))], skip=False)
    some = next(read_records(0, source))[:CHECKED]
    loaded = LigandLoader(sources=[source], types=grid.types).load([some], first=0)
    plain = reference.PoseSearcher(field, search).best(loaded.bodies)
    claimed = [float(row.split("\t")[2]) for row in rows]
    require(plain.score.tolist() == claimed, f"the plain search scores {plain.score}: {claimed}")


# ---- all together -----------------------------------------------------------------------------

PARTS: dict[str, Part] = {
    "nearest": part_nearest,
    "linear": part_linear,
    "library": part_library,
    "cpu": part_cpu,
}

if __name__ == "__main__":
    common.measure_parts(common.options_of(__doc__, PARTS), PARTS, Bench)

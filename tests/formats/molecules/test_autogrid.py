"""AutoGrid's files of a pocket: read back as they were, by AutoDock, too, and all or none."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support.ligand_texts import PDBQT

from multigpu import UsageError
from multigpu.cluster import files
from multigpu.cluster.errors import DiskFull
from multigpu.formats.molecules.pockets import Pocket, autogrid, read_pocket
from multigpu.formats.molecules.pockets.autogrid import write_pocket
from multigpu.kernels.maps.types import rounded

SEEDS = st.integers(0, 99)


def pocket(types: tuple[str, ...], shape: tuple[int, ...], spacing: float, seed: int = 1) -> Pocket:
    """Return maps with values of all sizes, around a center of three decimals."""
    random = np.random.default_rng(seed)
    scale = 10.0 ** random.integers(-4, 6, shape)
    values = rounded(random.normal(size=(len(types) + 2, *shape)) * scale)
    center = np.round(random.uniform(-99, 99, 3), 3)
    origin = center - spacing * (np.array(shape) - 1) / 2
    place = {"origin": origin, "spacing": np.full(3, spacing)}
    return Pocket(path="x", layout="autogrid", values=values, types=types, **place)


@given(st.tuples(*[st.integers(2, 6)] * 3), st.sampled_from([0.375, 0.1, 1 / 3, 1.0]), SEEDS)
def test_pocket__is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], spacing: float, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("p")
    made = pocket(("C", "OA", "Cl"), shape, spacing, seed)
    made = replace(made, receptor=str(folder.parent / "r 1.pdbqt"))
    write_pocket(folder / "x.maps.fld", made)
    found = read_pocket(str(folder / "x.maps.fld"))
    assert Path(found.receptor).resolve() == Path(made.receptor)
    assert np.array_equal(found.values, made.values)
    assert np.allclose(found.origin, made.origin, rtol=0, atol=1e-12)
    assert found.types == made.types
    assert found.spacing.tolist() == [spacing] * 3


def test_pocket__appears_whole_or_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, made = tmp_path / "x.maps.fld", pocket(("C", "OA"), (3, 3, 3), 0.5)
    write_pocket(path, made)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert {*before} == {"x.maps.fld", "x.maps.xyz", "x.OA.map", *(f"x.{t}.map" for t in "Cde")}
    lines = autogrid._value_lines

    def fail(values: np.ndarray) -> Iterator[bytes]:  # type: ignore[type-arg]
        yield from lines(values)
        if (values == made.values[2]).all():
            raise MemoryError

    monkeypatch.setattr(autogrid, "_value_lines", fail)
    with pytest.raises(MemoryError):
        write_pocket(path, made)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    with pytest.raises(UsageError, match=r"x\.dx: a pocket is written to a file that ends in"):
        write_pocket(tmp_path / "x.dx", made)


@pytest.mark.parametrize("renamed", range(5))
def test_pocket__that_is_replaced_is_never_seen_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    """The process dies when some of the files have their names."""
    path, places = tmp_path / "x.maps.fld", iter(range(9))
    write_pocket(path, pocket(("C",), (3, 3, 3), 0.5))
    replace_file = Path.replace

    def die(self: Path, target: Path) -> Path:
        if next(places) == renamed:
            raise KeyboardInterrupt
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", die)
    with pytest.raises(KeyboardInterrupt):
        write_pocket(path, pocket(("C",), (3, 3, 3), 0.5, seed=2))
    assert not path.exists()


def test_pocket__on_a_full_disk_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last file, which would appear first, fits, and another one does not."""
    write = files._NamedFile.write

    def fail(self: Any, data: Any) -> int:
        if self.name.endswith(".e.map"):
            raise DiskFull("full")
        return write(self, data)

    monkeypatch.setattr(files._NamedFile, "write", fail)
    with pytest.raises(DiskFull):
        write_pocket(tmp_path / "x.maps.fld", pocket(("C",), (3, 3, 3), 0.5))
    assert not [*tmp_path.iterdir()]


@pytest.mark.process
@pytest.mark.skipif(not shutil.which("autodock4"), reason="there is no autodock4")
def test_pocket__is_what_autodock_reads(tmp_path: Path) -> None:
    """A map that is −1 everywhere gives an energy of −1 for each atom of its type."""
    made = pocket(("N", "OA", "HD"), (61, 61, 61), 0.5)
    values = np.zeros_like(made.values)
    values[:3] = np.array([-1, -2, -4], np.float32)[:, None, None, None]
    places = [9, 5, -14]
    origin = np.array(places) - 15.0
    write_pocket(tmp_path / "x.maps.fld", replace(made, values=values, origin=origin))
    (tmp_path / "l.pdbqt").write_bytes(PDBQT)
    maps = "".join(f"map x.{kind}.map\n" for kind in made.types)
    (tmp_path / "a.dpf").write_text(
        "autodock_parameter_version 4.2\nintelec\nligand_types N OA HD\nfld x.maps.fld\n"
        f"{maps}elecmap x.e.map\ndesolvmap x.d.map\nmove l.pdbqt\nepdb\n"
    )
    subprocess.run(["autodock4", "-p", "a.dpf", "-l", "a.dlg"], cwd=tmp_path, check=True)
    log = (tmp_path / "a.dlg").read_text()
    found = re.findall(r"Total Intermolecular Interaction Energy\s+=\s+(\S+)", log)
    assert float(found[0]) == -7

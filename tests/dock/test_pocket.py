"""Pockets of receptors: boxes, maps, maps that are kept, and what is refused."""

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from support.docked import ATOM, files
from support.ligand_texts import ETHANOL
from support.program import Run
from support.receptor_texts import peptide_pdbqt

import multigpu
from multigpu import InputError, UsageError
from multigpu.cluster.devices.gpus import Device
from multigpu.cluster.errors import DeviceFailed
from multigpu.cluster.files import atomic_output
from multigpu.formats.molecules.pockets import read_pocket
from multigpu.workloads.dock import ligands
from multigpu.workloads.dock import pocket as pockets
from multigpu.workloads.dock.options import MapOptions, PocketRequest
from multigpu.workloads.dock.pocket import box_around, make_pocket, with_other_types

BOX = (0.0, 0.0, 0.0, 6.0, 5.0, 4.0)


@pytest.fixture
def receptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """peptide.pdbqt, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    Path("peptide.pdbqt").write_bytes(peptide_pdbqt())
    return "peptide.pdbqt"


@given(
    center=st.tuples(*[st.floats(-90, 90)] * 3),
    size=st.tuples(*[st.floats(0.01, 60)] * 3),
    spacing=st.sampled_from([0.1, 0.2, 0.375, 0.5, 1.0]),
)
def test_box__has_the_least_even_number_of_elements_that_fill_it(
    center: tuple[float, ...], size: tuple[float, ...], spacing: float
) -> None:
    box = box_around((*center, *size), spacing)
    assert np.abs(np.array(box.center) - center).max() <= 0.0005 + 1e-9
    for elements, side in zip(box.elements, size, strict=True):
        assert elements % 2 == 0
        assert elements * spacing >= side - 1e-6
        assert elements == 2 or (elements - 2) * spacing < side


@pytest.mark.parametrize("elements", [2, 54, 80, 126])
@pytest.mark.parametrize("spacing", [0.1, 0.3, 0.375])
def test_box__of_a_whole_number_of_elements_is_not_enlarged(elements: int, spacing: float) -> None:
    assert box_around((0, 0, 0, *[elements * spacing] * 3), spacing).elements == (elements,) * 3


@pytest.mark.parametrize(
    "given_box",
    [BOX, (BOX[:3], BOX[3:]), "0,0,0,6,5,4", "0,0,0 6,5,4", "vina.txt", Path("vina.txt")],
)
def test_box__is_given_in_several_ways(receptor: str, given_box: Any) -> None:
    names = (f"{what}_{axis}" for what in ("center", "size") for axis in "xyz")
    lines = [f"{name} = {value:g}  # Å" for name, value in zip(names, BOX, strict=True)]
    Path("vina.txt").write_text("\n".join(["receptor = peptide.pdbqt", *lines, "cpu = 4"]))
    found = multigpu.pocket(receptor, box=given_box, spacing=1.0, gpus="none")
    assert found.shape == (7, 7, 5)
    assert found.center.tolist() == [0, 0, 0]


def test_pocket__holds_a_ligand_and_padding(receptor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    atoms = [ATOM.format(k, *at) for k, at in enumerate([(0, 0, 0), (1.5, 0, 0), (1.5, 1, 1)])]
    Path("l.pdbqt").write_text("".join(atoms))
    found = multigpu.pocket(receptor, autobox="l.pdbqt", padding=2, spacing=0.5, gpus="none")
    assert found.center.tolist() == [0.75, 0.5, 0.5]
    assert found.shape == (13, 11, 11)  # of 5.5, 5 and 5 Å
    monkeypatch.setattr(ligands, "RECEPTOR_ATOMS", 40)
    with pytest.raises(InputError, match="record 1: it has 47 atoms: is it a receptor"):
        multigpu.pocket(receptor, autobox=receptor)


def test_types__taken_as_others_have_their_maps(receptor: str) -> None:
    options = MapOptions(type_as=("B=C", "OA=O1", "Si=OA"))
    pocket = multigpu.pocket(receptor, box=BOX, spacing=1, gpus="none")
    with pytest.raises(UsageError, match=r"type_as: .* has no map of O1: it has C, A, N"):
        with_other_types(pocket, options.other_types)
    found = with_other_types(pocket, {"B": "C", "A": "OA"})
    for kind, same in {"B": "C", "A": "OA", "N": "N"}.items():
        one, other = found.types.index(kind), pocket.types.index(same)
        assert np.array_equal(found.values[one], pocket.values[other])
    assert np.array_equal(found.values[-2:], pocket.values[-2:])
    assert {*found.types} == {*pocket.types, "B"}
    assert with_other_types(pocket, {}) is pocket


def test_types__that_a_scoring_lacks_are_named_with_their_atom(receptor: str) -> None:
    text = peptide_pdbqt().replace(b" OA\n", b" Xx\n", 1)
    Path("odd.pdbqt").write_bytes(text)
    for scoring in ("autodock4", "vina"):
        with pytest.raises(InputError, match=r"odd\.pdbqt: .*Xx.*: type_as TYPE=OTHER takes"):
            multigpu.pocket("odd.pdbqt", box=BOX, scoring=scoring, gpus="none")
    found = multigpu.pocket("odd.pdbqt", box=BOX, gpus="none", type_as="Xx=OA")
    same = multigpu.pocket(receptor, box=BOX, gpus="none")
    end, own = (each.types.index("P") for each in (found, same))
    assert np.array_equal(found.values[:end], same.values[:own])


def test_maps__are_made_once_for_a_box(receptor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = Mock(wraps=pockets.compute_maps)
    monkeypatch.setattr(pockets, "compute_maps", compute)

    def kept(box: tuple[float, ...] = BOX) -> Any:
        return make_pocket(PocketRequest(receptor, box=box, spacing=1.0), (), folder)

    folder = Path("receptor.maps")
    first, again = kept(), kept()
    assert compute.call_count == 1
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.origin, again.origin)
    assert (first.path, first.types) == (again.path, again.types)
    other = kept((*BOX[:5], 8.0))
    assert kept().path == first.path
    assert compute.call_count == 2
    damaged = Path(other.path.replace(".maps.fld", ".OA.map"))
    damaged.write_text(damaged.read_text()[:-40])
    kept((*BOX[:5], 8.0))
    damaged.unlink()
    kept((*BOX[:5], 8.0))
    assert compute.call_count == 4
    Path(receptor).write_bytes(peptide_pdbqt().replace(b"-0.", b"-1.", 1))
    kept((*BOX[:5], 8.0))
    assert compute.call_count == 5


def test_maps__that_another_run_is_writing_are_made_again(receptor: str) -> None:
    request, folder = PocketRequest(receptor, box=BOX, spacing=1.0), Path("receptor.maps")
    first = make_pocket(request, (), folder)
    for each in folder.iterdir():
        each.unlink()
    with atomic_output(first.path):
        second = make_pocket(request, (), folder)
    assert np.array_equal(first.values, second.values)
    assert second.path == receptor


@pytest.mark.process
@pytest.mark.parametrize(
    ("scoring", "other", "types", "energies"),
    [("autodock4", "B=C", "C, A, N, ", ("d", "e")), ("vina", "B=C_P", "C_H, C_P, N_P, ", ())],
)
def test_command__writes_what_the_function_returns(
    receptor: str, main: Run, scoring: str, other: str, types: str, energies: tuple[str, ...]
) -> None:
    ran = main(
        "pocket", receptor, "--box", "0,0,-1", "6,5,4", "--spacing", "1", f"--type={other}",
        "--scoring", scoring, "-o", "p.maps.fld", "--gpus", "none",
    )  # fmt: skip
    assert (ran.status, ran.err) == (0, "")
    assert f"maps of {types}" in ran.all_err
    written, box = read_pocket("p.maps.fld"), (0, 0, -1, *BOX[3:])
    found = multigpu.pocket(receptor, box=box, spacing=1, type_as=other, scoring=scoring)
    assert np.array_equal(written.values, found.values)
    assert written.types == found.types
    maps = [f"p.{kind}.map" for kind in (*found.types, *energies)]
    assert files() == sorted(["p.maps.fld", "p.maps.xyz", "peptide.pdbqt", *maps])


@pytest.mark.process
@pytest.mark.parametrize(("options", "problem"), [
    ("peptide.pdbqt --box 0,0,0 6,6,6", "Missing option '-o' / '--output'."),
    ("peptide.pdbqt -o p.dx --box 0,0,0 6,6,6", "p.dx: a pocket is written to a file that"),
    ("peptide.pdbqt peptide.pdbqt --box 0,0,0 6,6,6", "unexpected extra argument (peptide"),
    ("peptide.pdbqt", "give --box or --autobox, one of them"),
    ("peptide.pdbqt --box 0,0,0 6,0,6", "0,0,0,6,0,6: the lengths must be above 0"),
    ("peptide.pdbqt --box 0,0,0 6,6,nan", "the lengths must be above 0, nothing beyond"),
    ("peptide.pdbqt --box 0,0,0,6,6", "Invalid value for '--box': expected X,Y,Z SX,SY,SZ"),
    ("peptide.pdbqt --box peptide.pdbqt", "'--box': peptide.pdbqt does not say center_x,"),
    ("peptide.pdbqt --box vina.txt", "vina.txt does not say center_y, size_z, as a"),
    ("peptide.pdbqt --box 99,0,0 6,6,6", "the box around 99,0,0 misses the receptor: its"),
    ("peptide.pdbqt --box 0,0,0 6,6,600", "1 to 1022 an axis are possible: change --spac"),
    ("peptide.pdbqt --box 0,0,0 150,150,150", "bytes of memory, and"),
    ("peptide.pdbqt --autobox peptide.smi", "peptide.smi: cannot be read: there is no"),
    ("peptide.pdbqt --box 0,0,0 6,6,6 --type B", "--type B: expected TYPE=OTHER, e.g. B=C"),
])  # fmt: skip
def test_command__refuses_in_a_line(
    receptor: str, main: Run, monkeypatch: pytest.MonkeyPatch, options: str, problem: str
) -> None:
    monkeypatch.setattr(pockets.memory, "free_bytes", lambda _: 1 << 30)
    Path("vina.txt").write_text("center_x = 1\ncenter_z = 1\nsize_x = 9\nsize_y = 9\n")
    output = [] if "-o" in options or "Missing" in problem else ["-o", "p.maps.fld"]
    ran = main("pocket", *options.split(), *output, "--gpus", "none")
    assert ran.status == 2
    assert problem in ran.problem
    assert files() == ["peptide.pdbqt", "vina.txt"]


@pytest.mark.parametrize("error", [MemoryError, DeviceFailed("gpu", "it fell off the bus")])
def test_maps__are_made_on_the_cpu_where_a_gpu_fails(
    receptor: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Any
) -> None:
    compute = pockets.compute_maps

    def fail(receptor: Any, box: Any, types: Any, device: int | None = None) -> Any:
        if device is not None:
            raise error
        return compute(receptor, box, types, device)

    monkeypatch.setattr(pockets, "compute_maps", fail)
    monkeypatch.setattr(pockets, "ordinal", lambda _: 0)
    monkeypatch.setattr(pockets.memory, "release_pool", lambda _: None)
    request = PocketRequest(receptor, box=BOX, spacing=1.0)
    gpu = [Device(0, "GPU-1", "card", 1, 1, None, False)]
    one, other = (make_pocket(request, devices) for devices in (gpu, ()))
    assert np.array_equal(one.values, other.values)
    assert "maps are made on the CPU" in caplog.text


@pytest.mark.parametrize("path", ["l.smi", "l.txt"])
def test_dock__checks_its_ligands_before_a_receptor(receptor: str, path: str) -> None:
    Path(path).write_text("CCO ethanol\n")
    with pytest.raises(InputError, match=rf"^{path}: "):
        multigpu.dock(path, receptor="missing.pdb", box=BOX)


@pytest.mark.process
def test_dock__of_a_receptor_is_that_of_its_pocket(receptor: str, main: Run) -> None:
    Path("l.sdf").write_bytes(ETHANOL)
    search = ("--rotations", "30", "--step", "1", "--gpus", "none", "--top", "3", "--spacing", "1")
    box = ("--autobox", "l.sdf", "--padding", "2")

    def dock(name: str, *pocket: str) -> list[bytes]:
        ran = main("dock", "l.sdf", *pocket, *search, "-o", name)
        assert ran.status == 0, ran.all_err
        assert "best energy" in ran.all_err
        return [Path(file).read_bytes() for file in (name, f"{name[:-4]}.scores.tsv")]

    first = dock("a.sdf", "--receptor", receptor, *box)
    (field,) = Path("receptor.maps").glob("*.maps.fld")
    written = field.stat().st_mtime_ns
    assert dock("b.sdf", "--receptor", receptor, *box) == first
    assert field.stat().st_mtime_ns == written
    assert main("pocket", receptor, *box, "--spacing", "1", "-o", "p.maps.fld").status == 0
    search = search[:-2]
    assert dock("c.sdf", "--pocket", "p.maps.fld") == first
    pocket = read_pocket("p.maps.fld")
    size = pocket.end - pocket.origin
    words = [",".join(f"{x:g}" for x in row) for row in (pocket.center, size)]
    dry = main("dock", "l.sdf", "--receptor", receptor, "--box", *words, "--dry-run")
    points = (2 * np.ceil(size / 0.75) + 1).astype(int)  # at 0.375 Å
    assert f"pocket        {' × '.join(map(str, points))}" in dry.out


@pytest.mark.gpu
def test_pocket__of_a_gpu_has_the_same_bytes(receptor: str) -> None:
    one, other = (multigpu.pocket(receptor, box=BOX, gpus=gpus) for gpus in ("0", "none"))
    assert np.array_equal(one.values, other.values)

"""Docking through the command and from Python: what is written, and what is refused."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import multigpu
from cluster.plan import Capacity
from multigpu import InputError, UsageError
from multigpu.cli import cli
from multigpu.config import DockOptions, RunOptions
from multigpu.io import scores
from multigpu.io.ligands import ENDS
from multigpu.io.molecules import parse
from multigpu.io.pockets import read_pocket
from multigpu.io.sources import Source
from multigpu.simulate_docking import ligands, pocket
from multigpu.workloads import dock_ligands, dock_plan
from multigpu.workloads.dock_prepare import FEW, prepare

ROOT = Path(__file__).resolve().parents[1]
COUNT = 30
SOME_SKIPPED = 3

Dock = Callable[..., int]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ligands.sdf and pocket.npz."""
    folder = tmp_path_factory.mktemp("library")
    with (folder / "ligands.sdf").open("wb") as out:
        ligands(out, COUNT, 1, 12, seed=3)
    with (folder / "pocket.npz").open("wb") as out:
        pocket(out, points=24, spacing=0.75, wells=12, seed=3)
    return folder


@pytest.fixture
def dock(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dock:
    """The command in an empty directory; its exit status."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, of: str = str(library / "ligands.sdf"), pocket: str = "") -> int:
        given = pocket or str(library / "pocket.npz")
        command = ("dock", *of.split(), "--pocket", given, "--precision", "30", "--gpus", "none")
        return int(cli.main([*command, *arguments], standalone_mode=False))

    return run


def table(path: str) -> list[dict[str, str]]:
    names, *rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def files(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def names_in(path: str) -> list[str]:
    text = Path(path).read_bytes()
    ends = ENDS["sdf"](text, True)
    return [text[a:].split(b"\n", 1)[0].decode() for a in [0, *ends[:-1]]]


# ---- what is written --------------------------------------------------------------------------


def test_dock__writes_the_ligands_in_their_order(dock: Dock) -> None:
    assert dock("-o", "poses.sdf") == 0
    assert names_in("poses.sdf") == [f"lig{i}" for i in range(COUNT)]
    rows = table("poses.scores.tsv")
    assert [row["ligand"] for row in rows] == [f"lig{i}" for i in range(COUNT)]
    assert files() == ["poses.scores.tsv", "poses.sdf"]


def test_dock__writes_poses_where_their_row_says(dock: Dock, library: Path) -> None:
    """Angles, quaternion and place are three ways to say where the atoms are."""
    dock("-o", "poses.sdf", "--center", "0.5,-1,2")
    given = {each.name: each.positions for each in molecules(library / "ligands.sdf")}
    found = {each.name: each.positions for each in molecules(Path("poses.sdf"))}
    for row in table("poses.scores.tsv"):
        alpha, beta, gamma = (np.radians(float(row[name])) for name in ("alpha", "beta", "gamma"))
        matrix = turned(gamma, 2) @ turned(beta, 1) @ turned(alpha, 0)
        quaternion = [float(row[name]) for name in ("qw", "qx", "qy", "qz")]
        np.testing.assert_allclose(by_quaternion(*quaternion), matrix, atol=1e-8)
        place = np.array([float(row[name]) for name in "xyz"])
        assert place.tolist() == [0.5, -1, 2]
        before = given[row["ligand"]]
        after = (before - before.mean(axis=0)) @ matrix.T + place
        np.testing.assert_allclose(found[row["ligand"]], after, atol=1e-4)
        rmsd = np.sqrt(((after - before) ** 2).sum(axis=1).mean())
        assert float(row["rmsd_to_input"]) == pytest.approx(rmsd, abs=1e-4)


def molecules(path: Path) -> list[Any]:
    text = path.read_bytes()
    ends = ENDS["sdf"](text, True)
    return [parse(text[a:b], "sdf") for a, b in zip([0, *ends], ends, strict=False)]


def turned(angle: float, axis: int) -> Any:
    c, s = np.cos(angle), np.sin(angle)
    matrix = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.roll(matrix, (axis, axis), (0, 1))


def by_quaternion(w: float, x: float, y: float, z: float) -> Any:
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def test_dock__gives_several_poses_best_first_and_apart(dock: Dock) -> None:
    dock("-o", "poses.sdf", "--top", "4", "--min-rmsd", "1.5")
    rows = table("poses.scores.tsv")
    poses = molecules(Path("poses.sdf"))
    assert [pose.name for pose in poses] == [row["ligand"] for row in rows]
    for name in {row["ligand"] for row in rows}:
        mine = [i for i, row in enumerate(rows) if row["ligand"] == name]
        assert [int(rows[i]["pose"]) for i in mine] == list(range(1, len(mine) + 1))
        scores = [float(rows[i]["score"]) for i in mine]
        assert scores == sorted(scores, reverse=True)
        for a in mine:
            for b in mine[mine.index(a) + 1 :]:
                apart = ((poses[a].positions - poses[b].positions) ** 2).sum(axis=1).mean()
                assert apart**0.5 > 1.5 - 1e-3
    assert len(rows) > 2 * COUNT


def test_dock__shifts_never_make_it_worse(dock: Dock) -> None:
    dock("-o", "still.sdf")
    dock("-o", "moved.sdf", "--translations", "1,0.5")
    for still, moved in zip(table("still.scores.tsv"), table("moved.scores.tsv"), strict=True):
        assert float(moved["score"]) >= float(still["score"])
        assert all(abs(float(moved[axis])) <= 1 for axis in "xyz")


def test_dock__takes_rotations_of_a_file(dock: Dock) -> None:
    Path("rotations.txt").write_text("# w x y z\n1 0 0 0\n0,1,0,0\n\n 0.5 0.5 0.5 0.5\n")
    assert dock("-o", "poses.sdf", "--rotation-file", "rotations.txt") == 0
    rows = table("poses.scores.tsv")
    assert {row["rotation"] for row in rows} <= {"0", "1", "2"}
    assert {row["alpha"] for row in rows} == {""}


def test_dock__takes_a_number_of_even_rotations(
    dock: Dock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dock("-o", "poses.sdf", "--rotations", "500") == 0
    rows = table("poses.scores.tsv")
    assert all(0 <= int(row["rotation"]) < 500 for row in rows)
    assert len({row["rotation"] for row in rows}) > COUNT / 2
    (said,) = capsys.readouterr().err.splitlines()
    radius = re.fullmatch(r"multigpu: 500 rotations; any other is within (\d+\.\d)°", said)
    assert radius is not None
    # Balls of this radius hold all rotations: 500 (r − sin r) / π >= 1, r in radians.
    r = np.radians(float(radius[1]))
    assert 1 <= 500 * (r - np.sin(r)) / np.pi < 5


@pytest.mark.parametrize("fmt", ["pdb", "xyz", "sdf.gz", "sdf.zst"])
def test_dock__writes_other_formats(dock: Dock, fmt: str) -> None:
    assert dock("-o", f"poses.{fmt}") == 0
    assert files() == sorted([f"poses.{fmt}", "poses.scores.tsv"])
    again = table("poses.scores.tsv")
    if fmt == "pdb":
        text = Path("poses.pdb").read_text()
        assert re.findall(r"^MODEL +(\d+)$", text, re.MULTILINE) == [
            str(i + 1) for i in range(COUNT)
        ]
    assert dock("-o", "again.sdf", of=f"poses.{fmt}") == 0
    for first, second in zip(again, table("again.scores.tsv"), strict=True):
        assert second["ligand"] == first["ligand"]


def test_dock__writes_a_directory_with_a_file_for_each_ligand(dock: Dock, library: Path) -> None:
    text = (library / "ligands.sdf").read_bytes()
    names = [b"../../up", b"a b", b"a_b", b"A_b", b"", b"scores", b"x" * 300]
    records = [text[: ENDS["sdf"](text, True)[0]].replace(b"lig0", name, 1) for name in names]
    Path("odd.sdf").write_bytes(b"".join(records))
    assert dock("-o", "poses/", of="odd.sdf") == 0
    wanted = ["_.._up.sdf", "a_b.sdf", "a_b_2.sdf", "A_b_3.sdf", "odd_5.sdf", "scores.tsv",
              "scores_2.sdf", "x" * 100 + ".sdf"]  # fmt: skip
    assert files("poses") == sorted(wanted)
    assert [row["ligand"] for row in table("poses/scores.tsv")] == [
        "../../up", "a b", "a_b", "A_b", "odd_5", "scores", "x" * 300,
    ]  # fmt: skip
    assert files() == ["odd.sdf", "poses"]


def test_dock__writes_scores_as_parquet(dock: Dock) -> None:
    dock("-o", "poses.sdf", "--scores", "scores.parquet")
    dock("-o", "again.sdf")
    found = pq.read_table("scores.parquet").to_pylist()
    rows = table("again.scores.tsv")
    assert list(found[0]) == list(rows[0])
    for row, wanted in zip(found, rows, strict=True):
        assert repr(row["score"]) == wanted["score"]
        assert row["ligand"] == wanted["ligand"]


def test_dock__writes_to_standard_output(dock: Dock, capfdbinary: Any, library: Path) -> None:
    assert dock() == 0
    out = capfdbinary.readouterr().out
    dock("-o", "poses.sdf")
    assert out == Path("poses.sdf").read_bytes()
    assert files() == ["poses.scores.tsv", "poses.sdf"]


def test_dock__tells_what_was_done(dock: Dock) -> None:
    dock("-o", "poses.sdf", "--summary", "summary.json", "--top", "2")
    facts = json.loads(Path("summary.json").read_text())
    assert facts["ligands"] == COUNT
    assert facts["rotations"] == 12**3
    assert facts["poses_tried"] == 12**3 / 2
    assert facts["poses"] == len(table("poses.scores.tsv"))
    assert facts["skipped"] == 0
    assert facts["pocket"]["points"] == [24, 24, 24]
    assert facts["output"]["bytes"] == Path("poses.sdf").stat().st_size


def test_plan__tells_the_search_and_runs_nothing(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(library / "ligands.sdf"), "--pocket", str(library / "pocket.npz")]
    cli.main(["plan", "dock", *files, "--gpus", "none", "--json"], standalone_mode=False)
    facts = json.loads(capsys.readouterr().out)
    assert facts["rotations"] == 36**3
    assert facts["poses_tried"] == 36**3 / 2
    assert facts["pose_spans"] == 1
    assert facts["chunk_ligands"] == dock_plan.CPU_POSES // (36**3 // 2)
    cli.main(["plan", "dock", *files, "--gpus", "none"], standalone_mode=False)
    assert "46,656 rotations × 1 shifts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("megabytes", "chunks"), [(3, 3), (240, 240), (960, 480), (9600, 480)]
)  # fmt: skip
def test_plan__leaves_a_twentieth_of_a_long_run_in_hand(
    library: Path, megabytes: int, chunks: int
) -> None:
    """Of 24 threads; but chunks are not smaller than the engine's work on them is worth."""
    field = dock_plan.field_of(read_pocket(str(library / "pocket.npz")), DockOptions())
    source = Source("ligands.pdbqt", megabytes << 20, "none", "pdbqt")
    search, here = dock_plan.search_of(DockOptions()), Capacity(100 << 30, 24, 6, gpu=True)
    plan = dock_plan.plan_dock([source], field, search, here, RunOptions())
    assert -(-(megabytes << 20) // plan.chunk_bytes) == chunks


@pytest.mark.parametrize("pocket", ["pocket.maps.fld", "pocket.npz"])
@pytest.mark.parametrize("given", ["some.sdf.gz", "some.PDBQT", "some.mol2", "-", ""])
@pytest.mark.parametrize(
    "options", [DockOptions(), DockOptions(rotations=99, interpolation="nearest", outside="zero")]
)
def test_prepare__docks_what_is_like_the_job(given: str, pocket: str, options: DockOptions) -> None:
    if given.endswith(".sdf.gz") and "maps" in pocket:
        pytest.importorskip("rdkit")
    assert prepare(given, pocket, options, None) == FEW


# ---- the same bytes ---------------------------------------------------------------------------


def test_dock__gives_the_same_bytes_however_it_is_cut(
    dock: Dock, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock("-o", "whole.sdf")
    wanted = Path("whole.sdf").read_bytes(), Path("whole.scores.tsv").read_bytes()
    for options in (
        ("--max-chunk-bytes", "1"),
        ("--max-chunk-bytes", "3000", "--threads", "3"),
        ("--max-chunk-bytes", "2000", "--scheduler", scheduler),
        ("--max-chunk-bytes", "2000", "--workers", "2"),
    ):
        dock("-o", "cut.sdf", *options)
        assert (Path("cut.sdf").read_bytes(), Path("cut.scores.tsv").read_bytes()) == wanted
    monkeypatch.setattr(dock_plan, "CPU_POSES", 100)
    dock("-o", "cut.sdf", "--scheduler", scheduler)
    assert (Path("cut.sdf").read_bytes(), Path("cut.scores.tsv").read_bytes()) == wanted


ATOM = "HETATM{:5d}  C   LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 C\n"


def pdbqt(number: int, molecule: Any) -> str:
    atoms = [ATOM.format(i, *place) for i, place in enumerate(molecule.positions.tolist(), 1)]
    said = f"REMARK  Name = {molecule.name}\n" if number % 3 else ""
    return "".join([f"MODEL {number}\n{said}ROOT\n", *atoms, "ENDROOT\nTORSDOF 0\nENDMDL\n"])


def sdf(number: int, molecule: Any) -> str:
    text: str = molecule.text.decode()
    return text if number % 3 else "\n" + text.partition("\n")[2]


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-9998,99999")])
@pytest.mark.parametrize("output", ["poses.sdf", "poses.pdb", "poses/"])
def test_dock__of_plain_sdf_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    some = [sdf(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    some[5] = some[5].replace("M  END", "M  AND")
    some[7] = some[7].replace("\n", "\r\n")
    some[9] = some[9].replace("V2000", "     ")
    assert_same_at_once(dock, monkeypatch, "some.sdf", some, output, options, b"before its 'M END'")


@pytest.mark.parametrize("options", [(), ("--top", "3"), ("--center", "0,-998,9999")])
@pytest.mark.parametrize("output", ["poses.pdbqt", "poses.sdf", "poses/"])
def test_dock__of_plain_pdbqt_gives_the_same_bytes_as_one_by_one(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, output: str,
    options: tuple[str, ...],
) -> None:  # fmt: skip
    some = [pdbqt(i, each) for i, each in enumerate(molecules(library / "ligands.sdf"))]
    some[5] = some[5].replace("0.000 C", "0.000")  # no type
    some[7] = some[7].replace("\n", "\r\n")
    some[9] = some[9].replace(" 1.00 ", " 1,00 ")  # nobody reads it
    assert_same_at_once(dock, monkeypatch, "some.pdbqt", some, output, options, b"no AutoDock type")


def assert_same_at_once(
    dock: Dock, monkeypatch: pytest.MonkeyPatch, name: str, some: list[str], output: str,
    options: tuple[str, ...], reason: bytes,
) -> None:  # fmt: skip
    """Of records of which some are plain; for the others a reason is told."""
    Path(name).write_bytes("".join(some).encode())

    def written(several: int) -> dict[str, bytes]:
        for module in (dock_ligands, scores):
            monkeypatch.setattr(module, "are_several", lambda count: count >= several)
        assert dock("-o", output, *options, of=name) == SOME_SKIPPED
        found = [path for path in Path().rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in found}

    at_once = written(1)
    if output.endswith("/"):
        shutil.rmtree(output)
    assert written(COUNT + 1) == at_once
    assert any(reason in text for text in at_once.values())


def test_dock__of_several_poses_gives_the_same_bytes_in_tiny_chunks(
    dock: Dock, monkeypatch: pytest.MonkeyPatch
) -> None:
    dock("-o", "whole.sdf", "--top", "3")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 100)
    dock("-o", "cut.sdf", "--top", "3", "--max-chunk-bytes", "1")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()


def test_dock__on_worker_processes_gives_the_same_bytes(
    dock: Dock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They read the ligands themselves; what they give in spans of poses goes into a journal."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--workers", "2", "--max-chunk-bytes", "20000")
    monkeypatch.setattr(dock_plan, "CPU_POSES", 500)
    dock("-o", "spans.sdf", "--workers", "2", "--max-chunk-bytes", "20000")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()
    assert Path("spans.sdf").read_bytes() == Path("whole.sdf").read_bytes()


@pytest.mark.gpu
def test_dock__of_a_worker_process_per_gpu_gives_the_same_bytes(dock: Dock) -> None:
    """`--workers` makes them processes, so that LocalCUDACluster runs on a single GPU too."""
    dock("-o", "whole.sdf")
    dock("-o", "cut.sdf", "--gpus", "all", "--workers", "1", "--max-chunk-bytes", "2000")
    assert Path("cut.sdf").read_bytes() == Path("whole.sdf").read_bytes()


# ---- Python -----------------------------------------------------------------------------------


def test_api__gives_what_the_command_writes(dock: Dock, library: Path) -> None:
    dock("-o", "poses.sdf", "--scores", "scores.parquet", "--top", "2")
    files = str(library / "ligands.sdf"), str(library / "pocket.npz")
    result = multigpu.dock(*files, precision=30, top=2, gpus="none")
    assert result.to_table().equals(pq.read_table("scores.parquet"))
    batches = list(multigpu.dock(*files, precision=30, gpus="none", max_chunk_bytes=1))
    assert sum(map(len, batches)) == COUNT
    assert batches[3].ligand_index.tolist() == [3]
    assert batches[3].positions[0].shape == (batches[3].atoms[0], 3)


def test_api__makes_a_pandas_frame(library: Path) -> None:
    pytest.importorskip("pandas")
    files = str(library / "ligands.sdf"), str(library / "pocket.npz")
    frame = multigpu.dock(*files, precision=60, gpus="none").to_pandas()
    assert frame["score"].is_monotonic_increasing is False
    assert frame["ligand"].tolist() == [f"lig{i}" for i in range(COUNT)]


def test_api__goes_on_with_what_was_finished(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of the spans into which poses are cut, too."""
    monkeypatch.setattr(dock_plan, "CPU_POSES", 30)
    files = str(library / "ligands.sdf"), str(library / "pocket.npz")
    options: dict[str, Any] = {"precision": 60, "gpus": "none", "max_chunk_bytes": 1}
    whole = multigpu.dock(*files, **options).to_table()
    journal = tmp_path / "journal"
    stopped: Any = iter(multigpu.dock(*files, **options, journal=journal))
    for _ in range(5):
        next(stopped)
    stopped.close()
    assert journal.stat().st_size > 0
    again = multigpu.dock(*files, **options, journal=journal, resume=True)
    assert again.to_table().equals(whole)
    assert not journal.exists()


# ---- the report -------------------------------------------------------------------------------


@pytest.fixture
def report(dock: Dock, library: Path) -> str:
    for package in ("plotly", "rdkit", "jinja2"):
        pytest.importorskip(package, reason="the extra `dock` is not installed")
    text = (library / "ligands.sdf").read_bytes()
    Path("named.sdf").write_bytes(text.replace(b"lig0\n", b"<script>alert(1)</script>\n", 1))
    assert dock("-o", "poses.sdf", "--report", "report.html", of="named.sdf") == 0
    return Path("report.html").read_text()


def test_report__has_all_that_it_shows_in_itself(report: str) -> None:
    page = re.sub(r"<script>.*?</script>", "", report, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=", page)
    assert page.count("<svg") == 12 + 1  # the ligands, and the devices
    assert "<script>alert(1)" not in report


@pytest.mark.slow
def test_report__opens_in_a_browser_without_an_error(report: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")
    ran = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
         "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom",
         f"file://{tmp_path}/report.html"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = re.findall(r'CONSOLE[^"]*"(.*)", source:', ran.stderr)
    hints = ("Canvas2D", "Performance")  # about speed without a GPU
    assert [text for text in said if not any(hint in text for hint in hints)] == []
    assert len(re.findall(r'class="[^"]*js-plotly-plot', ran.stdout)) == 2


# ---- what is wrong ----------------------------------------------------------------------------


def test_dock__skips_what_cannot_be_docked_and_says_so(
    dock: Dock, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (library / "ligands.sdf").read_bytes()
    ends = ENDS["sdf"](text, True)
    broken = text[ends[0] : ends[0] + 150] + b"\n$$$$\n"
    Path("some.sdf").write_bytes(text[: ends[0]] + broken + text[ends[1] :])
    Path("empty.sdf").write_bytes(b"")
    assert dock("-o", "poses.sdf", of="some.sdf empty.sdf") == SOME_SKIPPED
    assert names_in("poses.sdf") == ["lig0", *(f"lig{i}" for i in range(2, COUNT))]
    errors = table("errors.tsv")
    assert [(row["file"], row["record"]) for row in errors] == [
        ("some.sdf", "2"),
        ("empty.sdf", "1"),
    ]
    assert [row["ligand"] for row in errors] == ["lig1", "empty"]
    assert errors[1]["reason"] == "is empty"
    assert capsys.readouterr().err == "multigpu: 2 of 31 ligands were skipped: see errors.tsv\n"
    assert dock("-o", "poses.sdf") == 0
    assert table("errors.tsv") == []


def test_dock__stops_at_the_first_that_cannot_be_docked_where_asked(dock: Dock) -> None:
    Path("bad.xyz").write_text("1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n")
    with pytest.raises(InputError, match=r"bad\.xyz: record 2 \(bad\): line 3: the coordinates"):
        dock("-o", "poses.sdf", "--on-error", "stop", of="bad.xyz")
    assert files() == ["bad.xyz"]


def test_dock__of_a_file_that_is_not_there_fails_at_once(dock: Dock, library: Path) -> None:
    with pytest.raises(InputError, match=r"none\.sdf: cannot be read: there is no such file"):
        dock("-o", "poses.sdf", of=f"{library}/ligands.sdf none.sdf")
    assert files() == []


def test_dock__of_nothing_that_can_be_docked_fails(dock: Dock) -> None:
    Path("bad.xyz").write_text("1\nbad\nC 0 nan 0\n")
    problem = r"bad\.xyz: record 1 \(bad\): line 3: .* \(none of 1 ligands could be docked\)"
    with pytest.raises(InputError, match=problem):
        dock("-o", "poses.sdf", of="bad.xyz")
    assert files() == ["bad.xyz"]


def test_dock__tells_of_a_very_long_name_in_a_short_line(dock: Dock) -> None:
    Path("long.sdf").write_bytes(b"x" * 1_000_000)
    with pytest.raises(InputError, match=r"record 1 \(x{80}…\)") as caught:
        dock("-o", "poses.sdf", of="long.sdf")
    assert len(str(caught.value)) < 200


def test_dock__names_atom_types_without_a_map(dock: Dock, golden: Path) -> None:
    folder = golden / "dock" / "real_1stp"
    text = (folder / "ligand_turned.pdbqt").read_text()
    Path("a.pdbqt").write_text(text.replace("0.172 C ", "0.172 Br").replace("0.113 C ", "0.113 Zn"))
    Path("b.pdbqt").write_text(text)
    maps = str(folder / "1stp_protein.maps.fld")
    assert dock("-o", "poses.pdbqt", of="a.pdbqt b.pdbqt", pocket=maps) == SOME_SKIPPED
    (error,) = table("errors.tsv")
    assert error["reason"] == "no map of atom type Br, Zn: the pocket has A, C, OA, N, SA, HD"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--precision", "0"), "precision 0: the degrees must be above 0"),
        (("--precision", "nan"), "precision nan"),
        (("--precision", "-5"), "precision -5"),
        (("--precision", "1e-5"), r"\d+ poses; fewer than 2\^63 are possible: take larger steps"),
        (("--precision", "1", "--translations", "1e5,1"), r"fewer than 2\^63"),
        (("--rotations", "0"), "0 rotations: there must be at least one"),
        (("--rotations", "2147483648"), "rotations are at most 100,000,000: try --precision"),
        (("--rotations", "5", "--rotation-file", "x"), "not both"),
        (("--rotation-file", "x"), "x: cannot be read: there is no such file"),
        (("--top", "0"), "top 0: at least one pose"),
        (("--min-rmsd", "-1"), "min RMSD -1 Å"),
        (("--translations", "-1,1"), "translations -1,1: a radius and a step above 0"),
        (("--center", "0,nan,0"), "the center is no place"),
        (("--origin", "0,0,0", "--spacing", "0"), "the spacing along x is 0, not positive"),
        (("-o", "poses.txt"), r"poses\.txt: poses are written as"),
        (("-o", "nowhere/poses.sdf"), "there is no directory"),
        (("-o", "x" * 300), "cannot be written: file name too long"),
        (("-o", "poses.mol2"), "poses in MOL2 can be written of MOL2 only"),
        (("-o", "poses.sdf", "--scores", "poses.sdf"), "is named twice"),
        (("-o", "poses/", "--log-json", "poses"), "is named twice"),
        (("-o", "poses.sdf", "--trace", "poses.sdf"), "is named twice"),
    ],
)
def test_dock__refuses_what_makes_no_sense(
    dock: Dock, options: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        dock(*options)
    assert files() == []


@pytest.mark.parametrize("line", ["1 2 3", "a b c d", "0 0 0 0", "nan 0 0 1", "1e200 0 0 1"])
def test_dock__names_the_line_of_a_bad_quaternion(dock: Dock, line: str) -> None:
    Path("rotations.txt").write_text(f"1 0 0 0\n{line}\n")
    with pytest.raises(InputError, match=rf"rotations\.txt: line 2: '{line}' is no quaternion"):
        dock("-o", "poses.sdf", "--rotation-file", "rotations.txt")


def test_dock__does_not_write_into_a_directory_that_is_not_empty(dock: Dock) -> None:
    Path("poses").mkdir()
    Path("poses/mine").touch()
    with pytest.raises(UsageError, match="the directory is not empty"):
        dock("-o", "poses")
    assert files("poses") == ["mine"]


def test_dock__does_not_replace_a_file_that_is_no_table_of_errors(dock: Dock) -> None:
    Path("errors.tsv").write_text("mine")
    with pytest.raises(UsageError, match=r"errors\.tsv is in the way"):
        dock("-o", "poses.sdf")
    assert files() == ["errors.tsv"]


def test_dock__notes_a_center_outside_of_the_grid(
    dock: Dock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        dock("-o", "poses.sdf", "--center", "0,0,28.625")
    assert caplog.messages == ["multigpu: the center lies 20 Å outside of the grid"]


def test_dock__notes_ligands_outside_of_the_grid(
    dock: Dock, caplog: pytest.LogCaptureFixture
) -> None:
    Path("far.xyz").write_text("1\nnear\nC 0 0 0\n1\nfar\nC 18.625 0 0\n")
    with caplog.at_level(logging.WARNING):
        dock("-o", "poses.sdf", of="far.xyz")
    (message,) = caplog.messages
    assert "1 of 2 ligands have their centroid outside of the grid, up to 10 Å (far)" in message


@pytest.mark.parametrize(
    ("package", "options", "what"),
    [
        ("plotly", ("--report", "r.html"), "reports"),
        ("rdkit", ("-o", "poses.pdbqt"), "atom types of SDF files"),
    ],
)
def test_dock__names_the_extra_that_is_missing(
    dock: Dock, monkeypatch: pytest.MonkeyPatch, package: str, options: tuple[str, ...], what: str
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    problem = rf"{what} need the package {package}: pip install 'multigpu\[dock\]'"
    with pytest.raises(UsageError, match=problem):
        dock(*options)


@pytest.mark.parametrize("several", [1, COUNT + 1])
@pytest.mark.parametrize("layout", ["sdf", "pdbqt"])
@pytest.mark.parametrize("output", ["poses.sdf", "poses.pdbqt", "poses/"])
def test_dock__of_a_file_whose_name_is_no_text(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, layout: str, output: str,
    several: int,
) -> None:  # fmt: skip
    """Ligands without a name are called like their file."""
    for module in (dock_ligands, scores):
        monkeypatch.setattr(module, "are_several", lambda count: count >= several)
    made = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    name = os.fsdecode(b"caf\xe9." + layout.encode())
    Path(name).write_text("".join(made(0, each) for each in molecules(library / "ligands.sdf")))
    if layout == "sdf" and output == "poses.pdbqt":
        pytest.importorskip("rdkit")
    for table in ("scores.tsv", "scores.parquet"):
        assert dock("-o", output, "--scores", table, of=name) == 0
        shutil.rmtree(output) if output.endswith("/") else Path(output).unlink()
    read = pq.read_table("scores.parquet").to_pydict()
    assert read["ligand"][:2] == ["caf?", "caf?_2"]
    assert read["source"][0] == f"caf?.{layout}"


def test_program__tells_by_its_status_that_some_were_skipped(library: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.xyz").write_text("1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n")
    ran = subprocess.run(
        [sys.executable, "-m", "multigpu", "dock", str(tmp_path / "bad.xyz"), "--gpus", "none",
         "--pocket", str(library / "pocket.npz"), "-o", str(tmp_path / "poses.sdf")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (SOME_SKIPPED, "")
    assert ran.stderr == "multigpu: 1 of 2 ligands were skipped: see errors.tsv\n"


def test_program__reads_ligands_from_standard_input(library: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "multigpu", "dock", "-", "--gpus", "none", "--precision", "60",
         "--pocket", str(library / "pocket.npz")],
        input=(library / "ligands.sdf").read_bytes(), cwd=ROOT, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len(ENDS["sdf"](ran.stdout, True)) == COUNT

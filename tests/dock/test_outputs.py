"""Output of docking, through the command and from Python."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.docked import COUNT, Dock, files, molecules, names_in, table
from support.program import remarks

import multigpu
from multigpu import UsageError
from multigpu.formats.molecules.registry import FORMATS
from multigpu.workloads.dock import plan as dock_plan

pytestmark = pytest.mark.process  # runs whole jobs


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


def test_dock__reads_quaternions_from_w_to_z(dock: Dock) -> None:
    Path("rotation.txt").write_text("1 2 3 4\n")
    dock("-o", "poses.sdf", "--rotation-file", "rotation.txt")
    row = table("poses.scores.tsv")[0]
    found = [float(row[name]) for name in ("qw", "qx", "qy", "qz")]
    np.testing.assert_allclose(found, np.array([1, 2, 3, 4]) / 30**0.5, atol=1e-9)


def test_dock__takes_a_number_of_even_rotations(
    dock: Dock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dock("-o", "poses.sdf", "--rotations", "500") == 0
    rows = table("poses.scores.tsv")
    assert all(0 <= int(row["rotation"]) < 500 for row in rows)
    assert len({row["rotation"] for row in rows}) > COUNT / 2
    (said,) = remarks(capsys.readouterr().err).splitlines()
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
    first = text[: FORMATS["sdf"].find_ends(text, True)[0]]
    records = [first.replace(b"lig0", name, 1) for name in names]
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


def test_summary__says_what_was_done(dock: Dock) -> None:
    dock("-o", "poses.sdf", "--summary", "summary.json", "--top", "2")
    facts = json.loads(Path("summary.json").read_text())
    assert facts["ligands"] == COUNT
    assert facts["rotations"] == 12**3
    assert facts["poses_tried"] == 12**3 / 2
    assert facts["shifts"] == 1
    assert facts["poses"] == len(table("poses.scores.tsv"))
    assert facts["skipped"] == 0
    assert facts["pocket"]["points"] == [24, 24, 24]
    assert facts["output"]["bytes"] == Path("poses.sdf").stat().st_size


def test_summary__counts_the_shifts(dock: Dock) -> None:
    more = ("--translations", "1,0.5", "--rotations", "2")
    dock("-o", "poses.sdf", "--summary", "summary.json", *more)
    facts = json.loads(Path("summary.json").read_text())
    assert (facts["shifts"], facts["rotations"], facts["poses_tried"]) == (125, 2, 250)


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outside", "zero"),
        ("outside", "penalty"),
        ("interpolation", "nearest"),
        ("center", (8.0, 8.0, 8.0)),
        ("translations", (1.0, 0.5)),
        ("top", 3),
        ("rotations", 40),
        ("rotation_file", Path("rotations.txt")),
    ],
)
def test_api__heeds_every_option_as_the_command_does(
    dock: Dock, library: Path, name: str, value: Any
) -> None:
    Path("rotations.txt").write_text("1 2 3 4\n0 1 0 2\n")
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    at = () if name == "center" else ("--center", "7,7,7")  # some atoms are outside
    dock("-o", "poses.sdf", "--scores", "s.parquet", f"--{name.replace('_', '-')}", text, *at)
    files = str(library / "ligands.sdf"), library / "pocket.npz"
    usual: dict[str, Any] = {"precision": 30, "gpus": "none", "center": [7, 7, 7]}
    given = {**usual, name: value}
    if name.startswith("rotation"):
        del given["precision"]
    found = multigpu.dock(*files, **given).to_table()
    assert found.equals(pq.read_table("s.parquet"))
    assert not found.equals(multigpu.dock(*files, **usual).to_table())


@pytest.mark.parametrize("apart", [0.5, 2.5])
def test_api__keeps_poses_apart_as_the_command_does(
    dock: Dock, library: Path, apart: float
) -> None:
    options = ("--top", "3", "--min-rmsd", str(apart))
    dock("-o", "poses.sdf", "--scores", "s.parquet", *options)
    files = str(library / "ligands.sdf"), library / "pocket.npz"
    found = multigpu.dock(*files, precision=30, gpus="none", top=3, min_rmsd=apart).to_table()
    assert found.equals(pq.read_table("s.parquet"))


def test_api__gives_the_poses_once(library: Path, tmp_path: Path) -> None:
    (tmp_path / "some.xyz").write_text("1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n")
    result = multigpu.dock(tmp_path / "some.xyz", library / "pocket.npz", precision=60, gpus="none")
    assert result.to_table().num_rows == 1
    with pytest.raises(UsageError, match="the poses were read already, which works once"):
        result.to_table()
    assert [each.ligand for each in result.skipped] == ["bad"]


def test_api__makes_a_pandas_frame(library: Path) -> None:
    pytest.importorskip("pandas")
    files = str(library / "ligands.sdf"), str(library / "pocket.npz")
    frame = multigpu.dock(*files, precision=60, gpus="none").to_pandas()
    assert frame["score"].is_monotonic_increasing is False
    assert frame["ligand"].tolist() == [f"lig{i}" for i in range(COUNT)]


def test_api__resumes_an_interrupted_job(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job may be stopped between the spans of a ligand's poses."""
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


@pytest.mark.parametrize("stop", range(1, 12))
def test_api__resumes_after_any_chunk(library: Path, tmp_path: Path, stop: int) -> None:
    """A source that is cut off is reported once."""
    text = (library / "ligands.sdf").read_bytes()
    for name, content in {
        "a.sdf": text, "b.sdf": b"", "c.sdf.gz": gzip.compress(text)[:-9], "d.sdf": text,
        "e.sdf.gz": gzip.compress(text), "f.txt": b"no ligands", "g.sdf": text,
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(content)
    files = [str(tmp_path / f"{letter}.*") for letter in "abcdefg"], str(library / "pocket.npz")
    options: dict[str, Any] = {"precision": 60, "gpus": "none", "max_chunk_bytes": 7000}
    first = multigpu.dock(*files, **options)
    whole, skipped = first.to_table(), first.skipped
    assert len({each.path for each in skipped}) == 3
    journal = tmp_path / "journal"
    stopped: Any = iter(multigpu.dock(*files, **options, journal=journal))
    for _ in range(stop):
        next(stopped)
    stopped.close()
    again = multigpu.dock(*files, **options, journal=journal, resume=True)
    assert again.to_table().equals(whole)
    assert again.skipped == skipped

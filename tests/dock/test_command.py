"""The command: its outputs, what it skips and refuses, and the messages."""

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.docked import COUNT, SOME_SKIPPED, Dock, files, molecules, pdbqt, sdf, table
from support.program import program, remarks

from multigpu import InputError, UsageError
from multigpu.formats.molecules.registry import FORMATS

pytestmark = pytest.mark.process  # runs whole jobs
BAD = "1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n"
LIGAND = "1\nmine\nC 0 0 0\n"
REPLACED = r"^ligands\.xyz is named twice: a run would replace it; give another output$"


def test_dock__writes_poses_and_scores_in_order(dock: Dock, capfdbinary: Any) -> None:
    assert dock("-o", "poses.sdf") == 0
    assert [each.name for each in molecules(Path("poses.sdf"))] == [f"lig{i}" for i in range(COUNT)]
    rows = table("poses.scores.tsv")
    assert [row["ligand"] for row in rows] == [f"lig{i}" for i in range(COUNT)]
    capfdbinary.readouterr()
    assert dock() == 0
    assert capfdbinary.readouterr().out == Path("poses.sdf").read_bytes()
    assert files() == ["poses.scores.tsv", "poses.sdf"]
    dock("-o", "poses.sdf", "--scores", "scores.parquet")
    found = pq.read_table("scores.parquet").to_pylist()
    assert list(found[0]) == list(rows[0])
    for row, wanted in zip(found, rows, strict=True):
        assert (repr(row["score"]), row["ligand"]) == (wanted["score"], wanted["ligand"])


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
    for row, after, pose, next_pose in zip(rows, rows[1:], poses, poses[1:], strict=False):
        assert after["pose"] in ("1", str(int(row["pose"]) + 1))
        if after["pose"] != "1":
            assert float(row["score"]) >= float(after["score"])
            squared = ((pose.positions - next_pose.positions) ** 2).sum(axis=1).mean()
            assert squared**0.5 > 1.5 - 1e-3
    assert len(rows) > 2 * COUNT


def test_dock__takes_rotations_of_two_kinds(dock: Dock, capsys: pytest.CaptureFixture[str]) -> None:
    """Quaternions are w x y z."""
    Path("rotations.txt").write_text("# w x y z\n1 0 0 0\n0,1,0,0\n\n 0.5 0.5 0.5 0.5\n")
    assert dock("-o", "poses.sdf", "--rotation-file", "rotations.txt") == 0
    rows = table("poses.scores.tsv")
    assert {row["rotation"] for row in rows} <= {"0", "1", "2"}
    assert {row["alpha"] for row in rows} == {""}
    Path("rotation.txt").write_text("1 2 3 4\n")
    dock("-o", "poses.sdf", "--rotation-file", "rotation.txt")
    row = table("poses.scores.tsv")[0]
    found = [float(row[name]) for name in ("qw", "qx", "qy", "qz")]
    np.testing.assert_allclose(found, np.array([1, 2, 3, 4]) / 30**0.5, atol=1e-9)
    capsys.readouterr()  # a number of even ones
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
    assert dock("-o", "poses.sdf", "--rotations", "1") == 0
    assert "multigpu: 1 rotation; any other is within" in capsys.readouterr().err


@pytest.mark.parametrize(("layout", "more"), [("pdbqt", ""), ("sdf", ".gz"), ("sdf", ".zst")])
def test_dock__reads_what_it_writes(dock: Dock, library: Path, layout: str, more: str) -> None:
    made = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    some = molecules(library / "ligands.sdf")
    Path(f"some.{layout}").write_text("".join(made(i, each) for i, each in enumerate(some)))
    assert dock("-o", f"poses.{layout}{more}", of=f"some.{layout}") == 0
    if layout == "pdbqt":
        models = re.findall(r"^MODEL +(\d+)$", Path("poses.pdbqt").read_text(), re.MULTILINE)
        assert models == [str(i + 1) for i in range(COUNT)]
    assert dock("-o", f"again.{layout}", of=f"poses.{layout}{more}") == 0
    for first, second in zip(table("poses.scores.tsv"), table("again.scores.tsv"), strict=True):
        assert second["ligand"] == first["ligand"]


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
    dock("-o", "p.sdf", "--summary", "s.json", "--translations", "1,0.5", "--rotations", "2")
    facts = json.loads(Path("s.json").read_text())
    assert (facts["shifts"], facts["rotations"], facts["poses_tried"]) == (125, 2, 250)


def test_dock__lists_skipped(dock: Dock, library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (library / "ligands.sdf").read_bytes()
    ends = FORMATS["sdf"].find_ends(text, True)
    broken = text[ends[0] : ends[0] + 150] + b"\n$$$$\n"
    Path("some.sdf").write_bytes(text[: ends[0]] + broken + text[ends[1] :])
    Path("empty.sdf").write_bytes(b"")
    assert dock("-o", "poses.sdf", of="some.sdf empty.sdf") == SOME_SKIPPED
    names = [each.name for each in molecules(Path("poses.sdf"))]
    assert names == [f"lig{i}" for i in range(COUNT) if i != 1]
    errors = table("poses.errors.tsv")
    assert [(r["file"], r["record"]) for r in errors] == [("some.sdf", "2"), ("empty.sdf", "1")]
    assert [row["ligand"] for row in errors] == ["lig1", "empty"]
    assert errors[1]["reason"] == "is empty"
    said = "multigpu: 2 of 31 ligands were skipped: see poses.errors.tsv\n"
    assert remarks(capsys.readouterr().err) == said
    assert dock("-o", "poses.sdf") == 0
    assert table("poses.errors.tsv") == []
    # Names that move a cursor or have no end.
    names = ("bad\x1b[2J", "good", 5000 * "x")
    Path("some.xyz").write_text("".join(f"1\n{name}\nC 0 0 0\n" for name in names))
    assert dock("-o", "poses.sdf", of="some.xyz") == SOME_SKIPPED
    assert [each.name for each in molecules(Path("poses.sdf"))] == ["good"]
    first, second = table("poses.errors.tsv")
    assert first["ligand"] == r"bad\x1b[2J"
    assert first["reason"].startswith(r"the name has the control character '\x1b'")
    assert second["reason"].startswith("the name has more than 4,096 bytes")


def test_dock__lists_what_is_skipped_beside_the_poses_of_each_run(dock: Dock) -> None:
    Path("bad.xyz").write_text(BAD)
    Path("worse.xyz").write_text(BAD.replace("bad", "worse"))
    Path("good.xyz").write_text(BAD[:15])
    for name, status in (("bad", SOME_SKIPPED), ("worse", SOME_SKIPPED), ("good", 0)):
        assert dock("-o", f"{name}.sdf.gz", of=f"{name}.xyz") == status
    for name in ("bad", "worse"):
        assert [row["ligand"] for row in table(f"{name}.errors.tsv")] == [name]
    assert not Path("good.errors.tsv").exists()


@pytest.mark.parametrize(("given", "of", "options", "problem"), [
    ({"bad.xyz": BAD}, "bad.xyz", "-o poses.sdf --on-error stop",
     r"bad\.xyz: record 2 \(bad\): line 3: the coordinates"),
    ({"bad.xyz": BAD[15:]}, "bad.xyz", "-o poses.sdf",
     r"bad\.xyz: record 1 \(bad\): line 3: .* \(none of 1 ligands could be docked\)"),
    ({"a.xyz": LIGAND}, "a.xyz none.sdf", "-o poses.sdf",
     r"none\.sdf: cannot be read: there is no such file"),
    ({}, "-", "-o poses.sdf --rotation-file -", "^-: standard input can be given only once$"),
    *(({"r.txt": f"1 0 0 0\n{line}\n"}, "", "-o poses.sdf --rotation-file r.txt",
       rf"r\.txt: line 2: '{line}' is no quaternion")
      for line in ("1 2 3", "a b c d", "0 0 0 0", "nan 0 0 1", "1e200 0 0 1")),
    ({"poses/mine": ""}, "", "-o poses", r"poses: poses are written as .*, all in one$"),
    ({"poses.sdf/": ""}, "", "-o poses.sdf/", "poses.sdf/: .*: it is a directory"),
    ({"poses.errors.tsv": "mine"}, "", "-o poses.sdf",
     r"poses\.errors\.tsv exists and is no table of skipped"),
    *(({"ligands.xyz": LIGAND}, "lig*.xyz", f"{options} ligands.xyz", REPLACED)
      for options in ("-o", "-o poses.xyz --scores", "-o poses.xyz --summary")),
])  # fmt: skip
def test_dock__refuses_and_leaves_all_files_as_they_are(
    dock: Dock, given: dict[str, str], of: str, options: str, problem: str
) -> None:
    for name, text in given.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).mkdir() if name.endswith("/") else Path(name).write_text(text)
    with pytest.raises(UsageError, match=problem):
        dock(*options.split(), **({"of": of} if of else {}))
    left = {str(path): path.read_text() for path in Path().rglob("*") if path.is_file()}
    assert left == {name: text for name, text in given.items() if not name.endswith("/")}


def test_dock__shortens_a_very_long_name_in_its_message(dock: Dock) -> None:
    Path("long.sdf").write_bytes(b"x" * 1_000_000)
    with pytest.raises(InputError, match=r"record 1 \(x{80}…\)") as caught:
        dock("-o", "poses.sdf", of="long.sdf")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("layout", "output"),
    [("sdf", "poses.sdf"), ("pdbqt", "poses.sdf"), ("pdbqt", "poses.pdbqt")],
)
def test_dock__of_names_without_text(dock: Dock, library: Path, layout: str, output: str) -> None:
    """Ligands without a name are called like their file."""
    made = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    name = os.fsdecode(b"caf\xe9." + layout.encode())
    Path(name).write_text("".join(made(0, each) for each in molecules(library / "ligands.sdf")))
    for scored in ("scores.tsv", "scores.parquet"):
        assert dock("-o", output, "--scores", scored, of=name) == 0
    read = pq.read_table("scores.parquet").to_pydict()
    assert read["ligand"][:2] == ["caf?", "caf?_2"]
    assert read["source"][0] == f"caf?.{layout}"


def test_program__reads_standard_input_and_has_a_status(library: Path, tmp_path: Path) -> None:
    given = (library / "ligands.sdf").read_bytes() + b"bad\n\n\nno molecule\n$$$$\n"
    command = ("dock", "-", "--gpus", "none", "--precision", "60", "--pocket")
    ran = program(*command, str(library / "pocket.npz"), stdin=given, cwd=tmp_path)
    assert ran.status == SOME_SKIPPED
    assert ran.err == "multigpu: 1 of 31 ligands was skipped: see errors.tsv\n"
    assert " of 30 ligands have no hydrogens" in ran.all_err
    assert len(FORMATS["sdf"].find_ends(ran.out.encode(), True)) == COUNT


def test_output__among_the_ligands_is_refused(dock: Dock, library: Path) -> None:
    Path("in").mkdir()
    Path("in/a.sdf").write_bytes((library / "ligands.sdf").read_bytes())
    with pytest.raises(UsageError, match=r"in/poses.sdf: the next run would read it as one of in:"):
        dock("-o", "in/poses.sdf", of="in")

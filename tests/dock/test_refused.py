"""Ligands and options that docking skips or refuses, and the messages."""

import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.docked import (
    COUNT,
    SOME_SKIPPED,
    Dock,
    files,
    molecules,
    names_in,
    pdbqt,
    read_one_by_one,
    sdf,
    table,
)
from support.program import ROOT, remarks

import multigpu
from multigpu import InputError, UsageError
from multigpu.formats.molecules.registry import FORMATS
from multigpu.kernels.rotation import types
from multigpu.workloads.dock.options import FARTHEST

SEVERAL = "give one of precision, rotations and rotation_file, not several"


def test_dock__skips_what_cannot_be_docked_and_says_so(
    dock: Dock, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (library / "ligands.sdf").read_bytes()
    ends = FORMATS["sdf"].find_ends(text, True)
    broken = text[ends[0] : ends[0] + 150] + b"\n$$$$\n"
    Path("some.sdf").write_bytes(text[: ends[0]] + broken + text[ends[1] :])
    Path("empty.sdf").write_bytes(b"")
    assert dock("-o", "poses.sdf", of="some.sdf empty.sdf") == SOME_SKIPPED
    assert names_in("poses.sdf") == ["lig0", *(f"lig{i}" for i in range(2, COUNT))]
    errors = table("poses.errors.tsv")
    assert [(row["file"], row["record"]) for row in errors] == [
        ("some.sdf", "2"),
        ("empty.sdf", "1"),
    ]
    assert [row["ligand"] for row in errors] == ["lig1", "empty"]
    assert errors[1]["reason"] == "is empty"
    said = "multigpu: 2 of 31 ligands were skipped: see poses.errors.tsv\n"
    assert remarks(capsys.readouterr().err) == said
    assert dock("-o", "poses.sdf") == 0
    assert table("poses.errors.tsv") == []


def test_dock__leaves_what_other_runs_in_its_folder_have_skipped(dock: Dock) -> None:
    for name, good in (("a", "1\nof a\nC 0 0 0\n"), ("b", "1\nof b\nC 0 0 0\n")):
        Path(f"{name}.xyz").write_text(f"{good}1\nbad {name}\nC 0 nan 0\n")
        assert dock("-o", f"{name}.sdf.gz", of=f"{name}.xyz") == SOME_SKIPPED
    Path("c.xyz").write_text("1\ngood\nC 0 0 0\n")
    assert dock("-o", "c.sdf", of="c.xyz") == 0
    assert [row["ligand"] for row in table("a.errors.tsv")] == ["bad a"]
    assert [row["ligand"] for row in table("b.errors.tsv")] == ["bad b"]
    assert not Path("c.errors.tsv").exists()


def test_dock__skips_ligands_whose_names_move_a_cursor_or_have_no_end(dock: Dock) -> None:
    names = ("bad\x1b[2J", "good", 5000 * "x")
    Path("some.xyz").write_text("".join(f"1\n{name}\nC 0 0 0\n" for name in names))
    assert dock("-o", "poses.sdf", of="some.xyz") == SOME_SKIPPED
    assert names_in("poses.sdf") == ["good"]
    first, second = table("poses.errors.tsv")
    assert first["ligand"] == r"bad\x1b[2J"
    assert first["reason"].startswith(r"the name has the control character '\x1b'")
    assert second["reason"].startswith("the name has more than 4,096 bytes")


def test_dock__lists_what_is_skipped_in_a_directory_of_poses(dock: Dock) -> None:
    Path("some.xyz").write_text("1\ngood\nC 0 0 0\n1\nbad\nC 0 nan 0\n")
    assert dock("-o", "poses/", of="some.xyz") == SOME_SKIPPED
    assert files("poses") == ["errors.tsv", "good.xyz", "scores.tsv"]


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


def test_dock__shortens_a_very_long_name_in_its_message(dock: Dock) -> None:
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
    (error,) = table("poses.errors.tsv")
    assert error["reason"] == "no map of atom type Br, Zn: the pocket has A, C, OA, N, SA, HD"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--precision", "0"), "precision is 0°; it must be above 0"),
        (("--precision", "nan"), "precision is nan"),
        (("--precision", "-5"), "precision is -5°"),
        (("--precision", "1e-5"), r"\d+ poses; fewer than 2\^63 are possible: take larger steps"),
        (("--precision", "1", "--translations", "1e5,1"), r"fewer than 2\^63"),
        (("--rotations", "0"), "rotations is 0; it must be 1 to 100,000,000"),
        (("--rotations", "2147483648"), r"it must be 1 to 100,000,000 \(use precision for more\)"),
        (("--rotations", "5", "--rotation-file", "x"), SEVERAL),
        (("--rotations", "5", "--precision", "10"), SEVERAL),
        (("--rotation-file", "x", "--precision", "10"), SEVERAL),
        (("--rotation-file", "x"), "x: cannot be read: there is no such file"),
        (("--top", "0"), "top is 0; it must be 1 or more"),
        (("--min-rmsd", "-1"), "min_rmsd is -1 Å; it must be 0 or more"),
        (
            ("--translations", "-1,1"),
            "translations -1,1: the radius must be 0 or more, the step above 0",
        ),
        (
            ("--translations", "0.5,2"),
            "translations 0.5,2: the radius, which comes first, is less than one step",
        ),
        (("--center", "0,nan,0"), "coordinates of the center must lie within"),
        (("--center", "0,1.1e5,0"), "coordinates of the center must lie within ±100000 Å"),
        (("--origin", "0,0,0", "--spacing", "0"), "the spacing along x is 0, not positive"),
        (("-o", "poses.txt"), r"poses\.txt: poses are written as"),
        (("-o", "nowhere/poses.sdf"), "there is no directory"),
        (("-o", "x" * 300 + ".sdf"), "cannot be written: file name too long"),
        (("-o", "poses.mol2"), "poses in MOL2 can be written of MOL2 only"),
        (("-o", "poses.sdf", "--scores", "poses.sdf"), "is named twice"),
        (("-o", "poses/", "--log-json", "poses"), "is named twice"),
        (("-o", "poses.sdf", "--summary", "poses.scores.tsv"), "is named twice"),
        (("-o", "poses.sdf.gz", "--log-json", "poses.scores.tsv"), "is named twice"),
        (("-o", "poses.sdf", "--report", "poses.errors.tsv"), "is named twice"),
        (("--scores", "-"), "poses and scores would both go to standard output"),
        (("-o", "-", "--scores", "-"), "poses and scores would both go to standard output"),
        (("-o", "poses.sdf", "--trace", "poses.sdf"), "is named twice"),
        (("--scores", "s.parquet.gz"), r"s\.parquet\.gz: Parquet files are compressed inside"),
        (("--scores", "s.PQ.zst"), r"s\.PQ\.zst: Parquet files are compressed inside"),
    ],
)
def test_dock__refuses_what_makes_no_sense(
    dock: Dock, options: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        dock(*options)
    assert files() == []


@pytest.mark.parametrize("option", ["-o", "--scores", "--summary"])
def test_dock__does_not_replace_ligands_that_a_pattern_names(
    dock: Dock, library: Path, option: str
) -> None:
    text = (library / "ligands.sdf").read_bytes()
    Path("ligands.sdf").write_bytes(text)
    output = () if option == "-o" else ("-o", "poses.xyz")
    with pytest.raises(
        UsageError,
        match=r"^ligands\.sdf is named twice: a run would replace it; give another output$",
    ):
        dock(*output, option, "ligands.sdf", of="lig*.sdf")
    assert Path("ligands.sdf").read_bytes() == text


@pytest.mark.parametrize("option", ["--scores", "--log-json"])
def test_dock__refuses_what_would_be_in_a_directory_before_its_poses(
    dock: Dock, option: str
) -> None:
    Path("poses").mkdir()
    for path in ("poses/", "poses"):
        with pytest.raises(
            UsageError,
            match=r"^poses/some\.tsv lies inside the output directory poses/?: choose",
        ):
            dock("-o", path, option, "poses/some.tsv")
    assert [*Path("poses").iterdir()] == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ligands": []}, "no ligands given"),
        ({"ligands": ["x.sdf", None]}, "ligands is None; it must be a path"),
        ({"pocket": 3}, "pocket is 3; it must be a path"),
        ({"center": (1, 2)}, r"center is \(1, 2\); it must be 3 numbers"),
        ({"center": "abc"}, "center is 'abc'; it must be 3 numbers"),
        ({"translations": 1}, "translations is 1; it must be 2 numbers"),
        ({"precision": "a"}, "precision is 'a'; it must be a number"),
        ({"precision": 10**400}, "precision is 10+…; it must be a number"),
        ({"top": 1.5}, r"top is 1\.5; it must be a whole number"),
        ({"top": True}, "top is True; it must be a whole number"),
        ({"rotations": 2.5}, r"rotations is 2\.5; it must be a whole number"),
        ({"min_rmsd": None}, "min_rmsd is None; it must be a number"),
        ({"rotation_file": 7}, "rotation_file is 7; it must be a path"),
        ({"journal": 7}, "journal is 7; it must be a path"),
        ({"outside": "far"}, "outside is 'far'; it must be clamp or zero or penalty"),
        ({"precision": 10, "rotations": 5}, SEVERAL),
        ({"precision": 10, "rotation_file": "x"}, SEVERAL),
        ({"spacing": [1, [2]]}, r"spacing is \[1, \[2\]\]; it must be a number"),
    ],
)
def test_api__refuses_what_is_of_another_kind(
    library: Path, change: dict[str, Any], problem: str
) -> None:
    given: dict[str, Any] = {"ligands": str(library / "ligands.sdf"), "gpus": "none"}
    given |= {"pocket": library / "pocket.npz", **change}
    with pytest.raises(UsageError, match=f"^{problem}$"):
        multigpu.dock(given.pop("ligands"), given.pop("pocket"), **given)


def test_options__know_how_far_away_coordinates_may_be() -> None:
    assert FARTHEST == types.FARTHEST


def test_dock__reads_standard_input_for_one_thing(dock: Dock) -> None:
    with pytest.raises(InputError, match=r"^-: standard input can be given only once$"):
        dock("-o", "poses.sdf", "--rotation-file", "-", of="-")


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


def test_dock__does_not_resume_into_a_directory_of_ligands(dock: Dock, library: Path) -> None:
    """That would be said at the end of the run only, with the advice to empty the directory."""
    Path("mine").mkdir()
    Path("mine/a.sdf").write_bytes((library / "ligands.sdf").read_bytes())
    with pytest.raises(UsageError, match="the directory is not empty"):
        dock("-o", "mine/", "--resume")
    assert files("mine") == ["a.sdf"]


def test_dock__does_not_replace_a_file_that_is_no_table_of_errors(dock: Dock) -> None:
    Path("poses.errors.tsv").write_text("mine")
    with pytest.raises(UsageError, match=r"poses\.errors\.tsv exists and is no table of skipped"):
        dock("-o", "poses.sdf")
    assert files() == ["poses.errors.tsv"]


def test_dock__notes_a_center_outside_of_the_grid(
    dock: Dock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        dock("-o", "poses.sdf", "--center", "0,0,28.625")
    assert caplog.messages[0] == "multigpu: the center lies 20 Å outside of the grid"
    assert caplog.messages[-1].startswith(f"multigpu: the best poses of {COUNT} of {COUNT} ligands")


def test_dock__notes_ligands_outside_of_the_grid(
    dock: Dock, caplog: pytest.LogCaptureFixture
) -> None:
    Path("far.xyz").write_text("1\nnear\nC 0 0 0\n1\nfar\nC 18.625 0 0\n")
    with caplog.at_level(logging.WARNING):
        dock("-o", "poses.sdf", of="far.xyz")
    beside, reaching = caplog.messages[-2:]
    assert "--center 0,0,0 puts all in its middle" in beside
    assert "1 of 2 ligands has its centroid outside of the grid, up to 10 Å (far)" in beside
    assert (
        "the best poses of 1 of 2 ligands have atoms outside of the grid, up to 1 (far)" in reaching
    )


def test_dock__says_before_the_run_that_rdkit_cannot_draw(
    dock: Dock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers without libXrender."""
    monkeypatch.delitem(sys.modules, "multigpu.workloads.dock.report", raising=False)
    drawing = pytest.importorskip("rdkit.Chem.Draw", exc_type=ImportError)
    monkeypatch.setitem(sys.modules, "rdkit.Chem.Draw.rdMolDraw2D", None)
    monkeypatch.delattr(drawing, "rdMolDraw2D", raising=False)
    with pytest.raises(UsageError, match=r"^report: RDKit cannot draw: .*libxrender1"):
        dock("--report", "r.html")


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("layout", ["sdf", "pdbqt"])
@pytest.mark.parametrize("output", ["poses.sdf", "poses.pdbqt", "poses/"])
def test_dock__of_a_file_whose_name_is_no_text(
    dock: Dock, library: Path, monkeypatch: pytest.MonkeyPatch, layout: str, output: str,
    alone: bool,
) -> None:  # fmt: skip
    """Ligands without a name are called like their file."""
    if alone:
        read_one_by_one(monkeypatch)
    made = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    name = os.fsdecode(b"caf\xe9." + layout.encode())
    Path(name).write_text("".join(made(0, each) for each in molecules(library / "ligands.sdf")))
    if layout == "sdf" and output == "poses.pdbqt":
        pytest.importorskip("rdkit")
    for scored in ("scores.tsv", "scores.parquet"):
        assert dock("-o", output, "--scores", scored, of=name) == 0
        shutil.rmtree(output) if output.endswith("/") else Path(output).unlink()
    read = pq.read_table("scores.parquet").to_pydict()
    assert read["ligand"][:2] == ["caf?", "caf?_2"]
    assert read["source"][0] == f"caf?.{layout}"


def test_program__shows_by_its_status_that_some_were_skipped(library: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.xyz").write_text("1\ngood\nO 0 0 0\n1\nbad\nC 0 nan 0\n")
    ran = subprocess.run(
        [sys.executable, "-m", "multigpu", "dock", str(tmp_path / "bad.xyz"), "--gpus", "none",
         "--pocket", str(library / "pocket.npz"), "-o", str(tmp_path / "poses.sdf")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (SOME_SKIPPED, "")
    where = tmp_path / "poses.errors.tsv"
    assert remarks(ran.stderr) == f"multigpu: 1 of 2 ligands was skipped: see {where}\n"


def test_program__reads_ligands_from_standard_input(library: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "multigpu", "dock", "-", "--gpus", "none", "--precision", "60",
         "--pocket", str(library / "pocket.npz")],
        input=(library / "ligands.sdf").read_bytes(), cwd=ROOT, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (ran.returncode, remarks(ran.stderr)) == (0, "")
    assert b" of 30 ligands have no hydrogens" in ran.stderr
    assert len(FORMATS["sdf"].find_ends(ran.stdout, True)) == COUNT


@pytest.mark.parametrize("few", [False, True], ids=["many", "few"])
@pytest.mark.parametrize("layout", ["sdf", "pdbqt"])
def test_dock__refuses_a_ligand_that_lies_far_out(
    dock: Dock, library: Path, layout: str, few: bool
) -> None:
    """The others are docked, whether they are read at once or one by one."""
    some = molecules(library / "ligands.sdf")[: 3 if few else COUNT]
    made = {"sdf": sdf, "pdbqt": pdbqt}[layout]
    texts = [made(i, each) for i, each in enumerate(some)]
    lines = texts[1].splitlines(keepends=True)
    row = 4 if layout == "sdf" else next(i for i, x in enumerate(lines) if x.startswith("HETATM"))
    begin, wide = (0, "100000.01") if layout == "sdf" else (30, "100000.1")
    lines[row] = lines[row][:begin] + wide + lines[row][begin + len(wide) :]
    texts[1] = "".join(lines)
    Path(f"some.{layout}").write_text("".join(texts))
    assert dock("-o", f"poses.{layout}", of=f"some.{layout}") == SOME_SKIPPED
    (error,) = table("poses.errors.tsv")
    assert error["record"] == "2"
    assert "the coordinates are beyond ±100000 Å" in error["reason"]
    assert len(table("poses.scores.tsv")) == len(some) - 1


@pytest.mark.parametrize("count", [2, 40])
def test_dock__takes_files_of_pdbqt_that_were_joined(dock: Dock, library: Path, count: int) -> None:
    some = (molecules(library / "ligands.sdf") * 2)[:count]
    texts = [re.sub(r"MODEL \d+\n|ENDMDL\n", "", pdbqt(i, each)) for i, each in enumerate(some)]
    Path("some.pdbqt").write_text("".join(texts))
    assert dock("-o", "poses.pdbqt", of="some.pdbqt") == 0
    rows = table("poses.scores.tsv")
    assert [int(row["atoms"]) for row in rows] == [len(each.rows) for each in some]
    named = [each.name if i % 3 else f"some_{i + 1}" for i, each in enumerate(some)]
    assert [row["ligand"] for row in rows] == ["some", *named[1:]]

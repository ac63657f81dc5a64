"""Options of docking that mean nothing, on the command line and in Python."""

from pathlib import Path
from typing import Any

import click
import pytest
from support.docked import Dock, files

import multigpu
from multigpu import UsageError
from multigpu.kernels.rotation import types
from multigpu.workloads.dock.options import FARTHEST

SEVERAL = "give one of precision, rotations and rotation_file, not several"


@pytest.mark.parametrize(("options", "problem"), [
    (("--precision", "0"), "precision is 0°; it must be above 0"),
    *((("--precision", each), r"at most 180 .rotation_file of a line 1 0 0 0")
      for each in ("400", "181")),
    (("--precision", "1e-5"), r"\d+ poses; fewer than 2\^63 are possible: take larger steps"),
    (("--precision", "1", "--translations", "1e5,1"), r"fewer than 2\^63"),
    (("--rotations", "2147483648"), r"it must be 1 to 100,000,000 \(use precision for more\)"),
    (("--rotations", "5", "--rotation-file", "x"), SEVERAL),
    (("--rotation-file", "x"), "x: cannot be read: there is no such file"),
    (("--translations", "-1,1"), "translations -1,1: the radius must be 0 or more, the step above"),
    (("--translations", "0.5,2"), "translations 0.5,2: the radius, which comes first, is less"),
    (("--center", "0,1.1e5,0"), "coordinates of the center must lie within ±100000 Å"),
    (("--origin", "0,0,0", "--spacing", "0"), "spacing is 0 Å; it must be positive"),
    (("-o", "poses.txt"), r"poses\.txt: poses are written as"),
    (("-o", "nowhere/poses.sdf"), "there is no directory"),
    (("-o", "x" * 300 + ".sdf"), "cannot be written: file name too long"),
    (("-o", "poses.mol2"), "poses in MOL2 can be written of MOL2 only"),
    (("-o", "poses/"), "poses/: poses are written as"),
    (("-o", "poses.sdf.gz", "--log-json", "poses.scores.tsv"), "is named twice"),
    (("-o", "poses.sdf", "--report", "poses.errors.tsv"), "is named twice"),
    (("--scores", "-"), "poses and scores would both go to standard output"),
    (("--scores", "s.parquet.gz"), r"s\.parquet\.gz: Parquet files are compressed inside"),
    (("--scores", "s.csv.gz"), r"s\.csv\.gz: tables of scores are \.tsv or \.parquet"),
    (("--padding", "5"), "padding has no effect without autobox"),
    (("--rotations", "5", "--box", "0,0,0", "9,9,300"), "box reaches more than 100 Å beyond"),
])  # fmt: skip
def test_dock__refuses_what_is_absurd(dock: Dock, options: tuple[str, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        dock(*options)
    assert files() == []


def test_reference__is_refused_where_no_table_has_its_rmsds(dock: Dock, library: Path) -> None:
    with pytest.raises(UsageError, match="reference is for a whole box of energies"):
        dock("--reference", str(library / "ligands.sdf"))


@pytest.mark.parametrize(("change", "problem"), [
    ({"ligands": ["x.sdf", None]}, "ligands is None; it must be a path"),
    ({"pocket": 3}, r"pocket is 3; it must be a path, to which multigpu\.write_pocket .*"),
    ({"center": (1, 2)}, r"center is \(1, 2\); it must be 3 numbers"),
    ({"translations": 1}, "translations is 1; it must be 2 numbers"),
    ({"precision": 10**400}, "precision is 10+…; it must be a number"),
    ({"top": 1.5}, r"top is 1\.5; it must be a whole number"),
    ({"outside": "far"}, "outside is 'far'; it must be clamp or zero or penalty"),
])  # fmt: skip
def test_api__refuses_other_kinds(library: Path, change: dict[str, Any], problem: str) -> None:
    given: dict[str, Any] = {"ligands": str(library / "ligands.sdf"), "gpus": "none"}
    given |= {"pocket": library / "pocket.npz", **change}
    with pytest.raises(UsageError, match=f"^{problem}$"):
        multigpu.dock(given.pop("ligands"), given.pop("pocket"), **given)


def test_options__know_how_far_away_coordinates_may_be() -> None:
    assert FARTHEST == types.FARTHEST


@pytest.mark.parametrize("center", ["15", "1,2", "a,b,c"])
def test_dock__shows_how_a_center_is_written(dock: Dock, center: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        dock("--center", center, "53", "16")
    wanted = f"expected X,Y,Z, e.g. --center 15.2,53.9,16.9; got '{center}'"
    assert caught.value.message == wanted

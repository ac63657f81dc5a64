"""Poses of PDBQT, in maps of AutoGrid."""

from pathlib import Path

import numpy as np
import pytest
from support.docked import SOME_SKIPPED, Dock, table
from support.pocket_texts import autogrid

TYPES = ("A", "C", "OA", "HD")
ROW = "HETATM{:5d}  X   LIG A   1    {:8.3f}   0.000   0.000  1.00  0.00     0.000 {}\n"


@pytest.fixture
def maps(tmp_path: Path) -> str:
    """A pocket of AutoGrid around the origin, without a map of nonpolar hydrogen."""
    (tmp_path / "maps").mkdir()
    chance = np.random.default_rng(1)
    grids = [chance.normal(size=(21, 21, 21)).round(3) for _ in range(len(TYPES) + 2)]
    return autogrid(tmp_path / "maps", TYPES, lambda i: grids[i - 1], (-10, -10, -10), 1.0)


def test_dock__takes_opened_macrocycles_as_carbons_without_glue(dock: Dock, maps: str) -> None:
    row = "HETATM{:5d}  X   LIG A   1       0.000   0.000{:8.3f}  1.00  0.00    {:6.3f} {}\n"
    kinds = [("OA", -0.3), ("C", 0.1), ("C", 0.2), ("OA", 0.0), ("OA", 0.0)]
    plain = [row.format(i, i / 2, charge, kind) for i, (kind, charge) in enumerate(kinds)]
    opened = ["CG0", "CG0", "G0", "G0"]
    charged = zip(["OA", *opened], kinds, strict=True)
    glued = [row.format(i, i / 2, q, kind) for i, (kind, (_, q)) in enumerate(charged)]
    Path("plain.pdbqt").write_text("".join(["ROOT\n", *plain[:3], "ENDROOT\n"]))
    Path("glued.pdbqt").write_text("".join(["ROOT\n", *glued, "ENDROOT\n"]))
    Path("none.txt").write_text("1 0 0 0\n")
    stay = ("--rotation-file", "none.txt")
    assert dock("-o", "p.pdbqt", *stay, of="plain.pdbqt glued.pdbqt", pocket=maps) == 0
    first, second = table("p.scores.tsv")
    assert second["score"] == first["score"]
    assert Path("p.pdbqt").read_text().count("G0") == 4


def record(*atoms: tuple[float, str]) -> str:
    """Return a ligand of atoms along x, each with its type."""
    return "".join(ROW.format(i, *atom) for i, atom in enumerate(atoms, 1)) + "END\n"


@pytest.mark.parametrize(("bad", "output", "removed", "reason"), [
    (record((0, "C"), (3, "W")), "p.pdbqt", "",
     "no map of atom type W: the pocket has A, C, OA, HD; W are"),
    (record((0, "C"), (1.42, "A"), (2.58, "C")), "p.sdf", "",
     "its bond orders do not follow from its places"),
    (record((0, "A")), "p.pdbqt", "A", "no map of atom type A: the pocket has C, OA, HD"),
    (record((0, "Br"), (5, "C"), (9, "Zn")), "p.pdbqt", "",
     "no map of atom type Br, Zn: the pocket has A, C, OA, HD"),
])  # fmt: skip
def test_dock__skips_what_its_maps_or_its_output_have_no_room_for(
    dock: Dock, maps: str, bad: str, output: str, removed: str, reason: str
) -> None:
    Path("bad.pdbqt").write_text(bad)
    Path("good.pdbqt").write_text(record((0, "C"), (1.42, "OA")))
    if removed:
        Path(maps).with_name(f"p.{removed}.map").unlink()
    assert dock("-o", "good.sdf", of="good.pdbqt", pocket=maps) == 0
    assert dock("-o", output, of="bad.pdbqt good.pdbqt", pocket=maps) == SOME_SKIPPED
    (error,) = table("p.errors.tsv")
    assert error["reason"].startswith(reason)

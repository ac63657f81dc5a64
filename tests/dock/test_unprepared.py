"""Ligands that were not prepared: drawings in two dimensions, molecules without hydrogens."""

import logging
from pathlib import Path

import pytest
from support.docked import SOME_SKIPPED, Dock, table

from multigpu import InputError

ROWS = ("-0.8883    0.1670", " 0.4658   -0.5116", " 1.4311    0.3229", " 1.5211    1.1229")
MANY = 20  # ligands: enough to be read together


def sdf(name: str, code: str, z: str = "0.0000", last: str = "H") -> str:
    elements = ("C", "C", "O", last)
    atoms = "".join(
        f"   {row}    {height} {element}   0  0\n"
        for row, element, height in zip(ROWS, elements, ("0.0000", z, z, "0.0000"), strict=True)
    )
    return (
        f"{name}\n  test              {code}\n\n  4  3  0  0  0  0  0  0  0  0999 V2000\n{atoms}"
        "  1  2  1  0\n  2  3  1  0\n  3  4  1  0\nM  END\n$$$$\n"
    )


@pytest.mark.parametrize("copies", [1, MANY])
def test_dock__skips_drawings_unless_they_are_wanted(dock: Dock, copies: int) -> None:
    """Read alone or together; the code of SDF decides about what is really flat."""
    texts = [
        sdf("drawn", "2D"),
        sdf("planar", "3D"),
        sdf("space", "2D", "0.5000"),
        sdf("old", "  "),
    ]
    Path("a.sdf").write_text("".join(texts * copies))
    assert dock("-o", "poses.sdf", of="a.sdf") == SOME_SKIPPED
    assert [row["ligand"] for row in table("poses.scores.tsv")] == ["planar", "space"] * copies
    errors = table("poses.errors.tsv")
    assert [error["ligand"] for error in errors] == ["drawn", "old"] * copies
    assert errors[0]["reason"].startswith("all its atoms have z = 0, so it is drawn in two")
    assert "--gen3d" in errors[0]["reason"]
    assert "--allow-flat" in errors[0]["reason"]
    assert dock("-o", "all.sdf", "--allow-flat", of="a.sdf") == 0
    assert len(table("all.scores.tsv")) == 4 * copies


def test_dock__of_drawings_alone_fails(dock: Dock) -> None:
    Path("a.sdf").write_text(sdf("drawn", "2D") * 3)
    with pytest.raises(InputError, match=r"two dimensions: .* \(none of 3 ligands could be docked"):
        dock("-o", "poses.sdf", of="a.sdf")


@pytest.mark.parametrize("copies", [1, MANY])
def test_dock__notes_ligands_without_hydrogens(
    dock: Dock, copies: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The note comes once, whether ligands are read alone or together."""
    bare, whole = sdf("bare", "3D", "0.5000", last="F"), sdf("whole", "3D", "0.5000")
    Path("a.sdf").write_text((bare + whole + bare) * copies)
    with caplog.at_level(logging.WARNING):
        assert dock("-o", "poses.sdf", "--max-chunk-bytes", "3000", of="a.sdf") == 0
    count = f"{2 * copies} of {3 * copies} ligands"
    (message,) = caplog.messages
    assert message.startswith(f"multigpu: {count} have no hydrogens and were docked without them")
    assert "obabel IN -O OUT -h" in message


@pytest.mark.parametrize("center", ["15", "1,2", "a,b,c"])
def test_dock__shows_how_a_center_is_written(
    dock: Dock, center: str, library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import click

    with pytest.raises(click.BadParameter) as caught:
        dock("--center", center, "53", "16")
    wanted = f"expected X,Y,Z, e.g. --center 15.2,53.9,16.9; got '{center}'"
    assert caught.value.message == wanted

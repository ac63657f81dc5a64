"""Ligands that are drawn flat, or lack hydrogens."""

import pytest
from support.ligand_texts import ETHANOL, MOL2, PDB, PDBQT, TEXTS, XYZ

from multigpu.formats.molecules.registry import parse
from multigpu.workloads.dock.ligands import is_drawn, lacks_hydrogens

CODE = b"              3D"
FLAT_TEXT = (
    b"flat\n  test              3D\n\n  4  3  0  0  0  0  0  0  0  0999 V2000\n"
    b"   -0.8883    0.1670    0.0000 C   0  0\n    0.4658   -0.5116    0.0000 C   0  0\n"
    b"    1.4311    0.3229    0.0000 O   0  0\n    1.5211    1.1229    0.0000 O   0  0\n"
    b"  1  2  1  0\n  2  3  1  0\n  2  4  2  0\nM  END\n$$$$\n"
)


def drawn(text: bytes, layout: str = "sdf") -> bool:
    return is_drawn(text, layout, parse(text, layout).positions)


@pytest.mark.parametrize(
    ("code", "is_flat"),
    [
        (b"              2D", True), (b"              2d", True), (b"              3D", False),
        (b"", True), (b"                ", True), (b"              XX", True),
        (b"            2D  ", True),
    ],
)  # fmt: skip
def test_flat_sdf__is_a_drawing_unless_it_says_3d(code: bytes, is_flat: bool) -> None:
    assert drawn(FLAT_TEXT.replace(CODE, code)) == is_flat


@pytest.mark.parametrize("code", [b"2D", b"3D", b"  "])
def test_sdf__with_different_z_is_none(code: bytes) -> None:
    assert not drawn(ETHANOL.replace(b"3D", code))


@pytest.mark.parametrize(("code", "fewest"), [(b"2D", 2), (b"  ", 4), (b"3D", 99)])
def test_few_atoms__are_in_a_plane_anyway(code: bytes, fewest: int) -> None:
    text = FLAT_TEXT.replace(b"3D", code)
    places = parse(text, "sdf").positions
    for count in range(1, 5):
        assert is_drawn(text, "sdf", places[:count]) == (count >= fewest)


@pytest.mark.parametrize(("layout", "is_flat"), [
    ("mol2", True), ("pdb", True), ("pdbqt", True), ("xyz", False),
])  # fmt: skip
def test_other_formats__are_drawings_where_all_z_are_the_same(layout: str, is_flat: bool) -> None:
    """Quantum chemistry lays flat molecules into the plane, as XYZ."""
    text = TEXTS[layout]
    places = parse(text, layout).positions.repeat(2, axis=0)
    assert not is_drawn(text, layout, places)
    places[:, 2] = 1.5
    assert is_drawn(text, layout, places) == is_flat


def test_flat_sdf__of_v3000_says_so_too() -> None:
    text = (
        b"x\n  test              2D\n\n  0  0  0     0  0            999 V3000\n"
        b"M  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\nM  V30 BEGIN ATOM\nM  V30 1 C 0 0 0 0\n"
        b"M  V30 2 C 1.5 0 0 0\nM  V30 END ATOM\nM  V30 END CTAB\nM  END\n$$$$\n"
    )
    assert drawn(text)
    assert not drawn(text.replace(b"2D", b"3D"))


@pytest.mark.parametrize(
    ("text", "layout", "lacks"),
    [
        (ETHANOL, "sdf", False),
        (FLAT_TEXT, "sdf", True),
        (ETHANOL.replace(b" H ", b" D "), "sdf", False),
        (b"1\n\nO 0 0 0\n", "xyz", False),
        (b"1\n\nC 0 0 0\n", "xyz", True),
        (XYZ, "xyz", False),
        (MOL2, "mol2", False),
        (MOL2.replace(b" H   ", b" F   "), "mol2", True),
        (PDB.replace(b" O   HOH", b" C   HOH").replace(b"   O\n", b"   C\n"), "pdb", False),
        (PDBQT.replace(b"HD", b"OA").replace(b" N\n", b" C\n"), "pdbqt", False),
    ],
)
def test_hydrogens__are_missing_where_there_is_carbon_and_none(
    text: bytes, layout: str, lacks: bool
) -> None:
    assert lacks_hydrogens(parse(text, layout)) == lacks

"""Poses as text of every format."""

import numpy as np
import pytest
from ligand_texts import ETHANOL, PDBQT, TEXTS, V3000

from multigpu.errors import UsageError
from multigpu.io.autodock import typed
from multigpu.io.molecules import MoleculeError, Positions, parse
from multigpu.io.poses import SAME, format_of, render

FACTS = {"score": "1.500000", "pose": "1"}


def shifted(text: bytes, layout: str) -> Positions:
    return parse(text, layout).positions + np.array([10.0, -20.5, 0.125])


@pytest.mark.parametrize("layout", TEXTS)
def test_pose__in_its_own_format_changes_coordinates_only(layout: str) -> None:
    molecule = parse(TEXTS[layout], layout)
    text = render(molecule, "name", SAME, molecule.positions, {})
    if layout == "sdf":
        assert text == ETHANOL
    again = parse(render(molecule, "name", layout, shifted(TEXTS[layout], layout), FACTS), layout)
    np.testing.assert_allclose(again.positions, shifted(TEXTS[layout], layout), atol=1e-9)
    assert (again.elements, again.bonds, again.types) == (
        molecule.elements, molecule.bonds, molecule.types,
    )  # fmt: skip
    assert again.name == molecule.name


def test_pose__of_v3000_keeps_everything_else() -> None:
    molecule = parse(V3000, "sdf")
    text = render(molecule, "", "sdf", shifted(V3000, "sdf"), {})
    assert b"M  V30 7 C 8.500000 -20.250000 3.125000 0 -\nM  V30 CFG=1\n" in text
    np.testing.assert_allclose(parse(text, "sdf").positions, shifted(V3000, "sdf"))


def test_pose__of_a_pose_has_its_facts_once() -> None:
    for layout, text in TEXTS.items():
        molecule = parse(text, layout)
        once = render(molecule, "name", SAME, molecule.positions, FACTS)
        twice = render(parse(once, layout), "name", SAME, molecule.positions, FACTS)
        assert twice == once, layout


def test_pose__keeps_properties_and_line_ends_of_sdf() -> None:
    text = ETHANOL.replace(b"\n", b"\r\n")
    pose = render(parse(text, "sdf"), "", "sdf", shifted(text, "sdf"), FACTS)
    assert pose.endswith(
        b"M  END\r\n> <vendor>\r\nA-17\r\n\r\n> <multigpu_score>\r\n1.500000\r\n\r\n"
        b"> <multigpu_pose>\r\n1\r\n\r\n$$$$\r\n"
    )
    assert pose.count(b"\n") == pose.count(b"\r\n")


@pytest.mark.parametrize("fmt", ["sdf", "pdb", "xyz"])
@pytest.mark.parametrize("layout", TEXTS)
def test_pose__in_another_format_has_the_same_atoms(layout: str, fmt: str) -> None:
    molecule, wanted = parse(TEXTS[layout], layout), shifted(TEXTS[layout], layout)
    again = parse(render(molecule, "name", fmt, wanted, FACTS), fmt)
    np.testing.assert_allclose(again.positions, wanted, atol=5e-4)
    assert again.elements == molecule.elements
    assert again.name == molecule.name


@pytest.mark.parametrize("layout", ["sdf", "mol2", "pdbqt"])
def test_pose__in_pdbqt_has_types_and_charges(layout: str) -> None:
    if layout == "sdf":
        pytest.importorskip("rdkit.Chem", reason="the extra `dock` is not installed")
    molecule = parse(TEXTS[layout], layout)
    again = parse(render(molecule, "name", "pdbqt", molecule.positions, FACTS), "pdbqt")
    wanted = typed(molecule)
    assert again.types == wanted.types
    assert again.charges is not None
    np.testing.assert_allclose(again.charges, wanted.charges, atol=5e-4)


def test_pose__of_sdf_is_read_by_rdkit_as_it_was() -> None:
    chem = pytest.importorskip("rdkit.Chem", reason="the extra `dock` is not installed")
    pose = render(parse(ETHANOL, "sdf"), "", "sdf", shifted(ETHANOL, "sdf"), FACTS)
    supplier = chem.SDMolSupplier()
    supplier.SetData(pose.decode(), removeHs=False)
    (molecule,) = supplier
    assert chem.MolToSmiles(chem.RemoveHs(molecule)) == "CCO"
    assert molecule.GetPropsAsDict() == {
        "vendor": "A-17", "multigpu_score": 1.5, "multigpu_pose": 1,
    }  # fmt: skip


def test_pose__of_a_thousand_atoms_is_v3000() -> None:
    rows = "".join(f"C {5 * i} 0 0\n" for i in range(1200))
    molecule = parse(f"1200\nlong\n{rows}".encode(), "xyz")
    again = parse(render(molecule, "", "sdf", molecule.positions, {}), "sdf")
    np.testing.assert_array_equal(again.positions, molecule.positions)


def test_pose__without_bonds_gets_those_of_near_atoms() -> None:
    pose = parse(render(parse(PDBQT, "pdbqt"), "", "sdf", shifted(PDBQT, "pdbqt"), {}), "sdf")
    assert pose.bonds == [(0, 1, 1), (0, 2, 1)]


def test_pose__in_mol2_needs_mol2() -> None:
    molecule = parse(ETHANOL, "sdf")
    with pytest.raises(MoleculeError, match="poses in MOL2 can be written of MOL2 only"):
        render(molecule, "", "mol2", molecule.positions, {})


@pytest.mark.parametrize(
    ("path", "fmt"), [("a.sdf", "sdf"), ("b/c.PDBQT.gz", "pdbqt"), ("x.y.xyz.zst", "xyz")]
)
def test_format__follows_from_the_suffix(path: str, fmt: str) -> None:
    assert format_of(path) == fmt


def test_format__that_is_unknown_is_refused() -> None:
    with pytest.raises(UsageError, match=r"poses\.csv: poses are written as"):
        format_of("poses.csv")

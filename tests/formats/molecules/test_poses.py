"""Poses as text of every format."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdMolAlign
from support.ligand_texts import ETHANOL, MOL2, PDB, PDBQT, TEXTS, XYZ

from multigpu.errors import UsageError
from multigpu.formats.molecules.molecule import MoleculeError, Positions
from multigpu.formats.molecules.poses import ReferencePose, drawing_of, format_of, render
from multigpu.formats.molecules.registry import parse

FACTS = {"score": "1.500000", "pose": "1", "rotation": "7", "rmsd_to_input": "0.5000"}


def shifted(text: bytes, layout: str) -> Positions:
    return parse(text, layout).positions + np.array([10.0, -20.5, 0.125])


@pytest.mark.parametrize("layout", TEXTS)
def test_pose__in_its_own_format_changes_coordinates_only(layout: str) -> None:
    molecule = parse(TEXTS[layout], layout)
    text = render(molecule, "name", layout, molecule.positions, {})
    if layout == "sdf":
        assert text == ETHANOL
    again = parse(render(molecule, "name", layout, shifted(TEXTS[layout], layout), FACTS), layout)
    np.testing.assert_allclose(again.positions, shifted(TEXTS[layout], layout), atol=1e-9)
    for attribute in ("elements", "bonds", "types", "name"):
        assert getattr(again, attribute) == getattr(molecule, attribute)
    once = render(molecule, "name", layout, molecule.positions, FACTS)
    assert render(parse(once, layout), "name", layout, molecule.positions, FACTS) == once
    in_sdf = parse(render(molecule, "name", "sdf", shifted(TEXTS[layout], layout), FACTS), "sdf")
    np.testing.assert_allclose(in_sdf.positions, again.positions, atol=5e-4)
    assert (in_sdf.elements, in_sdf.name) == (molecule.elements, molecule.name)


def test_pose__keeps_properties_and_line_ends_of_sdf() -> None:
    text = ETHANOL.replace(b"\n", b"\r\n")
    pose = render(parse(text, "sdf"), "", "sdf", shifted(text, "sdf"), FACTS)
    assert pose.endswith(
        b"M  END\r\n> <vendor>\r\nA-17\r\n\r\n> <multigpu_score>\r\n1.500000\r\n\r\n"
        b"> <multigpu_pose>\r\n1\r\n\r\n> <multigpu_rotation>\r\n7\r\n\r\n"
        b"> <multigpu_rmsd_to_input>\r\n0.5000\r\n\r\n$$$$\r\n"
    )
    assert pose.count(b"\n") == pose.count(b"\r\n")


def test_pose__of_sdf_is_read_by_rdkit_as_it_was() -> None:
    pose = render(parse(ETHANOL, "sdf"), "", "sdf", shifted(ETHANOL, "sdf"), FACTS)
    supplier = Chem.SDMolSupplier()
    supplier.SetData(pose.decode(), removeHs=False)
    (molecule,) = supplier
    assert Chem.MolToSmiles(Chem.RemoveHs(molecule)) == "CCO"
    assert molecule.GetPropsAsDict() == {
        "vendor": "A-17", "multigpu_score": 1.5, "multigpu_pose": 1, "multigpu_rotation": 7,
        "multigpu_rmsd_to_input": 0.5,
    }  # fmt: skip


def test_pose__of_a_thousand_atoms_is_in_its_own_format() -> None:
    rows = "".join(f"C {5 * i} 0 0\n" for i in range(1200))
    molecule = parse(f"1200\nlong\n{rows}".encode(), "xyz")
    with pytest.raises(MoleculeError, match=r"more than 999 atoms or bonds: write its .*\.xyz"):
        render(molecule, "", "sdf", molecule.positions, {})
    assert len(drawing_of(molecule)[0]) == 1200


@pytest.mark.parametrize("fmt", ["mol2", "pdb", "pdbqt", "xyz"])
def test_pose__in_these_formats_needs_them(fmt: str) -> None:
    molecule = parse(ETHANOL, "sdf")
    problem = f"poses in {fmt.upper()} can be written of {fmt.upper()} only: choose .sdf"
    with pytest.raises(MoleculeError, match=problem):
        render(molecule, "", fmt, molecule.positions, {})


def test_pose__of_a_mol2_without_a_name_is_called_as_it_was_docked() -> None:
    for text in (MOL2.replace(b"phenol-ish", b""), MOL2.replace(b"phenol-ish", b" \r")):
        molecule = parse(text, "mol2")
        pose = render(molecule, "file", "mol2", molecule.positions, FACTS)
        assert parse(pose, "mol2").name == "file"
        named = render(parse(MOL2, "mol2"), "", "mol2", molecule.positions, FACTS)
        assert pose == named.replace(b"phenol-ish\n", b"file\r\n" if b"\r" in text else b"file\n")


def test_pose__keeps_the_comment_of_an_xyz() -> None:
    molecule = parse(XYZ.replace(b"water-like", b"a score=1 of mine"), "xyz")
    once = render(molecule, "", "xyz", molecule.positions, FACTS)
    assert once.splitlines()[1].startswith(b"a score=1 of mine score=1.500000 pose=1 ")
    assert render(parse(once, "xyz"), "", "xyz", molecule.positions, FACTS) == once


ODD = [
    pytest.param("xyz", XYZ.replace(b"O ", b"Bq "), "atom 1 is 'Bq'", id="ghost atom"),
    pytest.param("mol2", MOL2.replace(b"O.3", b"LP "), "atom 3 is 'Lp'", id="lone pair"),
    pytest.param("mol2", MOL2.replace(b"N.ar", b"Du  "), "atom 2 is 'Du'", id="dummy atom"),
    pytest.param("pdbqt", PDBQT.replace(b"OA", b"Xy"), "atom 2 is 'Xy'", id="type of one's own"),
    pytest.param("sdf", ETHANOL.replace(b" O ", b" R#"), "atom 3 is 'R#'", id="R group"),
    pytest.param("pdb", PDB.replace(b"CL\n", b"XX\n"), "atom 2 is 'Xx'", id="columns"),
]


@pytest.mark.parametrize(("layout", "text", "problem"), ODD)
def test_pose__of_no_element_is_in_its_own_format(layout: str, text: bytes, problem: str) -> None:
    molecule = parse(text, layout)
    pose = render(molecule, "", layout, molecule.positions, {})
    assert parse(pose, layout).elements == molecule.elements
    if layout != "sdf":
        with pytest.raises(MoleculeError, match=f"^{problem}, which is no element: .* .{layout}$"):
            render(molecule, "", "sdf", molecule.positions, {})

    odd = int(problem.split()[1]) - 1
    _, elements, bonds = drawing_of(molecule)
    assert elements == [*molecule.elements[:odd], "*", *molecule.elements[odd + 1 :]]
    assert molecule.bonds or not any(odd in bond[:2] for bond in bonds)


@pytest.mark.parametrize("kind", ["G0", "W "])
def test_drawing__has_no_pseudo_atoms_of_autodock(kind: str) -> None:
    molecule = parse(PDBQT.replace(b"OA", kind.encode()), "pdbqt")
    places = molecule.positions + 1
    assert drawing_of(molecule)[:2] == ([0, 2], ["N", "H"])
    assert parse(render(molecule, "", "pdbqt", places, FACTS), "pdbqt").types[1] == kind.strip()


def test_pose__keeps_heavy_hydrogen() -> None:
    molecule = parse(XYZ.replace(b"H ", b"D "), "xyz")
    pose = render(molecule, "", "sdf", molecule.positions, {})
    assert parse(pose, "sdf").elements == ["O", "D", "Cl"]


def test_format__follows_from_the_suffix() -> None:
    paths = {"a.sdf": "sdf", "b/c.PDBQT.gz": "pdbqt", "x.y.xyz.zst": "xyz"}
    assert {path: format_of(path) for path in paths} == paths
    with pytest.raises(UsageError, match=r"poses\.csv: poses are written as"):
        format_of("poses.csv")


LONE = b"ATOM      1  C   LIG A   1       0.000   0.000   0.000  1.00  0.00     0.100 C\n"


@pytest.mark.parametrize("fmt", ["sdf", ""])
@pytest.mark.parametrize("layout", ["sdf", "mol2", "pdbqt", "pdb"])
def test_pose__far_out_is_read_where_it_was_written(layout: str, fmt: str) -> None:
    """Columns do not run into each other."""
    molecule = parse(LONE if layout == "pdbqt" else TEXTS[layout], layout)
    for far in (-1234.5678, 98765.4321, -98765.4):
        places = molecule.positions + np.array([far, -far, far])
        again = parse(render(molecule, "x", fmt or layout, places, {}), fmt or layout)
        np.testing.assert_allclose(again.positions, places, atol=0.51)
        assert again.elements == molecule.elements


def embedded(smiles: str, count: int) -> Chem.Mol:
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    rdDistGeom.EmbedMultipleConfs(molecule, count, randomSeed=7)
    return molecule


def of(text: str) -> ReferencePose:
    return ReferencePose(path="ref.sdf", molecule=parse(text.encode(), "sdf"))


@pytest.mark.parametrize(
    "smiles",
    ["OC(=O)c1ccccc1", "OS(=O)(=O)c1ccc(cc1)C(C)(C)C", "FC(F)(F)C(F)(F)F",
     "CCO", "NC(=N)NCc1ccccc1"],
)  # fmt: skip
def test_rmsd__is_that_of_rdkit_whatever_the_order_of_atoms(smiles: str) -> None:
    molecule = embedded(smiles, 2)
    order = np.random.default_rng(1).permutation(molecule.GetNumAtoms()).tolist()
    shuffled = Chem.RenumberAtoms(molecule, order)
    pose = parse(Chem.MolToMolBlock(shuffled, confId=1).encode(), "sdf")
    reference = of(Chem.MolToMolBlock(molecule, confId=0))
    a, b = (Chem.RemoveHs(each) for each in (shuffled, molecule))
    expected = rdMolAlign.CalcRMS(Chem.Mol(a, confId=1), Chem.Mol(b, confId=0))
    # Bond orders are not compared: N and NH of an amidine are one element with one bond, as in
    # RDKit, which evens out terminal groups.
    found = reference.rmsds(pose, [pose.positions, pose.positions + 9])
    assert found[0] == pytest.approx(expected, abs=2e-4)
    assert found[1] > 9


def test_reference__of_another_molecule_is_none() -> None:
    reference = of(Chem.MolToMolBlock(embedded("CCO", 1)))
    for smiles in ("COC", "CCCO", "CCN", "CC"):
        other = parse(Chem.MolToMolBlock(embedded(smiles, 1)).encode(), "sdf")
        assert np.isnan(reference.rmsds(other, [other.positions])).all()


def test_reference__may_be_of_another_format() -> None:
    molecule = parse(PDBQT, "pdbqt")
    reference = ReferencePose(path="crystal.pdbqt", molecule=molecule)
    assert reference.rmsds(molecule, [molecule.positions]).tolist() == [0]

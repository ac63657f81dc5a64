"""What a record says means what its format says: blocks, charges, isotopes, columns, sizes."""

import time

import pytest
from support.ligand_texts import ETHANOL, MOL2, PDBQT, V3000, XYZ, mol2

from multigpu.formats.molecules import pdbqt
from multigpu.formats.molecules.autodock import types_for_maps, types_of
from multigpu.formats.molecules.bonds import bonds_of, near_bonds
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.tables.texts import Texts

# ---- SDF --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"$$$$ 5 per mg", b"$$$$x", b"$$$$$"])
def test_sdf__ends_where_the_line_is_dollars_alone(value: bytes) -> None:
    record = ETHANOL.replace(b"A-17", value)
    for text in (record + record, (record + record).replace(b"\n", b"\r\n")):
        assert FORMATS["sdf"].find_ends(text, False) == [len(text) // 2, len(text)]
    molecule = parse(record, "sdf")
    pose = render(molecule, "", "sdf", molecule.positions, {"score": "1"})
    assert b"\n" + value + b"\n\n> <multigpu_score>\n1\n\n$$$$\n" in pose


def test_sdf__blanks_after_the_dollars_are_nothing() -> None:
    text = ETHANOL[:-1] + b"  \n"
    assert FORMATS["sdf"].find_ends(text * 2, False) == [len(text), 2 * len(text)]
    molecule = parse(text, "sdf")
    assert render(molecule, "", "sdf", molecule.positions, {}).count(b"$$$$") == 1


def test_v2000__radicals_supersede_the_charges_of_the_atoms() -> None:
    text = ETHANOL.replace(b"O   0  0", b"O   0  5")
    molecule = parse(text, "sdf")
    assert molecule.format.bond_graph(molecule).charges == {2: -1}
    for line, charges in ((b"M  RAD  1   1   2\n", {}), (b"M  CHG  1   1   1\n", {0: 1})):
        molecule = parse(text.replace(b"M  END", line + b"M  END"), "sdf")
        assert molecule.format.bond_graph(molecule).charges == charges
        molecule = parse(text.replace(b"A-17", line.rstrip()), "sdf")  # data say nothing
        assert molecule.format.bond_graph(molecule).charges == {2: -1}


@pytest.mark.parametrize("block", [b"RGROUP 1", b"TEMPLATE"])
def test_v3000__atoms_of_other_blocks_are_not_of_the_molecule(block: bytes) -> None:
    inner = V3000.partition(b"999 V3000\n")[2].partition(b"M  END")[0].replace(b" 7 ", b" 9 ")
    more = b"M  V30 BEGIN %b\n%bM  V30 END %b\n" % (block, inner, block.split()[0])
    plain, molecule = parse(V3000, "sdf"), parse(V3000.replace(b"M  END", more + b"M  END"), "sdf")
    assert molecule.positions.tolist() == plain.positions.tolist()
    assert (molecule.elements, molecule.bonds) == (plain.elements, plain.bonds)


def test_sdf__symbols_have_their_usual_capitals() -> None:
    molecule = parse(ETHANOL.replace(b" O  ", b" BR "), "sdf")
    assert b"\nBr " in render(molecule, "", "xyz", molecule.positions, {})
    assert parse(V3000.replace(b" O ", b" CL "), "sdf").elements == ["C", "Cl"]


# ---- isotopes, places -------------------------------------------------------------------------

METHANOL = """6
cd3oh
C 0.000 0.000 0.000
O 1.420 0.000 0.000
{0} -0.360 1.030 0.000
{0} -0.360 -0.510 0.890
{0} -0.360 -0.510 -0.890
H 1.740 0.900 0.050
"""


@pytest.mark.parametrize("symbol", ["H", "D", "T", "2H", "H2"])
def test_isotopes__are_bonded_as_their_element(symbol: str) -> None:
    bonds = bonds_of(parse(METHANOL.format(symbol).encode(), "xyz"))
    assert [bond[:2] for bond in bonds] == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5)]


def test_isotopes__have_the_types_and_charges_of_their_element() -> None:
    deuterated = parse(MOL2.replace(b" H  ", b" D  "), "mol2")
    assert deuterated.elements[3] == "D"
    assert types_of(deuterated).types == types_of(parse(MOL2, "mol2")).types
    graphs = [each.format.bond_graph(each) for each in (deuterated, parse(MOL2, "mol2"))]
    assert graphs[0] == graphs[1]


def test_atoms__on_one_place_are_not_bonded() -> None:
    molecule = parse(b"3\n\nC 0 0 0\nC 0 0 0\nC 1.5 0 0\n", "xyz")
    assert [bond[:2] for bond in near_bonds(molecule)] == [(0, 2), (1, 2)]


# ---- MOL2, XYZ --------------------------------------------------------------------------------


METHOXIDE = mol2("C.3 O.3 H H H", "1-2 1-3 1-4 1-5", [-0.05, -0.95, 0, 0, 0])


@pytest.mark.parametrize(
    ("attributes", "charges"),
    [
        (b"", {1: -1}),
        (b"2 1\npartial -0.95\n", {1: -1}),
        (b"2 2\npartial -0.95\ncharge -1\n", {1: -1}),
        (b"2 1\ncharge 0\n", {}),
        (b"9 1\ncharge -1\n2 1\npartial 1\n", {1: -1}),
    ],
)
def test_mol2__attributes_change_what_they_name(attributes: bytes, charges: object) -> None:
    molecule = parse(METHOXIDE + b"@<TRIPOS>UNITY_ATOM_ATTR\n" + attributes, "mol2")
    assert molecule.format.bond_graph(molecule).charges == charges


@pytest.mark.parametrize(
    ("columns", "good"),
    [
        ("species:S:1:pos:R:3", True), ("species:S:1:pos:R:3:forces:R:3", True),
        ("pos:R:3:species:S:1", False), ("species:S:1:forces:R:3:pos:R:3", False),
    ],
)  # fmt: skip
def test_xyz__with_columns_in_another_order_is_refused(columns: str, good: bool) -> None:
    text = XYZ.replace(b"water-like", f'Lattice="5 0 0" Properties={columns} energy=1'.encode())
    if good:
        assert len(parse(text, "xyz").rows) == 3
    else:
        with pytest.raises(MoleculeError, match=f"line 2: its columns are '{columns}'"):
            parse(text, "xyz")


# ---- AutoDock ---------------------------------------------------------------------------------


@pytest.mark.parametrize("type_and_map", [("Br", "BR"), ("BR", "Br"), ("CL", "Cl"), ("Zn", "ZN")])
def test_types__are_known_by_either_spelling(type_and_map: tuple[str, str]) -> None:
    kind, name = type_and_map
    text, maps = PDBQT.replace(b" N\n", f" {kind}\n".encode()), ("OA", name, "HD")
    assert types_for_maps(parse(text, "pdbqt"), maps).types == [name, "OA", "HD"]
    assert pdbqt.read_columns(Texts.of([text]), maps).atoms.types.tolist() == [1, 0, 2]
    with pytest.raises(MoleculeError, match=f"no map of atom type {kind}: the pocket has OA"):
        types_for_maps(parse(text, "pdbqt"), ("OA", "HD"))


def test_types__sodium_is_no_nitrogen() -> None:
    text = PDBQT.replace(b" N\n", b" Na\n")
    with pytest.raises(MoleculeError, match="no map of atom type Na"):
        types_for_maps(parse(text, "pdbqt"), ("NA", "OA", "HD"))


# ---- size -------------------------------------------------------------------------------------


def chain(atoms: int, layout: str) -> bytes:
    if layout == "mol2":
        return mol2("C.ar " * atoms, " ".join(f"{i}-{i + 1}:ar" for i in range(1, atoms)))
    places = [(1.2 * i % 900, 0.7 * (i % 2), 1.5 * (1.2 * i // 900)) for i in range(atoms)]
    rows = "".join(
        f"ATOM  {i:5d}  C   ALA A   1    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00     0.000 C\n"
        for i, (x, y, z) in enumerate(places, 1)
    )
    return f"ROOT\n{rows}ENDROOT\n".encode()


@pytest.mark.parametrize("layout", ["mol2", "pdbqt"])
@pytest.mark.parametrize("atoms", [400, 1_100, 12_000])
def test_size__of_a_receptor_ends_soon(layout: str, atoms: int) -> None:
    """With orders of bonds, or with the reason why there are none."""
    began, molecule = time.monotonic(), parse(chain(atoms, layout), layout)
    most = {"mol2": 2_000, "pdbqt": 500}[layout]
    if atoms > most:
        problem = f"{atoms:,} atoms, and bond orders of {layout} are found of up to {most:,}"
        with pytest.raises(MoleculeError, match=problem):
            render(molecule, "x", "sdf", molecule.positions, {})
    else:
        render(molecule, "x", "sdf", molecule.positions, {})
    assert time.monotonic() - began < 30

"""Bonds that follow from places, and how long that may take."""

import time

import pytest
from support.ligand_texts import MOL2, mol2

from multigpu.formats.molecules.autodock_types import types_of
from multigpu.formats.molecules.bonds import MOST_ATOMS, bonds_of, near_bonds
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import render
from multigpu.formats.molecules.registry import parse

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
    near = near_bonds(molecule.elements, molecule.positions)
    assert [bond[:2] for bond in near] == [(0, 2), (1, 2)]


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
@pytest.mark.parametrize("atoms", [400, 12_000])
def test_size__of_a_receptor_ends_soon(layout: str, atoms: int) -> None:
    """With orders of bonds, or with the reason why there are none."""
    began, molecule = time.monotonic(), parse(chain(atoms, layout), layout)
    if atoms > MOST_ATOMS:
        problem = f"{atoms:,} atoms, and bond orders of {layout} are found of up to 500"
        with pytest.raises(MoleculeError, match=problem):
            render(molecule, "x", "sdf", molecule.positions, {})
    else:
        render(molecule, "x", "sdf", molecule.positions, {})
    assert time.monotonic() - began < 30

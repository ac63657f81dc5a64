"""What is in a ligand's record: atoms, places, bonds; or what is wrong with it."""

import pytest
from support.ligand_texts import ETHANOL, MOL2, PDB, PDBQT, V3000, XYZ

from multigpu.formats.molecules.elements import is_element
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import parse


@pytest.mark.parametrize(("text", "layout", "name", "elements", "first", "bonds"), [
    (ETHANOL, "sdf", "ethanol", "C C O H", (-0.8883, 0.1670, -0.0273), 3),
    (V3000, "sdf", "big", "C O", (-1.5, 0.25, 3), 1),
    (MOL2, "mol2", "phenol-ish", "C N O H", (-0.8883, 0.1670, -0.0273), 3),
    (PDB, "pdb", "water", "O Cl H", (1, 2, 3), 1),
    (PDBQT, "pdbqt", "thing", "N O H", (9.051, 4.576, -14.459), 0),
    (XYZ, "xyz", "water-like", "O H Cl", (0, 0.1, 0.25), 0),
])  # fmt: skip
def test_parse__gives_atoms_in_their_order(
    text: bytes, layout: str, name: str, elements: str, first: tuple[float, ...], bonds: int
) -> None:
    molecule = parse(text, layout)
    assert (molecule.name, " ".join(molecule.elements)) == (name, elements)
    assert (molecule.positions[0].tolist(), len(molecule.bonds)) == (list(first), bonds)


@pytest.mark.parametrize(("layout", "text", "problem"), [
    ("sdf", ETHANOL[:200], "it ends at line 6, before the last of 4 atoms and 3 bonds"),
    ("sdf", ETHANOL.replace(b"  4  3", b"  x  3"), "line 4: '  x   3' should be whole numbers"),
    ("sdf", ETHANOL.replace(b"0.4658", b"0.x658"), "line 6: the coordinates .* cannot be read"),
    ("sdf", ETHANOL.replace(b"0.4658", b"   nan"), "line 6: the coordinates are not finite"),
    ("sdf", ETHANOL.replace(b"0.4658", b"2e99  "), "line 6: .* are beyond ±100000 Å"),
    ("sdf", ETHANOL.replace(b"  2  3  1", b"  2  9  1"), "line 10: a bond between .* 2 and 9"),
    ("sdf", ETHANOL.replace(b"M  END", b""), "before its 'M  END'"),
    ("sdf", b"only\n", "it ends at line 1, before its counts line"),
    ("sdf", ETHANOL.replace(b"  4  3", b"  0  0"), "it has no atoms"),
    ("sdf", V3000.replace(b"7 9\n", b"7 8\n"), "RDKit does not read its table of V3000"),
    ("mol2", MOL2.replace(b" 4 3 1", b" 5 3 1"), "it has 4 atoms where its header says '5'"),
    ("mol2", MOL2.replace(b"O.3  ", b"     ").replace(b"1 LIG1       -0.4000", b""),
     "line 11: an atom needs"),
    ("mol2", b"@<TRIPOS>MOLECULE\nx\n", "it has no atoms"),
    ("pdb", PDB.replace(b"2.000", b"2.0.0"), "line 2: the coordinates .* cannot be read"),
    ("pdbqt", PDBQT.replace(b"OA\n", b"\n"), "line 4: the atom has no AutoDock type"),
    ("pdbqt", PDBQT.replace(b"-0.648", b"      "), "line 4: the charge"),
    ("xyz", XYZ[:40], "it ends at line 4, before the last of 3 atoms"),
    ("xyz", XYZ.replace(b" 3\n", b"\n"), "line 4: an atom needs a symbol and a place"),
    ("xyz", b"many\n", "line 1: 'many' should be a number of atoms: nothing is"),
    ("xyz", XYZ.replace(b"3\n", b"-2147483649\n", 1), "line 1: '-2147483649' should be a"),
    ("mol2", MOL2.replace(b"0.1000", b"inf   "), "line 9: atom 1 has a charge of inf"),
    ("mol2", MOL2.replace(b"-0.2000", b"-1e308 "), r"line 10: atom 2 has a charge of -1e\+308"),
    ("pdbqt", PDBQT.replace(b" 0.172", b"   nan"), "line 3: atom 1 has a charge of nan"),
    ("pdbqt", PDBQT.replace(b" 0.172", b"1000.5"), "line 3: atom 1 has a charge of 1000.5"),
    ("pdbqt", PDBQT.replace(b" 0.172", b" -1001"), "line 3: atom 1 has a charge of -1001"),
    ("sdf", ETHANOL.replace(b"  4  3", b"-10-10"), "no numbers of atoms and bonds"),
    ("sdf", b"\n" + ETHANOL, "^line 5 is its counts line.*blank lines before"),
    ("sdf", b"\n\n\n" + ETHANOL, "^line 7 is its counts line.*blank lines before"),
    ("mol2", MOL2.replace(b" 4 3 1", b"9" * 5000 + b" 3 1"), "its header says '999"),
    ("mol2", MOL2.replace(b"phenol-ish\n 4", b"\n 5"), "4 atoms where its header says '5'"),
    ("mol2", MOL2.replace(b" C1  ", b" C 1 ").replace(b"  1 LIG1        0.1000", b""),
     "line 9: the type of the atom is '-0.0273': is there a"),
    ("xyz", b"2\na\nC 0 0 0\n", "^it ends at line 3, before the last of 2 atoms$"),
    ("xyz", b"\n1\na\nC 0 x 0\n", "^line 4: the coordinates .* cannot be read"),
    ("xyz", b"\n \n", "^line 1: '' should be a number of atoms"),
    ("sdf", V3000.partition(b"M  V30 CFG=1")[0], "^it ends at line 8, before its 'M  END'$"),
])  # fmt: skip
def test_parse__says_what_is_wrong_and_where(layout: str, text: bytes, problem: str) -> None:
    with pytest.raises(MoleculeError, match=problem):
        parse(text, layout)


def test_element__is_in_the_periodic_table() -> None:
    assert all(map(is_element, ("C", "Cl", "CL", "D", "T")))
    assert not any(map(is_element, ("", "*", "6", "G0", "Cg0", "Lp", "Du", "²")))

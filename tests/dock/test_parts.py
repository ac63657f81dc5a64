"""Records with more than one molecule: salts, hydrates, side chains of a receptor."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from support.docked import SOME_SKIPPED, Dock, table
from support.ligand_texts import mol2

import multigpu
from multigpu import InputError
from multigpu.formats.molecules.registry import FORMATS, largest_fragment, parse

# Methanol, and a chloride that stands between its atoms.
ATOMS = [
    ("C", 0.0, 0.0, 0.0), ("Cl", 0.4, 0.3, 6.0), ("O", 1.42, 0.0, 0.1), ("H", -0.36, 1.03, 0.0),
    ("H", -0.36, -0.51, 0.89), ("H", -0.36, -0.51, -0.89), ("H", 1.74, 0.9, 0.05),
]  # fmt: skip
BONDS = [(1, 3), (1, 4), (1, 5), (1, 6), (3, 7)]
SALT = [symbol for symbol, *_ in ATOMS if symbol != "Cl"]


def pdbqt(places: list[list[float]]) -> str:
    row = "HETATM{:5d} {:<4} LIG A   1    {:8.3f}{:8.3f}{:8.3f}  1.00  0.00     0.000 {}\n"
    rows = [
        row.format(i, symbol.upper(), *place, {"O": "OA", "H": "HD"}.get(symbol, symbol))
        for i, ((symbol, *_), place) in enumerate(zip(ATOMS, places, strict=True), 1)
    ]
    return "".join(["REMARK  Name = salt\nROOT\n", *rows, "ENDROOT\nTORSDOF 0\n"])


def records(scale: float = 1.0) -> dict[str, str]:
    """The salt in every format; scale: of its coordinates."""
    places = [[scale * x for x in place] for _, *place in ATOMS]
    salt = Chem.RWMol()
    for symbol, *_ in ATOMS:
        salt.AddAtom(Chem.Atom(symbol))
    for a, b in BONDS:
        salt.AddBond(a - 1, b - 1, Chem.BondType.SINGLE)
    salt.GetAtomWithIdx(1).SetFormalCharge(-1)
    conformer = Chem.Conformer(len(ATOMS))
    conformer.SetPositions(np.array(places))
    salt.AddConformer(conformer)
    Chem.SanitizeMol(salt)
    salt.SetProp("_Name", "salt")
    types = " ".join(f"{e}.3" if e in "CO" else e for e, *_ in ATOMS)
    bonds = " ".join(f"{a}-{b}" for a, b in BONDS)
    stated = "@<TRIPOS>UNITY_ATOM_ATTR\n2 1\ncharge -1\n"
    return {
        "a.sdf": f"{Chem.MolToMolBlock(salt)}> <id>\n17\n\n$$$$\n",
        "b.sdf": f"{Chem.MolToV3KMolBlock(salt)}$$$$\n",
        "a.mol2": mol2(types, bonds, more=stated, places=places).decode(),
        "a.pdb": Chem.MolToPDBBlock(salt),
        "a.pdbqt": pdbqt(places),
        "a.xyz": Chem.MolToXYZBlock(salt),
    }


RECORDS = records()


@pytest.mark.parametrize("name", RECORDS)
def test_part__keeps_the_line_ends_of_its_record(name: str) -> None:
    text = RECORDS[name].replace("\n", "\r\n").encode()
    part = largest_fragment(parse(text, name.rpartition(".")[2]))
    assert part.is_part
    assert part.text.count(b"\n") == part.text.count(b"\r\n") > 0


def test_part__of_mol2_has_the_charges_that_are_stated() -> None:
    """Without hydrogens they do not follow from the bonds."""
    stated = "@<TRIPOS>UNITY_ATOM_ATTR\n1 1\ncharge 1\n3 1\ncharge -1\n"
    part = largest_fragment(parse(mol2("Na C.3 O.3", "2-3", more=stated), "mol2"))
    assert part.format.bond_graph(part).charges == {1: -1}


@pytest.mark.parametrize("name", RECORDS)
def test_salt__is_docked_without_its_ion_in_every_format(
    dock: Dock, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    Path(name).write_text(RECORDS[name])
    layout = name.rpartition(".")[2]
    with caplog.at_level(logging.WARNING):
        assert dock("-o", f"poses.{layout}", of=name) == 0
    assert "multigpu: 1 of 1 ligand was docked without other atoms" in caplog.text
    pose = Path(f"poses.{layout}").read_bytes()
    molecule = parse(pose, layout)
    assert molecule.elements == SALT
    assert b"CL" not in pose.upper()
    assert table("poses.scores.tsv")[0]["atoms"] == "6"
    graph = molecule.format.bond_graph(molecule) if layout != "pdbqt" else None
    if graph:
        bonds = sorted(tuple(sorted(bond[:2])) for bond in graph.bonds)
        assert bonds == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 5)]
        assert graph.charges == {}
    if name == "a.sdf":
        assert b"> <id>\n17\n" in pose


@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("name", RECORDS)
def test_salt__is_skipped_if_wanted(dock: Dock, name: str, copies: int) -> None:
    """However many are read together."""
    Path(name).write_text(RECORDS[name] * copies)
    with pytest.raises(InputError, match="1 of its 7 atoms are in other fragments"):
        dock("-o", "poses.xyz", "--fragments", "skip", of=name)


def test_fragments__are_a_keyword(library: Path, tmp_path: Path) -> None:
    (tmp_path / "a.sdf").write_text(RECORDS["a.sdf"] + RECORDS["a.sdf"].replace("salt", "more"))
    pocket, where = str(library / "pocket.npz"), str(tmp_path / "a.sdf")
    options: dict[str, Any] = {"precision": 60, "gpus": "none"}
    (batch,) = multigpu.dock(where, pocket, **options)
    assert batch.atoms.tolist() == [6, 6]
    with pytest.raises(InputError, match="in other fragments"):
        list(multigpu.dock(where, pocket, fragments="skip", **options))
    with pytest.raises(multigpu.UsageError, match="fragments"):
        multigpu.dock(where, pocket, fragments="most", **options)


SIDE_CHAIN = """BEGIN_RES SER A 203
ROOT
ATOM      8  CB  SER A 203       2.000   1.000   1.000  1.00  0.00     0.000 C
ENDROOT
BRANCH   8   9
ATOM      9  OG  SER A 203       3.000   1.000   1.500  1.00  0.00    -0.300 OA
ENDBRANCH   8   9
END_RES SER A 203
"""


@pytest.mark.parametrize("copies", [1, 30])
def test_side_chains__are_not_docked(
    dock: Dock, copies: int, caplog: pytest.LogCaptureFixture
) -> None:
    alone = "".join(row for row in RECORDS["a.pdbqt"].splitlines(True) if "CL" not in row)
    Path("alone.pdbqt").write_text(f"MODEL 1\n{alone}ENDMDL\n" * copies)
    Path("beside.pdbqt").write_text(f"MODEL 1\n{alone}{SIDE_CHAIN}ENDMDL\n" * copies)
    assert dock("-o", "wanted.pdbqt", of="alone.pdbqt") == 0
    with caplog.at_level(logging.WARNING):
        assert dock("-o", "poses.pdbqt", "--fragments", "skip", of="beside.pdbqt") == 0
    assert "side chains of a receptor (BEGIN_RES)" in caplog.text
    assert Path("poses.pdbqt").read_bytes() == Path("wanted.pdbqt").read_bytes()


def test_side_chains__alone_are_no_ligand(dock: Dock) -> None:
    ligand = "".join(row for row in RECORDS["a.pdbqt"].splitlines(True) if "CL" not in row)
    Path("all.pdbqt").write_text(SIDE_CHAIN + ligand)
    assert dock("-o", "poses.pdbqt", of="all.pdbqt") == SOME_SKIPPED
    (error,) = table("poses.errors.tsv")
    assert error["reason"] == "its atoms are side chains of a receptor (BEGIN_RES), and no ligand"
    assert len(FORMATS["pdbqt"].find_ends(Path("all.pdbqt").read_bytes(), True)) == 2


def test_points__without_bonds_are_one_body(dock: Dock) -> None:
    Path("points.xyz").write_text("3\n\nC 0 0 0\nC 3 0 0\nC 0 3 0\n")
    assert dock("-o", "poses.xyz", of="points.xyz") == 0
    assert table("poses.scores.tsv")[0]["atoms"] == "3"


# ---- what the user probably did not mean ------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("name", RECORDS)
def test_nanometres__are_refused(dock: Dock, name: str, copies: int) -> None:
    Path(name).write_text(records(0.1)[name] * copies)
    with pytest.raises(InputError, match=r"have another within 0.3 Å: .* in nanometres\? Multiply"):
        dock("-o", "poses.xyz", of=name)

"""Records to ligands: drawings, missing hydrogens, salts, side chains of a receptor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from support.docked import ATOM, SOME_SKIPPED, Dock, table
from support.ligand_texts import ETHANOL, MOL2, PDB, PDBQT, TEXTS, XYZ, mol2

from multigpu import InputError
from multigpu.formats.molecules.ligands import MOLECULES, read_records
from multigpu.formats.molecules.registry import FORMATS, largest_fragment, parse
from multigpu.formats.storage.sources import inspect_source
from multigpu.workloads.dock.grouping import Grouping
from multigpu.workloads.dock.ligands import LigandLoader, is_drawn, lacks_hydrogens, read_first
from multigpu.workloads.dock.options import DockOptions

CODE = b"              3D"
ROWS = ("-0.8883    0.1670", " 0.4658   -0.5116", " 1.4311    0.3229", " 1.5211    1.1229")
TYPES = ("C", "A", "HD", "N", "NA", "OA", "H")
MOVED = ETHANOL.replace(b"-0.8883", b" 0.7000")


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


FLAT_TEXT = sdf("flat", "3D", last="O").encode()
FLAT_V3000 = b"\n".join([
    b"x", b"  test" + CODE, b"", b"  0  0  0     0  0            999 V3000", b"M  V30 BEGIN CTAB",
    b"M  V30 COUNTS 4 0 0 0 0", b"M  V30 BEGIN ATOM", b"M  V30 1 C 0 0 0 0",
    b"M  V30 2 C 1.5 0 0 0",
    b"M  V30 3 C 2.9 0.3 0 0", b"M  V30 4 C 4.2 1 0 0", b"M  V30 END ATOM", b"M  V30 END CTAB",
    b"M  END", b"$$$$", b"",
])  # fmt: skip


def drawn(text: bytes, layout: str = "sdf") -> bool:
    return is_drawn(text, layout, parse(text, layout).positions)


@pytest.mark.parametrize(("code", "is_flat"), [
    (b"              2D", True), (b"              2d", True), (b"              3D", False),
    (b"", True), (b"                ", True), (b"              XX", True),
    (b"            2D  ", True),
])  # fmt: skip
def test_flat_sdf__is_a_drawing_unless_it_says_3d(code: bytes, is_flat: bool) -> None:
    assert drawn(FLAT_TEXT.replace(CODE, code)) == is_flat
    flat = FLAT_V3000.replace(CODE, code)
    assert drawn(flat) == is_flat
    assert not drawn(ETHANOL.replace(CODE, code))  # its z differ


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


@pytest.mark.parametrize(("text", "layout", "lacks"), [
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
])  # fmt: skip
def test_hydrogens__are_missing_beside_carbon(text: bytes, layout: str, lacks: bool) -> None:
    assert lacks_hydrogens(parse(text, layout)) == lacks


def test_dock__skips_drawings_unless_they_are_wanted(dock: Dock) -> None:
    """The code of SDF decides about what is really flat."""
    texts = [
        sdf("drawn", "2D"), sdf("planar", "3D"), sdf("space", "2D", "0.5000"), sdf("old", "  "),
    ]  # fmt: skip
    Path("a.sdf").write_text("".join(texts))
    assert dock("-o", "poses.sdf", of="a.sdf") == SOME_SKIPPED
    assert [row["ligand"] for row in table("poses.scores.tsv")] == ["planar", "space"]
    errors = table("poses.errors.tsv")
    assert [error["ligand"] for error in errors] == ["drawn", "old"]
    assert errors[0]["reason"].startswith("all its atoms have z = 0, so it is drawn in two")
    assert "--gen3d" in errors[0]["reason"]
    assert "--allow-flat" in errors[0]["reason"]
    assert dock("-o", "all.sdf", "--allow-flat", of="a.sdf") == 0
    assert len(table("all.scores.tsv")) == 4


def test_dock__notes_missing_hydrogens(dock: Dock, caplog: pytest.LogCaptureFixture) -> None:
    """The note comes once."""
    bare, whole = sdf("bare", "3D", "0.5000", last="F"), sdf("whole", "3D", "0.5000")
    Path("a.sdf").write_text(bare + whole + bare)
    assert dock("-o", "poses.sdf", "--max-chunk-bytes", "3000", of="a.sdf") == 0
    count = f"{2} of {3} ligands"
    (message,) = caplog.messages
    assert message.startswith(f"multigpu: {count} have no hydrogens and were docked without them")
    assert "obabel IN -O OUT -h" in message


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
    return {
        "a.sdf": f"{Chem.MolToMolBlock(salt)}> <id>\n17\n\n$$$$\n",
        "b.sdf": f"{Chem.MolToV3KMolBlock(salt)}$$$$\n",
        "a.mol2": mol2(types, bonds, places=places).decode(), "a.pdb": Chem.MolToPDBBlock(salt),
        "a.pdbqt": pdbqt(places), "a.xyz": Chem.MolToXYZBlock(salt),
    }  # fmt: skip


RECORDS = records()


@pytest.mark.parametrize("name", RECORDS)
def test_salt__loses_its_ion(dock: Dock, name: str, caplog: pytest.LogCaptureFixture) -> None:
    Path(name).write_text(RECORDS[name])
    layout = name.rpartition(".")[2]
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
    # The part keeps line ends.
    text = RECORDS[name].replace("\n", "\r\n").encode()
    part = largest_fragment(parse(text, name.rpartition(".")[2]))
    assert part.is_part
    assert part.text.count(b"\n") == part.text.count(b"\r\n") > 0


@pytest.mark.parametrize("name", RECORDS)
def test_record__of_salt_is_refused_if_wanted_and_in_nanometres(dock: Dock, name: str) -> None:
    Path(name).write_text(RECORDS[name])
    with pytest.raises(InputError, match="1 of its 7 atoms are in other fragments"):
        dock("-o", "poses.xyz", "--fragments", "skip", of=name)
    Path(name).write_text(records(0.1)[name])
    with pytest.raises(InputError, match=r"have another within 0.3 Å: .* in nanometres\? Multiply"):
        dock("-o", "poses.xyz", of=name)


SIDE_CHAIN = """BEGIN_RES SER A 203
ROOT
ATOM      8  CB  SER A 203       2.000   1.000   1.000  1.00  0.00     0.000 C
ENDROOT
BRANCH   8   9
ATOM      9  OG  SER A 203       3.000   1.000   1.500  1.00  0.00    -0.300 OA
ENDBRANCH   8   9
END_RES SER A 203
"""


def test_side_chains__are_not_docked(dock: Dock, caplog: pytest.LogCaptureFixture) -> None:
    alone = "".join(row for row in RECORDS["a.pdbqt"].splitlines(True) if "CL" not in row)
    Path("alone.pdbqt").write_text(f"MODEL 1\n{alone}ENDMDL\n")
    Path("beside.pdbqt").write_text(f"MODEL 1\n{alone}{SIDE_CHAIN}ENDMDL\n")
    assert dock("-o", "wanted.pdbqt", of="alone.pdbqt") == 0
    assert dock("-o", "poses.pdbqt", "--fragments", "skip", of="beside.pdbqt") == 0
    assert "side chains of a receptor (BEGIN_RES)" in caplog.text
    assert Path("poses.pdbqt").read_bytes() == Path("wanted.pdbqt").read_bytes()
    # Alone they are no ligand.
    Path("all.pdbqt").write_text(SIDE_CHAIN + alone)
    assert dock("-o", "poses.pdbqt", of="all.pdbqt") == SOME_SKIPPED
    (error,) = table("poses.errors.tsv")
    assert error["reason"] == "its atoms are side chains of a receptor (BEGIN_RES), and no ligand"
    assert len(FORMATS["pdbqt"].find_ends(Path("all.pdbqt").read_bytes(), True)) == 2


def load(
    path: Path, text: bytes, types: tuple[str, ...] = TYPES, by: str | None = None, **options: Any
) -> Any:
    path.write_bytes(text)
    source = inspect_source(str(path), MOLECULES)
    loader = LigandLoader(
        sources=[source], types=types, options=DockOptions(**options), grouping=Grouping(by),
    )  # fmt: skip
    return loader.load([*read_records(0, source)], 7)


@pytest.mark.parametrize("types", [TYPES, ()])
@pytest.mark.parametrize(("suffix", "text", "changed"), [
    (".sdf", ETHANOL + MOVED, ETHANOL.replace(b" O   0", b" N   0")),
    (".mol2", MOL2 + MOL2, MOL2.replace(b"O1 ", b"C9 ").replace(b"O.3", b"C.3")),
    (".pdbqt", PDBQT, PDBQT.replace(b" OA", b" NA")),
])  # fmt: skip
def test_conformers__are_records_of_one_title_and_the_same_atoms(
    tmp_path: Path, suffix: str, text: bytes, changed: bytes, types: tuple[str, ...]
) -> None:
    loaded = load(tmp_path / f"a{suffix}", text * 2 + changed, types, by="title")
    records = len(loaded) + len(loaded.skipped)
    assert [each.number for each in loaded.skipped] == [records]
    assert "no conformer of record 1," in loaded.skipped[0].reason
    assert loaded.ligand_of.tolist() == [0] * len(loaded)
    alone = load(tmp_path / f"a{suffix}", text * 2 + changed, types)
    assert len(alone.firsts) == len(alone) == records
    assert np.array_equal(alone.bodies.positions[: len(loaded.bodies.positions)],
                          loaded.bodies.positions)  # fmt: skip


def test_ligands__without_a_title_and_of_others_are_alone(tmp_path: Path) -> None:
    unnamed = ETHANOL.replace(b"ethanol\n", b"\n", 1)
    other = ETHANOL.replace(b"ethanol", b"other")
    text = unnamed + unnamed + ETHANOL + MOVED + b"ethanol\nbroken\n$$$$\n" + MOVED + other
    loaded = load(tmp_path / "a.sdf", text, by="title")
    assert loaded.ligand_of.tolist() == [0, 1, 2, 2, 2, 3]
    assert loaded.names == ["a", "a_2", *["ethanol"] * 3, "other"]
    assert loaded.index.tolist() == [7, 8, 9, 10, 12, 13]
    assert len(loaded.skipped) == 1
    same = load(tmp_path / "a.sdf", ETHANOL + other, by="smiles")
    assert (same.ligand_of.tolist(), same.names) == ([0, 0], ["ethanol", "ethanol"])


@pytest.mark.parametrize("fragments", ["largest", "skip"])
def test_conformers__are_made_of_smiles(tmp_path: Path, fragments: str) -> None:
    text = b"CCO ethanol\nC( broken\nCCCC[O-].[Na+] salt\n"
    loaded = load(tmp_path / "a.smi", text, conformers=4, fragments=fragments)
    made = {name: loaded.names.count(name) for name in loaded.names}
    reasons = {each.ligand: each.reason for each in loaded.skipped}
    assert "RDKit does not read its SMILES 'C('" in reasons["broken"]
    assert 1 < made["ethanol"] <= 4
    if fragments == "skip":
        assert reasons["salt"] == "1 of its 15 atoms are in other fragments"
    else:
        assert made["salt"] == 4
        assert [loaded.molecules[i].is_part for i in loaded.firsts.tolist()] == [False, True]
    assert len(loaded.firsts) == len(made)
    assert {*loaded.index[loaded.firsts].tolist()} <= {7, 9}
    assert np.minimum.reduceat(loaded.strains, loaded.firsts).tolist() == [0.0] * len(made)
    assert {source.layout for source in loaded.sources} == {"sdf"}
    assert loaded.text_bytes == len(text)
    poor = load(tmp_path / "a.smi", text, ("C", "H", "HD"), conformers=4)
    reasons = {each.ligand: each.reason for each in poor.skipped}
    assert len(poor.skipped) == 3
    assert reasons["ethanol"] == "no map of atom type OA: the pocket has C, H, HD"


@pytest.mark.parametrize("layout", ["pdbqt", "pdb"])
def test_ligand__of_thousands_of_atoms_is_a_receptor(tmp_path: Path, layout: str) -> None:
    """A plain grid takes it: nothing is known of what that is for."""
    lines = [ATOM.format(i % 1000, i % 50, i // 50, 0.5 * (i % 2)) for i in range(1001)]
    text = "".join([*lines[:-1], "END\n", *lines, "END\n"]).encode()
    kept = 1 if layout == "pdbqt" else 0
    loaded = load(tmp_path / f"a.{layout}", text)
    assert len(loaded) == kept
    assert "it has 1,001 atoms: is it a receptor?" in loaded.skipped[-1].reason
    assert len(load(tmp_path / f"b.{layout}", text, ())) == 2


@pytest.mark.parametrize(("name", "text", "problem"), [
    ("a.sdf", ETHANOL.replace(b"M  END", b""), "record 1: .*before its 'M  END'"),
    ("a.sdf", FLAT_TEXT.replace(CODE, b"              2D"), "drawn in two dimensions"),
    ("a.smi", b"CCO", "SMILES has no 3D coordinates"), ("a.sdf", b"", "no ligands|empty"),
])  # fmt: skip
def test_reference__has_to_be_a_pose(tmp_path: Path, name: str, text: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(InputError, match=problem):
        read_first(str(tmp_path / name))

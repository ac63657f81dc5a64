"""Ligand files: where records end, what is in them, and how poses are written into them."""

import gzip
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.plan import Cost
from multigpu.errors import InputError, UsageError
from multigpu.io import ligands
from multigpu.io.autodock import atoms_for, for_maps, typed
from multigpu.io.ligands import (
    ENDS,
    Records,
    ligand_sources,
    records,
)
from multigpu.io.molecules import MoleculeError, Positions, parse
from multigpu.io.poses import SAME, format_of, render
from multigpu.io.sources import Source, expand
from multigpu.workloads.dock_plan import DockPlan, dock_spans

ETHANOL = b"""ethanol
  test              3D

  4  3  0  0  0  0  0  0  0  0999 V2000
   -0.8883    0.1670   -0.0273 C   0  0  0  0  0  0  0  0  0  0  0  0
    0.4658   -0.5116   -0.0368 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.4311    0.3229    0.5867 O   0  0  0  0  0  0  0  0  0  0  0  0
    1.5211    1.1229   -0.0433 H   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
  3  4  1  0
M  END
> <vendor>
A-17

$$$$
"""
V3000 = b"""big
  test              3D

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 2 1 0 0 0
M  V30 BEGIN ATOM
M  V30 7 C -1.5 0.25 3 0 -
M  V30 CFG=1
M  V30 9 O 1.0 0.5 2.0 0
M  V30 END ATOM
M  V30 BEGIN BOND
M  V30 1 2 7 9
M  V30 END BOND
M  V30 END CTAB
M  END
$$$$
"""
MOL2 = b"""# a comment
@<TRIPOS>MOLECULE
phenol-ish
 4 3 1 0 0
SMALL
USER_CHARGES

@<TRIPOS>ATOM
      1 C1         -0.8883    0.1670   -0.0273 C.ar      1 LIG1        0.1000
      2 N1          0.4658   -0.5116   -0.0368 N.ar      1 LIG1       -0.2000
      3 O1          1.4311    0.3229    0.5867 O.3       1 LIG1       -0.4000
      4 H1          1.5211    1.1229   -0.0433 H         1 LIG1        0.5000
@<TRIPOS>BOND
     1     1     2   ar
     2     1     3    1
     3     3     4    1
"""
PDB = b"""REMARK  Name = water
ATOM      1  O   HOH A   1       1.000   2.000   3.000  1.00  0.00           O
HETATM    2 CL   LIG A   1      -1.500   2.250   3.125  1.00  0.00          CL
HETATM    3 1HB  LIG A   1      -1.500   2.250   4.125  1.00  0.00
CONECT    1    2
END
"""
PDBQT = b"""REMARK  Name = thing
ROOT
HETATM    1  C11 BTN A 300       9.051   4.576 -14.459  1.00 21.57     0.172 N
HETATM    2  O11 BTN A 300       8.147   5.373 -14.172  1.00 21.65    -0.648 OA
HETATM    3  H1  BTN A 300       8.697   3.498 -15.132  1.00 22.67     0.164 HD
ENDROOT
TORSDOF 0
"""
XYZ = b"3\nwater-like\nO 0.0 0.1 0.25\nH   1.5 -2.0 3\n  17 1e0 2 3 extra\n"
TEXTS = {
    "sdf": ETHANOL, "mol2": MOL2, "pdb": PDB, "pdbqt": PDBQT, "xyz": XYZ,
}  # fmt: skip
MANY = {
    "sdf": [ETHANOL, V3000, ETHANOL.replace(b"\n", b"\r\n"), b"\n" + ETHANOL[8:]],
    "mol2": [MOL2, MOL2.replace(b"# a comment\n", b""), MOL2],
    "pdb": [b"MODEL %8d\n" % number + PDB[:-4] + b"ENDMDL\n" for number in (1, 2)],
    "pdbqt": [b"MODEL 1\n" + PDBQT + b"ENDMDL\n"] * 3,
    "xyz": [XYZ, b"1\n\nC 1 2 3\n", XYZ],
}  # fmt: skip


def cut(text: bytes, ends: list[int]) -> list[bytes]:
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


def each(found: Iterable[Records], sources: Sequence[Source]) -> list[tuple[int, int, bytes]]:
    """Source, number and text of every record."""
    return [
        (some.source, some.number + k, text)
        for some in found
        for k, text in enumerate(some.texts(sources).each())
    ]


# ---- where records end ------------------------------------------------------------------------


@pytest.mark.parametrize("layout", MANY)
def test_ends__are_behind_every_record(layout: str) -> None:
    wanted = MANY[layout]
    # The last comment of a MOL2 record cannot be told from the first one of the next.
    text = b"".join(wanted)
    found = cut(text, ENDS[layout](text, True))
    assert b"".join(found) == text
    assert len(found) == len(wanted)
    if layout != "mol2":
        assert found == wanted


@pytest.mark.parametrize("layout", MANY)
def test_ends__are_the_same_one_byte_further_at_a_time(layout: str) -> None:
    text = b"".join(MANY[layout])
    whole = ENDS[layout](text, True)
    for size in range(len(text)):
        found = ENDS[layout](text[:size], False)
        assert found == whole[: len(found)]
        assert all(end <= size for end in found)


@pytest.mark.parametrize("layout", MANY)
@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
def test_records__are_the_same_from_blocks_of_any_size(
    layout: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", size)
    text = b"".join(MANY[layout])
    path = tmp_path / f"some.{layout}.gz"
    path.write_bytes(gzip.compress(text))
    sources, bad = ligand_sources([str(path)], skip=True)
    found = each(records(0, sources[0]), sources)
    wanted = cut(text, ENDS[layout](text, True))
    assert bad == []
    assert found == [(0, number, text) for number, text in enumerate(wanted, 1)]


@pytest.mark.parametrize("layout", MANY)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_records__are_the_same_read_again(
    layout: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ligands, "READ_BYTES", size)
    (tmp_path / "plain").write_bytes(b"".join(MANY[layout]))
    sources, _ = ligand_sources([str(tmp_path / "plain")], False)
    whole, light = list(records(0, sources[0])), list(records(0, sources[0], with_text=False))
    assert all(some.text is None for some in light)
    assert len(each(whole, sources)) == len(MANY[layout]) > 1
    assert each(light, sources) == each(whole, sources)
    assert [light[0].number, light[-1].last] == [1, len(MANY[layout])]


@given(
    plain=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    chunk_bytes=st.integers(1, 8 * len(ETHANOL)),
    chunk_ligands=st.integers(1, 8),
)
def test_spans__are_the_same_whether_ligands_are_sent_or_read(
    plain: list[int], chunk_bytes: int, chunk_ligands: int
) -> None:
    plan = DockPlan(chunk_bytes, chunk_ligands, ((0, 10),), 0, Cost(1, 0), 1)
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.sdf" for i in range(len(plain))]
        for path, count in zip(paths, plain, strict=True):
            path.write_bytes(
                b"".join(ETHANOL.replace(b"A-17", b"A" * (1 + k)) for k in range(count))
            )
        sources, _ = ligand_sources([str(path) for path in paths], False)
        both = []
        for with_text in (True, False):
            every = chain.from_iterable(
                records(i, source, with_text) for i, source in enumerate(sources)
            )
            spans = list(dock_spans(every, plan))
            assert all(
                isinstance(some.text, bytes) == with_text for s in spans for some in s.records
            )
            both.append([(span.first, each(span.records, sources)) for span in spans])
    sent, found = both
    assert sent == found
    for _, group in sent:
        size = sum(len(text) for _, _, text in group)
        assert len(group) == 1 or (size <= chunk_bytes and len(group) <= chunk_ligands)


def test_records__of_a_file_that_has_become_shorter(tmp_path: Path) -> None:
    path = tmp_path / "two.sdf"
    path.write_bytes(2 * ETHANOL)
    sources, _ = ligand_sources([str(path)], False)
    light = list(records(0, sources[0], with_text=False))
    path.write_bytes(ETHANOL)
    with pytest.raises(InputError, match="was cut while it was read"):
        each(light, sources)


def test_records__of_a_cut_file_end_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "cut.sdf.gz"
    numbers = np.random.default_rng(1).random(20_000).tolist()
    text = b"".join(ETHANOL.replace(b"A-17", b"%r" % number) for number in numbers)
    path.write_bytes(gzip.compress(text)[:-9])
    sources, _ = ligand_sources([str(path)], skip=True)
    *good, last = records(0, sources[0])
    assert last.error == "gzip data ends early: the file is truncated"
    assert last.number == good[-1].last + 1 > 1


def test_records__of_a_file_without_atoms_say_so(tmp_path: Path) -> None:
    path = tmp_path / "none.pdb"
    path.write_bytes(b"REMARK nothing\nEND\n")
    sources, _ = ligand_sources([str(path)], skip=True)
    (only,) = records(0, sources[0])
    assert only.error == "there is no molecule in it"


@pytest.mark.parametrize("layout", TEXTS)
def test_layout__is_told_by_the_content_where_the_name_says_nothing(
    layout: str, tmp_path: Path
) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(TEXTS[layout])
    (source,), _ = ligand_sources([str(path)], skip=False)
    assert source.layout == layout


def test_sources__that_are_no_ligands_are_skipped_or_stop(tmp_path: Path) -> None:
    good, empty, other = (tmp_path / name for name in ("a.sdf", "b.sdf", "c.txt"))
    good.write_bytes(ETHANOL)
    empty.write_bytes(b"")
    other.write_bytes(b"hello")
    paths = [str(good), str(empty), str(other)]
    sources, bad = ligand_sources(paths, skip=True)
    assert [source.layout for source in sources] == ["sdf", "", ""]
    assert [(record.source, record.error[:20]) for record in bad] == [
        (1, "is empty"),
        (2, "no ligands by name o"),
    ]
    with pytest.raises(InputError, match=r"b\.sdf: is empty"):
        ligand_sources(paths, skip=False)


def test_directory__stands_for_its_ligands(tmp_path: Path) -> None:
    for name in ("b.sdf", "a.pdbqt.gz", "c.xyz", ".hidden.sdf", "notes.txt"):
        (tmp_path / name).write_bytes(ETHANOL)
    found = expand([str(tmp_path)], ligands.LIGANDS)
    assert found == [str(tmp_path / name) for name in ("a.pdbqt.gz", "b.sdf", "c.xyz")]


# ---- what is in them --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "layout", "name", "elements", "first", "bonds"),
    [
        (ETHANOL, "sdf", "ethanol", "C C O H", (-0.8883, 0.1670, -0.0273), 3),
        (V3000, "sdf", "big", "C O", (-1.5, 0.25, 3), 1),
        (MOL2, "mol2", "phenol-ish", "C N O H", (-0.8883, 0.1670, -0.0273), 3),
        (PDB, "pdb", "water", "O Cl H", (1, 2, 3), 1),
        (PDBQT, "pdbqt", "thing", "N O H", (9.051, 4.576, -14.459), 0),
        (XYZ, "xyz", "water-like", "O H Cl", (0, 0.1, 0.25), 0),
    ],
)
def test_parse__gives_atoms_in_their_order(
    text: bytes, layout: str, name: str, elements: str, first: tuple[float, ...], bonds: int
) -> None:
    molecule = parse(text, layout)
    assert molecule.name == name
    assert " ".join(molecule.elements) == elements
    assert molecule.positions[0].tolist() == list(first)
    assert len(molecule.bonds) == bonds


@pytest.mark.parametrize(
    ("layout", "text", "problem"),
    [
        ("sdf", ETHANOL[:200], "it ends at line 6, before the last of 4 atoms and 3 bonds"),
        ("sdf", ETHANOL.replace(b"  4  3", b"  x  3"), "line 4: '  x   3' should be whole numbers"),
        ("sdf", ETHANOL.replace(b"0.4658", b"0.x658"), "line 6: the coordinates .* cannot be read"),
        ("sdf", ETHANOL.replace(b"0.4658", b"   nan"), "line 6: the coordinates are not finite"),
        ("sdf", ETHANOL.replace(b"0.4658", b"2e99  "), "line 6: .* are beyond ±1e\\+09 Å"),
        ("sdf", ETHANOL.replace(b"  2  3  1", b"  2  9  1"), "line 10: a bond between .* 2 and 9"),
        ("sdf", ETHANOL.replace(b"M  END", b""), "before its 'M  END'"),
        ("sdf", b"only\n", "it ends at line 1, before its counts line"),
        ("sdf", ETHANOL.replace(b"  4  3", b"  0  0"), "it has no atoms"),
        ("sdf", V3000.replace(b"7 9\n", b"7 8\n"), "line 13: a bond between atoms 1 and 0 of 2"),
        ("mol2", MOL2.replace(b" 4 3 1", b" 5 3 1"), "it has 4 atoms where its header says 5"),
        ("mol2", MOL2.replace(b"O.3  ", b"     ").replace(b"1 LIG1       -0.4000", b""),
         "line 11: an atom needs"),
        ("mol2", b"@<TRIPOS>MOLECULE\nx\n", "it has no atoms"),
        ("pdb", PDB.replace(b"2.000", b"2.0.0"), "line 2: the coordinates .* cannot be read"),
        ("pdbqt", PDBQT.replace(b"OA\n", b"\n"), "line 4: the atom has no AutoDock type"),
        ("pdbqt", PDBQT.replace(b"-0.648", b"      "), "line 4: the charge"),
        ("xyz", XYZ[:40], "it ends at line 4, before the last of 3 atoms"),
        ("xyz", XYZ.replace(b" 3\n", b"\n"), "line 4: an atom needs a symbol and a place"),
        ("xyz", b"many\n", "line 1: 'many' should be whole numbers"),
    ],
)  # fmt: skip
def test_parse__says_what_is_wrong_and_where(layout: str, text: bytes, problem: str) -> None:
    with pytest.raises(MoleculeError, match=problem):
        parse(text, layout)


# ---- types and charges ------------------------------------------------------------------------


def test_types__of_pdbqt_are_those_of_the_file() -> None:
    found = typed(parse(PDBQT, "pdbqt"))
    assert found.types == ["N", "OA", "HD"]
    assert found.charges.tolist() == [0.172, -0.648, 0.164]


def test_types__of_mol2_follow_from_sybyls() -> None:
    found = typed(parse(MOL2, "mol2"))
    assert found.types == ["A", "NA", "OA", "HD"]
    assert found.charges.tolist() == [0.1, -0.2, -0.4, 0.5]


def test_types__of_mol2_without_charges_are_refused() -> None:
    with pytest.raises(MoleculeError, match="NO_CHARGES"):
        typed(parse(MOL2.replace(b"USER_CHARGES", b"NO_CHARGES"), "mol2"))


@pytest.mark.parametrize("layout", ["pdb", "xyz"])
def test_types__need_bond_orders(layout: str) -> None:
    with pytest.raises(MoleculeError, match=f"{layout.upper()} has neither bond orders nor"):
        typed(parse(TEXTS[layout], layout))


SMILES = {
    "CC(=O)Nc1ccc(O)cc1": "C C OA N A A A A OA A A",
    "c1ccncc1": "A A A NA A A",
    "c1cc[nH]c1": "A A A N A",
    "CN(C)C": "C NA C C",
    "CC#N": "C C NA",
    "CS(=O)(=O)N": "C S OA OA NA",
    "CSC": "C SA C",
    "c1ccsc1": "A A A S A",
    "C[NH3+]": "C N",
    "ClC(F)Br": "Cl C F Br",
    "CP(=O)(O)O": "C P OA OA OA",
}


@pytest.mark.parametrize("smiles", SMILES)
def test_types__of_sdf_are_those_that_meeko_gives(smiles: str) -> None:
    """The table was written down from meeko 0.8; heavy atoms only."""
    chem = pytest.importorskip("rdkit.Chem", reason="the extra `dock` is not installed")
    from rdkit.Chem import AllChem

    molecule = chem.AddHs(chem.MolFromSmiles(smiles))
    AllChem.EmbedMolecule(molecule, randomSeed=7)
    found = typed(parse(chem.MolToMolBlock(molecule).encode(), "sdf"))
    heavy = [t for t in found.types if t not in ("H", "HD")]
    assert " ".join(heavy) == SMILES[smiles]
    total = sum(atom.GetFormalCharge() for atom in molecule.GetAtoms())
    assert found.charges.sum() == pytest.approx(total, abs=1e-6)


def test_charges__of_sdf_hold_those_of_hydrogens_that_are_left_out() -> None:
    chem = pytest.importorskip("rdkit.Chem", reason="the extra `dock` is not installed")
    methanol = chem.MolToMolBlock(chem.MolFromSmiles("CO"))
    found = typed(parse(methanol.encode(), "sdf"))
    assert found.charges.tolist() == pytest.approx([0.19, -0.19], abs=1e-3)


def test_maps__without_hydrogen_give_its_charge_to_the_carbon() -> None:
    text = MOL2.replace(b"3     3     4    1", b"3     1     4    1")
    found = for_maps(parse(text, "mol2"), ["A", "NA", "OA"])
    assert found.types == ["A", "NA", "OA", ""]
    assert found.charges.tolist() == [0.6, -0.2, -0.4, 0.0]


def test_maps__that_are_missing_are_named() -> None:
    with pytest.raises(MoleculeError, match="no map of atom type HD, OA: the pocket has C, N"):
        for_maps(parse(PDBQT, "pdbqt"), ["C", "N"])


# ---- poses as text ----------------------------------------------------------------------------


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


# ---- odd records ------------------------------------------------------------------------------


def test_parse__an_element_of_other_digits_is_no_number() -> None:
    line = PDB.replace(b"           O\n", "          ²\n".encode())
    assert parse(line, "pdb").elements[0] == "²"


def test_parse__negative_counts_are_refused() -> None:
    with pytest.raises(MoleculeError, match="no numbers of atoms and bonds"):
        parse(ETHANOL.replace(b"  4  3", b"-10-10"), "sdf")


def test_records__of_a_number_of_thousands_of_digits_are_none() -> None:
    assert ENDS["xyz"](b"9" * 5000 + b"\nx\n", False) == []


@pytest.mark.parametrize("count", ["5", "9" * 5000])
def test_parse__another_number_of_atoms_than_the_header_says_is_refused(count: str) -> None:
    with pytest.raises(MoleculeError, match=r"it has 4 atoms where its header says [59]"):
        parse(MOL2.replace(b" 4 3 1", count.encode() + b" 3 1"), "mol2")


@pytest.mark.parametrize("charge", ["1000.5", "nan", "-1001"])
def test_types__a_charge_that_cannot_be_is_refused(charge: str) -> None:
    molecule = parse(PDBQT.replace(b"     0.172", charge.rjust(10).encode()), "pdbqt")
    with pytest.raises(MoleculeError, match="atom 1 has a charge of"):
        atoms_for(molecule, ("N", "OA", "HD"))


def test_records__of_another_length_than_their_text_are_refused() -> None:
    with pytest.raises(ValueError, match="of another length"):
        Records(0, 1, np.array([2, 3]), b"1234")

"""What XYZ says: names, labels, columns."""

import pytest
from support.ligand_texts import XYZ

from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import parse


@pytest.mark.parametrize(("columns", "good"), [
    ("species:S:1:pos:R:3", True), ("species:S:1:pos:R:3:forces:R:3", True),
    ("pos:R:3:species:S:1", False), ("species:S:1:forces:R:3:pos:R:3", False),
])  # fmt: skip
def test_xyz__with_columns_in_another_order_is_refused(columns: str, good: bool) -> None:
    text = XYZ.replace(b"water-like", f'Lattice="5 0 0" Properties={columns} energy=1'.encode())
    if good:
        assert len(parse(text, "xyz").rows) == 3
    else:
        with pytest.raises(MoleculeError, match=f"line 2: its columns are '{columns}'"):
            parse(text, "xyz")


@pytest.mark.parametrize(("comment", "name"), [
    (b"a score=1 of mine", "a score=1 of mine"),
    (b"a score=1 pose=2", "a score=1 pose=2"),
    (b"a score=1.5 pose=1 rotation=7 rmsd_to_input=0.5 and more",
     "a score=1.5 pose=1 rotation=7 rmsd_to_input=0.5 and more"),
    (b"a score=x score=-1.500000 pose=1 rotation=7 rmsd_to_input=0.5000", "a score=x"),
    (b" score=-1.500000 pose=1 rotation=7 rmsd_to_input=0.5000", ""),
])  # fmt: skip
def test_xyz__is_called_like_its_comment_without_facts(comment: bytes, name: str) -> None:
    assert parse(XYZ.replace(b"water-like", comment), "xyz").name == name


@pytest.mark.parametrize(("label", "element"), [
    ("C1", "C"), ("FE2", "Fe"), ("cl12", "Cl"), ("17", "Cl"), ("6", "C"), ("0", "0"),
    ("999", "999"), ("D", "D"), ("Bq", "Bq"), ("Bq1", "Bq"), ("C1A", "C1a"),
])  # fmt: skip
def test_xyz__labels_may_be_numbered(label: str, element: str) -> None:
    assert parse(f"1\n\n{label} 0 0 0\n".encode(), "xyz").elements == [element]

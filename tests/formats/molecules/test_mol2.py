"""Ligands in MOL2 files."""

from support.ligand_texts import mol2

from multigpu.formats.molecules.registry import largest_fragment, parse


def test_largest_fragment__of_a_record_whose_head_is_not_marked() -> None:
    text = mol2("C.3 C.3 O.3", "1-2")
    damaged = text.replace(b"@<TRIPOS>MOLECULE", b" @<TRIPOS>MOLECULE")
    for record in (text, damaged):
        kept = largest_fragment(parse(record, "mol2"))
        assert kept.lines[0] == b"@<TRIPOS>MOLECULE\n"
        assert len(kept.rows) == 2

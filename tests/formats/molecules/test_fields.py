"""Where records end in files that were put together; numbers in columns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ligand_texts import MANY

from multigpu.formats.molecules.fields import format_number
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import FORMATS


@pytest.mark.parametrize(("number", "text"), [
    (1.5, "   1.500"), (-999.9994, "-999.999"), (-999.9996, "-1000.00"),
    (12345.678, "12345.68"), (-123456.5, "-123456."), (999999.4, "999999.4"),
    (9999999.0, "9999999."), (-0.0, "  -0.000"),
])  # fmt: skip
def test_number__has_as_many_decimals_as_its_columns_hold(number: float, text: str) -> None:
    assert format_number(number, 8, 3) == text
    for beyond in (-999999.7, 1e7):
        with pytest.raises(MoleculeError, match="does not fit the 8 columns"):
            format_number(beyond, 8, 3)


ATOM = b"ATOM      1  C   LIG A   1       0.000   0.000   0.000  1.00  0.00           C\n"
TYPED = b"ATOM      1  C   LIG A   1       0.000   0.000   0.000  1.00  0.00     0.000 C\n"
ROOT = b"ROOT\n" + TYPED + b"ENDROOT\nBRANCH 1 2\n" + TYPED + b"ENDBRANCH 1 2\nTORSDOF 1\n"
NAMED = b"REMARK  Name = one\nREMARK  1 active torsions:\n" + ROOT
RESIDUE = b"BEGIN_RES ARG A 8\nREMARK  4 active torsions:\n" + ROOT[:-10] + b"END_RES ARG A 8\n"
HEAD = b"@<TRIPOS>MOLECULE\n"
GRIDDED = b"########## Name: %b\n########## Grid_Score: %b\n@<TRIPOS>MOLECULE\n%b\n"
JOINED = [
    *(pytest.param(layout, texts, id=f"{layout} of many kinds") for layout, texts in MANY.items()),
    pytest.param("mol2", [GRIDDED % (b"a", b"-1", b"a"), GRIDDED % (b"b", b"-22", b"b")], id="D"),
    pytest.param("mol2", [HEAD + b"a\n", b"\n# b\n \r\n" + HEAD], id="blank"),
    pytest.param("mol2", [b"# a\n" + HEAD + b"# in\na\n # c\n", HEAD[:-1]], id="#"),
    pytest.param("mol2", [HEAD] * 3, id="nothing between"),
    pytest.param("pdb", [b"HEADER a\n" + ATOM + b"END\n"] * 2, id="END"),
    pytest.param("pdb", [ATOM + b"END   \r\n", ATOM + b"END\n"], id="END and blanks"),
    pytest.param("pdb", [ATOM + b"END OF IT\n" + ATOM + b"ENDE\n"], id="END of something else"),
    pytest.param("pdb", [b"MODEL 1\n" + ATOM + b"ENDMDL\n"] * 2, id="models"),
    pytest.param("pdb", [b"MODEL 1\n" + ATOM + b"END\n", b"ENDMDL\nMODEL 2\n" + ATOM], id="both"),
    pytest.param("pdb", [ATOM + b"END\n", b"END\nEND\n" + ATOM + b"END\n"], id="END of nothing"),
    pytest.param("pdb", [b"MODEL 1\nENDMDL\n", ATOM], id="an empty model"),
    pytest.param("pdbqt", [NAMED] * 3, id="remarks"),
    pytest.param("pdbqt", [ROOT] * 3, id="no remarks"),
    pytest.param("pdbqt", [NAMED, b"MODEL 2\n" + NAMED, b"\n" + NAMED], id="MODEL alone"),
    pytest.param("pdbqt", [b"MODEL 1\n" + NAMED + b"ENDMDL\n"] * 2 + [NAMED], id="then models"),
    pytest.param("pdbqt", [NAMED + b"END\n", ROOT.replace(b"\n", b"\r\n")], id="line ends"),
    pytest.param("pdbqt", [NAMED + RESIDUE * 2, NAMED], id="flexible residues"),
    pytest.param("pdbqt", [NAMED + b"ROOTS\nROOT_2\n"], id="no ROOT"),
    pytest.param("xyz", [b"1\na\nC 0 0 0\n", b"\n\n1\nb\nC 1 0 0\n"], id="blank lines"),
    pytest.param("xyz", [b" \n1\n\nC 0 0 0\n", b" \r\n1\r\n\r\nC 1 0 0"], id="blanks and comments"),
    pytest.param("xyz", [b"1\na\nC 0 0 0\n", b"2\nb\nC 1 0 0\n"], id="an atom less"),
    pytest.param("xyz", [b"1\na\nC 0 0 0\n", b"C 1 0 0\n1\nb\nC 1 0 0\n"], id="an atom more"),
    pytest.param("xyz", [b"what?\n1\nb\nC 1 0 0\n"], id="no count"),
    pytest.param("xyz", [b"1\n1\nC 0 0 0\n", b"1\n2\nC 1 0 0\n"], id="comments of digits"),
]
LINES = [
    ATOM, b"END\n", b"ENDMDL\n", b"MODEL 1\n", b"ROOT\n", b"REMARK\n", b"\n", b"0\n", b"1\n",
    b" 2 \n", b"C 0 0 0\n", b"a b\n", b"a\n", b"3", b"# a\n", b"@<TRIPOS>MOLECULE\n",
]  # fmt: skip


def cut(text: bytes, ends: list[int]) -> list[bytes]:
    return [text[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize(("layout", "wanted"), JOINED)
def test_joined__files_are_cut_where_they_were_joined(layout: str, wanted: list[bytes]) -> None:
    """The same one byte further at a time."""
    text = b"".join(wanted)
    whole = FORMATS[layout].find_ends(text, True)
    assert cut(text, whole) == wanted
    for size in range(len(text)):
        found = FORMATS[layout].find_ends(text[:size], False)
        assert found == whole[: len(found)]
        assert all(end <= size for end in found)


@pytest.mark.parametrize("layout", ["mol2", "pdb", "pdbqt", "xyz"])
@given(st.lists(st.sampled_from(LINES)), st.integers(0))
def test_ends__of_any_lines_do_not_change(layout: str, lines: list[bytes], size: int) -> None:
    text = b"".join(lines)
    whole = FORMATS[layout].find_ends(text, True)
    assert (np.diff([0, *whole]) > 0).all()
    assert not whole or whole[-1] <= len(text)
    found = FORMATS[layout].find_ends(text[: size % (len(text) + 1)], False)
    assert found == whole[: len(found)]

"""Files of SMILES: lines, names, and what is no molecule."""

from itertools import pairwise

import pytest

from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.registry import FORMATS, parse
from multigpu.formats.molecules.smiles import find_ends, read_smiles

TEXT = b"SMILES Name\nCCO\tethanol and more\n\n# a comment\r\nC1=CC=CC=C1 |c:0| benzene\r\n  \nO"
RECORDS = [("CCO", "ethanol and more"), ("C1=CC=CC=C1", "benzene"), ("O", "")]


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_records__are_the_lines_with_a_molecule_wherever_the_text_is_cut(cut: int) -> None:
    first = [0, *find_ends(TEXT[:cut], False)]
    rest = TEXT[first[-1] :]
    found = [TEXT[a:b] for a, b in pairwise(first)]
    ends = [0, *find_ends(rest, True)]
    found += [rest[a:b] for a, b in pairwise(ends)]
    assert [*map(read_smiles, found)] == RECORDS
    assert [*map(FORMATS["smiles"].read_name, found)] == [name for _, name in RECORDS]


def test_smiles__have_no_coordinates() -> None:
    with pytest.raises(MoleculeError, match="SMILES has no 3D coordinates"):
        parse(b"CCO a\n", "smiles")

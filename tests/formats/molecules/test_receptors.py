"""Receptors: what is read, what Meeko leaves out or guesses, and what is refused."""

import re
import sys
from collections.abc import Callable

import gemmi
import numpy as np
import pytest
from support.ligand_texts import ETHANOL
from support.receptor_texts import FAR, LIGAND, WATER, ZINC, peptide, peptide_pdbqt
from support.stored import Store

from multigpu import InputError
from multigpu.formats.molecules.receptors import read_receptor
from multigpu.kernels.maps import Receptor

COPPER = ZINC.replace(b"ZN    ZN", b"CU    CU").replace(b"ZN\n", b"CU\n")
Reading = Callable[..., tuple[Receptor, list[str]]]
Change = Callable[[bytes], bytes]


@pytest.fixture
def read(store: Store) -> Reading:
    return lambda content, name="r.pdbqt": read_receptor(store(content, name))


def alternate(text: bytes, occupancies: tuple[float, float]) -> bytes:
    """Return the text with another place of OG of the serine, 0.2 Å along x."""
    (line,) = (x for x in text.splitlines(True) if x[12:20] == b" OG  SER")
    places = []
    for letter, occupancy, shift in zip(b"AB", occupancies, (0, 0.2), strict=True):
        x = b"%8.3f" % (float(line[30:38]) + shift)
        place = line[:16] + bytes([letter]) + line[17:30] + x + line[38:54]
        places.append(place + b"%6.2f" % occupancy + line[60:])
    return text.replace(line, b"".join(places))


def test_receptor__of_pdb_and_of_mmcif_are_prepared_alike(read: Reading) -> None:
    lines = peptide().splitlines(True)
    incomplete = b"".join(x for x in lines if x[12:20] != b" OD2 ASP")
    text = alternate(incomplete, (0.3, 0.7)) + WATER + ZINC + FAR + LIGAND + b"END\n"
    structure = gemmi.read_pdb_string(text)
    structure.setup_entities()
    found, notes = read(text, "r.pdb")
    same, others = read(structure.make_mmcif_document().as_string().encode(), "r.cif")
    assert notes == others
    assert np.array_equal(found.positions, same.positions)
    assert found.types == same.types
    assert {*found.types} == {"A", "C", "HD", "N", "NA", "OA", "Zn"}
    assert notes[0] == "of alternate locations the best occupied were taken: SER A 4"
    assert re.sub(r"(ASP A 5 at) \d+ Å", r"\1 3 Å", notes[1]) == (
        "waters left out: HOH A 901 at 9 Å; left out, as Meeko has no template or they lack"
        " atoms of it: ASP A 5 at 3 Å, XYZ A 903 at 12 Å, ABC A 904 at 20 Å; hydrogens added:"
        " ALA A 1, HIS A 2, GLY A 3, SER A 4, ALA A 6; those of histidines: HIS A 2 HE2;"
        " charges of ions: ZN A 902 +2"
    )
    (og,) = (i for i, name in enumerate(found.names) if name == "OG of SER A 4")
    (line,) = (x for x in peptide().splitlines() if x[12:20] == b" OG  SER")
    assert found.positions[og, 0] == pytest.approx(float(line[30:38]) + 0.2)


def test_receptor__has_one_of_two_residues_in_one_place(read: Reading) -> None:
    text = b""
    for line in peptide().splitlines(True):
        if line[17:20] == b"SER":
            text += line[:16] + b"ASER" + line[20:54] + b"  0.30" + line[60:]
            line = line[:16] + b"BCYS" + line[20:54] + b"  0.70" + line[60:]
            if line[12:16] == b" OG ":
                line = line[:12] + b" SG " + line[16:76] + b" S  \n"
        text += line
    found, notes = read(text, "r.pdb")
    residues = {name.partition(" of ")[2] for name in found.names}
    assert {"SER A 4", "CYS A 4"} & residues == {"CYS A 4"}
    assert notes[0] == "of alternate locations the best occupied were taken: SER A 4"


def test_receptor__of_pdbqt_has_what_the_file_says(read: Reading) -> None:
    text = peptide_pdbqt()
    found, notes = read(text)
    rows = text.splitlines()
    assert notes == []
    assert list(found.types) == [x[77:79].decode().strip() for x in rows]
    assert found.charges.tolist() == [float(x[66:76]) for x in rows]
    again, notes = read(alternate(text, (0.6, 0.4)), "b.pdbqt")
    assert np.array_equal(again.positions, found.positions)
    assert notes == ["of alternate locations the best occupied were taken: SER A 4"]
    again, _ = read(b"\xef\xbb\xbf" + text, "mark.pdbqt")
    assert np.array_equal(again.positions, found.positions)
    models = b"".join(b"MODEL %d\n%bENDMDL\n" % (k, text) for k in (1, 2))
    for several in (models, text + b"END\n" + text):
        again, notes = read(several)
        assert np.array_equal(again.positions, found.positions)
        assert notes == ["of 2 models the first was taken"]


def each(change: Change) -> Change:
    return lambda text: b"".join(map(change, text.splitlines(True)))


def nanometres(line: bytes) -> bytes:
    return b"".join(b"%8.3f" % (float(line[k : k + 8]) / 10) for k in (30, 38, 46))


@pytest.mark.parametrize(("name", "change", "problem"), [
    ("r.pdbqt", each(lambda line: b"" if b"HD" in line else line), "it has no hydrogens"),
    ("r.pdbqt", each(lambda line: line[:66] + b"     0.000" + line[76:]), "it has no charges"),
    ("r.pdbqt", each(lambda line: line[:30] + nanometres(line) + line[54:]), "nanometres"),
    ("r.pdbqt", lambda x: x[:66] + b"       nan" + x[76:], "atom 1 has a charge of nan"),
    ("r.pdbqt", lambda x: b"ROOT\n" + x + b"ENDROOT\nTORSDOF 0\n", "this is a ligand"),
    ("r.pdbqt", lambda x: x[:77] + b"  " + x[79:], "line 1: the atom has no AutoDock type"),
    ("r.pdbqt", lambda x: x.decode().encode("utf-16"), "is text in UTF-16: convert it with"),
    ("r.pdbqt", lambda _: b"REMARK\n", "it has no atoms"),
    ("r.pdbqt", lambda x: x[:78], "line 1: the file ends in the middle of an atom"),
    ("r.pdbqt", lambda x: x + x, r"C of ALA A 1 is at the place of C of ALA A 1 \(47 such"),
    ("r.pdb", lambda _: peptide() + COPPER, "it has no atom type for CU A 902"),
    ("r.pdb", lambda _: peptide() + ZINC[:20] + b" " + ZINC[20:], "line 40: the coordinates"),
    ("r.sdf", lambda _: ETHANOL, "no receptor by its name"),
    ("r.pdb", lambda _: LIGAND, "nothing of it can be prepared: .*: XYZ A 903 at"),
    ("r.pdb", lambda _: each(lambda x: x[:30] + nanometres(x) + x[54:])(peptide()), "nanomet"),
    ("r.pdb", lambda _: b"END\n", "Meeko cannot prepare it: it has no atoms"),
    ("r.cif", lambda _: b"data_x\n_a 'b\n", "Meeko cannot prepare it"),
])  # fmt: skip
def test_receptor__that_is_not_prepared_or_none(
    read: Reading, name: str, change: Change, problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        read(change(peptide_pdbqt()), name)


def test_pdb__needs_meeko(read: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meeko", None)
    with pytest.raises(InputError, match=r"needs Meeko: pip install 'multigpu\[receptors\]'"):
        read(peptide(), "r.pdb")

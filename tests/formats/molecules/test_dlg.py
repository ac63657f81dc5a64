"""Logs of AutoDock: each docked pose is a ligand."""

import numpy as np
import pytest
from support.ligand_texts import DLG, PDBQT

from multigpu.errors import UsageError
from multigpu.formats.molecules.dlg import DLG as FORMAT
from multigpu.formats.molecules.molecule import MoleculeError
from multigpu.formats.molecules.poses import format_of, render
from multigpu.formats.molecules.registry import format_of_content, parse

HISTOGRAM = b"\nCLUSTERING HISTOGRAM\nMODEL 1\nATOM      1  C   LIG\nENDMDL\n"


@pytest.mark.parametrize("poses", [1, 3])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_records__are_the_docked_poses(poses: int, newline: bytes) -> None:
    text = (DLG * poses + HISTOGRAM).replace(b"\n", newline)
    ends = FORMAT.find_ends(text, True)
    size = len(DLG.replace(b"\n", newline))
    assert ends == [size * (k + 1) for k in range(poses)]
    assert format_of_content(text) == "dlg"
    for begin, end in zip([0, *ends], ends, strict=False):
        molecule = parse(text[begin:end], "dlg")
        assert molecule.types == parse(PDBQT, "pdbqt").types
        assert np.array_equal(molecule.positions, parse(PDBQT, "pdbqt").positions)
        assert FORMAT.read_name(text[begin:end]) == "thing"


def test_records__of_a_log_that_is_cut_anywhere() -> None:
    text = DLG * 2
    for at in range(len(text)):
        assert FORMAT.find_ends(text[:at], False) == [len(DLG)] * (at >= len(DLG))
    inside = text[: len(DLG) + DLG.index(b"DOCKED: ENDROOT")]
    assert FORMAT.find_ends(inside, True) == [len(DLG), len(inside)]


def test_pose__of_a_log_is_pdbqt() -> None:
    molecule = parse(DLG, "dlg")
    pose = render(molecule, "x", "pdbqt", molecule.positions + 1, {"score": "1"})
    assert b"DOCKED" not in pose
    assert np.allclose(parse(pose, "pdbqt").positions, molecule.positions + 1)
    with pytest.raises(UsageError, match=r"poses are written as .*\.pdbqt"):
        format_of("poses.dlg")
    with pytest.raises(MoleculeError, match="no docked pose"):
        parse(b"AutoDock\n", "dlg")

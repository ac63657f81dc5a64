"""Maps of the redocking set's receptors against those that autogrid4 writes."""

import gzip
import json
from pathlib import Path

import pytest
from support.autogrid import KINDS, PROGRAM, assert_close, autogrid, receptor_of
from support.golden import cases

from multigpu.kernels.maps import GridBox, compute_maps


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="autogrid4 is not installed")
@pytest.mark.parametrize("name", cases("redock/*/case.json"))
def test_maps__of_a_receptor(golden: Path, name: str, tmp_path: Path) -> None:
    """Most types, in the middle of the box that the set gives."""
    folder = golden / "redock" / name
    case = json.loads((folder / "case.json").read_text())
    pdbqt = gzip.decompress((folder / "receptor.pdbqt.gz").read_bytes()).decode()
    elements = tuple(each // 6 * 2 for each in case["elements"])
    box = GridBox(tuple(case["center"]), elements, case["spacing"])
    expected = autogrid(tmp_path, pdbqt, box, KINDS[:14])
    assert_close(compute_maps(receptor_of(pdbqt), box, KINDS[:14]), expected)

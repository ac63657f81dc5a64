"""Names of ligands and files stay text in the report of docking."""

import json
import re
from pathlib import Path

import pytest
from support.docked import SOME_SKIPPED, Dock, table
from support.ligand_texts import ETHANOL
from support.markup import CONTROLS, NAMES, read

from multigpu.run.report import literal

pytestmark = pytest.mark.process  # runs whole jobs

IN_DRAWING = b"""M  STY  1   1 DAT
M  SAL   1  1   1
M  SDT   1 LABEL
M  SDD   1     0.0000    0.0000    DA    ALL  1       5
M  SED   1 <img src=x onerror=alert(1)>
A    1
<img src=x onerror=alert(1)>
"""


@pytest.fixture(autouse=True)
def packages() -> None:
    for package in ("plotly", "rdkit", "jinja2"):
        pytest.importorskip(package, reason="the package is not installed")


def test_markup__in_a_report_of_docking_stays_text(dock: Dock) -> None:
    names = [name.encode() for name in NAMES]
    ligands = [ETHANOL.replace(b"ethanol", name, 1) for name in names]
    bad = [name + b"\n\n\nno molecule\n$$$$\n" for name in names]
    drawn = ETHANOL.replace(b"M  END", IN_DRAWING + b"M  END", 1)
    file = Path('"><img src=x onerror=alert(1)>{{7*7}}&amp;.sdf')
    file.write_bytes(b"".join([*ligands, drawn, *bad]))
    Path("all").mkdir()
    file = file.rename(Path("all") / file.name)
    assert dock("-o", "poses.sdf", "--report", "report.html", of="all") == SOME_SKIPPED
    page = Path("report.html").read_text()
    found = read(page, scripts=3)  # plotly, and two figures
    assert all(script.lstrip().startswith("window.PLOTLY") for script in found.scripts[1:])
    assert str(file) in found.text
    for row in table("poses.scores.tsv"):
        assert row["ligand"] in found.text
    for name in NAMES:
        assert found.text.count(name) >= 2  # one docked, one skipped
    best = next(name for name in NAMES if f"1. {name}" in found.text)
    figures = "".join(found.scripts[1:])
    (shown, *_) = re.findall(r'"name":("1\. (?:[^"\\]|\\.)*")', figures)
    assert json.loads(shown).startswith(f"1. {literal(best)} (")


def test_control_characters__in_a_report_of_docking_are_escaped(dock: Dock) -> None:
    Path("all").mkdir()
    named = ETHANOL.replace(b"ethanol", f"ligand{CONTROLS}".encode(), 1)
    Path("all", f"file{CONTROLS}.sdf").write_bytes(ETHANOL + named)
    assert dock("-o", "poses.sdf", "--report", "report.html", of="all") == SOME_SKIPPED
    found = read(Path("report.html").read_text(), scripts=3)
    for name in ("ligand", "file"):
        assert rf"{name}\x1b[2J\x07\x9b\u202e" in found.text
    text = "".join([found.text, *found.scripts[1:]])
    assert not set(text).intersection(CONTROLS[0] + CONTROLS[4:])

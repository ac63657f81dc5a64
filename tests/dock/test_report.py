"""The report of docking."""

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.browser import browse
from support.docked import COUNT, SOME_SKIPPED, Dock, table
from support.ligand_texts import ETHANOL
from support.markup import CONTROLS, ESCAPED, NAMES, read
from support.pocket_texts import autogrid

pytestmark = pytest.mark.process  # runs whole jobs
ATOM = "ATOM  {:5d}  {:3s} ASP A {:3d}    {:8.3f}   0.000   0.000  1.00  0.00     0.000 {}\n"


@pytest.fixture
def report(dock: Dock, library: Path) -> bytes:
    text = (library / "ligands.sdf").read_bytes()
    Path("named.sdf").write_bytes(text.replace(b"lig0\n", b"<script>alert(1)</script>\n", 1))
    assert dock("-o", "poses.sdf", "--report", "report.html", of="named.sdf") == 0
    return Path("report.html").read_bytes()


def test_report__has_the_best_ligands_best_first(report: bytes) -> None:
    assert len([each for each in read(report).scenes[0] if "bonds" in each]) == 12
    assert "<script>alert(1)" not in report.decode()
    rows = sorted(table("poses.scores.tsv"), key=lambda row: -float(row["score"]))[:12]
    wanted = [f"{i}. {r['ligand']}: {float(r['score']):.3f}" for i, r in enumerate(rows, 1)]
    assert [each["title"] for each in read(report).scenes[0][:-1]] == wanted


@pytest.mark.slow
def test_report__opens_in_a_browser_without_an_error(report: bytes, tmp_path: Path) -> None:
    ticked = "document.querySelectorAll('.scene input')[1].click(); document.title = 'clicked'"
    document, said = browse(report, tmp_path, ticked)
    assert said == []
    assert "<title>clicked</title>" in document
    assert document.count('class="figure js-plotly-plot"') == 2
    assert document.count("<canvas") > 0


def traces(report: bytes, number: int) -> list[dict[str, Any]]:
    """Return the traces of a figure: 0 the scores, 1 scores and sizes."""
    found: list[dict[str, Any]] = read(report).figures[number]["data"]
    return found


def test_report__shows_every_ligand_once_where_its_score_is(report: bytes) -> None:
    (bars,) = traces(report, 0)
    middles, widths = np.array(bars["x"]), np.array(bars["width"])
    scores = np.array([float(row["score"]) for row in table("poses.scores.tsv")])
    edges = np.append(middles - widths / 2, middles[-1] + widths[-1] / 2)
    edges[[0, -1]] += [-1e-9, 1e-9]
    assert bars["y"] == np.histogram(scores, edges)[0].tolist()
    assert sum(bars["y"]) == COUNT
    # Beside its size.
    near, far = traces(report, 1)
    rows = table("poses.scores.tsv")
    texts = [each.split() for each in Path("poses.sdf").read_text().split("$$$$\n")[:-1]]
    heavy = [sum(word in "CNOFSPClBr" for word in text[text.index("V2000") :]) for text in texts]
    assert (near["x"], far["x"]) == (heavy, [])
    assert near["y"] == pytest.approx([float(row["score"]) for row in rows], rel=1e-3)


def test_report__draws_the_pocket_where_it_stands(report: bytes, library: Path) -> None:
    given = np.load(library / "pocket.npz")
    surface = read(report).scenes[0][-1]
    begin, steps = np.array(surface["origin"]), np.array(surface["size"]) - 1
    assert begin == pytest.approx(np.broadcast_to(given["origin"], 3))
    end = begin + given["spacing"] * (np.array(given["grid"].shape) - 1)
    assert begin + np.array(surface["spacing"]) * steps == pytest.approx(end)
    bits = np.frombuffer(base64.b64decode(surface["bits"]), np.uint8)
    inside = np.unpackbits(bits, count=given["grid"].size, bitorder="little").astype(bool)
    assert 0.02 < inside.mean() < 0.04
    assert given["grid"].ravel()[inside].min() >= given["grid"].ravel()[~inside].max()


def test_report__lists_the_poses_by_the_rank_of_their_ligands(dock: Dock) -> None:
    assert dock("-o", "poses.sdf", "--report", "report.html", "--top", "3") == 0
    rows = table("poses.scores.tsv")
    best = sorted((row for row in rows if row["pose"] == "1"), key=lambda row: -float(row["score"]))
    ranks = {row["ligand"]: rank for rank, row in enumerate(best, 1)}
    wanted = sorted((ranks[row["ligand"]], row["pose"], row["ligand"],
                     f"{float(row['score']):.3f}") for row in rows)  # fmt: skip
    cells = re.findall(r"<tr><td>(.*?)</td></tr>", Path("report.html").read_text())
    shown = [row.split("</td><td>")[:4] for row in cells]
    assert [(int(rank), pose, name, score) for rank, name, score, pose in shown] == wanted


def test_report__of_maps_has_energies_and_the_receptor_beside_them(dock: Dock) -> None:
    energies = np.zeros((9, 9, 9)) - np.arange(9)[:, None, None] / 4  # -1 at x = 0
    field = autogrid(Path(), ["C"], lambda _: energies, (-4, -4, -4), 1.0)
    text = Path(field).read_text()
    Path(field).write_text(text.replace("#SPACING", "#MACROMOLECULE r.pdbqt\n#SPACING", 1))
    atoms = [(1, "CA", 7, 4.0, "C"), (2, "OD1", 7, 5.2, "OA"), (3, "CA", 99, 30.0, "C")]
    Path("r.pdbqt").write_text("".join(ATOM.format(*atom) for atom in atoms))
    model = "MODEL {}\nREMARK  Name = x{}\nROOT\n{}ENDROOT\nTORSDOF 0\nENDMDL\n"
    ligands = [*([x / 5] for x in range(-10, 11)), [0.0, 90.0]]  # the last one leaves the maps
    Path("l.pdbqt").write_text("".join(
        model.format(k, k, "".join(ATOM.format(i, "C", 1, x, "C") for i, x in enumerate(places, 1)))
        for k, places in enumerate(ligands, 1)
    ))  # fmt: skip
    assert dock("-o", "poses.sdf", "--report", "r.html", of="l.pdbqt", pocket=field) == 0
    page = Path("r.html").read_bytes()
    (around,) = [part for part in read(page).scenes[0] if part.get("is_thin")]
    assert around["labels"] == ["CA of ASP A 7", "OD1 of ASP A 7"]
    assert (around["elements"], around["bonds"]) == (["C", "O"], [[0, 1, 1]])
    shown = page.decode()
    assert ": -1.500 kcal/mol</label>" in shown
    assert "<li>1 by energy (kcal/mol, lower is better), where the median is -0.975:" in shown
    assert re.search(r"<li>x22: [0-9.e+]+</li>", shown)
    near, far = traces(page, 1)
    assert (len(near["x"]), far["x"]) == (21, [2])


ODD_SDF = (
    "odd\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"
    "    0.0000    0.0000    0.0000 Xx  0  0  0  0  0  0  0  0  0  0  0  0\nM  END\n$$$$\n"
)


@pytest.mark.parametrize(("name", "text"), [
    ("odd.xyz", "3\nodd\nXx 0 0 0\nC1 1.2 0 0\nBq 0 1.2 0\n"),
    ("odd.sdf", ODD_SDF),
    ("far.xyz", "2\nfar\nC -1500 0 0\nO 99999.5 0 0\n2\nnear\nC 0 0 0\nO 1.5 0 0\n"),
    (
        "lone.mol2",
        (
            "@<TRIPOS>MOLECULE\nlp\n 3 2\nSMALL\nNO_CHARGES\n@<TRIPOS>ATOM\n"
            "1 O 0 0 0 O.3\n2 LP1 0.5 0 0 LP\n3 X 0 1 0 Du\n@<TRIPOS>BOND\n1 1 2 1\n2 1 3 1\n"
        ),
    ),
    ("one.xyz", "1\na\nC 0 0 0\n"),
])  # fmt: skip
def test_report__draws_what_is_no_usual_molecule(dock: Dock, name: str, text: str) -> None:
    Path(name).write_text(text)
    poses = f"poses{Path(name).suffix}"  # others have no atoms that are no element
    assert dock("-o", poses, "--report", "report.html", of=name) == 0
    scene = read(Path("report.html").read_bytes()).scenes[0]
    assert len(scene) == len(table("poses.scores.tsv")) + 1  # the surface


def test_report__of_scores_that_are_nearly_equal(dock: Dock) -> None:
    """The differences are too small for the usual number of bins."""
    grid = np.full((3, 3, 3), 1.0)
    grid[2] = np.nextafter(np.float32(1), np.float32(2))
    np.savez("flat.npz", grid=grid, origin=np.zeros(3), spacing=1.0)
    step = 1e-9  # Å: scores of 1 and of the next numbers of float64
    Path("many.xyz").write_text("".join(f"1\na{i}\nC {1 + i * step!r} 1 1\n" for i in range(70)))
    assert dock("-o", "poses.sdf", "--report", "r.html", of="many.xyz", pocket="flat.npz") == 0
    scores = [float(row["score"]) for row in table("poses.scores.tsv")]
    assert 0 < max(scores) - min(scores) < 1e-14
    (bars,) = traces(Path("r.html").read_bytes(), 0)
    assert bars["y"] == [70]


def test_names__are_shown_letter_by_letter(dock: Dock) -> None:
    names = [name.encode() for name in NAMES]
    ligands = [ETHANOL.replace(b"ethanol", name, 1) for name in names]
    odd = ETHANOL.replace(b"ethanol", f"ligand{CONTROLS}".encode(), 1)
    bad = [odd, *(name + b"\n\n\nno molecule\n$$$$\n" for name in names)]
    file = Path('"><img src=x onerror=alert(1)>{{7*7}}&amp;.sdf')
    file.write_bytes(b"".join([*ligands, *bad]))
    Path("all").mkdir()
    file = file.rename(Path("all") / file.name)
    Path("all", f"file{CONTROLS}.sdf").write_bytes(b"no molecule")
    assert dock("-o", "poses.sdf", "--report", "report.html", of="all") == SOME_SKIPPED
    found = read(Path("report.html").read_bytes())
    assert str(file) in found.text
    assert f"file{ESCAPED}" in found.text
    assert f"ligand{ESCAPED}" in found.text
    for row in table("poses.scores.tsv"):
        assert row["ligand"] in found.text
    for name in NAMES:
        assert found.text.count(name) >= 2  # one docked, one skipped

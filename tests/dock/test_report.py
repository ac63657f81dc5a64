"""The report of docking."""

import base64
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.docked import COUNT, Dock, table


@pytest.fixture(autouse=True)
def packages() -> None:
    for package in ("plotly", "rdkit", "jinja2"):
        pytest.importorskip(package, reason="the package is not installed")


@pytest.fixture
def report(dock: Dock, library: Path) -> str:
    text = (library / "ligands.sdf").read_bytes()
    Path("named.sdf").write_bytes(text.replace(b"lig0\n", b"<script>alert(1)</script>\n", 1))
    assert dock("-o", "poses.sdf", "--report", "report.html", of="named.sdf") == 0
    return Path("report.html").read_text()


def test_report__has_all_that_it_shows_in_itself(report: str) -> None:
    page = re.sub(r"<script>.*?</script>", "", report, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=", page)
    assert page.count("<svg") == 12  # the ligands, and the devices
    assert "<script>alert(1)" not in report


@pytest.mark.slow
def test_report__opens_in_a_browser_without_an_error(report: str, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")
    ran = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
         "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom",
         f"file://{tmp_path}/report.html"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = re.findall(r'CONSOLE[^"]*"(.*)", source:', ran.stderr)
    hints = ("Canvas2D", "Performance")  # about speed without a GPU
    assert [text for text in said if not any(hint in text for hint in hints)] == []
    assert len(re.findall(r'class="[^"]*js-plotly-plot', ran.stdout)) == 2


CARD = re.compile(r"<br><b>(\d+)\. (.*?)</b><br>score (.*?)</div>")


def traces(report: str, name: str) -> list[dict[str, Any]]:
    """Return the traces of a plot."""
    begin = re.search(rf'Plotly\.newPlot\(\s*"{name}",\s*', report)
    assert begin is not None
    found: list[dict[str, Any]] = json.JSONDecoder().raw_decode(report, begin.end())[0]
    return found


def numbers(axis: Any) -> NDArray[np.float64]:
    if isinstance(axis, dict):
        return np.frombuffer(base64.b64decode(axis["bdata"]), axis["dtype"]).astype(np.float64)
    return np.array(axis, np.float64)


def test_report__has_the_best_ligands_best_first(report: str) -> None:
    rows = sorted(table("poses.scores.tsv"), key=lambda row: -float(row["score"]))[:12]
    wanted = [(str(i), r["ligand"], f"{float(r['score']):.4f}") for i, r in enumerate(rows, 1)]
    shown = [(i, name.replace("&lt;", "<").replace("&gt;", ">"), score)
             for i, name, score in CARD.findall(report)]  # fmt: skip
    assert shown == wanted


def test_report__counts_every_ligand_once_where_its_score_is(report: str) -> None:
    (bars,) = traces(report, "scores")
    middles, widths = numbers(bars["x"]), numbers(bars["width"])
    scores = np.array([float(row["score"]) for row in table("poses.scores.tsv")])
    edges = np.append(middles - widths / 2, middles[-1] + widths[-1] / 2)
    edges[[0, -1]] += [-1e-9, 1e-9]
    assert numbers(bars["y"]).tolist() == np.histogram(scores, edges)[0].tolist()
    assert numbers(bars["y"]).sum() == COUNT


def test_report__draws_the_pocket_where_it_stands(report: str, library: Path) -> None:
    given = np.load(library / "pocket.npz")
    begin = np.broadcast_to(given["origin"], 3)
    end = begin + given["spacing"] * (np.array(given["grid"].shape) - 1)
    surface = traces(report, "pocket")[0]
    for axis, name in enumerate("xyz"):
        places = numbers(surface[name])
        assert (places.min(), places.max()) == pytest.approx((begin[axis], end[axis]))


ODD_SDF = (
    "odd\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"
    "    0.0000    0.0000    0.0000 Xx  0  0  0  0  0  0  0  0  0  0  0  0\nM  END\n$$$$\n"
)


@pytest.mark.parametrize(
    ("name", "text", "undrawn"),
    [
        ("odd.xyz", "3\nodd\nXx 0 0 0\nC1 1.2 0 0\nBq 0 1.2 0\n", 0),
        ("odd.sdf", ODD_SDF, 1),
        ("far.xyz", "2\nfar\nC -1500 0 0\nO 99999.5 0 0\n2\nnear\nC 0 0 0\nO 1.5 0 0\n", 0),
        (
            "lone.mol2",
            (
                "@<TRIPOS>MOLECULE\nlp\n 3 2\nSMALL\nNO_CHARGES\n@<TRIPOS>ATOM\n"
                "1 O 0 0 0 O.3\n2 LP1 0.5 0 0 LP\n3 X 0 1 0 Du\n@<TRIPOS>BOND\n1 1 2 1\n2 1 3 1\n"
            ),
            0,
        ),
        ("one.xyz", "1\na\nC 0 0 0\n", 0),
    ],
)
def test_report__of_what_cannot_be_drawn_says_so(
    dock: Dock, name: str, text: str, undrawn: int
) -> None:
    Path(name).write_text(text)
    poses = f"poses{Path(name).suffix}"  # others have no atoms that are no element
    assert dock("-o", poses, "--report", "report.html", of=name) == 0
    page = Path("report.html").read_text()
    assert page.count("(cannot be drawn)") == undrawn
    assert len(CARD.findall(page)) == len(table("poses.scores.tsv"))


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
    (bars,) = traces(Path("r.html").read_text(), "scores")
    assert numbers(bars["y"]).tolist() == [70]

"""The report of docking."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from docked import Dock


@pytest.fixture
def report(dock: Dock, library: Path) -> str:
    for package in ("plotly", "rdkit", "jinja2"):
        pytest.importorskip(package, reason="the extra `dock` is not installed")
    text = (library / "ligands.sdf").read_bytes()
    Path("named.sdf").write_bytes(text.replace(b"lig0\n", b"<script>alert(1)</script>\n", 1))
    assert dock("-o", "poses.sdf", "--report", "report.html", of="named.sdf") == 0
    return Path("report.html").read_text()


def test_report__has_all_that_it_shows_in_itself(report: str) -> None:
    page = re.sub(r"<script>.*?</script>", "", report, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href)=", page)
    assert page.count("<svg") == 12 + 1  # the ligands, and the devices
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

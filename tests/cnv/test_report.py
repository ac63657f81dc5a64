"""The report, opened in a browser without a network; the figures as files."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.cohorts import result

from multigpu.workloads.cnv import report
from multigpu.workloads.cnv.output import overview, plots
from multigpu.workloads.cnv.output.colours import BLUE, RED, Colours, Palette, Shade

pytestmark = pytest.mark.process  # runs whole jobs

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium or google-chrome")


def browse(page: Path) -> tuple[str, list[str]]:
    """The document after its scripts have run, and what they said on the console."""
    assert BROWSER is not None
    run = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            "--proxy-server=127.0.0.1:9", "--virtual-time-budget=20000", "--dump-dom",
            f"--user-data-dir={page.parent / 'profile'}", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]


@needs_browser
@pytest.mark.slow
def test_report__draws_every_figure_and_says_nothing_on_the_console(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes(report.render(result()))
    document, said = browse(tmp_path / "report.html")
    assert said == []
    for name in ("heat", "calls", "sizes", "window"):
        assert re.search(
            f'<div id="{name}" class="js-plotly-plot">.*?main-svg', document, re.DOTALL
        )
    assert document.count("<option ") == len(result().windows) == 4


@needs_browser
@pytest.mark.slow
def test_report__a_script_that_fails_is_seen(tmp_path: Path) -> None:
    (tmp_path / "broken.html").write_text("<script>undefinedFunction()</script>")
    assert browse(tmp_path / "broken.html")[1]


def test_report__names_cannot_become_markup(tmp_path: Path) -> None:
    name = "</script><b>x"
    samples = (name, *result().samples[1:])
    page = report.render(replace(result(), samples=samples)).decode()
    assert name not in page
    assert "&lt;/script&gt;&lt;b&gt;x" in page


def test_report__is_the_same_bytes_again_and_asks_for_nothing(tmp_path: Path) -> None:
    page = report.render(result())
    assert page == report.render(result())
    head = page.split(b"<script>", 1)[0]
    assert b"src=" not in head
    assert b"http" not in head


def test_report__says_what_was_given() -> None:
    inputs, counting = ("a<b.bam", "c.bam (controls)"), {"window": 500, "min_mapq": 1}
    ploidy = (4, *[2] * 6)
    options = replace(result().options, upper=0.4, seg_median=(0.5, -0.5))
    given = replace(result(), ploidy=ploidy, options=options, controls=("c",))
    page = report.render(given, inputs=inputs, counting=counting).decode()
    assert "<li>a&lt;b.bam</li>" in page
    assert "<li>c.bam (controls)</li>" in page
    assert "upper 0.4; seg-median 0.5,-0.5; window 500</p>" in page
    assert "<dt>Controls</dt><dd>1</dd>" in page
    assert "<th>ploidy</th>" in page
    assert f"<td>{result().samples[0]}</td><td>4</td>" in page
    assert "<th>ploidy</th>" not in report.render(result()).decode()
    assert "Input: x.tsv</p>" in report.render(result(), inputs=["x.tsv"]).decode()


def test_report__without_cnvs_says_so() -> None:
    calls = replace(result().segments, cnv=result().segments.cnv & False)
    page = report.render(replace(result(), segments=calls, windows=())).decode()
    assert "There are no CNVs." in page


def test_figures__are_json_without_nan() -> None:
    text = report._script(report._figures(result(), Palette.named("gain-red")))
    assert set(json.loads(text)) == {"heat", "calls", "sizes", *(f"window{k}" for k in range(4))}
    assert "NaN" not in text


@pytest.mark.parametrize(
    ("colours", "words", "gain"),
    [
        ("gain-red", "Red is gain, blue is loss.", RED),
        ("gain-blue", "Blue is gain, red is loss.", BLUE),
    ],
)
def test_report__has_one_colour_of_gains(colours: Colours, words: str, gain: Shade) -> None:
    palette = Palette.named(colours)
    assert words in report.render(result(), palette=palette).decode()
    figures = report._figures(result(), palette)
    assert figures["heat"]["data"][0]["colorscale"][-1] == (1, gain.dark)
    for name in ("calls", "sizes"):
        losses, gains = (bars["marker"]["color"] for bars in figures[name]["data"])
        assert (losses, gains) == (palette.loss.line, gain.line)
        assert losses != gains


@pytest.mark.parametrize("colours", ["gain-red", "gain-blue"])
def test_plots__have_one_colour_of_gains(colours: Colours, tmp_path: Path) -> None:
    plots.draw(replace(result(), windows=()), tmp_path, "svg", Palette.named(colours))
    gain = RED.line if colours == "gain-red" else BLUE.line
    for name in ("calls", "sizes"):
        text = (tmp_path / f"{name}.svg").read_text()
        fills = re.findall(f"fill: ({RED.line}|{BLUE.line})", text)
        assert fills[-1] == gain  # of the legend, which has losses first
        assert set(fills) == {RED.line, BLUE.line}


def test_plots__of_names_that_the_font_lacks(tmp_path: Path) -> None:
    shown = replace(result(), samples=tuple(f"样本\U0001f600{k}" for k in range(6)))
    plots.draw(replace(shown, windows=shown.windows[:1]), tmp_path, "png")  # warnings are errors
    assert (tmp_path / "cohort.png").exists()


def test_heat_map__shows_the_strongest_segment_of_every_place() -> None:
    heat = overview.heat_map(result())
    assert heat.values.shape == (6, len(heat.labels))
    assert len(set(heat.labels)) == len(heat.labels)
    strongest = max(result().segments.mean.tolist(), key=abs)
    assert strongest in heat.values


def test_sizes__count_every_cnv_once() -> None:
    edges, losses, gains = overview.sizes(result())
    assert losses.sum() + gains.sum() == len(result().called)
    assert len(edges) == len(losses) + 1


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_plots__are_written_and_the_same_again(kind: str, tmp_path: Path) -> None:
    shown = replace(result(), windows=result().windows[:1])
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        plots.draw(shown, tmp_path / folder, kind)
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == [f"{name}.{kind}" for name in ("calls", "cohort", "region_01", "sizes")]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

"""Names of samples and chromosomes stay text in every page and picture of copy numbers."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from support.cohorts import result
from support.markup import CONTROLS, NAMES, read

from multigpu.run.report import literal
from multigpu.workloads.cnv import report
from multigpu.workloads.cnv.output import plots, text_files
from multigpu.workloads.cnv.result import CnvResult


def named() -> CnvResult:
    """A cohort whose samples and chromosomes have such names."""
    usual = result()
    chromosomes = NAMES[-len(usual.regions.names) :]
    regions = replace(usual.regions, names=chromosomes)
    samples = NAMES[: len(usual.samples)]
    return replace(usual, samples=samples, regions=regions, notes=NAMES)


def test_markup__in_a_report_of_copy_numbers_stays_text() -> None:
    shown = named()
    page = report.render(shown, inputs=NAMES).decode()
    found = read(page, scripts=2)
    for name in NAMES:
        assert found.text.count(name) >= 2  # a note and an input
    (text,) = re.findall(r"const figures = (.*);\n", found.scripts[1])
    figures = json.loads(text)
    assert figures["heat"]["data"][0]["y"] == [literal(name) for name in shown.samples]
    assert figures["heat"]["layout"]["xaxis"]["ticktext"] == [
        literal(name) for name in shown.regions.names
    ]
    assert "<b>" not in text


def test_control_characters__in_a_report_of_copy_numbers_are_escaped() -> None:
    usual = result()
    samples = tuple(f"{name}{CONTROLS}" for name in usual.samples)
    chromosomes = tuple(f"{name}{CONTROLS}" for name in usual.regions.names)
    regions = replace(usual.regions, names=chromosomes)
    shown = replace(usual, samples=samples, regions=regions, notes=(f"note{CONTROLS}",))
    page = report.render(shown, inputs=(f"input{CONTROLS}",)).decode()
    found = read(page, scripts=2)
    for name in ("note", "input", usual.samples[0]):
        assert rf"{name}\x1b[2J\x07\x9b\u202e" in found.text
    assert not set(found.text + found.scripts[1]).intersection(CONTROLS[0] + CONTROLS[4:])


def test_literal__leaves_nothing_that_figures_would_take_for_theirs() -> None:
    assert literal("a<b>&%{x}") == "a&lt;b&gt;&amp;%&#123;x}"
    assert literal("sample 1") == "sample 1"


def test_markup__in_an_igv_session_stays_text() -> None:
    for name in NAMES:
        session = ET.fromstring(text_files.igv_session(name))
        assert session.get("genome") == name
        assert [element.tag for element in session.iter()].count("Session") == 1


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_markup__in_figures_as_files_stays_text(tmp_path: Path, kind: str) -> None:
    shown = named()
    plots.draw(replace(shown, windows=shown.windows[:1]), tmp_path, kind)
    if kind == "svg":
        texts = "".join(ET.parse(tmp_path / "calls.svg").getroot().itertext())
        assert all(name in texts for name in shown.samples)

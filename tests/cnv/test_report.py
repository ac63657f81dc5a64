"""The report, opened in a browser without a network."""

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.browser import browse
from support.cohorts import result
from support.markup import CONTROLS, ESCAPED, NAMES, read

from multigpu.report.figures import literal
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output import figures, report, text_files
from multigpu.workloads.cnv.records import Genotypes, SampleFacts
from multigpu.workloads.cnv.results.result import CnvResult

pytestmark = pytest.mark.process  # runs whole jobs


@pytest.mark.slow
def test_report__draws_every_figure_and_says_nothing_on_the_console(tmp_path: Path) -> None:
    document, said = browse(report.render(result()), tmp_path)
    assert said == []
    assert len(re.findall(r'class="figure js-plotly-plot".*?main-svg', document, re.DOTALL)) == 2
    assert document.count("<option ") == len(result().samples) == 6


def test_report__says_what_was_given() -> None:
    inputs, counting = ("a<b.bam", "c.bam (controls)"), {"window": 500, "min_mapq": 1}
    ploidy = (4, *[2] * 6)
    options = replace(result().options, upper=0.4, seg_median=(0.5, -0.5))
    given = replace(result(), ploidy=ploidy, options=options, controls=("c",))
    page = report.render(given, inputs=inputs, counting=counting).decode()
    assert page == report.render(given, inputs=inputs, counting=counting).decode()
    assert "<li>a&lt;b.bam</li>" in page
    assert "<li>c.bam (controls)</li>" in page
    assert "<dd>upper 0.4; seg-median 0.5,-0.5; window 500</dd>" in page
    assert "<dt>Controls</dt><dd>1</dd>" in page
    assert ">ploidy<" in page
    assert re.search(rf"<td>{result().samples[0]}</td>.*<td>4</td>", page)
    assert ">ploidy<" not in report.render(result()).decode()


def test_report__lists_cnvs_as_the_table_of_the_run_has_them() -> None:
    count, cnvs = len(result().called), result().cnvs.to_pylist()
    page = read(report.render(result()))
    for cnv in cnvs:
        place = f"{cnv['chrom']}:{cnv['start'] + 1}-{cnv['end']}"
        row = (place, cnv["sample"], cnv["copy_number"], cnv["length"], cnv["regions"])
        assert all(f"{each}" in page.text for each in row)
    assert "quality" not in page.text.split("Quality of samples")[0].split("Samples along")[0]
    quality = np.where(result().segments.cnv, 5.0, np.nan)
    quality[np.flatnonzero(result().segments.cnv)[0]] = 99.0
    genotypes = Genotypes(
        copies=np.zeros((count, 6), np.int8),
        quality=np.zeros((count, 6), np.float32),
        is_common=np.arange(count) == 1,
    )
    sure = replace(
        result(),
        segments=replace(result().segments, quality=quality),
        regions=replace(result().regions, genes=tuple(f"G{k}" for k in range(1500))),
        genotypes=genotypes,
    )
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", report.render(sure).decode())
    first, second = (row.split("</td><td>") for row in rows[:2])
    assert first == [
        "chr1:125001-250000", "sample1", "gain", "CN4", "125000", "5", "0.92", "99", "1", "0.167",
        "PASS", "G5, G6, G7, G8, G9",
    ]  # fmt: skip
    assert (second[7], second[10]) == ("5", "LowQual, COMMON")


def test_report__names_outliers() -> None:
    reads, noise = np.array([100.0] * 5 + [10]), np.array([0.1] * 4 + [0.4, 0.1])
    facts = SampleFacts.uncompared(reads, noise)
    assert "No sample is an outlier." in report.render(result()).decode()
    text = read(report.render(replace(result(), facts=facts))).text
    assert "Outliers: sample5 (noisy); sample6 (few reads)." in text


def test_report__without_cnvs_says_what_would_be_one_and_what_to_try() -> None:
    nothing = replace(result().segments, cnv=result().segments.cnv & False)
    quiet = replace(result(), segments=nothing, notes=("try this",))
    text = read(report.render(quiet)).text
    assert "No CNVs were found" in text
    assert "at least 3 regions, with a mean of the signed I/NI of 0.5 or more (gain)" in text
    assert "try this" in text
    strict = CnvOptions(segmentation="hmm", min_width=1, min_length=5000, min_quality=20.0)
    text = read(report.render(replace(quiet, options=strict))).text
    assert "at least 1 region and 5,000 bases and a quality of 20." in text


def test_report__has_one_colour_of_gains() -> None:
    found = read(report.render(result()))
    assert "Red is gain, blue is loss." in found.text
    samples, (heat,) = found.figures[:6], found.figures[6:]
    lines = {each["name"]: each["line"]["color"] for each in samples[0]["data"] if "line" in each}
    assert lines == {
        "segments": "var(--ink)", "losses": "var(--blue)", "gains": "var(--red)"
    }  # fmt: skip
    assert heat["data"][0]["colorscale"][-1] == [1, "var(--red-deep)"]


def test_heat_map__shows_the_strongest_segment_of_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    heat = figures.bin_means(result())
    assert heat.values.shape == (6, len(heat.labels))
    assert len(set(heat.labels)) == len(heat.labels)
    strongest = max(result().segments.mean.tolist(), key=abs)
    assert strongest in heat.values
    assert heat.begins.tolist() == [0, 500, 1000]
    assert heat.labels[500] == "chr2:1, region 1"
    monkeypatch.setattr(figures, "BINS", (7, 7))  # of 215 regions: three a chromosome
    coarse = figures.bin_means(result())
    assert coarse.begins.tolist() == [0, 3, 6]
    assert coarse.labels[4] == f"chr2:{215 * 25_000 + 1:,}, region 216"
    wanted = [max(row, key=abs) for row in heat.values[:, 715:930].tolist()]
    assert coarse.values[:, 4].tolist() == wanted


def named() -> CnvResult:
    """Return a cohort whose samples and chromosomes have such names."""
    regions = replace(result().regions, names=(*NAMES[-2:], f"chr{CONTROLS}"))
    samples = (*NAMES[:5], f"sample{CONTROLS}")
    return replace(result(), samples=samples, regions=regions, notes=(*NAMES, f"note{CONTROLS}"))


def test_names__in_a_report_are_shown_letter_by_letter() -> None:
    shown = named()
    found = read(report.render(shown, inputs=(*NAMES, f"input{CONTROLS}")))
    for name in NAMES:
        assert found.text.count(name) >= 2  # a note and an input
    for name in ("note", "input", "sample"):
        assert f"{name}{ESCAPED}" in found.text
    samples, heat = found.figures[:6], found.figures[6]
    assert samples[0]["layout"]["xaxis"]["ticktext"] == heat["layout"]["xaxis"]["ticktext"]
    assert heat["data"][0]["y"] == [literal(name) for name in shown.samples]
    assert heat["layout"]["xaxis"]["ticktext"] == [literal(name) for name in shown.regions.names]


def test_names__in_an_igv_session_stay_text() -> None:
    for name in NAMES:
        session = ET.fromstring(text_files.igv_session(name))
        assert session.get("genome") == name
        assert [element.tag for element in session.iter()].count("Session") == 1

"""Sexes: inferred from the coverage of X and Y, contradicted by it, or of no use."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cohorts import SEXES, of_sexes

import multigpu
from multigpu.formats.tables.counts import Counts
from multigpu.workloads.cnv.output import report
from multigpu.workloads.cnv.samples import sex


def inferred_sexes(cases: Counts, controls: Counts | None, genome: str | None) -> tuple[str, ...]:
    found = sex.cohort_coverage(cases, controls, genome)
    assert found is not None
    return found.sexes()


def coverage_of(table: Counts, values: Any = None) -> sex.Coverage:
    """Return the coverage of X and Y in a table, or in other counts of its regions."""
    found = sex.coverage(table.values if values is None else values, table.regions)
    assert found is not None
    return found


def test_inferred__by_half_the_coverage_of_x() -> None:
    table = of_sexes()
    coverage = coverage_of(table)
    assert coverage.sexes() == SEXES
    assert coverage.y_is_informative
    assert coverage.disagreements() == []
    males = np.array([each == "male" for each in SEXES])
    np.testing.assert_allclose(coverage.x, np.where(males, 0.5, 1), atol=0.02)
    np.testing.assert_allclose(coverage.y, np.where(males, 0.5, 0), atol=0.02)


def test_given__that_the_coverage_contradicts_is_noted() -> None:
    given = ["male", "male", "unknown", "male", "female", "female"]
    facts = dict(zip(of_sexes().samples, given, strict=True))
    found = multigpu.cnv(of_sexes(), sex=facts, gpus="none", keep_matrices=False)
    (note,) = [each for each in found.notes if "contradicts" in each]
    assert re.search(
        r"of s1 \(given as male; X 1\.\d+, Y 0\.0\d of the .*: female\), s5 \(gi", note
    )
    assert found.sex_coverage is None


def test_inferred__of_cases_and_then_controls() -> None:
    cases, controls = of_sexes(), of_sexes(seed=4, sexes=SEXES[::-1])
    assert inferred_sexes(cases, controls, None) == SEXES + SEXES[::-1]


def changed(table: Counts, chrom: int, sample: int, share: float) -> Counts:
    """The table where a sample has this share of the autosomes' reads on a chromosome."""
    values, rows = table.values.copy(), table.regions.chrom == chrom
    values[rows, sample] = np.random.default_rng(chrom).poisson(100 * share, rows.sum())
    return replace(table, values=values)


def test_inferred__by_y_where_x_disagrees_which_is_noted() -> None:
    found = multigpu.cnv(changed(of_sexes(), 2, 1, 0.5))
    assert found.sex == ("male", "male", *SEXES[2:])
    (note,) = (note for note in found.notes if "disagree" in note)
    assert note.startswith("X and Y disagree on the sex of s1 (X 1.0")
    assert note.endswith(" of the autosomes' coverage: taken as male): sex FILE corrects it")
    without_y = multigpu.cnv(changed(of_sexes(), 2, 0, 0.02))
    assert without_y.sex == SEXES
    assert any("disagree on the sex of s0 (X 0.5" in note for note in without_y.notes)
    assert not any("disagree" in note for note in multigpu.cnv(of_sexes()).notes)


def test_inferred__most_of_y_may_be_without_reads() -> None:
    """Half of Y has no sequence in hg38: its mean would be near that of no Y."""
    table = of_sexes()
    values = table.values.copy()
    values[np.flatnonzero(table.regions.chrom == 2)[30:]] = 0
    found = coverage_of(table, values)
    assert found.y_is_informative
    assert found.disagreements() == []
    values[np.flatnonzero(table.regions.chrom == 2)[10:]] = 0  # of mice, it may be less
    found = coverage_of(table, values)
    assert not found.y_is_informative
    assert (found.sexes(), found.disagreements()) == (SEXES, [])


@pytest.mark.parametrize("coverage", [4, 100])
def test_inferred__reads_that_stray_to_y_make_no_male(coverage: int) -> None:
    females = ("female",) * 6
    table = of_sexes(sexes=females, coverage=coverage)
    values, rows = table.values.copy(), np.flatnonzero(table.regions.chrom == 2)
    values[rows[:8]] = coverage  # repeats
    values[rows[8:]] += np.random.default_rng(2).poisson(0.02 * coverage, (192, 6)).astype(np.int32)
    found = coverage_of(table, values)
    assert (found.sexes(), found.disagreements()) == (females, [])


def test_report__and_summary_show_both_ratios(tmp_path: Path) -> None:
    table = changed(of_sexes(), 2, 1, 0.5)
    found = multigpu.cnv(table)
    page = report.render(found).decode()
    columns = re.findall(r"<th.*?<button type=\"button\">(.*?)</button>", page)
    assert columns[:4] == ["sample", "sex", "X", "Y"]
    assert re.search(r"<td>s1</td><td>male</td><td>1\.0\d</td><td>0\.5\d</td>", page)
    assert ">X</button>" not in report.render(multigpu.cnv(table, sex="none")).decode()
    alone = report.render(multigpu.cnv(of_sexes(("chr1", "chrX")))).decode()
    assert re.search(r"<td>s0</td><td>male</td><td>0\.\d\d</td>", alone)
    assert ">Y</button>" not in alone


@pytest.mark.parametrize("names", [("chr1",), ("chrX",), ("chrX", "chrY")])
def test_inferred__not_without_x_and_autosomes(names: tuple[str, ...]) -> None:
    table = of_sexes(names)
    assert sex.coverage(table.values, table.regions) is None


def test_inferred__a_sample_without_reads_has_no_sex() -> None:
    table = of_sexes()
    values = table.values.copy()
    values[:, 2] = 0
    coverage = coverage_of(table, values)
    assert coverage.sexes()[2] == ""
    assert coverage.disagreements() == []


@pytest.mark.parametrize(
    ("names", "options", "given", "said"),
    [
        (("chrX", "chrY"), {}, "infer", "their sexes cannot be inferred"),
        (("chrX", "chrY"), {"compat": "r"}, "infer", ""),
        (("chrX", "chrY"), {}, "none", ""),
        (("chrX", "chrY"), {}, {"s0": "male"}, ""),
        (("chr1", "chrX"), {}, "infer", ""),
        (("chr1",), {}, "infer", ""),
        (("chr1", "chrX"), {"norm": 0}, {"s0": "male"}, "sex has no effect"),
        (("chr1", "chrX"), {"model": "haplo"}, {"s0": "male"}, "sex has no effect"),
        (("chr1", "chrX"), {"ploidy": 2}, {"s0": "male"}, "sex has no effect with ploidy"),
        (("chr1", "chrX"), {}, {"s0": "unknown"}, "as sex gives none of them a sex"),
        (("chr1", "chrX"), {"norm": 0}, "infer", ""),
    ],
)
def test_sexes__that_play_no_part_are_told(
    names: tuple[str, ...], options: dict[str, Any], given: Any, said: str
) -> None:
    notes = multigpu.cnv(of_sexes(names), sex=given, gpus="none", **options).notes
    told = [note for note in notes if "sex" in note and "every sample" not in note]
    assert len(told) == bool(said)
    assert said in "".join(told)

"""Sex chromosomes: inferred from the coverage of X, and what normalization makes of them."""

from dataclasses import replace

import numpy as np
import pytest
from cohorts import CPU, SEXES, of_sexes

from multigpu.copynumber import sex
from multigpu.copynumber.job import CnvJob
from multigpu.copynumber.options import CnvOptions


def test_inferred__by_half_the_coverage_of_x() -> None:
    table = of_sexes()
    coverage = sex.x_coverage(table.values, table.regions)
    assert coverage is not None
    assert sex.inferred(coverage) == SEXES


@pytest.mark.parametrize("names", [("chr1",), ("chrX",), ("chrX", "chrY")])
def test_inferred__not_without_x_and_autosomes(names: tuple[str, ...]) -> None:
    table = of_sexes(names)
    assert sex.x_coverage(table.values, table.regions) is None


def test_inferred__a_sample_without_reads_has_no_sex() -> None:
    table = of_sexes()
    values = table.values.copy()
    values[:, 2] = 0
    coverage = sex.x_coverage(values, table.regions)
    assert coverage is not None
    assert sex.inferred(coverage)[2] == ""


def test_ploidy__of_sexes_on_every_kind_of_chromosome() -> None:
    assert sex.ploidy_on("chr1", SEXES) is None
    assert sex.ploidy_on("chrX", SEXES) == (1, 2, 2, 1, 2, 1)
    assert sex.ploidy_on("Y", SEXES) == (1, 0, 0, 1, 0, 1)
    assert sex.ploidy_on("X", ("male",) * 4) is None
    assert sex.ploidy_on("X", ("female", "male", "male")) is None
    assert sex.ploidy_on("X", ()) is None


@pytest.mark.parametrize("norm_type", ["poisson", "mean"])
def test_x__males_have_half_of_what_females_have(norm_type: str) -> None:
    options = CnvOptions.of("cn.mops", norm_type=norm_type)
    found = CnvJob(of_sexes(), options, CPU, sexes=SEXES).result(keep=("normalized",)).matrices
    on_x = found["normalized"][found["chrom"] == "chrX"].median("region").values
    males = np.array([each == "male" for each in SEXES])
    np.testing.assert_allclose(np.median(on_x[males]) / np.median(on_x[~males]), 0.5, atol=0.03)


@pytest.mark.parametrize("model", ["cn.mops", "reference"])
def test_sexes__also_where_counts_are_not_whole(model: str) -> None:
    table = of_sexes()
    parts = replace(table, values=table.values + 0.25)
    others = replace(parts, samples=tuple("abcdef")) if model == "reference" else None
    options = CnvOptions.of(model, segmentation="fast")
    sexes = SEXES * (2 if others else 1)
    found = CnvJob(parts, options, CPU, sexes=sexes, controls=others).result(keep=("sini",))
    assert len(found.segments)


def test_y__is_normalized_among_those_that_have_it() -> None:
    table, options = of_sexes(), CnvOptions(norm_type="mean")
    found = CnvJob(table, options, CPU, sexes=SEXES).result(keep=("normalized",)).matrices
    rows = table.regions.chrom == 2
    on_y = found["normalized"].values[rows]
    males = np.array([each == "male" for each in SEXES])
    np.testing.assert_allclose(on_y[:, males].mean(axis=0), on_y[:, males].mean(), rtol=1e-9)
    assert (on_y[:, ~males] == table.values[rows][:, ~males]).all()


def test_sexes__that_are_used_are_said() -> None:
    job = CnvJob(of_sexes(), CnvOptions(), CPU, sexes=SEXES)
    assert job.notes[0].startswith("chromosomes X and Y are normalized by sex, 3 male and 3 female")
    assert CnvJob(of_sexes(), CnvOptions(), CPU).notes == []
    assert CnvJob(of_sexes(), CnvOptions(norm=0), CPU, sexes=SEXES).notes == []

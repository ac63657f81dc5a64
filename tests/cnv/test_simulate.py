"""Generated cohorts: what is asked for is what is there, and the truth is true."""

import dataclasses
import gzip
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from multigpu import UsageError, read_counts
from multigpu.tools.simulate import command
from multigpu.workloads.cnv import simulate as simulate_counts
from multigpu.workloads.cnv.simulate import CohortDesign, simulate_cohort

COHORT = CohortDesign(
    regions=3000, samples=8, chromosomes=3, coverage=100.0, dispersion=0.0, cnvs=20,
    min_length=4, max_length=30, max_carriers=3, width=1000, seed=5,
)  # fmt: skip


def made(**changes: Any) -> Any:
    return simulate_cohort(dataclasses.replace(COHORT, **changes))


def test_counts__of_a_seed_are_the_same_with_any_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_counts, "ROWS", 100)
    first, truth = made()
    monkeypatch.setattr(simulate_counts.os, "sched_getaffinity", lambda _: {0})
    again, same_truth = made()
    assert (first.values == again.values).all()
    assert (truth.first == same_truth.first).all()
    assert (first.values != made(seed=6)[0].values).any()


def test_truth__is_where_counts_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted variants stand out where there are no effects, and no noise beyond Poisson's."""
    monkeypatch.setattr(simulate_counts, "EFFECT", 0.0)
    monkeypatch.setattr(simulate_counts, "EMPTY", 0.0)
    monkeypatch.setattr(simulate_counts, "ROWS", 700)  # variants lie over the borders
    counts, truth = made(coverage=1e5, cnvs=60)
    copies = 2 * counts.values / np.median(counts.values, axis=0)
    expected = np.full(copies.shape, 2.0)
    columns = truth.first, truth.stop, truth.sample, truth.copies
    for first, stop, sample, planted in zip(*columns, strict=True):
        assert (expected[first:stop, sample] == 2).all()  # none meet
        expected[first:stop, sample] = planted
    assert np.abs(copies - expected).max() < 0.1
    assert set(truth.copies.tolist()) == {0, 1, 3, 4}


def test_truth__has_what_was_asked_for() -> None:
    counts, truth = made(cnvs=60)
    places = sorted(set(zip(truth.first.tolist(), truth.stop.tolist(), strict=True)))
    assert len(places) == 60
    lengths = [stop - first for first, stop in places]
    assert min(lengths) >= COHORT.min_length
    assert max(lengths) <= COHORT.max_length
    gaps = [b[0] - a[1] for a, b in pairwise(places)]
    assert min(gaps) >= simulate_counts.GAP
    chrom = counts.regions.chrom
    assert all(chrom[first] == chrom[stop - 1] for first, stop in places)
    carriers = [int((truth.first == first).sum()) for first, _ in places]
    assert set(carriers) == {1, 2, 3}


@pytest.mark.parametrize("dispersion", [0.0, 0.02])
def test_counts__have_mean_and_variance(monkeypatch: pytest.MonkeyPatch, dispersion: float) -> None:
    monkeypatch.setattr(simulate_counts, "EFFECT", 0.0)
    monkeypatch.setattr(simulate_counts, "DEPTHS", (1.0, 1.0))
    values = made(regions=40_000, cnvs=0, dispersion=dispersion)[0].values
    filled = values[values.any(axis=1)]
    assert 1 - len(filled) / len(values) == pytest.approx(simulate_counts.EMPTY, rel=0.3)
    assert filled.mean() == pytest.approx(100, rel=0.01)
    assert filled.var() == pytest.approx(100 + dispersion * 100**2, rel=0.03)


@pytest.mark.parametrize(("changes", "message"), [
    ({"regions": 0}, "regions is 0: it must be at least 1"),
    ({"samples": 0}, "samples is 0"),
    ({"width": 10**400}, "the bases of the genome, must be less than 2\\^40"),
    ({"coverage": 0.0}, "coverage is 0: it must be above 0"),
    ({"coverage": float("nan")}, "coverage is nan"),
    ({"dispersion": -0.1}, "dispersion is -0.1: it must be at least 0"),
    ({"dispersion": float("nan")}, "dispersion is nan"),
    ({"min_length": 0}, "min_length is 0"),
    ({"max_length": 3}, "min_length is above max_length"),
    ({"max_carriers": 9}, "max_carriers is above samples"),
    ({"chromosomes": 3001}, "3001 chromosomes need more regions"),
    ({"cnvs": 76}, "there is room for 75 variants of 30 regions, not for 76"),
    ({"seed": -1}, "seed is -1"),
])  # fmt: skip
def test_cohort__what_is_impossible_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(**changes)


def test_command__writes_counts_and_truth(tmp_path: Path) -> None:
    output, truth = tmp_path / "counts.parquet", tmp_path / "truth.tsv.gz"
    options = ["--regions", "500", "--samples", "5", "--chromosomes", "2", "--cnvs", "3"]
    arguments = ["counts", *options, "-o", str(output), "--truth", str(truth)]
    run = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert (run.exit_code, run.output) == (0, "")
    counts = read_counts(str(output))
    assert counts.values.shape == (500, 5)
    lines = gzip.decompress(truth.read_bytes()).decode().splitlines()
    assert lines[0] == "chrom\tstart\tend\tsample\tcopy_number"
    assert len(lines) > 3
    chrom, start, end, sample, copies = lines[1].split("\t")
    assert chrom in counts.regions.names
    assert int(start) % 25_000 == 0
    assert int(end) > int(start)
    assert sample in counts.samples
    assert copies in ("CN0", "CN1", "CN3", "CN4")

"""Runs on simulated cohorts: what is found, what never changes, what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import CPU, cnv_job, cohort, some_samples
from support.examples import examples

from multigpu import CnvResult, Counts, UsageError
from multigpu.cluster.engine.journal import Codec, Journal
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import CnvOptions, KeptResults

FIXED = CnvOptions(seg_median=(0.3, -0.5))  # in place of R's two standard deviations of a track,
# beyond which a gain of one copy does not lie where the track has a loss of both
QUALITY = [(CnvOptions(), 0.75), (FIXED, 0.93)]  # least recall, in regions
ONLY_CHR = "(the names differ only by `chr`: rename auto takes them as the same)"


def run(counts: Counts, options: CnvOptions = CnvOptions(), **more: Any) -> CnvResult:  # noqa: B008
    return cnv_job(counts, options, **more).result(keep=("sini", "normalized"))


@pytest.mark.parametrize(("options", "least"), QUALITY, ids=["defaults of R", "thresholds"])
def test_calls__find_planted(options: CnvOptions, least: float, record_property: Any) -> None:
    counts, truth = cohort(
        regions=20_000, samples=12, chromosomes=4, cnvs=120, min_length=8, coverage=400.0, seed=7
    )
    called = run(counts, options).called
    planted, found = np.zeros((2, *counts.values.shape), np.int8)
    for row in range(len(truth.first)):
        rows = slice(truth.first[row], truth.stop[row])
        planted[rows, truth.sample[row]] = np.sign(truth.copies[row] - 2)
    begins = [block.start for block in counts.regions.blocks]
    for row in range(len(called)):
        first = begins[called.chrom[row]] + called.first[row]
        rows = slice(first, first + called.rows[row])
        found[rows, called.sample[row]] = np.sign(called.copy_number[row] - 2)
    right = int(((found == planted) & (planted != 0)).sum())
    recall, precision = right / (planted != 0).sum(), right / (found != 0).sum()
    record_property("recall", float(recall))
    record_property("precision", float(precision))
    assert recall >= least
    assert precision >= 0.99


@examples(5)
@given(st.permutations(range(6)))
def test_samples__in_another_order_have_the_same_calls(order: list[int]) -> None:
    counts, _ = cohort()
    other = run(some_samples(counts, order))
    rows = {tuple(row.values()) for row in run(counts).cnvs.to_pylist()}
    again = {tuple(row.values()) for row in other.cnvs.to_pylist()}
    assert {row[:4] + row[6:] for row in rows} == {row[:4] + row[6:] for row in again}
    assert rows


def plain(result: CnvResult) -> Any:
    """Return the matrices with names as objects: some xarrays cannot compare NumPy's texts."""
    matrices: Any = result.matrices
    texts = [name for name, each in matrices.coords.items() if each.dtype.kind == "T"]
    assert "sample" in texts
    return matrices.assign_coords({name: matrices[name].astype(object) for name in texts})


@pytest.mark.parametrize("ways", [*({"max_chunk_bytes": n} for n in (1, 1000, 10_000, 1 << 26)),
                                  {"threads": 1}, {"threads": 3}], ids=str)  # fmt: skip
def test_pieces_and_threads__of_a_chromosome_give_the_same(ways: dict[str, Any]) -> None:
    counts, _ = cohort()
    whole, options = run(counts), RunOptions(gpus="none", **ways)
    pieces = cnv_job(counts, CnvOptions(), options).result(keep=("sini", "normalized"))
    assert pieces.segmentation.equals(whole.segmentation)
    assert pieces.cnv_regions.equals(whole.cnv_regions)
    assert plain(pieces).identical(plain(whole))


def test_genome_wide__all_chromosomes_have_the_same_size_factors() -> None:
    counts, _ = cohort()
    found = run(counts, CnvOptions(genome_wide=True)).matrices["normalized"].values
    with np.errstate(invalid="ignore"):
        factors = found / counts.values
    for sample in factors.T:
        known = sample[np.isfinite(sample)]
        np.testing.assert_allclose(known, known[0], rtol=1e-12)


def test_reference__ours_hands_the_prior_out_to_every_case_alike() -> None:
    counts, _ = cohort()
    cases, twice = some_samples(counts, [0, 1]), some_samples(counts, [0, 0], "ab")
    controls = some_samples(counts, [2, 3, 4, 5])
    options = CnvOptions.of("reference", segmentation="fast", prior_impact=5.0)
    both = run(twice, options, controls=controls).matrices["sini"].values
    assert (both[:, 0] == both[:, 1]).all()
    assert len(run(cases, options, controls=controls).segments)


REFUSED = [
    ("cn.mops", 1, 0, "there is only one"), ("haplo", 1, 0, "there is only one"),
    ("single", 2, 0, "takes one sample, not 2"), ("reference", 2, 0, "needs controls"),
    ("cn.mops", 2, 2, "for model reference only"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "cases", "controls", "problem"), REFUSED)
def test_refused__unsuitable_tables(model: str, cases: int, controls: int, problem: str) -> None:
    counts, _ = cohort()
    some = some_samples(counts, list(range(cases)))
    others = some_samples(counts, list(range(controls))) if controls else None
    with pytest.raises(UsageError, match=problem):
        cnv_job(some, CnvOptions.of(model), CPU, controls=others)


def test_refused__controls_with_other_regions_by_the_first() -> None:
    counts, _ = cohort()
    regions, ends = counts.regions, counts.regions.end.copy()
    ends[7:] += 1
    names = tuple(f"control {name}" for name in counts.samples)
    for other, said in (
        (replace(regions, end=ends), "8 {}chr1:175000-200000{}chr1:175000-200001"),
        (regions.take(np.arange(9)), "10 {}chr1:225000-250000{}missing"),
        (replace(regions, names=("chr1", "chrX", "chr3")), "501 {}chr2:0-25000{}chrX:0-25000"),
        (replace(regions, names=("1", "2", "3")), f"1 {{}}chr1:0-25000{{}}1:0-25000 {ONLY_CHR}"),
    ):  # fmt: skip
        controls = Counts(other, names, counts.values[: len(other)].copy())
        with pytest.raises(UsageError) as error:
            cnv_job(counts, CnvOptions.of("reference"), controls=controls)
        where = said.format("of the cases is ", ", of the controls ")
        assert str(error.value).endswith(f"controls have different regions: region {where}")


def test_refused__a_name_that_would_break_a_table() -> None:
    counts, _ = cohort()
    samples = ("a\tb", *counts.samples[1:])
    with pytest.raises(UsageError, match="cannot be a name in tables"):
        cnv_job(replace(counts, samples=samples))


def test_sample_without_reads_on_one_chromosome__is_normalized_by_the_others() -> None:
    counts, _ = cohort()
    values = counts.values.copy()
    values[counts.regions.chrom == 1, 3] = 0
    options = CnvOptions(norm_type="mean", size_factor="mode")
    found = run(replace(counts, values=values), options)
    assert any("has no reads" in note for note in found.notes)


def test_few_regions__are_noted_and_not_segmented() -> None:
    counts, _ = cohort()
    rows = np.arange(5)
    few = replace(counts, regions=counts.regions.take(rows), values=counts.values[:5].copy())
    found = run(few)
    assert len(found.segments) == len(found.called_regions) == 0
    said = [note.split(":")[0] for note in found.notes][:2]
    assert said == ["only 5 regions", "there are too few regions for a segmentation"]
    # A chromosome of one region is left uncalled.
    table, _ = cohort()
    regions = replace(table.regions, names=(*table.regions.names, "chrM"))
    more = [("chrom", 3), ("start", 0), ("end", 16_569)]
    columns = {k: np.append(getattr(regions, k), v).astype(np.int64) for k, v in more}
    columns["chrom"] = columns["chrom"].astype(np.int32)
    values = np.vstack([table.values, np.full((1, 6), 9000, np.int32)])
    counts = replace(table, regions=replace(regions, **columns), values=values)
    found = cnv_job(counts).result()
    (note,) = (note for note in found.notes if "chrM" in note)
    assert note == "chrM: one region only, nothing is called there"
    assert found.cnvs.equals(cnv_job(table).result().cnvs)


def test_no_cnvs__is_noted_and_nothing_is_called() -> None:
    counts, _ = cohort(cnvs=0)
    found = run(counts, CnvOptions(upper=5.0, lower=-6.0))
    assert "no CNVs were found" in found.notes[-1]
    assert set(found.segmentation["copy_number"].to_pylist()) == {"NA"}
    assert found.cnv_regions.num_rows == 0
    assert found.cnv_regions.column_names == ["chrom", "start", "end", *counts.samples]


@pytest.mark.parametrize("norm", [0, 1, 2])
def test_fractions_below_1__in_all_samples_are_wiped_out_by_normalization(norm: int) -> None:
    counts, _ = cohort()
    values = counts.values.astype(np.float64)
    values[40] = 0.9
    options = CnvOptions(norm=norm, norm_type="mean", min_read_count=0.1)
    found = run(replace(counts, values=values), options).matrices
    assert (found["normalized"].values[40] == 0).all() == (norm > 0)
    assert (found["sini"].values[40] == 0).all() == (norm == 1)


def test_robust__without_a_threshold_joins_cnvs_by_bases() -> None:
    counts, _ = cohort()
    found = run(counts, CnvOptions(robust=0.0))
    assert found.cnv_regions_robust is not None
    assert found.cnv_regions_robust.equals(found.cnv_regions)


def test_journal__of_other_counts_is_refused(tmp_path: Path) -> None:
    """Another --min-mapq, or other --regions, give other counts of the same files."""
    counts, _ = cohort()
    path = tmp_path / "journal"

    def begun(counts: Counts) -> Journal:
        job = cnv_job(counts, journal=path)
        return Journal(path, job.description(KeptResults()), {}, codec=Codec(), resume=True)

    begun(counts).close()
    begun(counts).close()
    values = counts.values.copy()
    values[[0, 1]] = values[[1, 0]] + np.array([[1], [-1]])
    ends = replace(counts.regions, end=counts.regions.end + 1)
    for other in (replace(counts, values=values), replace(counts, regions=ends)):
        with pytest.raises(UsageError, match="cannot be resumed: counts was content"):
            begun(other)

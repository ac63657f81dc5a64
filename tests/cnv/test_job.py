"""Runs on simulated cohorts: what is found, what never changes, what is refused."""

import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cohorts import CPU, cohort
from support.examples import examples

from multigpu import UsageError
from multigpu.cluster.engine.codec import Codec
from multigpu.cluster.engine.journal import Journal
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables.counts import Counts
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.options import CnvOptions, KeptResults
from multigpu.workloads.cnv.result import CnvResult

FIXED = CnvOptions(seg_median=(0.3, -0.5))  # in place of R's two standard deviations of a track,
# beyond which a gain of one copy does not lie where the track has a loss of both
QUALITY = [(CnvOptions(), 0.75), (FIXED, 0.93)]  # least recall, in regions


def run(counts: Counts, options: CnvOptions = CnvOptions(), **more: Any) -> CnvResult:  # noqa: B008
    return CnvJob(counts, options, CPU, **more).result(keep=("sini", "normalized"))


def some_samples(counts: Counts, columns: list[int], names: str = "") -> Counts:
    """Return the counts of these columns, whose names are letters or their own."""
    samples = tuple(names) or tuple(counts.samples[k] for k in columns)
    return replace(counts, samples=samples, values=counts.values[:, columns].copy())


@pytest.mark.parametrize(("options", "least"), QUALITY, ids=["defaults of R", "thresholds"])
def test_calls__find_what_was_planted(
    options: CnvOptions, least: float, record_property: Any
) -> None:
    counts, truth = cohort(
        regions=20_000, samples=12, chromosomes=4, cnvs=120, min_length=8, coverage=400.0, seed=7
    )
    called = run(counts, options).called
    planted = np.zeros(counts.values.shape, np.int8)
    for first, stop, sample, copies in zip(
        truth.first, truth.stop, truth.sample, truth.copies, strict=True
    ):
        planted[first:stop, sample] = np.sign(copies - 2)
    found = np.zeros_like(planted)
    first = np.searchsorted(place(counts, counts.regions.start), place_of(counts, called))
    for row, rows, sample, copy in zip(
        first, called.rows, called.sample, called.copy_number, strict=True
    ):
        found[row : row + rows, sample] = np.sign(copy - 2)
    right = int(((found == planted) & (planted != 0)).sum())
    recall, precision = right / (planted != 0).sum(), right / (found != 0).sum()
    record_property("recall", float(recall))
    record_property("precision", float(precision))
    assert recall >= least
    assert precision >= 0.99


def place(counts: Counts, start: Any) -> Any:
    """Positions that ascend through all chromosomes."""
    return counts.regions.chrom * np.int64(1 << 40) + start


def place_of(counts: Counts, table: Any) -> Any:
    return table.chrom * np.int64(1 << 40) + table.start


@examples(5)
@given(st.permutations(range(6)))
def test_samples__in_another_order_have_the_same_calls(order: list[int]) -> None:
    counts, _ = cohort()
    other = run(some_samples(counts, order))
    rows = {tuple(row.values()) for row in run(counts).cnvs.to_pylist()}
    again = {tuple(row.values()) for row in other.cnvs.to_pylist()}
    assert {row[:4] + row[6:] for row in rows} == {row[:4] + row[6:] for row in again}
    assert rows


def test_prior__more_of_it_finds_no_more() -> None:
    counts, _ = cohort(coverage=25.0, dispersion=0.05)
    found = [len(run(counts, CnvOptions(prior_impact=g)).called) for g in (0.0, 1.0, 10.0, 100.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def plain(result: CnvResult) -> Any:
    """Return the matrices with names as objects: some xarrays cannot compare NumPy's texts."""
    matrices: Any = result.matrices
    texts = [name for name, each in matrices.coords.items() if each.dtype.kind == "T"]
    assert "sample" in texts
    return matrices.assign_coords({name: matrices[name].astype(object) for name in texts})


@pytest.mark.parametrize("chunk", [1, 1000, 10_000, 1 << 26])
def test_pieces__of_a_chromosome_give_the_same(chunk: int) -> None:
    counts, _ = cohort()
    run_options = RunOptions(gpus="none", max_chunk_bytes=chunk)
    whole = run(counts)
    pieces = CnvJob(counts, CnvOptions(), run_options).result(keep=("sini", "normalized"))
    assert pieces.segmentation.equals(whole.segmentation)
    assert pieces.cnv_regions.equals(whole.cnv_regions)
    assert plain(pieces).identical(plain(whole))


def test_threads__give_the_same() -> None:
    counts, _ = cohort()
    results = [
        CnvJob(counts, CnvOptions(), RunOptions(gpus="none", threads=n)).result(keep=("sini",))
        for n in (1, 3)
    ]
    assert results[0].segmentation.equals(results[1].segmentation)
    assert plain(results[0]).identical(plain(results[1]))


def test_genome_wide__all_chromosomes_have_the_same_size_factors() -> None:
    counts, _ = cohort()
    found = run(counts, CnvOptions(genome_wide=True)).matrices["normalized"].values
    with np.errstate(invalid="ignore"):
        factors = found / counts.values
    for sample in factors.T:
        known = sample[np.isfinite(sample)]
        np.testing.assert_allclose(known, known[0], rtol=1e-12)


def test_ploidy__medians_relate_as_the_ploidies() -> None:
    counts, _ = cohort()
    ploidy = (2, 2, 2, 4, 4, 2)
    values = run(counts, ploidy=ploidy).matrices["normalized"].values
    used = (counts.values >= 1).any(axis=1)
    four, two = np.median(values[used][:, 3:5]), np.median(values[used][:, [0, 1, 2, 5]])
    np.testing.assert_allclose(four / two, 2, rtol=0.05)


def test_reference__ours_hands_the_prior_out_to_every_case_alike() -> None:
    counts, _ = cohort()
    cases, twice = some_samples(counts, [0, 1]), some_samples(counts, [0, 0], "ab")
    controls = some_samples(counts, [2, 3, 4, 5])
    options = CnvOptions.of("reference", segmentation="fast", prior_impact=5.0)
    both = run(twice, options, controls=controls).matrices["sini"].values
    assert (both[:, 0] == both[:, 1]).all()
    assert len(run(cases, options, controls=controls).segments)


REFUSED = [
    ("cn.mops", 1, 0, "there is only one"),
    ("haplo", 1, 0, "there is only one"),
    ("single", 2, 0, "takes one sample, not 2"),
    ("reference", 2, 0, "needs controls"),
    ("cn.mops", 2, 2, "for model reference only"),
]


@pytest.mark.parametrize(("model", "cases", "controls", "problem"), REFUSED)
def test_refused__tables_that_do_not_suit_the_model(
    model: str, cases: int, controls: int, problem: str
) -> None:
    counts, _ = cohort()
    some = some_samples(counts, list(range(cases)))
    others = some_samples(counts, list(range(controls))) if controls else None
    with pytest.raises(UsageError, match=problem):
        CnvJob(some, CnvOptions.of(model), CPU, controls=others)


def other_controls(counts: Counts, regions: Regions) -> Counts:
    """Return counts of other samples in these regions."""
    names = tuple(f"control {name}" for name in counts.samples)
    return Counts(regions, names, counts.values[: len(regions)].copy())


def different(regions: Regions) -> str:
    """Return the error about controls with these regions."""
    counts, options = cohort()[0], CnvOptions.of("reference")
    controls = other_controls(counts, regions)
    with pytest.raises(UsageError) as error:
        CnvJob(counts, options, CPU, controls=controls)
    return str(error.value).partition("controls have different regions: ")[2]


def test_refused__controls_with_other_regions_by_the_first() -> None:
    regions = cohort()[0].regions
    ends = regions.end.copy()
    ends[7:] += 1
    other = replace(regions, end=ends)
    said = different(other)
    assert said == "region 8 of the cases is chr1:175000-200000, of the controls chr1:175000-200001"
    said = different(regions.take(np.arange(9)))
    assert said == "region 10 of the cases is chr1:225000-250000, of the controls missing"
    said = different(replace(regions, names=("chr1", "chrX", "chr3")))
    assert said == "region 501 of the cases is chr2:0-25000, of the controls chrX:0-25000"


def test_refused__controls_whose_names_differ_by_chr() -> None:
    said = different(replace(cohort()[0].regions, names=("1", "2", "3")))
    assert said == (
        "region 1 of the cases is chr1:0-25000, of the controls 1:0-25000 (the names differ only by"
        " `chr`: rename auto takes them as the same)"
    )


def test_refused__a_name_of_a_case_and_a_control() -> None:
    counts, _ = cohort()
    with pytest.raises(UsageError, match=f"{counts.samples[0]} is a case and a control: rename"):
        CnvJob(counts, CnvOptions.of("reference"), CPU, controls=counts)


def test_notes__say_how_many_cases_and_controls_there_are() -> None:
    counts, _ = cohort()
    cases = some_samples(counts, [0])
    controls = other_controls(counts, counts.regions)
    job = CnvJob(cases, CnvOptions.of("reference"), CPU, controls=controls)
    first, listed = counts.samples[0], ", ".join(controls.samples[:5])
    assert job.notes == [f"1 case ({first}) and 6 controls ({listed} and 1 other)"]


def test_refused__a_name_that_would_break_a_table() -> None:
    counts, _ = cohort()
    samples = ("a\tb", *counts.samples[1:])
    with pytest.raises(UsageError, match="cannot be a name in tables"):
        CnvJob(replace(counts, samples=samples), CnvOptions(), CPU)


def test_refused__a_sample_without_reads() -> None:
    counts, _ = cohort()
    values = counts.values.copy()
    values[:, 3] = 0
    with pytest.raises(UsageError, match=f"sample {counts.samples[3]} has no reads"):
        CnvJob(replace(counts, values=values), CnvOptions(), CPU)


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
    assert [note.split(":")[0] for note in found.notes][:2] == [
        "only 5 regions",
        "there are too few regions for a segmentation",
    ]


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


def test_stages__one_by_one_give_the_same_segments() -> None:
    from multigpu.kernels import cnmops, normalization, segmentation
    from multigpu.kernels.cnmops import cpu as model
    from multigpu.kernels.normalization import cpu as normalize
    from multigpu.kernels.segmentation import cpu as segment

    counts, _ = cohort()
    values, blocks = counts.values, counts.regions.blocks
    factors = normalize.size_factors(values, blocks, normalization.Normalization()).factors
    scaled = np.concatenate([values[b] * row for b, row in zip(blocks, factors, strict=True)])
    found = model.model(scaled, np.ones(scaled.shape[1]), cnmops.Model())
    means = []
    for block in blocks:
        tracks = np.ascontiguousarray(found.sini[block].T).reshape(-1)
        borders = np.arange(scaled.shape[1] + 1) * (block.stop - block.start)
        means += segment.segment(tracks, borders, segmentation.Segmentation()).mean.tolist()
    np.testing.assert_allclose(run(counts).segments.mean, means, rtol=1e-9, atol=1e-9)


def test_journal__of_other_counts_is_refused(tmp_path: Path) -> None:
    """Another --min-mapq, or other --regions, give other counts of the same files."""
    counts, _ = cohort()
    path = tmp_path / "journal"

    def begun(counts: Counts) -> Journal:
        job = CnvJob(counts, CnvOptions(), CPU, journal=path)
        return Journal(path, job.description(KeptResults()), {}, codec=Codec(), resume=True)

    begun(counts).close()
    begun(counts).close()
    values = counts.values.copy()
    values[[0, 1]] = values[[1, 0]] + np.array([[1], [-1]])
    ends = replace(counts.regions, end=counts.regions.end + 1)
    for other in (replace(counts, values=values), replace(counts, regions=ends)):
        with pytest.raises(UsageError, match="cannot be resumed: counts was content"):
            begun(other)


def test_counts__are_given_back_before_the_tables_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts, _ = cohort(regions=2000, samples=6)
    job = CnvJob(replace(counts, values=counts.values.copy()), CnvOptions(), CPU)
    held = weakref.ref(job.values)

    def is_freed(*_: Any) -> bool:
        deadline = time.monotonic() + 9
        while held() is not None and time.monotonic() < deadline:
            time.sleep(0.01)  # a thread may still be leaving its last chromosome
        return held() is None

    monkeypatch.setattr(job, "_assemble", is_freed)
    found: Any = job.result()
    assert found is True


def test_result__leaves_a_chromosome_of_one_region_uncalled() -> None:
    table, _ = cohort()
    regions = replace(table.regions, names=(*table.regions.names, "chrM"))
    more = [("chrom", 3), ("start", 0), ("end", 16_569)]
    columns = {k: np.append(getattr(regions, k), v).astype(np.int64) for k, v in more}
    columns["chrom"] = columns["chrom"].astype(np.int32)
    values = np.vstack([table.values, np.full((1, 6), 9000, np.int32)])
    counts = replace(table, regions=replace(regions, **columns), values=values)
    found = CnvJob(counts, CnvOptions(), CPU).result()
    (note,) = (note for note in found.notes if "chrM" in note)
    assert note == "chrM: one region only, nothing is called there"
    assert found.cnvs.equals(CnvJob(table, CnvOptions(), CPU).result().cnvs)

"""Calls on sex chromosomes: what is usual for each sex, and in pseudoautosomal regions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cohorts import CPU, SEXES, cnv_job, of_sexes

from multigpu.errors import UsageError, option
from multigpu.formats.tables.counts import Counts
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.output.files import write_tables
from multigpu.workloads.cnv.output.vcf import VcfSource
from multigpu.workloads.cnv.results import copy_numbers, matrices
from multigpu.workloads.cnv.results.result import CnvResult
from multigpu.workloads.cnv.samples import sex
from multigpu.workloads.cnv.samples.genomes import genome_named


def cohort_of(females: int, males: int) -> tuple[str, ...]:
    return ("female",) * females + ("male",) * males


def controls_of(sexes: tuple[str, ...], **more: int) -> Counts:
    """Return counts of controls."""
    made = of_sexes(sexes=sexes, seed=4, **more)
    return replace(made, samples=tuple(f"c{k}" for k in range(len(sexes))))


def calls_of(found: CnvResult) -> set[tuple[str, str, int]]:
    """Chromosome and sample of every CNV, and whether it is a loss (-1) or a gain (1)."""
    signs = copy_numbers.direction(found.called.copy_number, found.options).tolist()
    rows = found.cnvs.to_pylist()
    return {(row["chrom"], row["sample"], sign) for row, sign in zip(rows, signs, strict=True)}


OPTIONS = {
    "default": {},
    "mean": {"norm_type": "mean"},
    "coverages": {"norm": 2},
    "genome": {"genome_wide": True, "norm_type": "mean"},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(
    ("females", "males"), [(5, 5), (7, 3), (3, 7), (1, 7), (7, 1), (0, 7), (7, 0)]
)
def test_calls__of_what_is_not_usual_for_the_sex(
    females: int, males: int, options: dict[str, Any]
) -> None:
    sexes, planted = cohort_of(females, males), {}
    if males > 1:
        planted["chrX", females], planted["chrY", females + 1] = 2.0, 0.02
    if females > 1:
        planted["chrX", 0] = 0.5
    if females > 3:
        planted["chrX", 1] = 2.0
    expected = {(chrom, f"s{k}", 1 if x > 1 else -1) for (chrom, k), x in planted.items()}
    table = of_sexes(sexes=sexes, planted=planted, coverage=400)
    found = cnv_job(table, CnvOptions(**options), CPU, sexes=sexes).result()
    assert calls_of(found) == expected
    usual = {(row["chrom"], row["sample"]): row["copy_number"]
             for row in found.segmentation.to_pylist() if row["start"] == 0}  # fmt: skip
    on_y = {sample for chrom, sample in usual if chrom == "chrY"}
    assert on_y == ({f"s{k}" for k in range(females, females + males)} if males > 1 else set())
    for k, each in enumerate(sexes):
        assert usual["chrX", f"s{k}"] == ("CN1" if each == "male" else "CN2")
    assert all(usual["chrY", sample] == "CN1" for sample in on_y)


def test_calls__of_cases_by_controls_of_either_sex() -> None:
    cases, controls = cohort_of(2, 2), cohort_of(2, 3)
    planted = {("chrX", 3): 2.0, ("chrY", 2): 0.02}
    table = of_sexes(sexes=cases, planted=planted, coverage=400)
    others = controls_of(controls, coverage=400)
    options = CnvOptions.of("reference", segmentation="fast")
    job = cnv_job(table, options, sexes=cases + controls, controls=others)
    assert calls_of(job.result()) == {("chrX", "s3", 1), ("chrY", "s2", -1)}


@pytest.mark.parametrize(("own", "on_x"), [("male", "CN1"), ("female", "CN2")])
def test_calls__of_one_sample_by_its_sex(own: str, on_x: str) -> None:
    table = of_sexes(sexes=(own, own), planted={("chrX", 0): 3.0})
    one = replace(table, samples=("s0",), values=table.values[:, :1].copy())
    found = cnv_job(one, CnvOptions.of("single"), CPU, sexes=(own,)).result()
    segments = found.segmentation.to_pylist()
    assert {row["copy_number"] for row in segments if row["chrom"] == "chrX"} > {on_x}
    assert any(row["chrom"] == "chrY" for row in segments) == (own == "male")


def test_files__show_what_is_usual_and_what_is_not_looked_at(tmp_path: Path) -> None:
    pysam = pytest.importorskip("pysam")
    sexes = cohort_of(4, 4)
    planted = {("chrX", 5): 2.0, ("chrY", 7): 0.02}
    table = of_sexes(sexes=sexes, planted=planted, coverage=400)
    options = CnvOptions(fractional="mean", posterior=True)
    found = cnv_job(table, options, sexes=sexes).result(keep=matrices.names(posterior=True))
    on_x, on_y = found.cnv_regions.to_pylist()
    names = [f"s{k}" for k in range(8)]
    assert [on_x[name] for name in names] == [*["CN2"] * 4, "CN1", "CN2", "CN1", "CN1"]
    assert [on_y[name] for name in names] == [*["NA"] * 4, "CN1", "CN1", "CN1", "CN0"]
    parts = found.fractional["cnv_regions_fractional"].to_pylist()
    assert [parts[1][name] for name in names[:4]] == ["NA"] * 4
    assert [float(parts[0][name].removeprefix("CN")) for name in names[4:]] == [1, 1.5, 1, 1]
    segments = found.fractional["segmentation_fractional"].to_pylist()
    first = next(r for r in segments if r["chrom"] == "chrX" and r["sample"] == "s6")
    assert float(first["copy_number"].removeprefix("CN")) == pytest.approx(1, abs=0.1)
    write_tables(found, tmp_path, None, VcfSource())
    records = list(pysam.VariantFile(str(tmp_path / "cnvs.vcf.gz")))
    assert [record.alts for record in records] == [("<DUP>",), ("<DEL>",)]
    assert [call["CN"] for call in records[1].samples.values()] == [*[None] * 4, 1, 1, 1, 0]
    assert b"s5:CN2" in (tmp_path / "cnvs.bed").read_bytes()
    kept = found.matrices
    assert (kept["sini"].dtype, kept["copy_number"].dtype) == (np.float64, np.int8)
    y = (kept["chrom"] == "chrY").values
    for name in ("sini", "normalized", "posterior"):
        values = kept[name].values[y]
        assert np.isnan(values[..., :4]).all()
        assert not np.isnan(values[..., 4:]).any()
    assert (kept["copy_number"].values[y][:, :4] == -1).all()
    middle = kept["copy_number"].values[(kept["chrom"] == "chrX").values][100]
    assert [options.classes[k] for k in middle] == [*["CN2"] * 4, "CN1", "CN2", "CN1", "CN1"]


@pytest.mark.parametrize("options", [{"norm": 2}, {"genome_wide": True}], ids=str)
@pytest.mark.parametrize("names", [("chr1", "chrX", "chrY"), ("chrX", "chr1", "chrY")], ids=str)
def test_calls__do_not_depend_on_how_much_of_the_genome_is_x(
    names: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Males have fewer reads in all, but not elsewhere."""
    sexes = cohort_of(4, 4)
    table = of_sexes(names, sexes=sexes, planted={("chrX", 5): 2.0}, coverage=400)
    found = cnv_job(table, CnvOptions(**options), CPU, sexes=sexes).result(("normalized",))
    assert calls_of(found) == {("chrX", "s5", 1)}
    level = found.matrices["normalized"].values[(found.matrices["chrom"] == "chr1").values]
    if "genome_wide" in options:
        assert level[:, 4:].mean() / level[:, :4].mean() == pytest.approx(1, abs=0.01)


def test_reads__are_wanted_where_a_sample_is_looked_at() -> None:
    table = of_sexes(("chrY",), sexes=cohort_of(4, 4), coverage=400)
    values = table.values.copy()
    values[:, :4] = 0
    alone = replace(table, values=values)
    assert cnv_job(alone, sexes=cohort_of(4, 4)).result().segments.sample.min() > 3
    with pytest.raises(UsageError, match=r"^sample s0 has no reads: leave it out$"):
        cnv_job(alone)


def test_sexes__that_are_used_or_unknown_are_told() -> None:
    def notes(*sexes: str, **more: Any) -> list[str]:
        return cnv_job(of_sexes(), sexes=sexes, **more).notes

    assert notes(*SEXES)[0].startswith("chrX and chrY: every sample is compared with what is usual")
    told = "1 male and 1 female, 4 of unknown sex taken as female: "
    assert told in notes("male", "female", "", "", "", "")[0]
    assert notes() == notes(*SEXES, ploidy=(2,) * 6) == []


# ---- pseudoautosomal regions ------------------------------------------------------------------

PAR = {"width": 50_000, "par": 56}  # of hg38: the middle of the next region lies behind it


def in_par(counts: Counts, sample: int, times: float, rows: slice = slice(20, 40)) -> Counts:
    """Return counts with `times` as many reads in some regions of X."""
    values = counts.values.copy()
    own = np.flatnonzero(counts.regions.chrom == 1)[rows]
    values[own, sample] = np.rint(values[own, sample] * times)
    return replace(counts, values=values)


def without_x(table: Counts, rows: slice) -> tuple[Counts, Any]:
    """Return a table without some regions of X, and which of its rows these are."""
    kept = np.delete(np.arange(len(table.values)), np.flatnonzero(table.regions.chrom == 1)[rows])
    return replace(table, regions=table.regions.take(kept), values=table.values[kept]), kept


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("females", "males"), [(5, 5), (3, 7), (1, 7), (7, 2), (0, 7)])
def test_par__everybody_has_two_copies(females: int, males: int, options: dict[str, Any]) -> None:
    sexes = cohort_of(females, males)
    on_x, more, fewer = females, females + 1, 0 if females else 2
    table = of_sexes(sexes=sexes, coverage=400, planted={("chrX", on_x): 2.0}, **PAR)
    table = in_par(in_par(table, more, 2.0), fewer, 0.5)
    chosen = CnvOptions(**options, fractional="mean")
    job = cnv_job(table, chosen, sexes=sexes, genome="GRCh38")
    assert any(note.endswith("pseudoautosomal regions of hg38") for note in job.notes)
    found = job.result(matrices.names(posterior=False))
    columns = ("chrom", "start", "end", "sample", "copy_number")
    rows = [tuple(row[name] for name in columns) for row in found.cnvs.to_pylist()]
    assert [row for row in rows if row[1] < 56 * 50_000] == [
        ("chrX", 1_000_000, 2_000_000, f"s{sample}", label)
        for sample, label in sorted([(more, "CN4"), (fewer, "CN1")])
    ]
    assert ("chrX", 4_500_000, 5_500_000, f"s{on_x}", "CN2") in rows
    others = {f"s{k}" for k in range(females, females + males)} - {f"s{on_x}", f"s{more}"}
    first, second = found.cnv_regions.to_pylist()[:2]
    assert {first[name] for name in others - {f"s{fewer}"}} <= {"CN2"}
    assert {second[name] for name in others} <= {"CN1"}
    parts = found.fractional["cnv_regions_fractional"].to_pylist()
    exact = [float(parts[0][f"s{more}"][2:]), float(parts[1][f"s{on_x}"][2:])]
    assert exact == pytest.approx([4, 2], abs=0.5)
    numbers = found.matrices["copy_number"].values[table.regions.chrom == 1]
    labels = {name: {chosen.classes[k] for k in np.unique(numbers[rows])}
              for name, rows in {"par": slice(5, 15), "x": slice(60, 80)}.items()}  # fmt: skip
    assert labels["par"] == {"CN2"}
    assert labels["x"] == {"CN1", "CN2"} - ({"CN2"} if not females else set())


@pytest.mark.parametrize("model", ["reference", "single"])
def test_par__of_cases_by_controls_and_of_one_sample(model: str) -> None:
    sexes, controls = cohort_of(0, 1), None
    table = in_par(of_sexes(sexes=("male", "male"), coverage=400, **PAR), 0, 1.5)
    table = replace(table, samples=("s0",), values=table.values[:, :1].copy())
    if model == "reference":
        controls = controls_of(cohort_of(3, 3), coverage=400, **PAR)
        sexes += cohort_of(3, 3)
    options = CnvOptions.of(model, segmentation="fast", min_width=5)
    job = cnv_job(table, options, sexes=sexes, controls=controls, genome="hg38")
    found = job.result()
    on_x = [row for row in found.cnvs.to_pylist() if row["chrom"] == "chrX"]
    assert [(row["start"], row["end"]) for row in on_x] == [(20 * 50_000, 40 * 50_000)]
    assert on_x[0]["copy_number"] == "CN3"


def test_par__of_one_sample_and_few_regions_beside_it() -> None:
    """The level is that of the regions with one copy, and sexes are inferred by these."""
    table = of_sexes(sexes=cohort_of(4, 4), coverage=400, **PAR)
    less, _ = without_x(table, slice(70, None))  # 14 beside 56
    coverage = sex.coverage(less.values, less.regions, genome_named("hg38").par)  # type: ignore[union-attr]
    assert coverage is not None
    assert coverage.sexes() == cohort_of(4, 4)
    found = sex.cohort_coverage(less, None, "hg38")
    assert found is not None
    assert found.sexes() == cohort_of(4, 4)
    one = replace(less, samples=("s7",), values=less.values[:, 7:].copy())
    options = CnvOptions.of("single", segmentation="fast")
    calls = cnv_job(one, options, sexes=("male",), genome="hg38").result().cnvs.to_pylist()
    assert not [row for row in calls if row["chrom"] == "chrX"]


@pytest.mark.parametrize(("females", "males"), [(4, 4), (3, 12)])
def test_par__a_cnv_across_its_border_is_counted_on_the_side_of_its_middle(
    females: int, males: int
) -> None:
    table = of_sexes(sexes=cohort_of(females, males), coverage=400, **PAR)
    for rows in (slice(48, 58), slice(52, 62), slice(53, 63)):
        across = in_par(table, 0, 2.0, rows)
        found = cnv_job(across, sexes=cohort_of(females, males), genome="hg38").result()
        on_x = [row for row in found.cnvs.to_pylist() if row["chrom"] == "chrX"]
        assert [(row["start"] // 50_000, row["sample"]) for row in on_x] == [(rows.start, "s0")]
        assert on_x[0]["copy_number"] == "CN4"


def test_par__a_region_says_of_each_cnv_what_it_is_alone() -> None:
    sexes = cohort_of(5, 5)
    table = of_sexes(sexes=sexes, coverage=400, **PAR)
    table = in_par(in_par(table, 7, 0.5, slice(28, 48)), 0, 0.5, slice(30, 90))
    found = cnv_job(table, sexes=sexes, genome="hg38").result()
    own = {row["sample"]: row["copy_number"] for row in found.cnvs.to_pylist()}
    assert own == {"s0": "CN1", "s7": "CN1"}
    (region,) = found.cnv_regions.to_pylist()
    assert {name: region[name] for name in own} == own
    assert region["s8"] == "CN1"  # its middle lies beside them
    assert region["s1"] == "CN2"


def test_par__changes_nothing_beside_it() -> None:
    sexes, options = cohort_of(4, 4), CnvOptions(norm_type="mean", size_factor="mean")
    table = of_sexes(sexes=sexes, planted={("chrX", 5): 2.0}, coverage=400, **PAR)
    found = cnv_job(table, options, sexes=sexes, genome="hg38").result(("sini", "normalized"))
    less, kept = without_x(table, slice(PAR["par"]))
    alone = cnv_job(less, options, sexes=sexes).result(("sini", "normalized"))
    for name in ("normalized", "sini"):
        both = [each.matrices[name].values for each in (found, alone)]
        np.testing.assert_allclose(both[0][kept], both[1], rtol=1e-12, atol=1e-12)


def test_par__of_a_genome_that_is_not_known_is_asked_for() -> None:
    table = of_sexes(**PAR)
    asked = f"{option('genome')} says where the pseudoautosomal regions are"
    assert asked in cnv_job(table, sexes=SEXES).notes[0]
    other = cnv_job(table, sexes=SEXES, genome="danRer11")
    assert other.notes[0].endswith("; the pseudoautosomal regions of 'danRer11' are not known")
    assert all(span.par == () for span in other.spans)


def test_par__of_a_table_that_has_nothing_else_of_x() -> None:
    table = of_sexes(**PAR)
    less, _ = without_x(table, slice(PAR["par"], None))
    assert calls_of(cnv_job(less, sexes=SEXES, genome="hg38").result()) == set()


# ---- everywhere the same ----------------------------------------------------------------------

PLACES = [
    pytest.param(RunOptions(gpus="none", max_chunk_bytes=4096), id="pieces"),
    pytest.param(RunOptions(gpus="0"), id="gpu", marks=pytest.mark.gpu),
    pytest.param(
        RunOptions(gpus="0", max_chunk_bytes=4096), id="gpu-pieces", marks=pytest.mark.gpu
    ),
]


@pytest.mark.parametrize("run", PLACES)
@pytest.mark.parametrize("model", ["cn.mops", "reference"])
def test_calls__are_the_same_everywhere(run: RunOptions, model: str) -> None:
    sexes, controls = cohort_of(4, 4), None
    planted = {("chrX", 5): 2.0, ("chrY", 7): 0.02}
    table = of_sexes(sexes=sexes, planted=planted, coverage=400, **PAR)
    if model == "reference":
        controls = controls_of(sexes, **PAR)
    options = CnvOptions.of(model, segmentation="fast", posterior=True, min_width=3)
    keep = matrices.names(posterior=True)
    more = {"sexes": sexes * (2 if controls else 1), "controls": controls, "genome": "hg38"}
    found, expected = (cnv_job(table, options, r, **more).result(keep) for r in (run, CPU))
    for name, rows in expected.tables().items():
        assert found.tables()[name].equals(rows)
    for name in keep:
        np.testing.assert_array_equal(found.matrices[name].values, expected.matrices[name].values)


def test_calls__where_no_sample_is_looked_at(tmp_path: Path) -> None:
    table = of_sexes(("chr1", "chrX", "chrY"), sexes=cohort_of(5, 1))
    store = tmp_path / "matrices.zarr"
    job = cnv_job(table, CnvOptions(robust=0.1), CPU, sexes=cohort_of(5, 1))
    found = job.result(matrices.names(posterior=False), store)
    assert any("chrY is not called" in note for note in found.notes)
    zarr = pytest.importorskip("zarr")
    sini = zarr.open_group(str(store))["sini"][:]
    assert np.isnan(sini[400:]).all()
    assert not np.isnan(sini[:400]).any()


@pytest.mark.parametrize("model", ["cn.mops", "reference"])
def test_sexes__also_where_counts_are_not_whole(model: str) -> None:
    table = of_sexes()
    parts = replace(table, values=table.values + 0.25)
    others = replace(parts, samples=tuple("abcdef")) if model == "reference" else None
    options = CnvOptions.of(model, segmentation="fast")
    sexes = SEXES * (2 if others else 1)
    found = cnv_job(parts, options, sexes=sexes, controls=others).result(keep=("sini",))
    assert len(found.segments)


@pytest.mark.parametrize(("females", "more"), [(9, 0), (4, 55)])  # among those that are watched
def test_reference_samples__of_y_where_one_control_has_it(females: int, more: int) -> None:
    """Cases are compared with it, and it with itself."""
    few = ("male", "female", "male")
    many = (*("female",) * females, "male", *("female",) * more)
    cases = of_sexes(sexes=few, planted={("chrY", 2): 3.0})
    controls = of_sexes(sexes=many, seed=4)
    controls = replace(controls, samples=tuple(f"control{k}" for k in range(len(many))))
    options = CnvOptions.of("reference", "exome")
    job = cnv_job(cases, options, controls=controls, sexes=few + many)
    called = [(row["chrom"], row["sample"]) for row in job.result().cnvs.to_pylist()]
    assert called == [("chrY", "s2")]


@pytest.mark.parametrize(
    ("model", "options", "names"),
    [
        ("cn.mops", {"norm": 0}, ("chr1", "chrX", "chrY")),
        ("haplo", {}, ("chr1", "chrX", "chrY")),
        ("cn.mops", {}, ("chr1",)),
    ],
)
def test_sexes__that_are_not_used_are_not_told(
    model: str, options: dict[str, Any], names: tuple[str, ...]
) -> None:
    job = cnv_job(of_sexes(names), CnvOptions.of(model, **options), CPU, sexes=SEXES)
    assert not any("sex" in note for note in job.notes)
    assert all(span.copies is None for span in job.spans)

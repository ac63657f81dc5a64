"""Presets: what they call in small cohorts with planted events, and the same bytes however run."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pysam
import pytest
from support.bams import random_rows, write_alignments
from support.cohorts import SEXES, of_sexes, planted, some_samples
from support.emulated_backend import use_emulated_gpu

import multigpu
from multigpu import CnvResult, Counts, UsageError, write_counts

FEW = ("--gpus", "none", "--no-report")
GENOME = {"chr1": 300, "chr2": 200}
TABLES = ("cnvs.tsv", "segmentation.tsv", "cnv_regions.tsv", "cnvs.bed", "segments.seg")

Call = tuple[str, int, int, str, str]  # chromosome, first base and last, sample, copies
Run = Callable[..., Path]
LOSS, GAIN = ("chr1", 50, 70, [0], 0.5), ("chr2", 100, 120, [1], 1.5)
CALLED = [("chr1", 50_000, 70_000, "s0", "CN1"), ("chr2", 100_000, 120_000, "s1", "CN3")]
PRESET = ("--preset", "genome", "--min-width", "1")


@pytest.fixture
def run(main: Any, tmp_path: Path) -> Run:
    """Return a function that runs the command on counts or files; it returns the folder."""

    def call(given: Counts | list[Path], *options: str, folder: str = "out") -> Path:
        if isinstance(given, Counts):
            given, table = [tmp_path / "counts.parquet"], given
            write_counts(str(given[0]), table)
        out = tmp_path / folder
        ended = main("cnv", *map(str, given), "-o", str(out), *FEW, *options)
        assert ended.status == 0, ended.err
        return out

    return call


def calls_of(folder: Path) -> list[Call]:
    with (folder / "cnvs.tsv").open() as file:
        rows = [*csv.DictReader(file, delimiter="\t")]
    ends = [(int(row["start"]), int(row["end"])) for row in rows]
    return [(row["chrom"], *at, row["sample"], row["copy_number"])
            for row, at in zip(rows, ends, strict=True)]  # fmt: skip


def assert_found(calls: list[Call], events: list[Call], off: int = 0) -> None:
    """Assert that there is one call for each event, whose ends are off by some bases at most."""
    assert [(c[0], *c[3:]) for c in sorted(calls)] == [(e[0], *e[3:]) for e in sorted(events)]
    for call, event in zip(sorted(calls), sorted(events), strict=True):
        assert abs(call[1] - event[1]) <= off, call
        assert abs(call[2] - event[2]) <= off, call


def in_table(found: CnvResult) -> list[Call]:
    """Return the calls of a function."""
    return [(*(row := tuple(each.values()))[:4], row[6]) for each in found.cnvs.to_pylist()]


def write_bincov(counts: Counts, folder: Path) -> list[Path]:
    """Write the matrix of GATK-SV, with an index."""
    plain, path = folder / "batch.RD.txt", folder / "batch.RD.txt.gz"
    lines = ["\t".join(("#Chr", "Start", "End", *counts.samples))]
    for row, (chrom, start, end) in zip(counts.values, places(counts), strict=True):
        lines.append("\t".join(map(str, (chrom, start, end, *row))))
    plain.write_text("\n".join([*lines, ""]))
    pysam.tabix_compress(str(plain), str(path))
    pysam.tabix_index(str(path), seq_col=0, start_col=1, end_col=2, zerobased=True)
    return [path]


def write_gatk(counts: Counts, folder: Path) -> list[Path]:
    """Write a file of GATK's CollectReadCounts for each sample, whose name is in its head."""
    paths = []
    for k, sample in enumerate(counts.samples):
        head = f"@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:600000\n@RG\tID:GATKCopyNumber\tSM:{sample}\n"
        rows = zip(places(counts), counts.values[:, k], strict=True)
        lines = [f"{chrom}\t{start + 1}\t{end}\t{count}\n" for (chrom, start, end), count in rows]
        paths.append(folder / f"f{k}.counts.tsv")
        paths[-1].write_text(head + "CONTIG\tSTART\tEND\tCOUNT\n" + "".join(lines))
    return paths


def places(counts: Counts) -> list[tuple[str, int, int]]:
    regions = counts.regions
    names = [regions.names[k] for k in regions.chrom]
    return list(zip(names, regions.start.tolist(), regions.end.tolist(), strict=True))


@pytest.mark.parametrize("preset", [(), ("--preset", "genome")], ids=["none", "genome"])
@pytest.mark.parametrize("write", [write_bincov, write_gatk])
def test_files__of_gatk_are_called(
    write: Callable[..., list[Path]], preset: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    counts = planted(GENOME, [("chr1", 110, 140, [2], 0.5)])
    counts = replace(counts, samples=("HG0", "HG0-2", *(f"HG{k}" for k in range(2, 8))))
    folder = run(write(counts, tmp_path), "--no-matrices", *preset)
    assert_found(calls_of(folder), [("chr1", 110_000, 140_000, "HG2", "CN1")])
    assert (folder / "qc.tsv").read_text().split("\n")[2].startswith("HG0-2\t")


def test_panel__has_genes_three_exons_and_single_losses(run: Run) -> None:
    events = [
        ("chr1", 20, 33, [0], 0.5), ("chr1", 60, 70, [2], 1.5), ("chr1", 90, 91, [4], 0.5),
        ("chr2", 30, 33, [6, 8], 0.5), ("chr2", 60, 63, [10], 1.5), ("chr2", 90, 91, [12], 0.5),
    ]  # fmt: skip
    counts = planted({"chr1": 200, "chr2": 170}, events, 24, coverage=300)
    folder = run(counts, "--preset", "panel", "--no-matrices")
    wanted = [
        (chrom, first * 1000, stop * 1000, f"s{k}", "CN1" if times < 1 else "CN3")
        for chrom, first, stop, who, times in events
        for k in who
    ]
    assert_found(calls_of(folder), wanted, off=1000)


@pytest.mark.parametrize(("carriers", "samples"), [(6, 12), (8, 12), (15, 30), (22, 30), (27, 30)])
def test_common_loss__is_no_gain_of_the_others(carriers: int, samples: int, run: Run) -> None:
    events = [("chr1", 100, 130, range(carriers), 0.5)]
    counts = planted({"chr1": 3000, "chr2": 200}, events, samples, batches=4)
    folder = run(counts, "--preset", "genome", "--no-matrices")
    wanted = [("chr1", 100_000, 130_000, f"s{k}", "CN1") for k in range(carriers)]
    assert_found(calls_of(folder), wanted, off=1000)
    with pysam.VariantFile(str(folder / "cnvs.vcf.gz")) as vcf:
        (record,) = vcf
        assert "COMMON" in record.filter
        copies = [each["CN"] for each in record.samples.values()]
        assert copies == [1] * carriers + [2] * (samples - carriers)


def test_few_reads__show_large_events_and_losses_of_both(run: Run) -> None:
    events = [(k, times, n) for k, (times, n) in enumerate(
        (times, n) for times in (0.01, 0.5, 1.5, 2) for n in (5, 30, 100))]  # fmt: skip
    planned = [("chr1", 60 + 120 * k, 60 + 120 * k + n, [3 * k], t) for k, t, n in events]
    counts = planted({"chr1": 1600}, planned, 60, coverage=30)
    calls = {call[3:]: call for call in calls_of(run(counts, "--preset", "genome"))}
    copies = {0.01: "CN0", 0.5: "CN1", 1.5: "CN3", 2: "CN4"}
    for k, times, n in events:
        if n >= 30 or times == 0.01:
            call = calls.pop((f"s{3 * k}", copies[times]))
            begin = 1000 * planned[k][1]
            assert abs(call[1] - begin) + abs(call[2] - begin - 1000 * n) < 0.2 * 1000 * n
    assert len(calls) <= 4  # of the others


def shifted(counts: Counts, first: int, stop: int, by: int) -> Counts:
    """Move regions, so that there are none before them."""
    start, end = counts.regions.start.copy(), counts.regions.end.copy()
    start[first:stop] += by
    end[first:stop] += by
    return replace(counts, regions=replace(counts.regions, start=start, end=end))


@pytest.mark.parametrize("segmentation", ["fast", "cbs", "hmm"])
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_max_gap__cuts_what_spans_it(segmentation: str, cut: bool, run: Run) -> None:
    counts = shifted(planted(GENOME, [("chr1", 280, 300, [3], 0.5)], 10), 290, 300, 3_000_000)
    options = ("--segmentation", segmentation, *(("--max-gap", "500kb") if cut else ()))
    folder = run(counts, *options, "--no-matrices")
    places = [(280_000, 290_000), (3_290_000, 3_300_000)] if cut else [(280_000, 3_300_000)]
    assert_found(calls_of(folder), [("chr1", *place, "s3", "CN1") for place in places])
    regions = (folder / "cnv_regions.tsv").read_text().splitlines()
    assert len(regions) == 1 + len(places)


@pytest.mark.parametrize("segmentation", ["fast", "cbs", "hmm"])
def test_whole_chromosomes__are_called_beside_others(segmentation: str, run: Run) -> None:
    events = [("chr21", 0, 46, [3], 1.5), ("chr1", 100, 120, [3], 0.5), ("chr21", 8, 16, [5], 0.5)]
    counts = shifted(planted({**GENOME, "chr21": 46}, events, 12), 523, 546, 900_000)
    options = ("--segmentation", segmentation, "--no-matrices", "--max-gap", "500kb")
    calls = calls_of(run(counts, *options, "--whole-chromosomes"))
    assert ("chr21", 0, 946_000, "s3", "CN3") in calls
    others = [call for call in calls if call[3] != "s3"]
    assert ("chr1", 100_000, 120_000, "s3", "CN1") in calls
    usual = calls_of(run(counts, *options, folder="without"))
    assert others == [call for call in usual if call[3] != "s3"]
    assert {call[3] for call in others} == {"s5"}


ARMS = [
    ("chr9", 0, 40, [1], 0.5), ("chr9", 40, 100, [2], 0.5), ("chr9", 40, 100, [4], 1.5),
    ("chr9", 60, 70, [1], 0.5), ("chr9", 10, 20, [4], 0.5),
]  # fmt: skip


@pytest.mark.parametrize("segmentation", ["fast", "cbs", "hmm"])
@pytest.mark.parametrize("more", [(), ("--max-gap", "500kb"), ("--size-factor", "median")])
def test_arms__are_called_beside_others(segmentation: str, more: tuple[str, ...], run: Run) -> None:
    """Though a chromosome that is normalized by itself has another level where an arm changed."""
    counts = shifted(planted({**GENOME, "chr9": 100}, ARMS, 12), 540, 600, 3_000_000)
    options = ("--segmentation", segmentation, "--whole-chromosomes", "--no-matrices", *more)
    wanted = [
        (chrom, first * 1000 + 3_000_000 * (first >= 40), stop * 1000 + 3_000_000 * (stop > 40),
         f"s{who[0]}", "CN1" if times < 1 else "CN3")
        for chrom, first, stop, who, times in ARMS
    ]  # fmt: skip
    assert_found(calls_of(run(counts, *options)), wanted, off=1000)


def with_zeros(sample: slice | int = slice(None)) -> Counts:
    """A chromosome without reads, in all samples or in one, and regions without."""
    counts = planted({**GENOME, "chr3": 200}, [LOSS, GAIN])
    counts.values[200:260], counts.values[500:, sample] = 0, 0
    return counts


NONE_OF_CHR3 = ("chr3", 0, 200_000, "s3", "CN0")
EDGES: dict[str, tuple[Counts, dict[str, Any], list[Call]]] = {
    "two samples": (planted(GENOME, [LOSS, GAIN], 2), {}, []),  # nobody knows whose
    "three samples": (planted(GENOME, [LOSS, GAIN], 3, coverage=400, seed=2), {}, CALLED),
    "a region alone": (planted({**GENOME, "chr3": 1}, [LOSS, GAIN]), {}, CALLED),
    "few regions": (planted({"chr1": 4}, [("chr1", 1, 3, [0], 0.01)]), {"preset": "panel"},
                    [("chr1", 1000, 3000, "s0", "CN0")]),
    "one region": (planted({"chr1": 1}), {"preset": "panel"}, []),
    "a chromosome without reads": (with_zeros(), {}, CALLED),
    "… in one sample": (with_zeros(3), {}, [*CALLED, NONE_OF_CHR3]),
    "hardly any reads": (planted(GENOME, coverage=0.05), {}, []),
    "a shallow sample": (planted(GENOME, [LOSS, GAIN], depths=[1] * 7 + [1e-4]), {}, CALLED),
    "haploid": (planted(GENOME, [("chr1", 50, 70, [0], 2), ("chr2", 9, 30, [1], 0.01)]),
                {"model": "haplo"}, [("chr1", 50_000, 70_000, "s0", "CN2"),
                                     ("chr2", 9_000, 30_000, "s1", "CN0")]),
    "normalized": (planted(GENOME, [LOSS, GAIN], depths=[1] * 8), {"norm": 0}, CALLED),
    "normalized, and more of one": (planted(GENOME, depths=[1] * 7 + [2]), {"norm": 0},
        [("chr1", 0, 300_000, "s7", "CN4"), ("chr2", 0, 200_000, "s7", "CN4")]),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges__have_what_can_be_told(name: str) -> None:
    counts, options, wanted = EDGES[name]
    found = multigpu.cnv(counts, gpus="none", **{"preset": "genome", **options})
    assert_found(in_table(found), wanted, off=1000)
    assert not any("nothing is called" in note for note in found.notes)


@pytest.mark.parametrize("controls", [1, 3, 60])
def test_reference__of_few_and_many_controls(controls: int) -> None:
    """Controls say the model."""
    events = [LOSS, ("chr2", 20, 40, [controls], 0.5 if controls > 1 else 1.0)]
    counts = planted(GENOME, events, 1 + controls)
    others = some_samples(counts, [*range(1, 1 + controls)])
    how = {"controls": others, "gpus": "none"}
    for model in ({}, {"model": "reference"}):
        found = multigpu.cnv(some_samples(counts, [0]), preset="genome", **how, **model)
        assert found.options.model == "reference"
        assert_found(in_table(found), CALLED[:1], off=1000)
    with pytest.raises(UsageError, match="controls are for model reference only"):
        multigpu.cnv(counts, **how)


def test_sexes__have_copies_of_their_own_but_in_pseudoautosomal_regions() -> None:
    """The first 27 regions of X are in one, and 28 in part."""
    men, women = range(0, 12, 2), range(1, 12, 2)
    events = [
        ("chrX", 28, 200, men, 0.5), ("chrY", 0, 100, men, 0.5), ("chrY", 0, 100, women, 0.003),
        ("chrX", 5, 15, [2], 0.5), ("chrX", 10, 20, [3], 1.5), ("chrX", 60, 80, [4], 0.01),
        ("chrX", 100, 120, [5], 0.5), ("chrX", 140, 160, [6], 2), ("chrY", 40, 60, [8], 0.01),
    ]  # fmt: skip
    counts = planted({"chr1": 300, "chrX": 200, "chrY": 100}, events, 12, width=100_000)
    found = multigpu.cnv(counts, preset="genome", genome="hg38", gpus="none")
    calls = in_table(found)
    wanted = [
        ("chrX", 5, 15, "s2", "CN1"), ("chrX", 10, 20, "s3", "CN3"), ("chrX", 60, 80, "s4", "CN0"),
        ("chrX", 100, 120, "s5", "CN1"), ("chrX", 140, 160, "s6", "CN2"),
        ("chrY", 40, 60, "s8", "CN0"),
    ]  # fmt: skip
    wanted = [(name, k * 100_000, n * 100_000, who, cn) for name, k, n, who, cn in wanted]
    assert_found(calls, wanted, off=100_000)
    assert found.genotypes is not None
    in_par = found.genotypes.copies[[row[3] == "s2" for row in calls]]
    assert in_par.tolist() == [[2, 2, 1] + [2] * 9]
    on_y = found.genotypes.copies[[row[0] == "chrY" for row in calls]]
    assert on_y.tolist() == [[1, -1] * 4 + [0, -1] + [1, -1]]


def of_all_kinds(halves: bool = False) -> Counts:
    """Both sexes, a common loss, a whole chromosome, empty regions, gaps, a shallow sample."""
    events = [
        ("chr1", 50, 70, [0], 0.5), ("chr1", 100, 110, range(6), 0.5), ("chr1", 140, 160, [1], 1.5),
        ("chr2", 0, 120, [3], 1.5), ("chr1", 180, 190, range(12), 0.0),
        ("chrX", 0, 120, range(0, 12, 2), 0.5), ("chrX", 40, 60, [2], 0.01),
        ("chrX", 80, 90, [1], 0.5),
        ("chrY", 0, 60, range(0, 12, 2), 0.5), ("chrY", 0, 60, range(1, 12, 2), 0.003),
        ("chrY", 20, 40, [4], 2.0),
    ]  # fmt: skip
    sizes = {"chr1": 300, "chr2": 120, "chr3": 1, "chrX": 120, "chrY": 60}
    counts = planted(sizes, events, depths=[1] * 10 + [0.7, 0.01])
    counts = shifted(counts, 150, 300, 1_000_000)
    return replace(counts, values=counts.values / 2) if halves else counts


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert {*TABLES, "cnvs.vcf.gz", "qc.tsv"} <= {path.name for path in files}
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.emulated
@pytest.mark.parametrize("halves", [False, True], ids=["whole", "fractions"])
def test_bytes__on_an_emulated_gpu(halves: bool, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = of_all_kinds(halves)
    one = contents(run(counts, *PRESET, folder="one"))
    ways = [("--max-chunk-bytes", "1"), ("--max-chunk-bytes", "3000", "--threads", "3")]
    assert all(contents(run(counts, *PRESET, *way, folder="other")) == one for way in ways)
    use_emulated_gpu(monkeypatch)
    for way in ([], ["--max-chunk-bytes", "3000"]):
        assert contents(run(counts, *PRESET, *way, folder="emulated")) == one


@pytest.mark.emulated
@pytest.mark.parametrize("segmentation", ["fast", "cbs"])
def test_bytes__of_cases_by_controls_are_the_same_on_an_emulated_gpu(
    segmentation: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = of_all_kinds()
    write_counts(str(tmp_path / "controls.parquet"), some_samples(counts, [*range(2, 12)]))
    how = ("--model", "reference", "--controls", str(tmp_path / "controls.parquet"))
    how, cases = (*how, "--segmentation", segmentation), some_samples(counts, [0, 1])
    one = contents(run(cases, *how, folder="one"))
    use_emulated_gpu(monkeypatch)
    for way in ([], ["--max-chunk-bytes", "3000"]):
        assert contents(run(cases, *how, *way, folder="emulated")) == one


@pytest.mark.slow
@pytest.mark.process
def test_bytes__are_the_same_with_worker_processes_and_when_resumed(
    run: Run, main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from multigpu.workloads.cnv.output import folder as output

    counts = of_all_kinds()
    one = contents(run(counts, *PRESET, folder="one"))
    two = run(counts, *PRESET, "--workers", "2", "--threads", "2", folder="two")
    assert contents(two) == one
    again = ("cnv", str(tmp_path / "counts.parquet"), "-o", str(tmp_path / "again"), *FEW, *PRESET)
    with monkeypatch.context() as patch:
        patch.setattr(output, "sync_file_system", lambda *_: 1 / 0)
        assert main(*again).status != 0
    ended = main(*again, "--resume")
    assert ended.status == 0
    assert contents(tmp_path / "again") == one


def test_preset_r__is_no_preset(run: Run) -> None:
    counts = of_all_kinds()
    without, with_r = run(counts, folder="a"), run(counts, "--preset", "r", folder="b")
    assert len(calls_of(without)) > 3
    for name in TABLES:
        assert (with_r / name).read_bytes() == (without / name).read_bytes()


def test_cohort__gives_what_its_samples_give_as_controls(run: Run, tmp_path: Path) -> None:
    counts, kept = of_all_kinds(), tmp_path / "kept.zarr"
    cases, controls = some_samples(counts, [0, 1]), some_samples(counts, [*range(2, 12)])
    write_counts(str(tmp_path / "controls.parquet"), controls)
    multigpu.build_cohort(controls, output=kept)
    by_hand = ("--model", "reference", "--controls", str(tmp_path / "controls.parquet"))
    one = run(cases, *PRESET, *by_hand, folder="one")
    two = run(cases, *PRESET, "--cohort", str(kept), folder="two")
    assert len(calls_of(one)) >= 3
    for name in (*TABLES, "qc.tsv"):
        assert (two / name).read_bytes() == (one / name).read_bytes(), name


def test_samples__in_another_order_have_the_same_calls(run: Run) -> None:
    counts, order = of_all_kinds(), np.random.default_rng(1).permutation(12).tolist()
    other = some_samples(counts, order)
    calls, others = calls_of(run(counts, *PRESET)), calls_of(run(other, *PRESET, folder="a"))
    assert sorted(others) == sorted(calls)


def test_quality__is_a_column_of_presets_alone(run: Run) -> None:
    counts = planted(GENOME, [("chr1", 40, 60, [2], 0.5)], 8)
    for options, more in (((), []), (("--preset", "genome"), ["quality"])):
        header, *rows = (run(counts, *options) / "cnvs.tsv").read_text().splitlines()
        assert header.split("\t")[10:] == more
        assert all(float(row.split("\t")[10]) > 20 for row in rows if more)


@pytest.mark.parametrize("preset", ["panel", "exome"])
def test_targets__are_asked_for(main: Any, tmp_path: Path, preset: str) -> None:
    write_alignments(tmp_path / "a.bam", random_rows(50, 1))
    words = ("cnv", str(tmp_path / "a.bam"), "-o", str(tmp_path / "out"), "--preset", preset)
    ended = main(*words)
    assert ended.status == 2
    assert f"--preset {preset} needs --regions BED, the targets" in ended.err
    assert "compares samples" in main(*words, "--window", "1000").err


def test_files__are_looked_at_before_anything_is_counted(main: Any, tmp_path: Path) -> None:
    write_alignments(tmp_path / "a.bam", random_rows(50, 1))
    ended = main("cnv", str(tmp_path / "a.bam"), "-o", str(tmp_path / "o"), "--gc", "away.fa")
    assert ended.err.endswith("error: away.fa: cannot be read: there is no such file\n")


def test_sheet__tells_some_sexes_and_coverage_the_others(run: Run, tmp_path: Path) -> None:
    counts = of_sexes()
    rows = ["path\tname\tsex"]
    for k, sample in enumerate(counts.samples):
        write_counts(str(tmp_path / f"{k}.tsv"), some_samples(counts, [k]))
        rows.append(f"{k}.tsv\t{sample}\t{'male' if k == 0 else ''}")
    (tmp_path / "sheet.tsv").write_text("\n".join(rows) + "\n")
    text = (run([tmp_path / "sheet.tsv"]) / "qc.tsv").read_text()
    table = [line.split("\t") for line in text.splitlines()]
    column = table[0].index("sex")
    assert tuple(row[column] for row in table[1:]) == SEXES

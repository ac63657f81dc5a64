"""Batches of GATK-SV: the command against the plain pipeline, run by hand on each table."""

import gzip
from collections import defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pysam
import pytest
from support.cohorts import cnv_job
from support.program import Ended

from multigpu import Counts, Failure, UsageError, cnv
from multigpu.formats.alignments.regions import Regions
from multigpu.formats.tables import bin_sums
from multigpu.workloads.cnv.gatk_sv import BatchJob
from multigpu.workloads.cnv.options import CnvOptions
from multigpu.workloads.cnv.work import CnvSession

Main = Callable[..., Ended]
Batch = dict[str, dict[int, np.ndarray]]  # of each chromosome, by the number of the bin
Row = tuple[str, int, int, str, str]  # chromosome, start, end, name, sample
WIDTH = 100
LENGTHS = {"chr1": 60_000, "chr2": 900, "chrX": 3_000, "chrY": 2_400}  # bins
FIRST = {"chr1": 130, "chr2": 0, "chrX": 7, "chrY": 0}  # number of the first bin
GAP = ("chr1", 9_000, 9_500)  # bins that the matrix does not have
EXCLUDED = [("chr1", 1_333_333, 1_401_234), ("chr1", 1_400_000, 1_410_001), ("chrX", 0, 900)]
EXCLUDED += [("chr9", 5, 60), ("chr1", 2_100_000, 2_100_050)]
# A name within another one: their search for names takes HG00-2 for HG00, too.
SAMPLES = ["HG01", "HG00", "HG00-2", "HG10", "HG11", "HG12", "HG2", "HG3", "HG4", "HG5", "HG6", "E"]
SEXES = dict(zip(SAMPLES, "121212121210", strict=True))
EVENTS = [  # sample, chromosome, bins, share of the reads
    ("HG01", "chr1", 15_000, 25_500, 0.5), ("HG00", "chr1", 2_000, 14_000, 2),
    ("HG00", "chr1", 15_200, 24_000, 2), ("HG00-2", "chr1", 4_000, 4_080, 0.5),
    ("HG12", "chr1", 59_700, 60_000, 0.05), ("HG3", "chr2", 300, 480, 2),
    ("HG2", "chr2", 300, 480, 0.5), ("HG10", "chrX", 500, 900, 0.5),
    ("HG00", "chrX", 900, 1_500, 2), ("HG11", "chrY", 1_000, 1_400, 2),
    ("HG6", "chrY", 0, 300, 0.05),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Counts of each chromosome: of all samples, by the number of the bin."""
    rng = np.random.default_rng(3)
    found = {}
    depth = rng.uniform(14, 22, len(SAMPLES))
    for name, length in LENGTHS.items():
        copies = np.full(len(SAMPLES), 1.0)
        if name in ("chrX", "chrY"):
            usual = {"1": 0.5, "2": float(name == "chrX")}
            copies = np.array([usual.get(s, 0.5) for s in SEXES.values()])
        mean = np.outer(rng.lognormal(0, 0.2, length), depth * copies)
        for sample, chrom, first, stop, share in EVENTS:
            if chrom == name:
                mean[first:stop, SAMPLES.index(sample)] *= share
        counts = rng.poisson(mean)
        counts[: int(0.7 * length), -1] = 0  # the sample E is empty
        bins = range(FIRST[name], FIRST[name] + length)
        gap = range(*GAP[1:]) if name == GAP[0] else range(0)
        found[name] = {k: row for k, row in zip(bins, counts, strict=True) if k not in gap}
    return found


def write_batch(batch: Batch) -> list[str]:
    """Write the matrix, PED and BED; return the words of the command."""
    lines = ["#Chr\tStart\tEnd\t" + "\t".join(SAMPLES)]
    for name, rows in batch.items():
        for k, row in rows.items():
            lines.append("\t".join(map(str, (name, k * WIDTH, (k + 1) * WIDTH, *row))))
    Path("b1.RD.txt").write_text("\n".join(lines) + "\n")
    pysam.tabix_compress("b1.RD.txt", "b1.RD.txt.gz")
    people = [*SEXES.items(), ("not there", "1")]
    Path("b1.ped").write_text("".join(f"F\t{name}\t0\t0\t{sex}\t0\n" for name, sex in people))
    Path("mask.bed").write_text("".join(f"{c}\t{a}\t{b}\n" for c, a, b in EXCLUDED))
    words = "cnv b1.RD.txt.gz --preset gatk-sv --sex b1.ped --exclude mask.bed -o out --gpus none"
    return words.split()


# ---- the oracle, from the descriptions of their scripts ---------------------------------------


def plain_calls(
    batch: Batch, chrom: str, size: int, members: list[int], compat_r: bool
) -> list[tuple[str, str, int, int, str]]:
    """Return (type, chromosome, start, end, sample) by a plain run on the bins of a size."""
    sums: dict[int, np.ndarray] = {}
    first = min(batch[chrom])
    for k, row in batch[chrom].items():
        begin = (first + (k - first) // size * size) * WIDTH
        sums[begin] = sums.get(begin, 0) + row[members]
    last = (max(batch[chrom]) + 1) * WIDTH
    rows = [(a, min(a + size * WIDTH, last), row) for a, row in sums.items()]
    bad = [(a, b) for c, a, b in EXCLUDED if c == chrom]
    rows = [row for row in rows if not any(a < row[1] and row[0] < b for a, b in bad)]
    table = np.array([row for *_, row in rows], np.int32)
    read = np.flatnonzero(np.median(table, axis=0) > 0) if len(rows) > 5 else []
    if len(read) < 2:
        return []
    shift = int(compat_r)
    regions = Regions.of([(chrom, a - shift, b) for a, b, _ in rows])
    names = tuple(SAMPLES[members[k]] for k in read)
    counts = Counts(regions, names, np.ascontiguousarray(table[:, read]))
    found = cnv_job(counts, CnvOptions(compat_r=compat_r)).result().cnvs.to_pylist()
    kinds = [(int(row["copy_number"].removeprefix("CN")), row) for row in found]
    return [
        ("DEL" if copies < 2 else "DUP", chrom, row["start"] + shift, row["end"], row["sample"])
        for copies, row in kinds
        if copies != 2
    ]


def join(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans of which those that overlap or touch are one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def cut(span: tuple[int, int], chrom: str) -> list[tuple[int, int]]:
    """Return what a span has outside of the excluded regions, base by base at their borders."""
    pieces = [span]
    for c, a, b in EXCLUDED:
        if c == chrom:
            sides = [each for s, e in pieces for each in ((s, min(e, a)), (max(s, b), e))]
            pieces = [(s, e) for s, e in sides if s < e]
    return sorted(set(pieces))


def stitch(rows: list[Row]) -> list[Row]:
    """Join calls of a sample whose ends come near each other, until none do."""

    def reach(row: Row) -> tuple[int, int]:
        _, start, end, *_ = row
        pad = min(0.2 * (end - start), 200_000)
        return max(round(start - pad), 1), round(end + pad)

    def are_near(x: Row, y: Row) -> bool:
        (a, b), (c, d) = reach(x), reach(y)
        return (x[0], x[4]) == (y[0], y[4]) and a < d and c < b

    def joined() -> bool:
        for one, other in combinations(groups, 2):
            if any(are_near(x, y) for x in one for y in other):
                one += other
                groups.remove(other)
                return True
        return False

    groups = [[row] for row in rows]
    while joined():
        continue
    every = [(min(g, key=lambda row: row[1]), max(row[2] for row in g)) for g in groups]
    return [(c, s, end, name, sample) for (c, s, _, name, sample), end in every]


def expected_files(batch: Batch, compat_r: bool) -> dict[str, str]:
    """Return the four BED files as text."""
    files = {}
    order = list(LENGTHS)
    for name, sizes, tag in (("header", (3, 10), "cnmops"), ("large", (100, 1000), "cnmops_large")):
        calls = []
        for chrom in order:
            every = [*range(len(SAMPLES))]
            cohorts = [every]
            if chrom in ("chrX", "chrY"):
                cohorts = [[k for k in every if SEXES[SAMPLES[k]] == sex] for sex in "12"]
            for members in cohorts[: 1 if chrom == "chrY" else 2]:
                for size in sizes:
                    calls += plain_calls(batch, chrom, size, members, compat_r)
        for kind in ("DEL", "DUP"):
            spans = defaultdict(list)
            for of, chrom, start, end, sample in calls:
                if of == kind:
                    spans[sample, chrom].append((start, end))
            rows: list[Row] = []
            for sample in sorted(SAMPLES):
                for chrom in order:
                    for span in join(spans[sample, chrom]):
                        for start, end in cut(span, chrom):
                            rows.append((chrom, start, end, f"b1_{kind}_{len(rows) + 1}", sample))
            if name == "large":
                rows = [row for row in stitch(rows) if row[2] - row[1] > 1_000_000]
            texts = ["\t".join([*map(str, row), kind, tag]) + "\n" for row in rows]
            lines = [
                (order.index(row[0]), row[1], text) for row, text in zip(rows, texts, strict=True)
            ]
            text = "#chr\tstart\tend\tname\tsample\tsvtype\tsources\n"
            files[f"b1.{kind}.{name}.bed.gz"] = text + "".join(line for *_, line in sorted(lines))
    return files


@pytest.mark.parametrize("more", [(), pytest.param(("--compat", "r"), marks=pytest.mark.slow)])
def test_command__writes_what_plain_runs_find(
    batch: Batch, main: Main, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setattr(bin_sums, "BLOCK", 70_001)  # so bins and chromosomes are cut
    words = write_batch(batch)
    if more:  # sexes are inferred
        words = [word for word in words if word not in ("--sex", "b1.ped")]
    ended = main(*words, *more)
    assert ended.status == 0, ended.err
    assert "E: most bins of chr1 ×3, chr2 ×3, " in ended.err
    assert ("E: not called on X and Y: --sex FILE tells no sex" in ended.err) == (not more)
    assert ("7 male and 5 female samples by their X and Y" in ended.err) == bool(more)
    expected = expected_files(batch, compat_r=bool(more))
    files = Path("out").glob("*.bed.gz")
    found = {path.name: gzip.decompress(path.read_bytes()).decode() for path in files}
    assert found == expected
    rows = [line.split("\t") for text in found.values() for line in text.splitlines()[1:]]
    assert {row[6] for row in rows} == {"cnmops", "cnmops_large"}
    assert {row[4] for row in rows} >= {sample for sample, *_ in EVENTS}
    large = [row for row in rows if row[6] == "cnmops_large" and row[4] == "HG00"]
    assert [int(row[2]) - int(row[1]) > 2_000_000 for row in large] == [True]  # two are stitched
    with pysam.TabixFile("out/b1.DUP.header.bed.gz") as tabix:
        assert len(list(tabix.fetch("chr2", 0, 90_000))) > 0


def test_sexes__by_whole_sums(main: Main) -> None:
    """Its last sum has half of the bins of the others."""
    lines = ["#Chr\tStart\tEnd\tA\tB\tC"]
    for name, bins in (("chr1", 200), ("chrX", 140)):
        lines += [f"{name}\t{k}00\t{k + 1}00\t{40 + k % 3}\t41\t41" for k in range(bins)]
    Path("b.RD.txt").write_text("\n".join(lines).replace("\t000", "\t0") + "\n")
    ended = main("cnv", "b.RD.txt", "--preset", "gatk-sv", "-o", "out")
    assert "0 male and 3 female samples by their X and Y" in ended.err


def test_stopped_run__goes_on(batch: Batch, main: Main, monkeypatch: pytest.MonkeyPatch) -> None:
    words = write_batch({"chr2": batch["chr2"], "chrX": batch["chrX"]})
    with monkeypatch.context() as patch:
        patch.setattr(BatchJob, "_finish", Mock(side_effect=Failure("stopped")))
        assert main(*words).status == 1
    assert not any(Path("out").glob("*.bed.gz"))
    compute = Mock(wraps=CnvSession.compute)
    monkeypatch.setattr(CnvSession, "compute", compute)
    ended = main(*words, "--resume")
    assert (ended.status, compute.call_count) == (0, 0)
    assert len([*Path("out").iterdir()]) == 8


def test_command__names_a_mask_of_other_chromosomes(batch: Batch, main: Main) -> None:
    words = write_batch({"chr2": batch["chr2"]})
    Path("mask.bed").write_text("2\t0\t90000\n")
    ended = main(*words)
    assert ended.status == 0
    assert "mask.bed has none of the chromosomes of the counts" in ended.err


@pytest.mark.parametrize(("words", "problem"), [
    (["--ploidy", "4"], "--ploidy has no effect with --preset gatk-sv: leave it out"),
    (["--segmentation", "cbs"], "--segmentation has no effect with --preset gatk-sv"),
    (["--summary", "s.json"], "--summary has no effect with --preset gatk-sv"),
    (["--chromosomes", "chr7"], "b1.RD.txt.gz: has no chromosome 'chr7'"),
    (["--per-sample"], "--per-sample has no effect with --preset gatk-sv"),
    (["--vcf", "--no-report"], "--vcf has no effect with --preset gatk-sv"),
    (["--report"], "--report has no effect with --preset gatk-sv"),
    (["--exclude", "all.bed"], "to call anything: --exclude leaves 0 sums of bins"),
])  # fmt: skip
def test_command__refuses(batch: Batch, main: Main, words: list[str], problem: str) -> None:
    Path("all.bed").write_text("chr2\t0\t1000000\n")
    ended = main(*write_batch({"chr2": batch["chr2"]}), *words)
    assert ended.status == 2
    assert problem in ended.err
    assert ended.err.count("\n") == 1
    assert not Path("out").exists()


def test_cnv__names_the_command() -> None:
    with pytest.raises(UsageError, match="multigpu cnv MATRIX --preset gatk-sv -o DIR"):
        cnv("batch.RD.txt.gz", preset="gatk-sv")

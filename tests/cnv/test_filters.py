"""Regions that are joined or left out, against a loop over them; and what a run then has."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bams import write_alignments
from support.cohorts import cohort

import multigpu
from multigpu import Counts, UsageError
from multigpu.errors import InputError
from multigpu.formats.alignments.files import renamed_as
from multigpu.formats.alignments.regions import Regions
from multigpu.workloads.cnv.opening import open_job, open_plan
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.samples import filters
from multigpu.workloads.cnv.samples.filters import filter_regions, name_regions

PLACES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(1, 9)), min_size=1)


def regions_of(places: list[tuple[int, int, int]], prefix: str = "chr") -> Regions:
    return Regions.of((f"{prefix}{c}", a, a + n) for c, a, n in sorted(places))


@given(steps=st.lists(st.sampled_from([0, 0, 0, 5]), min_size=1), count=st.integers(2, 4))
def test_join__neighbours_from_the_first_and_never_over_a_gap(steps: list[int], count: int) -> None:
    start = np.cumsum([0, *steps[:-1]]) + 10 * np.arange(len(steps))
    half = len(steps) // 2
    chrom = (np.arange(len(steps)) >= half).astype(np.int32) * (half > 0)
    genes, gc = tuple("abca"[k % 4] for k in range(len(steps))), np.linspace(0, 1, len(steps))
    regions = Regions(("x", "y")[: 1 + (half > 0)], chrom, start, start + 10, genes, gc)
    wanted: list[list[int]] = []
    for row in range(len(steps)):
        last = wanted[-1][-1] if wanted else -1
        joins = last >= 0 and chrom[last] == chrom[row] and start[last] + 10 == start[row]
        if joins and len(wanted[-1]) < count:
            wanted[-1].append(row)
        else:
            wanted.append([row])
    joined, first = filters.join_neighbours(regions, count)
    assert first.tolist() == [rows[0] for rows in wanted]
    assert joined.end.tolist() == [start[rows[-1]] + 10 for rows in wanted]
    assert joined.genes == tuple(",".join(dict.fromkeys(genes[k] for k in r)) for r in wanted)
    assert joined.gc == pytest.approx([gc[rows].mean() for rows in wanted])
    values = np.arange(2 * len(steps), dtype=np.int32).reshape(-1, 2)
    kept = np.arange(len(first)) % 3 > 0
    filtered = filters.FilteredRegions(
        regions=joined.take(np.flatnonzero(kept)), first=first, kept=kept, mappability=None,
        notes=(),
    )  # fmt: skip
    table = filtered.counts(Counts(regions, ("s", "t"), values))
    sums = np.array([values[rows].sum(axis=0) for rows in wanted]).reshape(-1, 2)
    assert (table.values == sums[kept]).all()
    assert table.values.dtype == np.int32


@given(ours=PLACES, theirs=PLACES)
def test_touched__are_those_that_share_a_base(
    ours: list[tuple[int, int, int]], theirs: list[tuple[int, int, int]]
) -> None:
    regions, listed = regions_of(ours), regions_of(theirs, "")
    wanted = [
        any(c == d and a < b + m and b < a + n for d, b, m in theirs) for c, a, n in sorted(ours)
    ]
    assert filters.are_touched(regions, renamed_as(listed, regions)).tolist() == wanted
    assert not filters.are_touched(regions, listed).any()


def request(counts: Any, **given: Any) -> CnvRequest:
    return CnvRequest.from_given({"counts_or_bams": counts, "gpus": "none", **given})


def bed(path: Path, *lines: str) -> str:
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_run__is_that_on_a_table_of_these_regions(tmp_path: Path) -> None:
    counts, _ = cohort()
    regions = counts.regions
    listed = bed(tmp_path / "x.bed", "2\t0\t99000000", "1\t60000\t190001", "7\t0\t9")
    first = np.flatnonzero(np.concatenate([np.arange(500) % 3 == 0] * 3))
    values = np.add.reduceat(counts.values, first, axis=0, dtype=np.int32)
    end = np.append(regions.start[first[1:]], 0)
    end[[166, 333, 500]] = regions.end[[499, 999, 1499]]
    chrom, start = regions.chrom[first], regions.start[first]
    kept = (chrom != 1) & ~((chrom == 0) & (start < 190_001) & (end > 60_000))
    chrom = (regions.chrom[first][kept] > 0).astype(np.int32)
    fewer = Regions(("chr1", "chr3"), chrom, regions.start[first][kept], end[kept])
    wanted = multigpu.cnv(Counts(fewer, counts.samples, values[kept]), gpus="none")
    found = multigpu.cnv(counts, gpus="none", rebin=3, exclude=listed, rename="auto")
    assert found.segmentation == wanted.segmentation
    assert found.regions.names == ("chr1", "chr3")
    notes = ["rebin 3: 1,500 regions are 501", "exclude leaves out 170 of 501 regions"]
    assert [note for note in found.notes if note not in wanted.notes] == notes
    plan = open_plan(request(counts, rebin=3, exclude=listed, rename="auto"))
    assert plan.plan().shape.regions == len(fewer)


def test_excluded__chromosomes_of_another_name_are_noted(tmp_path: Path) -> None:
    counts, _ = cohort()
    regions, asked = counts.regions, request(counts, exclude=bed(tmp_path / "x", "2\t0\t9"))
    assert "has none of the chromosomes of the counts" in filter_regions(regions, asked).notes[-1]
    whole = bed(tmp_path / "x", *(f"chr{k}\t0\t99000000" for k in (1, 2, 3)))
    with pytest.raises(UsageError, match="leaves out 1,500 of 1,500 regions: none is left"):
        filter_regions(regions, request(counts, exclude=whole))


def test_genome__is_known_although_its_last_regions_are_left_out(tmp_path: Path) -> None:
    start = np.arange(0, 248_956_422, 1_000_000)
    end = np.minimum(start + 1_000_000, 248_956_422)
    regions = Regions(("chr1",), np.zeros(len(start), np.int32), start, end)
    values = np.random.default_rng(1).poisson(90, (len(start), 6)).astype(np.int32)
    counts = Counts(regions, tuple("abcdef"), values)
    last = bed(tmp_path / "x", "chr1\t248900000\t248956422")
    found = multigpu.cnv(counts, gpus="none", exclude=last)
    assert found.lengths == {"chr1": 248_956_422}


def test_lengths__are_those_of_all_windows(tmp_path: Path) -> None:
    counts, _ = cohort()
    whole = multigpu.cnv(counts, gpus="none").lengths
    end = whole["chr1"]
    last = bed(tmp_path / "x", f"chr1\t{end - 60_000}\t{end}")
    assert multigpu.cnv(counts, gpus="none", exclude=last).lengths == whole


def test_mappability__below_a_half_is_left_out(tmp_path: Path) -> None:
    counts, _ = cohort()
    track = bed(tmp_path / "x", "chr1\t0\t99000000\t0.4", "chr2\t0\t99000000\t0.9")
    filtered = filter_regions(counts.regions, request(counts, mappability=track))
    assert filtered.regions.names == ("chr2", "chr3")
    assert filtered.mappability is not None
    assert filtered.mappability[:500] == pytest.approx(0.9)
    assert np.isnan(filtered.mappability[500:]).all()
    found = multigpu.cnv(counts, gpus="none", mappability=track)
    assert "mappability corrects nothing: too few regions, or all are alike" in found.notes
    with pytest.raises(UsageError, match="mappability is 40 at chr1:0-25000; it must be a share"):
        multigpu.cnv(counts, gpus="none", mappability=bed(tmp_path / "y", "chr1\t0\t99000000\t40"))


def test_gc__by_column_bed_and_fasta(tmp_path: Path) -> None:
    counts, _ = cohort(coverage=200.0)
    regions, random = counts.regions, np.random.default_rng(5)
    slow = np.convolve(random.normal(size=len(regions) + 99), np.ones(100) / 10, "valid")
    gc = np.clip(0.42 + 0.07 * slow, 0.1, 0.9)
    waves = 1 + np.linspace(-0.5, 0.5, 6) * (gc[:, None] - 0.42) / 0.1
    counts = replace(counts, values=random.poisson(counts.values * waves).astype(np.int32))
    before = counts.values.copy()
    plain = multigpu.cnv(counts, gpus="none", seg_median=(0.3, -0.5))
    column = np.column_stack([counts.values, gc])
    table = Counts(regions, (*counts.samples, "GC"), column)
    by_column = multigpu.cnv(table, gpus="none", gc="GC", seg_median=(0.3, -0.5))
    assert by_column.samples == counts.samples
    assert len(by_column.called) < 0.6 * len(plain.called)
    controls = multigpu.cnv(
        replace(table, samples=(*(f"case {k}" for k in range(6)), "GC")), gpus="none", gc="GC",
        model="reference", controls=counts,
    )  # fmt: skip
    assert controls.controls == counts.samples
    with (tmp_path / "x.fa").open("w") as file:
        for rows in regions.blocks:
            file.write(f">{regions.names[regions.chrom[rows.start]]}\n")
            for row in range(rows.start, rows.stop):
                length = int(regions.end[row] - regions.start[row])
                file.write("G" * (count := round(gc[row] * length)) + "A" * (length - count) + "\n")
            file.write("ACGT\n")  # after the last whole window
    by_fasta = multigpu.cnv(counts, gpus="none", gc=str(tmp_path / "x.fa"), seg_median=(0.3, -0.5))
    assert by_fasta.segmentation == by_column.segmentation
    assert (counts.values == before).all()
    assert (table.values == column).all()


WRONG = [
    ({"gc": "gc"}, "gc gc: there is no such file, and no column 'gc' of the counts: they have"),
    ({"gc": "sample1"}, "gc is 60 at chr1:0-25000; it must be a share from 0 to 1"),
    ({"gc": "no.fa"}, "no.fa: cannot be read: there is no such file"),
    ({"gc": "/"}, "/: cannot be read: is a directory"),
    ({"gc": ""}, "gc is empty: it must name a file"),
    ({"exclude": ""}, "exclude is empty: it must name a file"),
    ({"mappability": ""}, "mappability is empty: it must name a file"),
    ({"rebin": 0}, "rebin is 0; it must be 1"),
    ({"min_quality": 3}, "min_quality needs segmentation hmm: fast gives CNVs no quality"),
]


@pytest.mark.parametrize(("given", "problem"), WRONG)
def test_refused__in_a_line(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError) as error:
        multigpu.cnv(cohort()[0], gpus="none", **given)
    assert problem in str(error.value)


def test_alignments__are_counted_in_all_regions_and_filtered_then(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    for sample in "abc":
        starts = np.sort(random.integers(0, 9000, 3000)).tolist()
        rows = [(0, start, 60, "50M", 0) for start in starts]
        write_alignments(tmp_path / f"{sample}.bam", rows, references=[("chr1", 10_000)])
    lines = [f"chr1\t{k}\t{k + 50}\t{0.3 + k % 1000 / 5000}" for k in range(0, 8000, 50)]
    regions = bed(tmp_path / "x.bed", "#chrom\tstart\tend\tgc", *lines)
    masked = bed(tmp_path / "y.bed", "1\t0\t100")
    asked = request(str(tmp_path), regions=regions, gc="gc", rebin=2, exclude=masked, rename="auto")
    assert open_plan(asked).plan().shape.regions == 79
    job = open_job(asked)
    assert len(job.values) == 79
    wanted = [0.3 + (k % 1000 + 25) / 5000 for k in range(100, 8000, 100)]
    assert job.cohort.regions.gc == pytest.approx(wanted)
    with pytest.raises(UsageError, match="gc gc: there is no such file, and no regions with"):
        open_job(request(str(tmp_path), gc="gc"))


ROWS = [("chr1", 0, 100), ("chr1", 100, 200), ("chr1", 150, 300), ("chr2", 0, 50)]


@pytest.fixture
def genes(tmp_path: Path) -> Path:
    return tmp_path / "x.bed"


def test_genes__of_the_same_regions_are_their_own(genes: Path) -> None:
    genes.write_text("".join(f"{c}\t{a}\t{b}\tG{a}\n" for c, a, b in ROWS))
    named = name_regions(Regions.of(ROWS), str(genes), rename=False)
    assert named.genes == ("G0", "G100", "G150", "G0")
    genes.write_text("".join(f"{c}\t{a}\t{b}\n" for c, a, b in ROWS))  # of controls, say
    assert name_regions(named, str(genes), rename=False).genes == named.genes


def test_genes__of_other_regions_are_those_that_share_a_base(genes: Path) -> None:
    genes.write_text("1\t90\t101\tA\n1\t99\t160\tB\n1\t200\t210\tB\nchr9\t0\t9\tC\n2\t50\t60\tD\n")
    regions = Regions.of(ROWS)
    assert name_regions(regions, str(genes), rename=True).genes == ("A,B", "A,B", "B", "")
    with pytest.raises(InputError, match="none of its names are of regions that the counts have"):
        name_regions(regions, str(genes), rename=False)
    genes.write_text("chr1\t0\t100\n")
    with pytest.raises(InputError, match="its regions have no names: column 4 of a BED file"):
        name_regions(regions, str(genes), rename=False)

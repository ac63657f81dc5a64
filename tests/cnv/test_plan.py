"""`multigpu plan cnv`: how chromosomes come to devices, before anything is computed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bams import random_rows, write_alignments
from support.cohorts import cnv_job, cohort
from support.program import Run

from multigpu import Counts, UsageError, write_counts
from multigpu.cluster.engine.plan import Capacity
from multigpu.cluster.engine.workload import Place
from multigpu.run.job import Crew
from multigpu.run.options import RunOptions
from multigpu.workloads.cnv.options import CnvOptions, KeptResults, estimate_count_bytes
from multigpu.workloads.cnv.plan import CnvPlan, CnvSpan, Shape, plan_memory
from multigpu.workloads.cnv.request import CnvRequest
from multigpu.workloads.cnv.stages.counts_source import CountsSource
from multigpu.workloads.count.job import CountJob
from multigpu.workloads.count.options import CountOptions

FREE = 8 << 30  # bytes
GENOME = [
    CnvSpan(block=0, chrom=0, name="chr1", first=0, stop=600_000),
    CnvSpan(block=1, chrom=1, name="chr2", first=600_000, stop=700_000),
]


def plan(here: Capacity, in_process: bool = True, **run: Any) -> CnvPlan:
    shape = Shape(regions=700_000, columns=20, cases=15)
    return plan_memory(GENOME, shape, CnvOptions(), RunOptions(**run), here, in_process=in_process)


@pytest.mark.parametrize("chunk", [1, 1000, 10_000, 1 << 26])
@pytest.mark.parametrize("free", [FREE, 1 << 18])
def test_plan__is_what_a_worker_does(chunk: int, free: int) -> None:
    counts, _ = cohort()
    job = cnv_job(counts, CnvOptions(), RunOptions(gpus="none", max_chunk_bytes=chunk))
    capacity = Capacity(free, 2, 2, gpu=False, in_process=True)
    planned = job.plan(Crew(capacity, lambda: pytest.fail("nothing is started")))
    source = CountsSource(values=counts.values, start=counts.regions.start, end=counts.regions.end)
    session = job.workload(source, KeptResults(), None).open(Place("worker", None, free))
    for span, chromosome in zip(job.spans, planned.chromosomes, strict=True):
        loaded = session.load(span)
        assert chromosome.device_bytes == session.need(loaded) <= planned.budget
        assert chromosome.pieces == -(-len(loaded.counts) // session._piece_rows(loaded))
    assert planned.largest.device_bytes == planned.device_bytes


def test_plan__a_gpu_has_three_chromosomes_at_a_time() -> None:
    here = plan(Capacity(FREE, 3, 3, gpu=True, in_process=True))
    assert (here.at_once, here.lanes, here.largest.name) == (3, 3, "chr1")
    assert here.device_bytes == sum(each.device_bytes for each in here.chromosomes) < here.budget
    assert [each.pieces for each in here.chromosomes] == [1, 1]
    little = plan(Capacity(1 << 28, 3, 3, gpu=True, in_process=True))
    assert little.largest.pieces > 1
    assert little.device_bytes < little.budget
    chunk = plan(Capacity(FREE, 3, 3, gpu=True, in_process=True), max_chunk_bytes=100_000 * 80)
    assert [each.pieces for each in chunk.chromosomes] == [6, 1]
    with pytest.raises(UsageError, match="the smallest chunk needs"):
        plan(Capacity(1000, 2, 2, gpu=False, in_process=True))


def test_plan__host_memory_counts_pieces_that_are_joined_and_copies_for_processes() -> None:
    here = Capacity(FREE, 2, 2, gpu=False, in_process=True)
    whole, pieces = plan(here), plan(here, max_chunk_bytes=1 << 20)
    signed = 8 * 600_000 * 16
    assert pieces.host_bytes - pieces.device_bytes >= whole.host_bytes - whole.device_bytes + signed
    counts = 700_000 * 20 * 4
    apart = plan(here, in_process=False)  # all counts, and both chromosomes in progress
    assert apart.host_bytes == whole.host_bytes + 2 * counts


def test_command__tells_of_a_table(table: str, main: Run) -> None:
    words = ("plan", "cnv", table, "--gpus", "none", "--threads", "2")
    facts = json.loads(main(*words, "--json").out)
    assert [each["name"] for each in facts["chromosomes"]] == ["chr1", "chr2", "chr3"]
    assert [each["regions"] for each in facts["chromosomes"]] == [500] * 3
    assert (facts["samples"], facts["controls"], facts["regions"]) == (6, 0, 1500)
    assert (facts["normalized"], facts["lanes"], facts["at_once"]) == ("chromosome", 2, 1)
    assert (facts["to_count"], facts["devices"], facts["workers"]) == ([], [], [])
    assert 0 < facts["device_bytes"] < facts["budget_bytes"]
    said = main(*words, "--genome-wide", "--max-chunk-bytes", "4000").out.splitlines()
    told = {line[:14].strip(): line[14:] for line in said}
    assert told["counts"] == "6 samples × 1,500 regions in 3 chromosomes"
    assert told["normalized"] == "the genome as a whole"
    assert told["largest"].startswith("chr1: 500 regions, in 4 pieces of")  # 166 rows of 24 bytes
    assert told["in progress"].startswith("2 chromosomes at a time on each worker, 1 on its")
    assert told["host memory"].startswith("at most ")


def test_command__tells_where_sexes_leave_samples_out(tmp_path: Path, main: Run) -> None:
    counts, _ = cohort()
    regions = counts.regions
    renamed = type(regions)(("chr1", "chrX", "chrY"), regions.chrom, regions.start, regions.end)
    path, sexes = str(tmp_path / "x.parquet"), tmp_path / "sexes"
    write_counts(path, Counts(renamed, counts.samples, counts.values))
    facts = "".join(f"{name}\t{'mf'[k % 2]}\n" for k, name in enumerate(counts.samples))
    sexes.write_text(facts)
    told = main("plan", "cnv", path, "--gpus", "none", "--sex", str(sexes), "--json").out
    assert [each["columns"] for each in json.loads(told)["chromosomes"]] == [6, 6, 3]


def test_plan__counts_nothing(tmp_path: Path, main: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountJob, "counts", lambda _: pytest.fail("nothing is counted"))
    places = np.sort(np.random.default_rng(5).integers(0, 299_000, 100)).tolist()
    rows = [(0, place, 60, "10M", 0) for place in places]
    paths = [write_alignments(tmp_path / f"{name}.bam", rows) for name in "abcd"]
    control = paths.pop()
    there = {path.name for path in tmp_path.iterdir()}
    words = ("plan", "cnv", *paths, "--window", "1000", "--gpus", "none")
    facts = json.loads(main(*words, "--json").out)
    assert facts["to_count"] == list(paths)
    assert facts["samples"] == 3
    assert facts["regions"] == sum(each["regions"] for each in facts["chromosomes"]) > 299
    said = main(*words, "--model", "reference", "--controls", control).out
    assert "to count      4 alignment files, " in said
    assert "counts        3 samples and 1 control × " in said
    assert {path.name for path in tmp_path.iterdir()} == there


def test_command__looks_at_a_cluster(table: str, scheduler: str, main: Run) -> None:
    ended = main("plan", "cnv", table, "--scheduler", scheduler)
    assert (ended.status, ended.err) == (0, "")
    assert [line.split()[0] for line in ended.out.splitlines()[:3]] == 2 * ["worker"] + ["counts"]


BOTH = (
    "a is a case and a control: rename one of them, or leave one out (--sample-names are those of"
    " the cases)"
)
WRONG = {
    "sexes": (("--sex", "absent.txt"), "absent.txt: cannot be read: there is no such file"),
    "a sample": (("--sex", "{facts}"), "--sex names sample 'zz', which is not in the counts"),
    "ploidies": (("--ploidy", "absent.txt"), "absent.txt: cannot be read: there is no such file"),
    "both": (("--model", "reference", "--controls", "{first}"), BOTH),
}


@pytest.mark.parametrize("plan", [False, True])
@pytest.mark.parametrize("wrong", WRONG)
def test_refused__before_anything_is_counted(
    main: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, plan: bool
) -> None:
    monkeypatch.setattr(CountJob, "counts", lambda _: pytest.fail("nothing is counted"))
    monkeypatch.chdir(tmp_path)
    rows = [(0, place, 60, "10M", 0) for place in range(0, 90_000, 100)]
    paths = [str(write_alignments(tmp_path / f"{name}.bam", rows)) for name in "ab"]
    (tmp_path / "facts").write_text("zz\tmale\n")
    places = {"facts": "facts", "first": paths[0]}
    options, problem = WRONG[wrong]
    given = [option.format_map(places) for option in options]
    where = ("plan", "cnv") if plan else ("cnv", "-o", "out")
    ended = main(*where, *paths, "--window", "1000", "--gpus", "none", *given)
    assert (ended.status, ended.err) == (2, f"multigpu: error: {problem}\n")
    assert not (tmp_path / "out").exists()


def test_count_bytes__are_the_same_for_names_a_folder_and_a_pattern(tmp_path: Path) -> None:
    """Workers are chosen by them, before anything is counted: not by the size of alignments."""
    paths = [write_alignments(tmp_path / f"{name}.bam", random_rows(300)) for name in "abc"]
    table = str(tmp_path / "counts.parquet")
    write_counts(table, cohort()[0])

    def weigh(*given: str, **counting: Any) -> int:
        request = CnvRequest(given, **counting)
        assert request.count_bytes == estimate_count_bytes(given, request)
        return request.count_bytes

    expected = 3 * 4 * (3_100_000_000 // 1000)
    for given in (paths, [str(tmp_path)], [str(tmp_path / "?.bam")]):
        assert weigh(*given, window=1000) == expected
    (tmp_path / "a.bed").write_bytes(b"chr1\t1000000\t1000100\txx\n" * 100)
    assert weigh(*paths, regions=tmp_path / "a.bed") == 3 * 4 * 100
    assert weigh(table) == Path(table).stat().st_size
    assert estimate_count_bytes(["nowhere.tsv", str(tmp_path / "?.none")], CountOptions()) == 0

"""`multigpu cnv`: what it writes, and what it says."""

import errno
import gzip
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import zarr
from support.bams import write_alignments
from support.cohorts import cohort, of_sexes

import multigpu
from multigpu import UsageError
from multigpu.formats.tables.counts_files import read_counts, write_counts
from multigpu.workloads.cnv.job import CnvJob
from multigpu.workloads.cnv.output import folder as output
from multigpu.workloads.cnv.results import matrices
from multigpu.workloads.cnv.work import CnvSession

CALLS = {
    "cnvs.tsv", "cnv_regions.tsv", "segmentation.tsv", "cnvs.bed", "segments.seg", "cnvs.vcf.gz",
    "cnvs.vcf.gz.tbi", "igv_session.xml", "qc.tsv", "qc_mqc.json",
}  # fmt: skip
FEW = ("--no-report", "--no-matrices", "--gpus", "none")
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

Run = Callable[..., str]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ---- what it writes ---------------------------------------------------------------------------


def test_output__everything_unless_it_is_not_wanted(
    run_cnv: Any, table: str, tmp_path: Path
) -> None:
    folder, robust = tmp_path / "out", {"cnv_regions_robust.tsv"}
    more = ("--robust", "0.1", "--per-sample")
    run_cnv(table, "-o", str(folder), "--gpus", "none", *more)
    folders = {"matrices.zarr", "report.html", "cnvs_by_sample"}
    assert names(folder) == CALLS | robust | folders
    for more, without in ((["--no-vcf"], {"cnvs.vcf.gz", "cnvs.vcf.gz.tbi"}), ([], set())):
        assert run_cnv(table, "-o", str(folder), *FEW, *more)[0] == 0
        assert names(folder) == CALLS - without  # nothing of the run before stays
        assert ("vcf" in (folder / "igv_session.xml").read_text()) == (not more)


def test_output__vcf_has_the_command_and_bases_of_the_reference(
    run_cnv: Any, table: str, tmp_path: Path
) -> None:
    folder, genome = tmp_path / "out", tmp_path / "genome.fa"
    regions = cohort()[0].regions
    bases = "A" * int(regions.end.max() + 5)  # windows may be whole ones alone
    genome.write_text("".join(f">{name}\n{bases}\n" for name in regions.names))
    where = ("-o", str(folder), "--reference", str(genome), *FEW, "--per-sample")
    options = ("--compat", "r", "--upper", "0.6", "--genome-wide")
    assert run_cnv(table, *where, *options)[0] == 0
    for path in (folder / "cnvs.vcf.gz", folder / "cnvs_by_sample" / "sample1.vcf.gz"):
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        (command,) = [line for line in lines if line.startswith("##multigpuCommand=")]
        assert sorted(command.partition("cnv ")[2].split()) == sorted([table, *options])
        assert f"##reference={genome}" in lines
        assert {line.split("\t")[3] for line in lines if line[0] != "#"} == {"A"}


def test_output__other_files_of_the_folder_stay(run_cnv: Any, table: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    run_cnv(table, "-o", str(tmp_path / "out"), *FEW)
    assert names(tmp_path / "out") == CALLS | {"notes.txt"}


def test_output__of_an_earlier_run_that_is_not_made_again_is_named(
    run_cnv: Any, table: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    assert "removed" not in run_cnv(table, "-o", out, *FEW, "--per-sample", "--robust", "0.1")[1]
    facts = tmp_path / "facts.json"
    status, said = run_cnv(table, "-o", out, *FEW, "--no-vcf", "--summary", str(facts))
    assert status == 0
    gone = "cnv_regions_robust.tsv, cnvs.vcf.gz, cnvs.vcf.gz.tbi, cnvs_by_sample"
    note = f"removed from {out}, left by an earlier run: {gone}"
    assert f"multigpu: note: {note}\n" in said
    assert note in json.loads(facts.read_text())["notes"]
    assert not (tmp_path / "out" / "figures").exists()
    assert "removed" not in run_cnv(table, "-o", out, *FEW, "--no-vcf")[1]


def test_output__counts_that_lie_there_are_kept(run_cnv: Any, table: str, tmp_path: Path) -> None:
    counts = Path(table).read_bytes()  # in the folder that is written, under the name of ours
    assert run_cnv(table, "-o", str(tmp_path), *FEW)[0] == 0
    assert names(tmp_path) == CALLS | {"counts.parquet"}
    assert Path(table).read_bytes() == counts


def test_output__never_replaces_an_input(refused: Run, table: str, tmp_path: Path) -> None:
    given = tmp_path / "out" / "cnvs.tsv"  # a name of ours
    given.parent.mkdir()
    given.write_bytes(Path(table).read_bytes())
    assert "is named twice: a run would replace it" in refused(str(given), "-o", str(given.parent))
    assert "is named twice" in refused(table, "--log-json", table)
    assert "is named twice" in refused(table, "--summary", str(tmp_path / "refused"))
    multigpu.build_cohort(table, output=(store := tmp_path / "cohort.zarr"))
    for folder in (store, store / "calls"):
        said = refused(table, "--cohort", str(store), "-o", str(folder))
        assert f"{folder} is in a cohort, or matrices of a run" in said
    assert given.read_bytes() == Path(table).read_bytes()


def test_report__with_a_name_is_told(refused: Run, table: str, tmp_path: Path) -> None:
    told = refused(table, "--report", "r.html", "-o", str(tmp_path / "out"))
    place = tmp_path / "out" / "report.html"
    assert told == f"r.html is no input: --report has no value, and is {place}"


def test_output__among_the_inputs_is_noted(
    run_cnv: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = Path(table).name
    status, said = run_cnv(name, "-o", ".", *FEW)
    assert status == 0
    note = "multigpu: note: results stand among the inputs in .: -o NEWFOLDER keeps them apart\n"
    assert said.startswith(note)
    assert "among" not in run_cnv(name, "-o", "out", *FEW)[1]


def test_output__a_run_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "cnvs.tsv").write_text("old")

    def stopped() -> None:
        with output.output_folder(str(tmp_path / "out")) as folder:
            (folder / "cnvs.tsv").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert names(tmp_path / "out") == {"cnvs.tsv"}
    assert (tmp_path / "out" / "cnvs.tsv").read_text() == "old"


def test_output__that_does_not_reach_the_disk_is_made_again(
    run_cnv: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No chromosome is computed again."""
    folder, summary = tmp_path / "out", tmp_path / "summary.json"

    with monkeypatch.context() as patch:
        patch.setattr(output, "sync_file_system", Mock(side_effect=FULL))
        status, said = run_cnv(table, "-o", str(folder), *FEW)
    assert status != 0
    assert "is full" in said
    assert (folder / ".part" / "journal").exists()
    status, said = run_cnv(table, "-o", str(folder), *FEW, "--resume", "--summary", str(summary))
    assert status == 0
    assert names(folder) == CALLS
    facts = json.loads(summary.read_bytes())
    assert facts["resumed"] == facts["chromosomes"]


def test_error__of_a_library_is_not_told_as_one_of_the_output(
    run_cnv: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError("libnvrtc.so.13: cannot open shared object file")
    monkeypatch.setattr(CnvSession, "compute", Mock(side_effect=error))
    status, said = run_cnv(table, "-o", str(tmp_path / "out"), *FEW)
    assert status == 1
    assert "libnvrtc.so.13: cannot open shared object file" in said
    assert "cannot be written" not in said


@pytest.mark.parametrize("place", [(zarr, "create_group"), (matrices, "_put")], ids=str)
def test_matrices__that_have_no_room_are_told(
    run_cnv: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Any
) -> None:
    monkeypatch.setattr(*place, Mock(side_effect=FULL))
    status, said = run_cnv(table, "-o", str(tmp_path / "out"), "--no-report")
    assert status == 2
    assert "matrices.zarr: cannot be written: the disk is full" in said


def test_stages__are_timed_inside_of_the_steps_and_shown(
    run_cnv: Any, table: str, tmp_path: Path
) -> None:
    out, log = tmp_path / "summary.json", tmp_path / "log"
    watched = ("--summary", str(out), "--log-json", str(log), "--progress")
    status, said = run_cnv(table, "-o", str(tmp_path / "out"), *FEW, *watched)
    assert status == 0
    events = [json.loads(line) for line in log.read_text().splitlines()]
    for event in (event for event in events if event["event"] == "finished"):
        steps = {name: (begin, end) for name, begin, end, _ in event["steps"]}
        inside = [steps[name] for name in ("normalize", "model", "segment")]
        borders = [steps["compute"][0], *(at for each in inside for at in each)]
        assert borders == sorted(borders)
        assert borders[-1] <= steps["compute"][1] <= steps["finish"][0] <= steps["call"][0]
        assert steps["call"][1] <= steps["finish"][1]
    seconds = json.loads(out.read_bytes())["seconds"]
    assert {f"{stage} (all threads)" for stage in ("normalize", "model", "segment", "call")} < set(
        seconds
    )
    first = next(line for line in said.splitlines() if line.startswith("cnv  "))
    assert first == "cnv  0 of 3 chunks  0 CNVs"


def test_summary__says_what_was_given(
    run_cnv: Any, tmp_path: Path, write: Callable[..., str]
) -> None:
    cases = bam(tmp_path, "a", 1), bam(tmp_path, "b", 2)
    controls, ploidy = bam(tmp_path, "c", 3), write("a\t4\n", "ploidy")
    path, folder = tmp_path / "summary.json", tmp_path / "out"
    words = ("--model", "reference", "--controls", controls, "--ploidy", ploidy)
    words = (*words, "--window", "1000", "--summary", str(path), "-o", str(folder))
    status, said = run_cnv(*cases, *words, "--sample-names", "x,y", "--chromosomes", "chr1", *FEW)
    assert status == 2, said  # of whom?
    write("x\t4\n", "ploidy")
    status, said = run_cnv(*cases, *words, "--sample-names", "x,y", "--chromosomes", "chr1", *FEW)
    assert status == 0, said
    assert "2 cases (x, y) and 1 control (c)" in said
    facts = json.loads(path.read_bytes())
    assert facts["inputs"] == [{"path": p, "size": Path(p).stat().st_size} for p in cases]
    assert facts["control_inputs"] == [{"path": controls, "size": Path(controls).stat().st_size}]
    assert (facts["samples"], facts["controls"]) == (["x", "y"], ["c"])
    assert facts["ploidy"] == {"x": 4, "y": 2, "c": 2}
    assert facts["counting"]["window"] == 1000
    written = sum(file.stat().st_size for file in folder.iterdir())
    assert facts["output"] == {"path": str(folder), "format": "folder", "bytes": written}
    assert facts["chunks"]["run"] == 1
    assert facts["chunks"]["lanes"] >= 1
    assert facts["memory"]["budget_bytes"] > 0


def bam(folder: Path, name: str, seed: int) -> str:
    """20,000 reads on chr1."""
    places = np.sort(np.random.default_rng(seed).integers(0, 299_000, 20_000)).tolist()
    return write_alignments(folder / f"{name}.bam", [(0, at, 60, "10M", 0) for at in places])


def test_alignments__that_were_counted_outlive_a_run_that_fails(
    run_cnv: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    paths = [bam(tmp_path, name, k) for k, name in enumerate("abc")]
    words = ("-o", str(tmp_path / "out"), *FEW)
    with monkeypatch.context() as patched:
        patched.setattr(CnvJob, "result", Mock(side_effect=UsageError("it cannot be")))
        status, said = run_cnv(*paths, "--window", "1000", *words)
    counts = tmp_path / "out" / "counts.parquet"
    assert (status, said) == (2, "multigpu: error: it cannot be\n")
    assert caplog.messages == [f"the counts are kept: {counts}"]
    assert read_counts(str(counts)).values.sum() == 60_000
    caplog.clear()
    assert run_cnv(*paths, "--window", "1000", "--resume", *words)[0] == 0
    assert caplog.messages == []  # nothing says that counts of files cannot be resumed
    status, said = run_cnv(str(counts), *words)
    assert status == 0, said


def test_output__that_is_a_file_or_has_other_samples(
    run_cnv: Any, refused: Run, table: str, tmp_path: Path
) -> None:
    assert run_cnv(table, "-o", table, *FEW) == (
        2, f"multigpu: error: {table}: cannot be written: it is a file, and -o names a folder\n",
    )  # fmt: skip
    words = ("-o", str(tmp_path / "out"), *FEW)
    assert run_cnv(table, *words)[0] == 0
    assert "earlier run" not in run_cnv(table, *words)[1]
    counts = cohort()[0]
    write_counts(table, replace(counts, samples=tuple(f"t{k}" for k in range(6))))
    earlier = ", ".join(counts.samples[:5])
    said = f"note: replaced results of an earlier run with other samples: {earlier} and 1 other\n"
    assert said in run_cnv(table, *words)[1]


def test_vcf__has_the_lengths_of_references(run_cnv: Any, tmp_path: Path) -> None:
    paths = [bam(tmp_path, name, k) for k, name in enumerate("ab")]
    bed = tmp_path / "x.bed"
    bed.write_text("".join(f"1\t{at}\t{at + 1000}\n" for at in range(0, 30_000, 1000)))
    few = [word for word in FEW if word != "--no-vcf"]
    words = ("--regions", str(bed), "--rename", "auto", "-o", str(tmp_path / "out"))
    status, said = run_cnv(*paths, *words, *few)
    assert status == 0, said
    text = gzip.decompress((tmp_path / "out" / "cnvs.vcf.gz").read_bytes()).decode()
    assert "##contig=<ID=1,length=300000>\n" in text


def test_genes__are_the_names_in_the_bed_file(run_cnv: Any, tmp_path: Path) -> None:
    starts = range(0, 60_000, 1000)
    samples = [dict.fromkeys(starts, 10) for _ in range(6)]
    samples[2] |= dict.fromkeys(range(20_000, 32_000, 1000), 40)
    rows = [
        [(0, at + k, 60, "20M", 0) for at, count in sample.items() for k in range(count)]
        for sample in samples
    ]
    paths = [write_alignments(tmp_path / f"s{k}.bam", each) for k, each in enumerate(rows)]
    lines = [f"chr1\t{at}\t{at + 1000}" for at in starts]
    names = [f"gene{at // 5000}" if at != 21_000 else "." for at in starts]
    tables = []
    for column in ([""] * len(lines), [f"\t{name}" for name in names]):
        bed, out = tmp_path / "x.bed", tmp_path / "out"
        bed.write_text("".join(a + b + "\n" for a, b in zip(lines, column, strict=True)))
        status, said = run_cnv(*paths, "--regions", str(bed), "-o", str(out), *FEW)
        assert status == 0, said
        tables.append({path.name: path.read_bytes() for path in out.iterdir()})
    plain, named = tables
    text = gzip.decompress(named.pop("cnvs.vcf.gz")).decode()
    assert text.replace(";GENES=gene4,gene5,gene6", "") == (
        gzip.decompress(plain.pop("cnvs.vcf.gz")).decode()
    )
    expected = {"cnvs.tsv": ["genes", "gene4,gene5,gene6"]}
    expected["cnv_regions.tsv"] = expected["cnvs.tsv"]
    for name in ("cnvs.tsv", "cnv_regions.tsv", "segmentation.tsv"):
        table = [line.split("\t") for line in named.pop(name).decode().splitlines()]
        if name in expected:
            assert [line[-1] for line in table] == expected[name]
        rest = ["\t".join(line[:-1]) for line in table]
        assert rest == plain.pop(name).decode().splitlines()
    kept = multigpu.read_counts(out / "counts.parquet").regions
    assert kept.genes == tuple("" if name == "." else name for name in names)
    for files in tables:
        assert files.pop("cnvs.vcf.gz.tbi")
        del files["counts.parquet"]
    assert named == plain
    found = multigpu.cnv(multigpu.count(paths, regions=bed), gpus="none", keep_matrices=False)
    assert found.cnvs["genes"].to_pylist() == ["gene4,gene5,gene6"]


def test_vcf__refuses_names_before_anything_is_computed(
    run_cnv: Any, refused: Run, tmp_path: Path
) -> None:
    counts, _ = cohort()
    path = str(tmp_path / "names.parquet")
    renamed = replace(counts.regions, names=("a b", "2", "3"))
    write_counts(path, replace(counts, regions=renamed))
    assert refused(path) == (
        "VCF does not take the chromosome name 'a b': rename it, or give --no-vcf"
    )
    assert run_cnv(path, "-o", str(tmp_path / "o"), *FEW, "--no-vcf")[0] == 0


def test_summary__has_the_coverages_by_which_sexes_are_inferred(
    run_cnv: Any, tmp_path: Path
) -> None:
    path, facts = str(tmp_path / "x.parquet"), tmp_path / "facts.json"
    write_counts(path, of_sexes())
    words = ("-o", str(tmp_path / "o"), *FEW, "--summary", str(facts))
    assert run_cnv(path, *words)[0] == 0
    found = json.loads(facts.read_text())
    for name, word in found["sex"].items():
        shares = found["sex_coverage"][name]
        assert shares["x"] == pytest.approx(0.5 if word == "male" else 1, abs=0.05)
        assert shares["y"] == pytest.approx(0.5 if word == "male" else 0, abs=0.05)
    assert run_cnv(path, *words, "--sex", "none")[0] == 0
    assert json.loads(facts.read_text())["sex_coverage"] == {}


def test_notes__are_said_unless_it_is_to_be_quiet(run_cnv: Any, table: str, tmp_path: Path) -> None:
    none = ("--upper", "9", "--lower", "-9")
    status, said = run_cnv(table, "-o", str(tmp_path / "out"), *FEW, *none)
    assert status == 0
    assert said.startswith("multigpu: note: no CNVs were found")
    assert run_cnv(table, "-o", str(tmp_path / "out"), *FEW, *none, "--quiet") == (0, "")


def test_directory__of_alignments(run_cnv: Any, refused: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bams"
    folder.mkdir()
    paths = [bam(folder, name, k) for k, name in enumerate("abcd")]
    words = ("--window", "1000", "--chromosomes", "chr1", *FEW)
    for given, name in ((paths, "one"), ([str(folder)], "two")):
        assert run_cnv(*given, *words, "-o", str(tmp_path / name))[0] == 0
    for name in ("counts.parquet", "segmentation.tsv"):
        one, two = ((tmp_path / run / name).read_bytes() for run in ("one", "two"))
        assert one == two
    (tmp_path / "none").mkdir()
    assert "none: the directory has no alignment or counts files (.bam, …)" in refused(
        str(tmp_path / "none")
    )


def test_output__into_a_folder_whose_name_looks_like_an_address(
    run_cnv: Any, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library that writes the VCF file would take it for one."""
    monkeypatch.chdir(tmp_path)
    assert run_cnv(table, "-o", "s3:x", *FEW)[0] == 0
    assert names(tmp_path / "s3:x") >= CALLS


def test_counts__from_a_pipe(run_cnv: Any, tmp_path: Path) -> None:
    plain, fifo = tmp_path / "counts.tsv", tmp_path / "fifo"
    write_counts(str(plain), cohort()[0])
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(plain.read_bytes()))
    writer.start()
    assert run_cnv(str(fifo), "-o", str(tmp_path / "a"), *FEW)[0] == 0
    writer.join()
    assert run_cnv(str(plain), "-o", str(tmp_path / "b"), *FEW)[0] == 0
    for name in ("cnvs.tsv", "segmentation.tsv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()

"""The command line in a terminal: completion, progress, the last line, the demo."""

import json
import os
import pty
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pysam
import pytest
from support.program import program

from multigpu import cli

READS = "@r1\nTTACGTAA\n+\nIIIIIIII\n@r2\nGGGGGGGG\n+\nIIIIIIII\n"
ROWS = ["sample\tsignature\tstart\tend\tstrand\tscore", "r1\tsig\t2\t6\t+\t40.0"]
LAST = "multigpu: 1 match in 2 samples; written to standard output"


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    (tmp_path / "reads.fastq").write_text(READS)
    (tmp_path / "wanted.fasta").write_text(">sig\nACGT\n")
    return [str(tmp_path / "reads.fastq"), "-s", str(tmp_path / "wanted.fasta")]


def completed(*words: str) -> list[str]:
    """Return what the shell is offered for the last word: lines `type,value`."""
    asked = {"COMP_WORDS": " ".join(("multigpu", *words)), "COMP_CWORD": str(len(words))}
    return program(env={"_MULTIGPU_COMPLETE": "bash_complete", **asked}).out.splitlines()


FILES = (
    ("scan", "rea"), ("scan", "-s", "wan"), ("scan", "-o", "ou"), ("dock", "--pocket", "poc"),
    ("cnv", "coun"), ("count", "--regions", "targ"), ("simulate", "samples", "-o", "s"),
)  # fmt: skip


@pytest.mark.parametrize(("words", "offered"), [
    (("sc",), "plain,scan"), (("scan", "--signat"), "plain,--signatures"),
    *((words, f"file,{words[-1]}") for words in FILES),
])  # fmt: skip
def test_completion__leaves_file_names_to_the_shell(words: tuple[str, ...], offered: str) -> None:
    assert completed(*words) == [offered]


def on_a_terminal(*arguments: str) -> list[str]:
    """Run the program with one terminal for standard output and error; return its lines."""
    (ours, theirs), text = pty.openpty(), b""
    words = [sys.executable, "-m", "multigpu", *arguments]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        with suppress(OSError):  # the other end is closed
            while new := os.read(ours, 1 << 16):
                text += new
    os.close(ours)
    lines = text.decode().replace("\r\n", "\n").splitlines()
    return [line for line in lines if not line.startswith("multigpu: compiling")]


def test_terminal__shows_rows_and_progress_where_it_is_asked_for(inputs: list[str]) -> None:
    assert on_a_terminal("scan", *inputs, "--gpus", "none") == [*ROWS, LAST]
    lines = on_a_terminal("scan", *inputs, "--gpus", "none", "--progress")
    assert [line for line in lines if "\t" in line] == ROWS
    others = [line for line in lines if "\t" not in line]
    assert others[-1] == LAST
    assert len(others) > 1
    assert all(line.startswith(("scan  ", "multigpu: ")) for line in others)


def test_last_line__says_what_was_found_and_where_it_is(inputs: list[str], tmp_path: Path) -> None:
    output = str(tmp_path / "found.tsv")
    run = program("scan", *inputs, "-o", output, "--gpus", "none")
    assert run.all_err == f"multigpu: 1 match in 2 samples; written to {output}\n"
    assert program("scan", *inputs, "-o", output, "--gpus", "none", "--quiet").all_err == ""


def test_scan__without_samples_has_generated_ones() -> None:
    run = program("scan", "--gpus", "none")
    assert run.status == 0
    assert "no samples given: scanning generated ones" in run.err
    assert len({line.split("\t")[0] for line in run.out.splitlines()[1:]}) == 20  # infected


def test_demo__runs_every_kind_of_job(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    run = program("demo", "-o", str(folder), "--gpus", "none", timeout=240)
    assert run.status == 0, run.err
    for one in ("matches.tsv", "calls/report.html", "calls/cnvs.vcf.gz", "poses.sdf", "poses.html"):
        assert (folder / one).stat().st_size > 100, one
    shown = [line.split()[2] for line in run.all_err.splitlines() if line.startswith("$ multigpu ")]
    assert set(shown) == {"scan", "cnv", "dock", "simulate"}
    first, *rest = run.out.splitlines()
    matches = len((folder / "matches.tsv").read_text().splitlines()) - 1
    assert first.startswith(f"Found {matches} matches (in {folder}/matches.tsv), ")
    tried = [shlex.split(row.partition("|")[0]) for row in rest if row.startswith("    multigpu ")]
    assert [words[1] for words in tried] == ["scan", "cnv", "dock"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_demo__compiles_all_at_its_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "demo"
    run = program("demo", "-o", str(folder), "--gpus", "none", timeout=800)
    before, first, after = run.all_err.partition("$ multigpu simulate")
    assert "compiling" in before
    assert first
    assert "compiling" not in after
    for line in run.out.splitlines():
        if line.startswith("    multigpu "):
            words = shlex.split(line.partition("|")[0].replace("more-", f"{tmp_path}/more-"))
            again = program(*words[1:], "--gpus", "none")
            assert again.status == 0, again.err
            assert "compiling" not in again.all_err


def test_demo__needs_a_folder_that_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = program("demo", "-o", str(tmp_path / "file" / "demo"))
    assert run.status == 2
    assert "cannot be written" in run.problem


def test_help__lists_every_command() -> None:
    assert all(name in program("--help").out for name in cli.COMMANDS)


@pytest.mark.parametrize(("words", "shown"), [
    (["help"], "Usage: multigpu [OPTIONS]"),
    (["help", "scan"], "Usage: multigpu scan [OPTIONS]"),
    (["help", "plan", "dock"], "Usage: multigpu dock [OPTIONS]"),
    (["scan", "--version"], "multigpu, version "),
    (["simulate", "-V"], "multigpu, version "),
    (["--citation"], "doi:10.1093/nar/gks003"),
], ids=" ".join)  # fmt: skip
def test_help_and_version__are_where_they_are_looked_for(words: list[str], shown: str) -> None:
    run = program(*words)
    assert run.status == 0
    assert shown in run.out


def test_plan__takes_the_whole_line_of_a_run(inputs: list[str], tmp_path: Path) -> None:
    output = tmp_path / "x.sam"
    more = ["-o", str(output), "--ambiguous", "--quiet", "--summary", str(tmp_path / "s.json")]
    assert "signatures    1\n" in program("plan", "scan", *inputs, *more).out
    assert sorted(tmp_path.iterdir()) == [tmp_path / "reads.fastq", tmp_path / "wanted.fasta"]
    assert program("plan", "scan", *inputs, "--json", "--hits", "last").problem == (
        program("scan", *inputs, "--dry-run", "--json", "--hits", "last").problem
    )


def test_plan__of_a_count_names_files_and_regions(tmp_path: Path) -> None:
    path = str(tmp_path / "a.bam")
    with pysam.AlignmentFile(path, "wb", reference_names=["c"], reference_lengths=[60_000]):
        pass
    run = program("plan", "count", path, "-o", "counts.tsv")
    size = Path(path).stat().st_size
    said = f"counts        1 sample × 3 regions\n{path}: a, {size} bytes, no index\n"
    assert run.out.startswith(said)
    facts = json.loads(program("plan", "count", path, "--json").out)
    assert (facts["regions"], [each["sample"] for each in facts["files"]]) == (3, ["a"])

"""Options that mean nothing, outputs that cannot be written, schedulers that do not answer."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_input.given import BASE, READS, SCAN, SIGNATURES, Refused, Store, many
from support.program import Run, program, run_python

from multigpu.run.command import keep_inputs

SOON = 5.0  # seconds; the promise is 2, on a machine that does nothing else


def test_output__stays_as_it_was(main: Run, store: Store, signatures: str, tmp_path: Path) -> None:
    bad, old = store("bad.fq", many(60, r30=BASE)), store("hits.tsv", b"old")
    before = sorted(tmp_path.iterdir())
    ended = main("scan", bad, "-s", signatures, "-o", old, "--gpus", "none")
    assert ended.status == 2
    assert sorted(tmp_path.iterdir()) == before
    assert Path(old).read_bytes() == b"old"


REPORTS = ("--summary", "--log-json")


FULL = "/dev/full: cannot be written: the disk is full (no space left on device)"
READ_NEXT = (
    "in -o in/new.fa --format tsv", "in/* -o in/new.tsv", "i* -o in/new.fq.gz --format tsv",
    "**/*.f? -o in/deep/new.fq --format tsv", "in/a.fq --counts sig.tsv",
    "in/*.[fjh]* --summary in/new.json", "in/* -o new.tsv --multiqc in/x_mqc.json",
    "./in/../in/*.f* --log-json in/new.f",
)  # fmt: skip
REFUSED = [  # words, and what is told
    *((f"reads.fq -s sig.fa {each} ./{name}", f"./{name} is named twice")
      for each in ("-o", *REPORTS) for name in ("reads.fq", "sig.fa")),
    *((f"reads.fq -s sig.fa -o new.tsv {each} reads.fq", "reads.fq is named") for each in REPORTS),
    *((f"reads.fq -s sig.fa -o same {each} same", "same is named twice") for each in REPORTS),
    ("*.fq -s sig.fa -o reads.fq", "reads.fq is named twice"),
    *((f"{words} -s {'sig*' if '--counts' in words else 'sig.fa'}", "the next run would read it as")
      for words in READ_NEXT),
    *((f"reads.fq -s sig.fa -o hits.parquet.{end}", "Parquet files are compressed inside")
      for end in ("gz", "zst")),
    # Before any input is read, also of what is written last.
    *((f"absent.fq -s absent.fa {each} nowhere/x", "nowhere/x: cannot be written: there is no dire")
      for each in ("-o", "--summary")),
    *((f"absent.fq -s absent.fa {each} in", "in: cannot be written: it is a directory")
      for each in ("-o", "--summary")),
    *((f"reads.fq -s sig.fa -o new.tsv {each} /dev/full", FULL) for each in ("-o", *REPORTS)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "problem"), REFUSED, ids=[words for words, _ in REFUSED])
def test_output__that_cannot_be_or_would_replace_an_input_is_refused(
    main: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str,
    problem: str,
) -> None:  # fmt: skip
    for name in ("reads.fq", "in/a.fq", "in/deep/b.fq"):
        store(name, READS)
    store("sig.fa", SIGNATURES)
    monkeypatch.chdir(tmp_path)
    before = {path: path.is_dir() or path.read_bytes() for path in tmp_path.rglob("*")}
    ended = main("scan", *words.split(), "--gpus", "none")
    assert (ended.status, ended.out) == (2, "")
    assert problem in ended.problem
    assert {path: path.is_dir() or path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_inputs__are_not_looked_at_where_no_output_is_there(tmp_path: Path) -> None:
    def inputs() -> Iterator[str]:
        yield str(tmp_path)
        asked.append("all")

    asked: list[str] = []
    keep_inputs(inputs(), str(tmp_path / "new"), "-", None)
    assert asked == []
    (tmp_path / "old").touch()
    keep_inputs(inputs(), str(tmp_path / "new"), str(tmp_path / "old"))
    assert asked == ["all"]


WRONG = [
    ("--hits last", "'--hits': 'last' is not one of 'first', 'best', 'sites', 'all', 'top'"),
    ("--min-score nan", "--min-score is nan; it must be a number"),
    ("--min-score 93.5", "--min-score is 93.5; no score is above 93, the highest Phred score of"),
    ("--min-score 63 --phred-offset 64", "--min-score is 63; no score is above 62"),
    ("--gpus first", "first"),
    ("--gpus 9", "there is no GPU 9"),
    ("--memory-fraction 0", "--memory-fraction is 0; it must be above 0, at most 1"),
    ("--memory-fraction 0.000000001", "bytes of memory where"),
    ("--threads -1", "--threads is -1; it must be 0 to 4,096"),
    (f"--threads {'9' * 400}", "it must be 0 to 4,096"),
    ("--scheduler-file /dev/zero", "/dev/zero: this is no scheduler file"),
    (
        "--scheduler-file absent.json --connect-timeout 0.5",
        "absent.json: no scheduler has written this file within 0.5 s",
    ),
    ("--scheduler-file /", "/: Is a directory"),
    ("--scheduler a:1 --scheduler-file b", "give a scheduler's address or its file, not both"),
    ("--speed high", "No such option '--speed'"),
]


@pytest.mark.parametrize(("options", "problem"), WRONG, ids=[o[:40] for o, _ in WRONG])
def test_wrong_option__is_told(refused: Refused, store: Store, options: str, problem: str) -> None:
    assert problem in refused(store("good.fq", READS), options=tuple(options.split()))


@pytest.mark.parametrize("by_file", [False, True], ids=["address", "file"])
def test_no_scheduler__is_told(refused: Refused, store: Store, by_file: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"tcp://127.0.0.1:{server.getsockname()[1]}"  # where nobody listens then
    options = ("--scheduler", closed)
    if by_file:
        content = f'{{"type": "Scheduler", "address": "{closed}"}}'.encode()
        options = ("--scheduler-file", store("scheduler.json", content))
    begin = time.monotonic()
    problem = refused(store("good.fq", READS), options=("--connect-timeout", "0.5", *options))
    assert time.monotonic() - begin < SOON
    assert problem.startswith(f"{options[1]}: no scheduler answered within 0.5 s")


def test_scheduler__that_never_answers_is_told(store: Store, signatures: str) -> None:
    """By the command, and from Python, which then ends."""
    samples, limit = store("good.fq", READS), 2 + SOON
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        options = ("--scheduler", silent, "--connect-timeout", "0.5")
        ended = program(*SCAN, samples, "-s", signatures, *options, timeout=limit)
        assert (ended.status, ended.out) == (2, "")
        assert ended.problem.startswith(f"{silent}: no scheduler answered within 0.5 s")
        scan = f"scan({samples!r}, {signatures!r}, scheduler={silent!r}, connect_timeout=0.5)"
        ended = run_python("-c", f"import multigpu; list(multigpu.{scan})", timeout=limit)
        assert (ended.status, "UsageError" in ended.lines[-1]) == (1, True)


@pytest.mark.parametrize(
    "content", [b"no JSON", b"[]", b'{"address": 7}', '{"address": "tcp://a:1"}'.encode("utf-16")]
)
def test_scheduler_file__of_no_json_is_told(refused: Refused, store: Store, content: bytes) -> None:
    path = store("scheduler.json", content)
    problem = refused(store("good.fq", READS), options=("--scheduler-file", path))
    assert problem.startswith(f"{path}: ")

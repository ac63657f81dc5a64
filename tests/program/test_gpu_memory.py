"""A GPU whose memory a neighbour holds: the same bytes, there, elsewhere or on the CPU."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.neighbour import neighbour
from support.program import Ended, program, python_path, run_python

pytestmark = pytest.mark.gpu

SIMULATED = (
    ("signatures", "--count", "200", "-o", "sig.fa"),
    (
        "samples", "--signatures", "sig.fa", "--clean", "20", "--infected", "100",
        "-o", "samples.fq",
    ),
    ("counts", "--regions", "8000", "--samples", "60", "-o", "counts.parquet"),
    ("pocket", "-o", "pocket.npz"),
    ("ligands", "--count", "400", "-o", "ligands.sdf"),
)  # fmt: skip
COMMANDS = {
    "scan": ("scan", "samples.fq", "-s", "sig.fa", "--max-chunk-bytes", "2000000"),
    "cnv": ("cnv", "counts.parquet"),
    "dock": ("dock", "ligands.sdf", "--pocket", "pocket.npz", "--max-chunk-bytes", "200000"),
}
OUTPUTS = {"scan": "{}.tsv", "cnv": "{}", "dock": "{}.sdf"}


def run(
    folder: Path, command: str, name: str, *more: str, start: tuple[str, ...] = ("-m", "multigpu")
) -> tuple[Ended, Any]:
    """Run a command in a folder; return how it ended, and its summary."""
    arguments = [str(folder / one) if "." in one else one for one in COMMANDS[command]]
    output, summary = folder / OUTPUTS[command].format(name), folder / f"{name}.json"
    arguments += ["-o", str(output), "--summary", str(summary), *more]
    ended = run_python(*start, *arguments, timeout=250)
    return ended, json.loads(summary.read_text()) if not ended.status else None


def content(folder: Path, command: str, name: str) -> dict[str, bytes]:
    """Return what a run wrote, by names relative to its output; no reports, which have times."""
    output = folder / OUTPUTS[command].format(name)
    files = [output] if output.is_file() else [p for p in output.rglob("*") if p.is_file()]
    named = {str(path.relative_to(output)): path for path in files}
    return {key: path.read_bytes() for key, path in named.items() if path.suffix != ".html"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of inputs, and of what each command makes of them on a GPU of its own."""
    found = tmp_path_factory.mktemp("memory")
    for arguments in SIMULATED:
        paths = [str(found / one) if "." in one else one for one in arguments]
        assert not program("simulate", *paths).status
    for command in COMMANDS:
        ended, summary = run(found, command, f"{command}-whole")
        assert not ended.status, ended.all_err
        assert used(summary) == {"gpu0"}
    return found


def used(summary: Any) -> set[str]:
    """Return the devices that chunks ran on."""
    return {name.rpartition(":")[2] for name in summary["workers"]}


PLANNED = ("-m", "multigpu")
# As where the memory goes after the plan was made.
CODE = """
import sys
from multigpu.cluster.devices import memory
from multigpu.run import options
memory.CONTEXT_BYTES = options.CONTEXT_BYTES = 0
from multigpu.cli import main
main(sys.argv[1:])
"""
UNPLANNED = ("-c", CODE)
NEIGHBOURS = [
    pytest.param("static", 600, PLANNED, id="600 MB"),
    pytest.param("static", 200, PLANNED, id="200 MB"),
    pytest.param("static", 20, PLANNED, id="20 MB"),
    pytest.param("static", -200, PLANNED, id="no room for a context"),
    pytest.param("turns", 300, PLANNED, id="300 MB in turns"),
    pytest.param("static", 60, UNPLANNED, id="60 MB unplanned"),
    pytest.param("static", -200, UNPLANNED, id="no room for a context unplanned"),
    pytest.param("turns", 20, UNPLANNED, id="20 MB in turns unplanned"),
    pytest.param("turns", -300, UNPLANNED, id="no room for a context in turns unplanned"),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(("mode", "leave", "start"), NEIGHBOURS)
def test_run__beside_a_neighbour_on_the_gpu_gives_the_same_bytes(
    folder: Path, command: str, mode: str, leave: int, start: tuple[str, ...]
) -> None:
    name = f"{command}-{mode}{leave}{len(start)}"
    with neighbour(mode, leave):
        ended, summary = run(folder, command, name, start=start)
    print(f"\n{name}: {summary and (summary['workers'], summary['events'])}\n{ended.err}")
    assert ended.status == 0, ended.all_err
    assert content(folder, command, name) == content(folder, command, f"{command}-whole")
    if leave == 600:
        assert used(summary) == {"gpu0"}
    if mode == "static" and leave < 0:
        assert used(summary) == {"cpu"}
    if used(summary) != {"gpu0"}:
        assert any(word in ended.err for word in ("the CPU", "left out", "no more work"))
    assert len(ended.err.splitlines()) <= 4


@pytest.mark.parametrize(("command", "leave", "start"), [
    *[("scan", 20, PLANNED), ("dock", 20, PLANNED)],
    *[(command, -200, start) for command in COMMANDS for start in (PLANNED, UNPLANNED)],
])  # fmt: skip
def test_run__without_the_cpu_says_in_a_line_what_is_free(
    folder: Path, command: str, leave: int, start: tuple[str, ...]
) -> None:
    with neighbour("static", leave):
        ended, _ = run(folder, command, f"{command}-refused", "--no-cpu-fallback", start=start)
    print(f"\n{command} {leave} {start[0]}\n{ended.err}")
    assert ended.status in (1, 2)
    last = ended.err.splitlines()[-1]
    assert last.startswith("multigpu: error: ")
    assert re.search(r"[0-9] bytes (of its memory )?are free|where [0-9,]+ are free", last)
    assert "internal error" not in ended.err


def scan_with(folder: Path, name: str, *more: str, **environment: str) -> Ended:
    arguments = [str(folder / one) if "." in one else one for one in COMMANDS["scan"]]
    output = str(folder / f"{name}.tsv")
    return program(*arguments, "-o", output, *more, timeout=250, env=environment)


@pytest.mark.parametrize("place", ["a file", "unwritable", "HOME"])
def test_cache__is_done_without(folder: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").write_text("")
    unwritable = "/proc/self/cache"  # root may write everywhere else
    setting = {"a file": str(tmp_path / "a file"), "unwritable": unwritable}.get(place)
    environment = {"HOME": "/dev/null"} if setting is None else {"CUPY_CACHE_DIR": setting}
    ended = scan_with(folder, f"cache-{place}", **environment)
    assert ended.status == 0
    assert ended.err.count("compiled GPU kernels are neither loaded nor kept") == 1
    assert content(folder, "scan", f"cache-{place}") == content(folder, "scan", "scan-whole")


@pytest.mark.parametrize("gpus", ["auto", "all"])
def test_cupy__that_is_not_imported_leaves_the_cpu(folder: Path, tmp_path: Path, gpus: str) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcudart.so.13: cannot open')\n")
    path = f"{tmp_path}{os.pathsep}{python_path()}"
    ended = scan_with(folder, f"broken-{gpus}", "--gpus", gpus, PYTHONPATH=path)
    problem = "CuPy cannot be imported (libcudart.so.13: cannot open): install it"
    assert ended.err.count(problem) == 1
    assert "internal error" not in ended.err
    if gpus == "all":
        assert ended.status == 2
    else:
        assert ended.status == 0
        assert content(folder, "scan", "broken-auto") == content(folder, "scan", "scan-whole")


FORKED = """
import os, sys
import multigpu
samples, signatures = sys.argv[1:]
first = multigpu.scan([samples], [signatures], gpus=0).to_table() if {before} else None
import cupy; cupy.zeros(3)
child = os.fork()
if child == 0:
    rows = multigpu.scan([samples], [signatures], gpus=[0]).to_table()
    os._exit(0 if rows.num_rows else 9)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("before", [True, False], ids=["by us", "by others"])
def test_child__forked_after_cuda_was_used_says_once_what_to_do(folder: Path, before: bool) -> None:
    code = FORKED.replace("{before}", str(before))
    ended = run_python("-c", code, str(folder / "samples.fq"), str(folder / "sig.fa"))
    assert ended.status == 0, ended.all_err
    assert ended.err.count("('spawn')") == 1
    assert len(ended.err.splitlines()) == 1

"""Tests, sanitizer and every figure on a machine with GPUs, within a limit of time.

    python benchmarks/all_gpu.py --out DIR [--part tests kernels …] [--minutes 9.5] [--data DIR]
    python benchmarks/all_gpu.py --out DIR --device cpu --small    # try it out anywhere

Each step is a process with a limit of its own. DIR gets a log and the figures of every step, and
`table.md` with what all of them gave, also those of earlier calls with the same DIR.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import common
from common import HEADER, ROOT, Figure, markdown, say
from processes import python
from sanitize import TOOLS
from scaling import CASES

HERE = Path(__file__).parent
TESTS = ROOT / "tests"
LEAST = 15.0  # seconds: with less left no step is begun
TINY = "0.01"
GPU_TESTS = ("mark.gpu", "import DEVICES")  # what a file with tests for a GPU has in it
PROCESSES = 4  # of pytest
SCALING_RUNS = {"scan": "3"}  # the others are too long for more than one
NO_OTHER_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # their warnings would be errors
LINE = 100  # characters of a log's last line


@dataclass(frozen=True)
class Step:
    """A process to run, named by its part. figures: whether it can write them (`--json`)."""

    name: str
    command: list[str]
    limit: float  # seconds
    figures: bool = True


@dataclass(frozen=True)
class Ended:
    name: str
    outcome: str
    seconds: float


# ---- what is run ------------------------------------------------------------------------------


def steps(options: argparse.Namespace) -> Iterator[Step]:
    """Yield all steps, most important first."""
    device, data = ["--device", options.device], ["--data", str(options.data)]
    usual = [*device, *data, "--runs", str(options.runs)]
    if options.small:
        usual += ["--scale", TINY]

    def script(name: str, limit: float, script: str, *arguments: str, figures: bool = True) -> Step:
        return Step(name, python(str(HERE / f"{script}.py"), *arguments), limit, figures)

    yield _tests("kernels", options.device == "gpu")
    yield _tests("rest", options.device == "gpu")
    for name, limit, file, parts in FIGURES:
        yield script(name, limit, file, *usual, "--only", *parts)
    small = ["--small"] if options.small else []
    for case in CASES:
        few = ["--runs", SCALING_RUNS.get(case, "1")]
        yield script(
            f"scaling-{case}", 570, "scaling", *device, *few, *data, *small, "--only", case
        )
    if options.device == "cpu":
        yield script("sanitize-plain", 120, "sanitize", "--plain", *device, figures=False)
    else:
        for tool in TOOLS:
            yield script(f"sanitize-{tool}", 300, "sanitize", "--tools", tool, figures=False)
    parts = ("cpu", "gzip", "memory", "hyperscan")
    yield script("others-scan", 300, "scan", *usual, "--only", *parts)
    yield script("others-sassy", 300, "scan_errors", *usual, "--only", "sassy")
    yield script("others-engine", 120, "engine", "--chunks", "500")


PARTS = ("tests", "kernels", "scan", "cnv", "dock", "scaling", "sanitize", "others")
FIGURES = (
    ("kernels-scan", 150, "scan", ("kernels",)),
    ("kernels-errors", 150, "scan_errors", ("search", "long")),
    ("kernels-cnv", 150, "cnv", ("model", "stages", "cohort", "hmm")),
    ("kernels-dock", 150, "dock", ("nearest", "linear", "cpu")),
    ("scan-process", 240, "scan", ("help", "process")),
    ("scan-steady", 300, "scan", ("stream", "reads")),
    ("scan-compressed", 300, "many_gz", ("many", "one", "bgzf")),
    ("scan-errors", 400, "scan_errors", ("guides", "bulges", "edits")),
    ("scan-errors-reads", 300, "scan_errors", ("reads",)),
    ("scan-demultiplex", 400, "demultiplex", ("plain",)),
    ("cnv-process", 240, "cnv", ("process",)),
    ("cnv-presets", 500, "cnv", ("preset", "gc")),
    ("cnv-batch", 500, "cnv", ("batch",)),
    ("cnv-new-sample", 500, "cnv", ("new_sample",)),
    ("dock-library", 300, "dock", ("library",)),
)


def part_of(name: str) -> str:
    """Return the part of a step, by its name."""
    return name.partition("-")[0]


def _tests(name: str, gpu: bool) -> Step:
    """Return the step of tests marked gpu, in files that have any: others may need more."""
    files = [
        path
        for path in sorted(TESTS.rglob("test_*.py"))
        if (path.relative_to(TESTS).parts[0] == "kernels") == (name == "kernels")
        and any(word in path.read_text() for word in GPU_TESTS)
    ]
    more = ["-p", "xdist.plugin", "-n", str(PROCESSES)] if find_spec("xdist") else []
    more += ["--require-gpu"] if gpu else []
    command = python("-m", "pytest", "-p", "pytest_timeout", "-m", "gpu", "-q", *more)
    return Step(f"tests-{name}", [*command, *map(str, files)], 400, figures=False)


# ---- running ----------------------------------------------------------------------------------


def run(step: Step, out: Path, limit: float) -> Ended:
    """Run a step with its output in a log; end it and its children after the limit."""
    command = [*step.command, *(["--json", str(out / f"{step.name}.json")] if step.figures else [])]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    begin = time.perf_counter()
    with (out / f"{step.name}.log").open("wb") as log:
        child = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, **NO_OTHER_PLUGINS},
        )  # fmt: skip
        try:
            status = child.wait(timeout=limit)
            outcome = "ok" if status == 0 else f"FAILED: status {status}"
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            outcome = f"not ended within {limit:.0f} s"
    return Ended(step.name, outcome, time.perf_counter() - begin)


# ---- the table --------------------------------------------------------------------------------


def table(out: Path, full_size: bool) -> str:
    """Return outcomes and figures of all calls with this folder."""
    ended = [Ended(**json.loads(path.read_text())) for path in sorted(out.glob("*.step"))]
    ended.sort(key=lambda each: PARTS.index(part_of(each.name)))
    rows = [
        [each.name, each.outcome, f"{each.seconds:.0f} s", last_line(out, each)] for each in ended
    ]
    facts: dict[str, Any] = {}
    figures, skipped = [], []
    for each in ended:
        path = out / f"{each.name}.json"
        if path.exists():
            said = json.loads(path.read_text())
            facts = said["machine"]
            figures += [_figure(figure).cells(full_size) for figure in said["figures"]]
            skipped += [[each.name, *pair] for pair in said.get("skipped", {}).items()]
    parts = [common.machine_line(facts)] if facts else []
    parts.append(markdown(rows, ["step", "outcome", "time", "last line"]))
    if figures:
        parts.append(markdown(figures, HEADER))
    if skipped:
        parts.append(markdown(skipped, ["step", "part", "why it was left out"]))
    return "\n\n".join(parts) + "\n"


def last_line(out: Path, ended: Ended) -> str:
    """Return pytest's summary, or the last line of a step that failed."""
    lines = (out / f"{ended.name}.log").read_text(errors="replace").strip().splitlines()
    if not lines or (part_of(ended.name) != "tests" and ended.outcome == "ok"):
        return ""
    return lines[-1].strip("= ").replace("|", "/")[:LINE]


def _figure(said: dict[str, Any]) -> Figure:
    return Figure(**{key: said[key] for key in said if key not in ("median", "reached")})


# ---- all together -----------------------------------------------------------------------------


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for logs and figures")
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"some of: {' '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--small", action="store_true", help="inputs of seconds, to try it out")
    parser.add_argument("--minutes", type=float, default=9.5, help="for all that is run now")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each figure")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "multigpu-data",
                        help="where inputs are, or are made")  # fmt: skip
    return parser.parse_args()


def main() -> None:
    options = _options()
    missing = common.gpu_missing() if options.device == "gpu" else None
    if missing:
        raise SystemExit(f"{missing} (--device cpu tries it out)")
    out = options.out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    end, failed = time.perf_counter() + 60 * options.minutes, False
    for step in steps(options):
        left = end - time.perf_counter()
        if part_of(step.name) not in options.part:
            continue
        if left < LEAST:
            say(f"{step.name}: no time left")
            continue
        ended = run(step, out, min(step.limit, left))
        (out / f"{step.name}.step").write_text(json.dumps(asdict(ended)))
        (out / "table.md").write_text(table(out, not options.small))
        say(f"{step.name}: {ended.outcome}, {ended.seconds:.0f} s")
        failed |= ended.outcome != "ok"
    print(table(out, not options.small))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

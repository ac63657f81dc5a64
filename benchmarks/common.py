"""Figures and tables, the machine, timed runs and the options that all benchmarks share."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # a clone that is not installed

from multigpu.cluster.devices.gpus import survey  # noqa: E402

# An installation has its modules compiled; where this is set each process compiles them anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PACKAGES = ("multigpu", "numpy", "numba", "llvmlite", "dask", "distributed", "isal", "hyperscan")
CUDA_PACKAGES = ("cupy-cuda12x", "cupy-cuda13x")


class WrongResultError(Exception):
    """A check before the timing failed, so there is nothing to time."""


class NotHereError(Exception):
    """A part cannot run here; the text says why."""


def require(right: bool, claim: str) -> None:
    if not right:
        raise WrongResultError(claim)


def need_package(name: str, extra: str) -> None:
    if find_spec(name) is None:
        raise NotHereError(f"needs the package {name}: pip install multigpu[{extra}]")


# ---- figures ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One measured quantity.

    asked    the target; None: there is none
    at_most  whether the target is an upper bound, or a lower one
    """

    part: str
    what: str
    unit: str
    values: list[float]
    asked: float | None = None
    at_most: bool = True
    note: str = ""

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def reached(self) -> bool | None:
        if self.asked is None:
            return None
        return self.median <= self.asked if self.at_most else self.median >= self.asked

    def cells(self, full_size: bool) -> list[str]:
        """Return the row of a table; inputs of less than full size reach nothing."""
        sign = "≤" if self.at_most else "≥"
        asked = "" if self.asked is None else f"{sign} {self.asked:.4g} {self.unit}"
        verdict = {True: "yes", False: "NO", None: ""}[self.reached] if full_size else "scaled"
        spread = f"{min(self.values):.3g} – {max(self.values):.3g}"
        reached = f"{self.median:.3g} {self.unit}"
        return [self.what, asked, reached, spread, str(len(self.values)), verdict, self.note]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "median": self.median, "reached": self.reached}


HEADER = ["what", "asked", "median", "min – max", "runs", "reached", "notes"]


def markdown(rows: Iterable[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    """Return a Markdown table that is aligned, but for its last column."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header) - 1)] + [0]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * max(3, width + 2) for width in widths) + "|")
    return "\n".join(lines)


def say(text: str) -> None:
    """Print progress on standard error, as standard output is for tables."""
    print(text, file=sys.stderr, flush=True)


# ---- the machine ------------------------------------------------------------------------------


def cores() -> int:
    return len(os.sched_getaffinity(0))


def gpu_missing() -> str | None:
    """Return why nothing can run on a GPU here; None where it can."""
    found = survey()
    if not found.devices:
        return f"no GPU: {found.problem.text}"
    try:
        import cupy
    except ImportError:
        return "a GPU, but no CuPy: install the extra cu12 or cu13"
    return None if cupy.is_available() else "CuPy does not reach the GPU"


def why_no_gpu(device: str) -> str | None:
    """Return why `--device auto|gpu|cpu` means the CPU here; None where it means a GPU."""
    if device == "cpu":
        return "--device cpu was given"
    missing = gpu_missing()
    if missing and device == "gpu":
        raise SystemExit(f"--device gpu: {missing}")
    return missing


def machine() -> dict[str, Any]:
    """Return devices, versions and commit, without which a figure means nothing."""
    found = survey()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_name(),
        "cores": cores(),
        "memory_gb": round(pages / 1e9),
        "gpus": [f"{gpu.name} ({gpu.total_bytes / 1e9:.0f} GB)" for gpu in found.devices],
        "driver": found.driver,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: v for name in PACKAGES + CUDA_PACKAGES if (v := _version(name))},
        "commit": _commit(),
        "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def machine_line(facts: dict[str, Any]) -> str:
    gpus = ", ".join(facts["gpus"]) or "no GPU"
    packages = ", ".join(f"{name} {v}" for name, v in facts["packages"].items())
    driver = f", driver {facts['driver']}" if facts["driver"] else ""
    return (
        f"{facts['cores']} cores of {facts['cpu']}, {facts['memory_gb']} GB; {gpus}{driver}; "
        f"Python {facts['python']}, {packages}; commit {facts['commit']}; {facts['when']}"
    )


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown CPU"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """Return $COMMIT, or the commit that git names, with + where files differ from it."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    if named := os.environ.get("COMMIT"):
        return named
    if not (head := git("rev-parse", "--short=12", "HEAD")):
        return "unknown"
    return head + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


# ---- timing -----------------------------------------------------------------------------------


def timed(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def repeated(run: Callable[[], Any], runs: int, warm_up: bool = True) -> list[float]:
    """Return the seconds of each run, after one that is not counted."""
    if warm_up:
        run()
    return [timed(run) for _ in range(runs)]


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, reached = 0.0, -np.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


# ---- results ----------------------------------------------------------------------------------


@dataclass
class Report:
    """Figures of a script, which are written after every part so that nothing is lost."""

    facts: dict[str, Any]
    options: dict[str, Any]
    path: Path | None
    figures: list[Figure] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    def measure(self, name: str, part: Callable[[], Iterable[Figure]]) -> None:
        """Add the figures of a part, or why it failed; other parts are worth their time."""
        say(f"{name} …")
        begin = time.perf_counter()
        try:
            for figure in part():
                self.figures.append(figure)
        except NotHereError as problem:
            self.skipped[name] = str(problem)
        except Exception as problem:  # noqa: BLE001
            traceback.print_exc()
            self.skipped[name], self.failed = f"FAILED: {type(problem).__name__}: {problem}", True
        say(f"  {time.perf_counter() - begin:.1f} s")
        self.write()

    def end(self, full_size: bool) -> NoReturn:
        """Print everything and exit, with status 1 where a part failed."""
        self.write()
        print(machine_line(self.facts), "\n")
        if self.figures:
            print(markdown(figure.cells(full_size) for figure in self.figures))
        for name, reason in self.skipped.items():
            print(f"\n{name}: {reason}")
        sys.exit(1 if self.failed else 0)

    def write(self) -> None:
        if self.path is None:
            return
        content = {
            "machine": self.facts,
            "options": self.options,
            "figures": [figure.as_json() for figure in self.figures],
            "skipped": self.skipped,
        }
        self.path.write_text(json.dumps(content, indent=1) + "\n")


# ---- what the parts of a script share ---------------------------------------------------------


@dataclass
class Bench:
    """Inputs, device and number of runs that the parts of a script share.

    no_gpu  why nothing runs on a GPU; empty where it does
    chosen  whether the CPU, or some parts, were asked for
    """

    folder: Path
    runs: int = 1
    scale: float = 1.0
    no_gpu: str = ""
    chosen: bool = True

    @property
    def gpu(self) -> bool:
        return not self.no_gpu

    def need_gpu(self) -> None:
        if self.no_gpu:
            raise NotHereError(f"needs a GPU: {self.no_gpu}")

    def need_gpu_or_time(self) -> None:
        """Leave out what is long on a CPU, unless it is asked for."""
        if self.no_gpu and not self.chosen:
            raise NotHereError(f"long on a CPU: only with --device cpu or --only ({self.no_gpu})")

    @property
    def where(self) -> str:
        return "one GPU" if self.gpu else f"{cores()} cores"

    @cached_property
    def output(self) -> Path:
        return Path(tempfile.mkdtemp(prefix="multigpu-bench-"))


def options_of(
    description: str, parts: Iterable[str], *, runs: int = 5, has_scale: bool = True
) -> argparse.ArgumentParser:
    """Return a parser of the options that all scripts with parts have."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    names = list(parts)
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="NAME", help=f"parts: {' '.join(names)}"
    )
    parser.add_argument("--device", choices=["auto", "gpu", "cpu"], default="auto")
    parser.add_argument("--runs", type=int, default=runs, help="timed runs of each figure")
    if has_scale:
        parser.add_argument("--scale", type=float, default=1.0, help="size of inputs, e.g. 0.01")
    add_folders(parser)
    return parser


def measure_parts(
    parser: argparse.ArgumentParser,
    parts: Mapping[str, Callable[[Any], Iterable[Figure]]],
    bench_class: type[Bench],
) -> NoReturn:
    """Measure the chosen parts of a script, all with one bench."""
    options = parser.parse_args()
    no_gpu = why_no_gpu(options.device) or ""
    folder, chosen = options.data / f"scale-{options.scale:g}", options.device == "cpu"
    bench = bench_class(folder, options.runs, options.scale, no_gpu, chosen or bool(options.only))
    report = report_of(options)
    for name in options.only or parts:
        report.measure(name, partial(parts[name], bench))
    report.end(full_size=options.scale == 1)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where inputs lie and where figures go."""
    folder = Path(tempfile.gettempdir()) / "multigpu-data"
    parser.add_argument("--data", type=Path, default=folder, help=f"inputs [default: {folder}]")
    parser.add_argument("--json", type=Path, help="write figures and the machine here")


def report_of(options: argparse.Namespace) -> Report:
    """Return an empty report of a script with these options."""
    settings = {key: str(value) for key, value in vars(options).items()}
    return Report(machine(), settings, options.json)

"""What the benchmarks share: figures and tables, the machine, timed runs, checks, searches."""

import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # a clone that is not installed

from multigpu.cluster.devices.gpus import survey  # noqa: E402
from multigpu.kernels import bases  # noqa: E402
from multigpu.kernels.scan import Chunk, Hits, Patterns, Rules  # noqa: E402

# An installation has its modules compiled; where this is set each process compiles them anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

PACKAGES = ("multigpu", "numpy", "numba", "llvmlite", "dask", "distributed", "isal", "hyperscan")
CUDA_PACKAGES = ("cupy-cuda12x", "cupy-cuda13x")
LEAST_PIECE = 4 << 20  # bases that a thread searches at a time, where there are as many for all
FIRST = Rules(first=True, strict=False)
ANYTHING = 15  # the set of all bases


class WrongResultError(Exception):
    """A check before the timing failed: there is nothing to time."""


def require(right: bool, claim: str) -> None:
    if not right:
        raise WrongResultError(claim)


# ---- figures ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """One measured quantity. `asked`: at most or at least so much; None: only told."""

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
        """A table's row. Without the full size nothing is said to be reached."""
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
    """A Markdown table to read here and to paste into a page; the last column is not filled up."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header) - 1)] + [0]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)).rstrip() + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * max(3, width + 2) for width in widths) + "|")
    return "\n".join(lines)


def say(text: str) -> None:
    """Progress: standard output is for the tables."""
    print(text, file=sys.stderr, flush=True)


# ---- the machine ------------------------------------------------------------------------------


def cores() -> int:
    return len(os.sched_getaffinity(0))


def gpu_missing() -> str | None:
    """Why nothing can run on a GPU here; None where it can."""
    found = survey()
    if not found.devices:
        return f"no GPU: {found.problem}"
    try:
        import cupy
    except ImportError:
        return "a GPU, but no CuPy: install the extra cu12 or cu13"
    return None if cupy.is_available() else "CuPy does not reach the GPU"


def why_no_gpu(device: str) -> str | None:
    """Why `--device auto|gpu|cpu` means the CPU here; None where it means a GPU."""
    if device == "cpu":
        return "--device cpu was given"
    missing = gpu_missing()
    if missing and device == "gpu":
        raise SystemExit(f"--device gpu: {missing}")
    return missing


def machine() -> dict[str, Any]:
    """Devices, versions and commit: what a figure means nothing without."""
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
    """The commit, with + where files differ from it; $COMMIT before what git says."""

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
    """Seconds of each run, after one that is not counted."""
    if warm_up:
        run()
    return [timed(run) for _ in range(runs)]


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """The length of the union of intervals."""
    total, reached = 0.0, -np.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


# ---- records in memory ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Letters:
    """Consecutive records in memory: `letters` uint8[n_bases], `offsets` int64[n_records + 1]."""

    letters: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def record(self, number: int) -> NDArray[np.uint8]:
        return self.letters[self.offsets[number] : self.offsets[number + 1]]


@dataclass(frozen=True, eq=False)
class Piece:
    """Some of the records, as a chunk; the first of them is record `first`."""

    first: int
    chunk: Chunk

    def moved(self, hits: Hits) -> Hits:
        return Hits(hits.record + np.int32(self.first), hits.pattern, hits.start)


def cut(data: Letters, pieces: int) -> list[Piece]:
    """Cut at record borders into about `pieces` pieces of about as many bases."""
    wanted = np.arange(1, pieces) * int(data.offsets[-1]) // pieces
    inner = np.searchsorted(data.offsets, wanted)
    borders = np.unique(np.r_[0, inner, len(data)])
    out = []
    for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        offsets = data.offsets[first : last + 1] - data.offsets[first]
        span = slice(int(data.offsets[first]), int(data.offsets[last]))
        out.append(Piece(first, Chunk(data.letters[span], offsets)))
    return out


def joined(pieces: Sequence[Piece], each: Iterable[Hits]) -> Hits:
    return Hits.joined([piece.moved(hits) for piece, hits in zip(pieces, each, strict=True)])


# ---- searches ---------------------------------------------------------------------------------


def cpu_search(data: Letters, patterns: Patterns, threads: int, rules: Rules = FIRST) -> Hits:
    """Index and search on `threads` CPU threads."""
    from multigpu.kernels.scan import cpu

    scanner = cpu.Scanner(patterns, rules, len(data.letters))
    largest = max(threads, len(data.letters) // LEAST_PIECE)
    pieces = cut(data, min(4 * threads, largest))
    with ThreadPoolExecutor(threads) as pool:
        return joined(pieces, list(pool.map(lambda piece: scanner.scan(piece.chunk), pieces)))


class GpuSearch:
    """Data cut into pieces, a lane for each; letters and offsets in pinned memory."""

    def __init__(self, data: Letters, pieces: int) -> None:
        from multigpu.kernels.scan import cuda

        self._cuda = cuda
        self.pieces = [
            Piece(p.first, Chunk(p.chunk.letters, cuda.pinned_like(p.chunk.offsets)))
            for p in cut(data, pieces)
        ]
        self.lanes = [cuda.Lane() for _ in self.pieces]

    def run(self, patterns: Patterns, rules: Rules = FIRST) -> Hits:
        """Copy in, index, search, hits back; the index is made while the first pieces come."""
        self.upload()
        bases = sum(len(piece.chunk.letters) for piece in self.pieces)
        return self.search(self._cuda.Scanner(patterns, rules, bases))

    def upload(self) -> None:
        """Begin to copy everything in."""
        for lane, piece in zip(self.lanes, self.pieces, strict=True):
            lane.upload(piece.chunk)

    def search(self, scanner: Any) -> Hits:
        """Search what was uploaded, hits back, in order."""
        for lane in self.lanes:
            lane.search(scanner)
        each = [self._hits(scanner, i) for i in range(len(self.lanes))]
        return joined(self.pieces, each)

    def _hits(self, scanner: Any, i: int) -> Hits:
        hits = self.lanes[i].result()
        if hits is None:  # more than one search may have
            return scanner.scan(self.pieces[i].chunk)
        return hits.ordered(scanner.patterns.strands, scanner.rules.first)


# ---- checks -----------------------------------------------------------------------------------


def same_hits(a: Hits, b: Hits) -> bool:
    return all(np.array_equal(getattr(a, n), getattr(b, n)) for n in ("record", "pattern", "start"))


def pattern_sets(patterns: Patterns, number: int) -> NDArray[np.uint8]:
    return patterns.sets[patterns.offsets[number] : patterns.offsets[number + 1]]


def first_start(sample: NDArray[np.uint8], pattern: NDArray[np.uint8]) -> int:
    """The first occurrence by plain narrowing, or -1; both are sets of bases.

    As `multigpu.kernels.scan.reference`, whose every comparison is made, but fast enough for long
    records: starts that differ drop out.
    """
    begin, size, positions = 0, 1024, len(sample) - len(pattern) + 1
    fixed = np.flatnonzero(pattern != ANYTHING).tolist()
    while begin < positions:
        starts = np.arange(begin, min(begin + size, positions))
        for offset in fixed:
            starts = starts[(sample[starts + offset] & pattern[offset]) != 0]
            if not len(starts):
                break
        else:
            return int(starts[0])
        begin, size = begin + size, min(4 * size, 1 << 16)
    return -1


def check_hits_are_real(data: Letters, patterns: Patterns, hits: Hits, most: int = 300) -> None:
    """Compare up to `most` of the hits base by base."""
    for i in np.linspace(0, len(hits) - 1, min(most, len(hits))).astype(int).tolist():
        pattern = pattern_sets(patterns, int(hits.pattern[i]))
        start = int(hits.start[i])
        under = bases.encode(data.record(int(hits.record[i])))[start : start + len(pattern)]
        real = len(under) == len(pattern) and bool(((under & pattern) != 0).all())
        require(real, f"hit {i} is no match")


def check_against_plain(
    data: Letters, patterns: Patterns, hits: Hits, records: Iterable[int], chosen: Iterable[int]
) -> None:
    """The hits of some records and patterns are those of a plain search."""
    starts = {
        (record, pattern): start
        for record, pattern, start in zip(
            hits.record.tolist(), hits.pattern.tolist(), hits.start.tolist(), strict=True
        )
    }
    patterns_to_see = list(chosen)
    for record in records:
        sample = bases.encode(data.record(record))
        for p in patterns_to_see:
            found = first_start(sample, pattern_sets(patterns, p))
            claimed = starts.get((record, p), -1)
            require(found == claimed, f"record {record}, pattern {p}: {claimed} is not {found}")


# ---- results ----------------------------------------------------------------------------------


@dataclass
class Report:
    """What is printed and written; written after every part, so that nothing is lost."""

    facts: dict[str, Any]
    options: dict[str, Any]
    path: Path | None
    figures: list[Figure] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: bool = False

    def run(
        self,
        parts: Mapping[str, Callable[[Any], Iterable[Figure]]],
        chosen: Iterable[str],
        bench: Any,
        missing: Callable[[str], str | None],
    ) -> None:
        """The chosen parts; `missing` says of each why it cannot run here."""
        for name in chosen:
            if reason := missing(name):
                self.skipped[name] = reason
            else:
                self.measure(name, partial(parts[name], bench))

    def measure(self, name: str, part: Callable[[], Iterable[Figure]]) -> None:
        """The figures of a part, or why it failed: the other parts are worth their time."""
        say(f"{name} …")
        begin = time.perf_counter()
        try:
            for figure in part():
                self.figures.append(figure)
        except Exception as problem:  # noqa: BLE001
            traceback.print_exc()
            self.skipped[name], self.failed = f"FAILED: {type(problem).__name__}: {problem}", True
        say(f"  {time.perf_counter() - begin:.1f} s")
        self.write()

    def end(self, full_size: bool) -> NoReturn:
        """Print all and leave, with status 1 where a part failed."""
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
            "details": self.details,
            "skipped": self.skipped,
        }
        self.path.write_text(json.dumps(content, indent=1) + "\n")

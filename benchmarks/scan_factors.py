"""The time of a scan by eight factors of the input, and for five shapes of it.

    python benchmarks/scan_factors.py [--device cpu|gpu|both] [--quick] [--out DIR]

One factor changes at a time, from a base shape: the course's default data set on a GPU, on the CPU
a twentieth of its samples and a tenth of its signatures. Timed is what `benchmarks/scan.py` calls
the kernels: from letters in memory (pinned, for a GPU) to hits in memory, making the index
included, starting the process not. Every point's hits are checked before it is timed.

Writes DIR/scan_factors_DEVICE.json and .png.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import require
from data import Shape, make_set
from searches import GpuSearch, Letters, check_against_plain, check_hits_are_real, cpu_search

from multigpu.kernels.scan import Hits, Patterns

HERE = Path(__file__).parent
BASES = {"gpu": Shape(), "cpu": Shape(samples=101, signatures=100, matching=2 / 101)}
SIZES = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4)
SIGNATURE_LENGTHS = (1 / 64, 1 / 16, 1 / 4, 1, 4)
SIGNATURE_COUNTS = (1 / 16, 1 / 4, 1, 4, 8)
SHARES_OF_N = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99, 1)
SHARES_MATCHING = (0, 0.01, 0.1, 0.3, 1)
PER_SAMPLE = (1, 2, 4, 8, 12)
DOCUMENT_001 = {
    "22 × 10": Shape(samples=22, signatures=10, matching=2 / 22),
    "210 × 100": Shape(samples=210, signatures=100, matching=10 / 210),
    "30–200": Shape(sample_length=(100, 200), signature_length=(30, 100)),
    "300–2,000": Shape(sample_length=(1000, 2000), signature_length=(300, 1000)),
    "default": Shape(),
}
PIECE_BASES = 24_000_000  # of a chunk on the GPU, about
MOST_PIECES = 12
TIMING_SECONDS = 2.0  # after so long a point has no further run


@dataclass(frozen=True)
class Point:
    factor: str
    x: float | str
    shape: Shape


@dataclass(frozen=True)
class Measured:
    """A measured point. seconds: of each run."""

    seconds: list[float]
    hits: int

    @property
    def milliseconds(self) -> float:
        return 1e3 * float(np.median(self.seconds))


Points = list[tuple[Point, Measured]]


# ---- what is measured -------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """A factor. size: whether the input grows with it, so that time may grow as much."""

    name: str
    unit: str
    size: bool
    at: Callable[[Shape, float], Shape]
    base: Callable[[Shape], float]  # where the base shape lies on its axis
    values: Sequence[float]
    relative: bool = False  # the values are multiples of the base


def _mean(span: tuple[int, int]) -> float:
    return sum(span) / 2


def _same(length: float) -> tuple[int, int]:
    return round(length), round(length)


FACTORS = (
    Factor(
        "sample length", "bases", True,
        lambda s, x: replace(s, sample_length=_same(x)), lambda s: _mean(s.sample_length),
        SIZES, True,
    ),
    Factor(
        "signature length", "bases", True,
        lambda s, x: replace(s, signature_length=_same(x)), lambda s: _mean(s.signature_length),
        SIGNATURE_LENGTHS, True,
    ),
    Factor(
        "samples", "", True,
        lambda s, x: replace(s, samples=round(x)), lambda s: s.samples, SIZES, True,
    ),
    Factor(
        "signatures", "", True,
        lambda s, x: replace(s, signatures=round(x)), lambda s: s.signatures,
        SIGNATURE_COUNTS, True,
    ),
    Factor(
        "N in samples", "share", False,
        lambda s, x: replace(s, sample_n=x), lambda s: s.sample_n, SHARES_OF_N,
    ),
    Factor(
        "N in signatures", "share", False,
        lambda s, x: replace(s, signature_n=x), lambda s: s.signature_n, SHARES_OF_N,
    ),
    Factor(
        "samples with a match", "share", False,
        lambda s, x: replace(s, matching=x), lambda s: s.matching, SHARES_MATCHING,
    ),
    Factor(
        "signatures per matching sample", "", False,
        lambda s, x: replace(s, per_sample=_same(x)), lambda s: _mean(s.per_sample), PER_SAMPLE,
    ),
)  # fmt: skip
SHAPES = "shapes of document 001"


def points(base: Shape, quick: bool) -> Iterator[Point]:
    for factor in FACTORS:
        times = factor.base(base)
        values = [round(v * times) if factor.relative else v for v in factor.values]
        for x in _some(values) if quick else values:
            yield Point(factor.name, x, factor.at(base, x))
    for name, shape in DOCUMENT_001.items():
        yield Point(SHAPES, name, shape)


def _some(values: Sequence[float]) -> list[float]:
    return [values[0], values[len(values) // 2], values[-1]]


# ---- measuring --------------------------------------------------------------------------------


def measure(device: str, shape: Shape, runs: int) -> Measured:
    """Make a data set, search it, check what is found, and time more searches."""
    made = make_set(shape, seed=1, into=_room(device, shape.most_bases))
    patterns = Patterns.of(made.signatures)
    run = _search(device, made.data, patterns)
    begin = time.perf_counter()
    hits = run()
    first = time.perf_counter() - begin
    check(made.data, patterns, hits, made.planted)
    seconds = [first] if first > TIMING_SECONDS else []  # slow: starting up does not show
    while len(seconds) < runs and sum(seconds) < TIMING_SECONDS:
        seconds.append(common.timed(run))
    return Measured(seconds, len(hits))


def _room(device: str, size: int) -> Any:
    """Return pinned memory for a GPU."""
    if device == "cpu":
        return None
    from multigpu.kernels.device.pinned import pinned

    return pinned(size)


def _search(device: str, data: Letters, patterns: Patterns) -> Callable[[], Hits]:
    if device == "cpu":
        return lambda: cpu_search(data, patterns, common.cores())
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()  # those of the last point's lanes
    pieces = min(MOST_PIECES, max(1, len(data.letters) // PIECE_BASES))
    search = GpuSearch(data, pieces)
    return lambda: search.run(patterns)


def check(data: Letters, patterns: Patterns, hits: Hits, planted: Any) -> None:
    """Require that what was planted is found, there or before, and that hits are real."""
    count = len(patterns)
    pairs = hits.record.astype(np.int64) * count + hits.pattern
    wanted = planted[:, 0] * count + planted[:, 1]
    places = np.searchsorted(pairs, wanted)  # hits are in order
    require(bool((places < len(pairs)).all()), "planted, not found")
    require(bool((pairs[places] == wanted).all()), "planted, not found")
    require(bool((hits.start[places] <= planted[:, 2]).all()), "planted, found later")
    check_hits_are_real(data, patterns, hits, most=50)
    record = int(planted[0, 0]) if len(planted) else 0
    check_against_plain(data, patterns, hits, [record], [0, count // 2])


def sweep(device: str, options: argparse.Namespace) -> Points:
    """Measure the points of a device, as many as go into its time."""
    end = time.monotonic() + options.budget
    found = []
    measure(device, Shape(2, (2000, 2000), 2, (100, 100)), 1)  # compiles
    for point in sorted(points(BASES[device], options.quick), key=_is_slow):
        if time.monotonic() > end:
            common.say(f"  {device} {point.factor} {_shown(point.x)}: no time left")
            continue
        measured = measure(device, point.shape, options.runs)
        found.append((point, measured))
        took = f"{measured.milliseconds:.3g} ms, {measured.hits} hits"
        common.say(f"  {device} {point.factor} {_shown(point.x)}: {took}")
    return found


def _is_slow(point: Point) -> bool:
    """Return whether a point can take long: with much N. Such points come last."""
    return point.factor in ("N in samples", "N in signatures")


# ---- what is told -----------------------------------------------------------------------------


def _shown(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:.4g}"


def of_factor(found: Points, name: str) -> Points:
    return [(point, measured) for point, measured in found if point.factor == name]


def steepest(found: Points) -> float:
    """Return the largest exponent b of time ~ x^b between neighbours: 1 is linear.

    It is taken from the fastest runs: other work on the machine would show as a slope.
    """
    good = [(float(point.x), min(m.seconds)) for point, m in found]
    slopes = [np.log(b[1] / a[1]) / np.log(b[0] / a[0]) for a, b in pairwise(good)]
    return max(slopes, default=float("nan"))


def table(found: Points) -> str:
    rows = []
    for factor in FACTORS:
        here = of_factor(found, factor.name)
        if not here:
            continue
        times = [measured.milliseconds for _, measured in here]
        span = f"{_shown(here[0][0].x)} – {_shown(here[-1][0].x)}"
        slope = f"{steepest(here):.2f}" if factor.size else ""
        rows.append([factor.name, span, f"{min(times):.3g} – {max(times):.3g}", slope])
    for point, measured in of_factor(found, SHAPES):
        rows.append([f"shape {point.x}", "", f"{measured.milliseconds:.3g}", ""])
    return common.markdown(rows, ["factor", "from – to", "ms", "steepest exponent"])


def write_points(path: Path, device: str, facts: dict[str, Any], found: Points) -> None:
    rows = [
        {
            "factor": point.factor,
            "x": point.x,
            "milliseconds": measured.milliseconds,
            "fastest": 1e3 * min(measured.seconds),
            "slowest": 1e3 * max(measured.seconds),
            "runs": len(measured.seconds),
            "hits": measured.hits,
        }
        for point, measured in found
    ]
    base = asdict(BASES[device])
    content = {"machine": facts, "device": device, "base": base, "points": rows}
    path.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")


def draw(path: Path, device: str, facts: dict[str, Any], found: Points) -> None:
    """Draw a panel for each factor and one for the shapes."""
    try:
        import matplotlib as mpl
    except ImportError:
        common.say("no figure: it needs matplotlib (pip install multigpu[bench])")
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(3, 3, figsize=(13, 11), layout="constrained")
    for factor, panel in zip(FACTORS, panels.flat, strict=False):
        _draw_factor(panel, factor, BASES[device], of_factor(found, factor.name))
    _draw_shapes(panels.flat[-1], of_factor(found, SHAPES))
    times = [m.milliseconds for _, m in found]
    for panel in panels.flat[:-1]:  # one scale, so that panels compare
        panel.set_ylim(min(times) / 2, max(times) * 2)
    where = facts["gpus"][0] if device == "gpu" else f"{facts['cores']} cores, {facts['cpu']}"
    base = BASES[device]
    figure.suptitle(
        f"multigpu scan on {where}: index, search and, on a GPU, copies\n"
        f"base: {base.samples:,} samples of 100–200 kb, {base.signatures:,} signatures of "
        f"3–10 kb, 10 % N; commit {facts['commit']}"
    )
    figure.savefig(path.with_suffix(".png"), dpi=110)
    plt.close(figure)


def _draw_factor(panel: Any, factor: Factor, base: Shape, found: Points) -> None:
    x = [float(point.x) for point, _ in found]
    low = [1e3 * min(m.seconds) for _, m in found]
    high = [1e3 * max(m.seconds) for _, m in found]
    panel.fill_between(x, low, high, color="C0", alpha=0.2, linewidth=0)
    panel.plot(x, [m.milliseconds for _, m in found], "o-", color="C0", label="time")
    panel.set(yscale="log", title=factor.name, xlabel=factor.unit, ylabel="ms")
    panel.axvline(factor.base(base), color="0.7", linewidth=0.8, zorder=0)
    panel.grid(alpha=0.3)
    if factor.size and found:  # with a line of linear growth through the base
        panel.set_xscale("log")
        panel.set_xticks(x, [f"{at:,.0f}" for at in x], fontsize=8, rotation=30)
        panel.set_xticks([], minor=True)
        nearest, measured = min(found, key=lambda item: abs(float(item[0].x) - factor.base(base)))
        linear = measured.milliseconds * np.array(x) / float(nearest.x)
        panel.plot(x, linear, "--", color="0.5", label="linear")
        panel.legend(loc="lower right", fontsize=8, frameon=False)


def _draw_shapes(panel: Any, found: Points) -> None:
    bars = panel.barh([str(p.x) for p, _ in found], [m.milliseconds for _, m in found], color="C0")
    labels = [f"{m.milliseconds:.3g} ms, {m.hits:,} hits" for _, m in found]
    panel.bar_label(bars, labels, padding=3, fontsize=8)
    panel.invert_yaxis()
    panel.set(xscale="log", title=SHAPES, xlabel="ms")
    panel.set_xlim(right=100 * max((m.milliseconds for _, m in found), default=1.0))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "gpu", "both"), default="both")
    parser.add_argument("--quick", action="store_true", help="three values of each factor")
    parser.add_argument("--runs", type=int, default=5, help="timed runs of a point, at most")
    parser.add_argument("--budget", type=float, default=220.0, help="seconds of a device's points")
    parser.add_argument("--out", type=Path, default=HERE / "figures")
    return parser.parse_args()


def main() -> None:
    options = _options()
    facts = common.machine()
    missing = common.gpu_missing()
    options.out.mkdir(parents=True, exist_ok=True)
    print(common.machine_line(facts))
    for device in ("cpu", "gpu") if options.device == "both" else (options.device,):
        if device == "gpu" and missing:
            print(f"\ngpu: skipped, {missing}")
            continue
        found = sweep(device, options)
        path = options.out / f"scan_factors_{device}"
        write_points(path, device, facts, found)
        draw(path, device, facts, found)
        print(f"\n{device}:\n\n{table(found)}")


if __name__ == "__main__":
    main()

"""Kernels on small random cases against their references, under compute-sanitizer.

    python benchmarks/sanitize.py [--tools memcheck racecheck initcheck] [--only scan …]
    python benchmarks/sanitize.py --plain [--device cpu]    # the cases alone, without the tool

Ends with status 1 where a tool complains or an answer differs.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import common
import numpy as np
from common import markdown, require, say
from processes import python
from searches import places, same_hits

from multigpu.kernels import cnmops, hmm, maps, normalization, rotation, scan, segmentation
from multigpu.kernels.cnmops.types import Model
from multigpu.kernels.hmm.moves import moves
from multigpu.kernels.hmm.types import USUAL, SampleModel
from multigpu.kernels.normalization.types import Normalization
from multigpu.kernels.rotation.rotations import EulerRotations, Shifts, near_uniform
from multigpu.kernels.rotation.types import Field, Ligands, Poses, PoseSearch
from multigpu.kernels.scan import approximate
from multigpu.kernels.segmentation.types import Segmentation

TOOLS = ("memcheck", "racecheck", "initcheck")
PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin", "/usr/local/cuda/compute-sanitizer")
LAST_WORDS = 30  # lines
REGIONS = 300
SEED = 1

Case = Callable[[Any, np.random.Generator], Iterator[str]]


def on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array


def same(got: Any, expected: Any, what: str, relative: float = 0.0, absolute: float = 0.0) -> None:
    close = np.allclose(on_host(got), expected, relative, absolute, equal_nan=True)
    require(close, f"{what} differs")


# ---- the cases: each gives a name for every comparison it has made -----------------------------


def scan_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare all rules and shares of N, so that every way of searching is used."""
    for share, first, strict in product((0.0, 0.1, 0.6, 0.9, 1.0), (True, False), (True, False)):
        signatures = [letters(random, int(n), share) for n in random.integers(1, 150, 20)]
        signatures += [letters(random, int(n), share) for n in random.integers(40, 300, 10)]
        records = [letters(random, int(n), share) for n in random.integers(0, 800, 12)]
        for number, record in enumerate(records):
            planted = signatures[number][: len(record)]
            record[: len(planted)] = planted
        offsets = np.concatenate([[0], np.cumsum([len(record) for record in records])])
        chunk = scan.Chunk(np.concatenate(records), offsets.astype(np.int64))
        patterns, rules = scan.Patterns.of(signatures), scan.ScanRules(first, strict)
        expected = scan.reference.scan(chunk, patterns, rules)
        scanner = backend.ExactScanner(patterns, rules)
        found = scanner.scan(chunk)
        require(same_hits(found, expected), "the hits differ")
        yield f"{share:.0%} N, first {first}, strict {strict}: {len(expected)} hits"


def approximate_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare sweeps and seeds, short and long patterns, and selection by an exact end."""
    found_alone = replace(backend.COSTS, mismatch=1e6, edit=1e6)
    never_found = replace(backend.COSTS, position=1e12)
    wanted: scan.Wanted
    for costs, edits, share, strict, (suffix, wanted) in product(
        (never_found, found_alone), (False, True), (0.0, 0.1, 0.6), (True, False),
        ((0, "all"), (0, "first"), (3, "best")),
    ):  # fmt: skip
        lengths = [8, 20, 23, 31, 33, 64, 100]
        signatures = [letters(random, length, share / 2) for length in lengths]
        for signature in signatures[:3]:
            signature[-2:] = ord("G")
        planted = [np.concatenate([letters(random, 30, share), each]) for each in signatures]
        records = [*planted[:3], np.concatenate(planted[3:])]
        for record in records:
            record[random.integers(0, len(record), 3)] = ord("A")
        offsets = np.concatenate([[0], np.cumsum([len(record) for record in records])])
        chunk = scan.Chunk(np.concatenate(records), offsets.astype(np.int64))
        patterns = scan.Patterns.of(signatures, both_strands=True)
        limits = scan.Limits.of(patterns, 0.1, 0, suffix)
        expected, _ = approximate.reference.search(
            chunk, patterns, limits, edits=edits, strict=strict
        )
        backend.COSTS = costs
        expected = expected.chosen(wanted, patterns.strands, by_end=edits)
        scanner = backend.ErrorScanner(patterns, limits, edits=edits, strict=strict, wanted=wanted)
        found = scanner.scan(chunk)
        require(places(found) == places(expected), "the hits differ")
        way = "seeds" if costs is found_alone else "sweep"
        kind = "edits" if edits else "mismatches"
        yield f"{way}, {wanted} {kind}, {share:.0%} N, strict {strict}: {len(found)} hits"


def letters(random: np.random.Generator, size: int, share: float) -> Any:
    drawn = np.frombuffer(b"ACGT", np.uint8)[random.integers(0, 4, size)]
    return np.where(random.random(size) < share, ord("N"), drawn).astype(np.uint8)


def rotation_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare every kind of grid and of rotations, with several poses of each ligand."""
    turns = (EulerRotations(40.0), near_uniform(200))
    for interpolation, outside, (kind, rotations), channels in product(
        ("linear", "nearest"), ("clamp", "zero", "penalty"), enumerate(turns), (1, 3)
    ):
        field = field_of(random, channels, interpolation, outside)
        bodies = bodies_of(random, random.integers(1, 40, 3), channels)
        shifts = Shifts(0.3, 0.3) if kind else Shifts()
        search = PoseSearch(rotations, shifts, top=3, min_rmsd=0.5)
        expected = rotation.reference.PoseSearcher(field, search).best(bodies)
        same_poses(backend.PoseSearcher(field, search).best(bodies), expected)
        yield f"{interpolation}, {outside}, {('Euler', 'listed')[kind]}, {channels} maps"


def box_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare the bands of two ligands, one of two bodies, in every kind of grid."""
    shifts, middle = Shifts((1.5, 2.7, 0.9), 0.3), (-1.0, 9.1, 3.3)
    for interpolation, outside in product(("linear", "nearest"), ("clamp", "zero", "penalty")):
        field = field_of(random, 2, interpolation, outside)
        bodies = bodies_of(random, np.full(3, 7), 2)
        search = PoseSearch(near_uniform(20), shifts, middle, 9, 0.4)
        about = field, search, 2.0
        expected = rotation.reference.band_poses(*about, bodies, np.array([0, 0, 1]))
        same_poses(backend.BandSearcher(*about).best(bodies, np.array([0, 0, 1])), expected)
        yield f"{interpolation}, {outside}: {len(expected)} poses"


def field_of(random: np.random.Generator, channels: int, interpolation: Any, outside: Any) -> Field:
    values = random.uniform(-1, 1, (channels, 9, 12, 10)).astype(np.float32)
    origin, spacing = np.array([-3.0, 5.0, 1.5]), np.array([0.5, 0.75, 0.4])
    return Field(values, origin, spacing, interpolation, outside)


def bodies_of(random: np.random.Generator, sizes: Any, channels: int) -> Ligands:
    """Return bodies around the middle of the field, with one term for each channel."""
    atoms = int(sizes.sum())
    places = np.array([-1.0, 9.125, 3.3]) + random.normal(0, 1.2, (atoms, 3))
    kinds = random.integers(0, channels, (atoms, channels), np.int32)
    weights = random.uniform(0, 2, (atoms, channels))
    return Ligands(places, np.r_[0, np.cumsum(sizes)], kinds, weights)


def same_poses(found: Poses, expected: Poses) -> None:
    for name in ("ligand", "pose", "score"):
        require(np.array_equal(getattr(found, name), getattr(expected, name)), f"{name} differs")


def counts_of(random: np.random.Generator, samples: int) -> Any:
    """Return int32[regions, samples] with changes, and regions without reads."""
    copies = random.choice([1.0, 1.0, 1.0, 0.5, 1.5, 0.02], (REGIONS, samples))
    counts = random.poisson(80 * random.gamma(4, 0.25, (REGIONS, 1)) * copies).astype(np.int32)
    counts[random.random(REGIONS) < 0.1] = 0
    return counts


def cnmops_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare regions that take a lane, several, or a whole warp, with both types of counts."""
    for samples, posterior in product((2, 15, 60, 700), (False, True)):
        counts, cov = counts_of(random, samples), random.uniform(0.5, 2, samples)
        for values, scale in ((counts, np.ones(samples)), (counts * 0.7, cov)):
            options = Model(posterior=posterior)
            same_model(backend, values, scale, options)
        yield f"{samples} samples, posterior {posterior}"
    counts, controls = counts_of(random, 3), counts_of(random, 5)
    options = Model(min_read_count=1, kind="reference")
    level = cnmops.reference.level_of_controls(controls)
    same(backend.level_of_controls(controls), level, "level of controls", 1e-12)
    found = backend.model_against(counts, level, np.ones(3), options)
    expected = cnmops.reference.model_against(counts, level, np.ones(3), options)
    same(found.sini, expected.sini, "signed I/NI against controls", 1e-9, 1e-12)
    yield "cases against controls"


def same_model(backend: Any, counts: Any, cov: Any, options: Any) -> None:
    found = backend.model(counts, cov, options)
    expected = cnmops.reference.model(counts, cov, options)
    for name in ("level", "alpha", "ini", "sini", "cn_index", "posterior"):
        if getattr(expected, name) is not None:
            same(getattr(found, name), getattr(expected, name), name, 1e-9, 1e-12)


def normalization_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    blocks = [slice(0, 90), slice(90, REGIONS)]
    for norm_type in ("poisson", "mean", "median", "quant"):
        counts, options = counts_of(random, 6), Normalization(norm_type)
        for values in (counts, counts * 0.7):
            found = backend.size_factors(backend.cupy.asarray(values), blocks, options)
            expected = normalization.reference.size_factors(values, blocks, options)
            same(found.factors, expected.factors, "size factors", 1e-10)
        yield norm_type


def segmentation_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    for alpha, delta, largest in product((0.05, 0.5), (0, 20), (8, 40)):
        sizes = random.integers(2, 400, 5)
        levels = np.repeat(random.choice([0.0, 0.0, 1.0, -2.0], sizes.sum() // 10 + 1), 10)
        x = levels[: sizes.sum()] + random.normal(0, 0.3, sizes.sum())
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        options = Segmentation(alpha=alpha, delta=delta, max_window=largest)
        found = backend.segment(x, offsets, options)
        expected = segmentation.reference.segment(x, offsets, options)
        for name in ("track", "start", "end", "median"):
            same(getattr(found, name), getattr(expected, name), name)
        same(found.mean, expected.mean, "means", 1e-12, 1e-12)
        yield f"alpha {alpha}, delta {delta}, windows to {largest}: {len(expected.start)} segments"


def hmm_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare paths over one block and over many."""
    for regions, samples in ((1, 1), (REGIONS, 5)):
        counts = counts_of(random, samples)[:regions]
        ones = np.ones((2, samples))
        model = SampleModel(
            weights=ones, references=random.integers(0, samples, (samples, 8)).astype(np.int32),
            sizes=ones, copies=(2 * ones).astype(np.int8), noise=ones[0],
            spread=np.arange(samples, dtype=np.int32), dispersion=0.01,
        )  # fmt: skip
        start = 1000 * np.arange(regions)
        ways = moves(start, start + 1000, regions)
        expected, found = (each.expect(counts, model) for each in (hmm.reference, backend))
        same(found.mean, expected.mean, "means")
        same(found.dispersion, expected.dispersion, "dispersions")
        path = hmm.reference.paths(counts, expected, model, ways)
        same(backend.paths(counts, found, model, ways), path, "paths")
        ratios = hmm.reference.log2_ratios(counts, expected, samples)
        same(backend.log2_ratios(counts, found, samples), ratios, "ratios")
        yield f"{regions} regions of {samples} samples: {(path != USUAL).sum()} changed"


def maps_cases(backend: Any, random: np.random.Generator) -> Iterator[str]:
    """Compare maps of few atoms, and of many."""
    kinds = ("C", "HD", "HS", "NA", "OA", "SA", "Zn")
    for atoms in (1, 60, 1100):
        places = random.uniform(-1, 1, (atoms, 3)) * (2 + atoms / 60)
        charges = random.uniform(-0.5, 0.5, atoms)
        receptor = maps.Receptor(places, charges, tuple(random.choice(kinds, atoms).tolist()))
        box = maps.GridBox((0.5, 1.0, 1.5), (12, 9, 7))
        found = backend.compute_maps(receptor, box, kinds)
        for name, expected in maps.compute_maps(receptor, box, kinds).items():
            require(found[name].tobytes() == expected.tobytes(), f"map {name} differs")
        yield f"{atoms} atoms"


NOT_OURS = ("cupy_", "cub", "thrust")

CASES: dict[str, Case] = {
    "scan": scan_cases,
    "scan.approximate": approximate_cases,
    "hmm": hmm_cases,
    "maps": maps_cases,
    "rotation": rotation_cases,
    "rotation.whole_box": box_cases,
    "cnmops": cnmops_cases,
    "normalization": normalization_cases,
    "segmentation": segmentation_cases,
}


def compare(kernel: str, device: str) -> int:
    """Return how many comparisons were made. Raises WrongResultError where one fails."""
    if kernel != "maps":  # its reference is another program
        import_module(f"multigpu.kernels.{kernel.removesuffix('.whole_box')}.reference")
    backend = import_module(f"multigpu.kernels.{kernel}.{'cpu' if device == 'cpu' else 'cuda'}")
    if device == "gpu":
        _no_pools()
    return len(list(CASES[kernel](backend, np.random.default_rng(SEED))))


def _no_pools() -> None:
    """Give every array its own memory, so that the tools see its end and its release."""
    import cupy

    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)


# ---- under the tool ---------------------------------------------------------------------------


def sanitizer() -> str | None:
    found = shutil.which("compute-sanitizer")
    return found or shutil.which("compute-sanitizer", path=os.pathsep.join(PLACES))


def under(tool: str, kernel: str, program: str, limit: float) -> str:
    """Run a kernel's cases under a tool; return "ok" or what is wrong."""
    command = [program, "--tool", tool, "--error-exitcode", "9"]
    if tool == "memcheck":  # of calls: those that fail raise, and CuPy asks for some in vain
        command += ["--report-api-errors", "no"]
    if tool == "racecheck":  # CuPy's own nonzero is warned of, its sort takes minutes
        for theirs in NOT_OURS:
            command += ["--kernel-name-exclude", f"kernel_substring={theirs}"]
    script = python(str(Path(__file__)), "--plain", "--only", kernel)
    try:
        done = subprocess.run(
            [*command, *script], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not ended within {limit:.0f} s"
    said = (done.stdout + done.stderr).splitlines()
    if done.returncode:
        print("\n".join(said[-LAST_WORDS:]), file=sys.stderr)
        return f"FAILED: status {done.returncode}"
    return "ok"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="KERNEL",
                        help=f"some of: {' '.join(CASES)}")  # fmt: skip
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--plain", action="store_true", help="the cases alone, without the tool")
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu", help="of --plain")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a kernel and tool")
    return parser.parse_args()


def main() -> None:
    options = _options()
    if options.plain:
        for kernel in options.only:
            say(f"{kernel}: {compare(kernel, options.device)} comparisons")
        return
    program = sanitizer()
    missing = common.gpu_missing() or (None if program else "compute-sanitizer is not installed")
    if missing or program is None:
        raise SystemExit(missing)
    rows = []
    for tool, kernel in product(options.tools, options.only):
        begin = time.perf_counter()
        found = under(tool, kernel, program, options.limit)
        rows.append([kernel, tool, f"{time.perf_counter() - begin:.0f} s", found])
        say(" ".join(rows[-1]))
    print(markdown(rows, ["kernel", "tool", "time", "outcome"]))
    sys.exit(1 if any("FAILED" in row[-1] for row in rows) else 0)


if __name__ == "__main__":
    main()

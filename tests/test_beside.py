"""Tests lie beside what they test: tests/scan/test_plan.py is of workloads/scan/plan.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
# What the folders of unit tests are of. Other folders hold tests of the whole program.
SOURCES = {
    **{name: f"multigpu/workloads/{name}" for name in ("scan", "cnv", "cohort", "count", "dock")},
    **{name: f"multigpu/{name}" for name in ("formats", "report", "run", "tools")},
    **{name: name for name in ("kernels", "cluster")},
}
# What several modules of a folder do together.
CROSS_CUTTING = {
    "compile",  # kernels for every architecture
    "emulated",  # kernels on the emulated GPU
    "presets",  # of copy numbers: what they call, and that it depends on nothing else
    "oracles",  # the search with errors on CPUs and GPUs, against other programs
    "same_bytes",  # of outputs, however a job is cut and run
    "scanners",  # the search with mismatches on CPUs and GPUs, against the plain one
    "streams",  # runs of a scan over several files, from their inputs to their rows
}


def source_of(test: Path) -> Path:
    """Return the folder whose modules a file of tests is about."""
    area, *inner = test.relative_to(TESTS).parent.parts
    return ROOT.joinpath(SOURCES[area], *inner)


def is_beside(test: Path) -> bool:
    """Return whether a module or package of the same name lies in that folder, or below it."""
    name = test.stem.removeprefix("test_")
    found = [*source_of(test).rglob(f"{name}.py"), *source_of(test).rglob(f"{name}/__init__.py")]
    return name in CROSS_CUTTING or bool(found)


def files_elsewhere() -> list[str]:
    """Return the files of tests that lie beside nothing of their name."""
    tests = [path for area in SOURCES for path in sorted((TESTS / area).rglob("test_*.py"))]
    return [str(path.relative_to(ROOT)) for path in tests if not is_beside(path)]


def test_tests__lie_beside_what_they_test() -> None:
    assert len(list((TESTS / "kernels").rglob("test_*.py"))) > 10
    assert files_elsewhere() == []


if __name__ == "__main__":
    # python tests/test_beside.py: the files that are to be renamed or moved.
    print(*files_elsewhere(), sep="\n")

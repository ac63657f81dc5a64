"""The architecture's two promises about imports: downwards only, and nothing heavy at the start."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "multigpu": {"multigpu", "cluster", "kernels"},
    "cluster": {"cluster"},
    "kernels": {"kernels"},
}
HEAVY = {
    "cupy", "dask", "dask_cuda", "distributed", "gemmi", "jinja2", "matplotlib", "numba", "pandas",
    "plotly", "pyarrow", "pysam", "rdkit", "zarr",
}  # fmt: skip
MODULES = sorted(path for layer in MAY_IMPORT for path in (ROOT / layer).rglob("*.py"))


def imported_packages(source: str, inside: str) -> set[str]:
    """The top-level packages that a module of the package `inside` imports, wherever it does so."""
    packages = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            packages.add(inside if node.level else (node.module or "").partition(".")[0])
    return packages


def modules_imported_by(*command: str) -> set[str]:
    """Every module that a run of this Python imports; the run itself must succeed."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    times, said = [], []
    for line in run.stderr.splitlines():
        (times if line.startswith("import time:") else said).append(line)
    assert run.returncode == 0, "\n".join(said)
    return {line.rpartition("|")[2].strip() for line in times}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports__run_downwards_only(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0]
    ours = imported_packages(path.read_text(encoding="utf-8"), layer) & set(MAY_IMPORT)
    assert ours <= MAY_IMPORT[layer]


def test_imports__are_found_in_every_form() -> None:
    source = "import a.b as c\nfrom d.e import f\nfrom . import g\ndef h():\n    import i, j"
    assert imported_packages(source, "here") == {"a", "d", "here", "i", "j"}


@pytest.mark.parametrize(
    "options",
    [[], ["scan"], ["dock"], ["count"], ["cnv"], ["plan", "scan"], ["simulate", "counts"]],
    ids=lambda words: " ".join(words) or "multigpu",
)
def test_start__imports_nothing_heavy(options: list[str]) -> None:
    imported = modules_imported_by("-m", "multigpu", *options, "--help")
    assert "multigpu" in {name.partition(".")[0] for name in imported}
    assert {name for name in imported if name.partition(".")[0] in HEAVY} == set()

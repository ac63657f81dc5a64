"""The architecture's promises about imports: downwards, what is installed, nothing heavy first."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from support.program import run_python
from support.sources import ROOT, modules

SHARED_KERNELS = (
    "multigpu.kernels.bases",
    "multigpu.kernels.compiled",
    "multigpu.kernels.numerics",
)
# What of our own the modules of each folder may import, by the beginning of the name.
MAY_IMPORT = {
    "multigpu": ("multigpu",),
    "cluster": ("multigpu.cluster",),
    "kernels": ("multigpu.kernels",),
    # The cache of what is compiled here is named by these files, and by those of no one kernel.
    "kernels/compiled": SHARED_KERNELS,
    "kernels/numerics": SHARED_KERNELS,
    "multigpu/formats": (
        "multigpu.formats", "multigpu.errors", "multigpu.cluster", "multigpu.kernels",
    ),
    "multigpu/report": (
        "multigpu.report", "multigpu.run", "multigpu.citation", "multigpu.errors",
        "multigpu.__version__",
    ),
}  # fmt: skip
OURS = {"multigpu", "cluster", "kernels"}
HEAVY = {
    "cupy", "dask", "dask_cuda", "distributed", "gemmi", "jinja2", "numba", "pandas",
    "plotly", "pyarrow", "pysam", "rdkit", "zarr",
}  # fmt: skip
# Imported without being installed with the package, and where: by an extra, or as the user's own.
OPTIONAL = {
    "compression": {"zstandard.py"},  # of Python 3.14
    "cupy": {"*"},
    "dask_cuda": {"dask_clients.py"},
    "gemmi": {"receptors.py"},
    "h5py": {"counts_gatk.py"},
    "meeko": {"receptors.py"},
    "polars": {"api.py"},
    "pyBigWig": {"tracks.py"},
    "scipy": {"reference.py"},  # an oracle of the tests
}
MODULES = [*modules()]


def layer_of(path: Path) -> str:
    """Return the innermost folder of a module that has a rule."""
    place = str(path.relative_to(ROOT))
    return max((layer for layer in MAY_IMPORT if place.startswith(f"{layer}/")), key=len)


def imported_modules(source: str, inside: str) -> set[str]:
    """Return the modules that a module of the package `inside` imports, wherever it does so."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = inside if node.level else node.module or ""
            found |= {f"{package}.{alias.name}" for alias in node.names}
    return found


def modules_imported_by(*command: str) -> set[str]:
    """Every module that a run of this Python imports; the run itself must succeed."""
    run = run_python("-X", "importtime", *command)
    lines = run.all_err.splitlines()
    assert run.status == 0, [line for line in lines if not line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_imports__run_downwards_only() -> None:
    """`kernels` and `cluster` by those names would be second copies, or other people's packages."""
    upwards = {}
    for path in MODULES:
        layer = layer_of(path)
        imported = imported_modules(path.read_text(encoding="utf-8"), layer)
        ours = {name for name in imported if name.partition(".")[0] in OURS}
        allowed = tuple(f"{name}." for name in MAY_IMPORT[layer])
        if wrong := {name for name in ours if not f"{name}.".startswith(allowed)}:
            upwards[str(path.relative_to(ROOT))] = wrong
    assert len(MODULES) > 100
    assert upwards == {}


def installed_with(names: list[str]) -> set[str]:
    """Return the distributions that come with some, without their extras."""
    found: set[str] = set()
    while names:
        name = re.sub("[-_.]+", "-", names.pop()).lower()
        if name not in found:
            found.add(name)
            needs = map(Requirement, requires(name) or ())
            names += [each.name for each in needs if not each.marker or each.marker.evaluate()]
    return found


def test_imports__come_with_the_package() -> None:
    """An installation without extras has no other module; the tests' environment has many more."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = map(Requirement, project["dependencies"])
    names = [each.name for each in needs if not each.marker or each.marker.evaluate()]
    installed, owners = installed_with(names), packages_distributions()
    missing = []
    for path in MODULES:
        imports = imported_modules(path.read_text(encoding="utf-8"), "multigpu")
        for name in {each.partition(".")[0] for each in imports} - sys.stdlib_module_names - OURS:
            owned = {re.sub("[-_.]+", "-", each).lower() for each in owners.get(name, ())}
            if not owned & installed and not {path.name, "*"} & OPTIONAL.get(name, set()):
                missing.append(f"{path.relative_to(ROOT)}: {name}")
    assert missing == []


def test_imports__are_found_in_every_form() -> None:
    source = "import a.b as c\nfrom d.e import f\nfrom . import g\ndef h():\n    import i, j"
    assert imported_modules(source, "here") == {"a.b", "d.e.f", "here.g", "i", "j"}


@pytest.mark.parametrize("folder", ["kernels", "cluster"])
def test_links__lead_to_the_folders_beside(folder: str) -> None:
    assert (ROOT / "multigpu" / folder).readlink() == Path("..", folder)


@pytest.mark.process
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["scan"],
        ["dock"],
        ["pocket"],
        ["count"],
        ["cnv"],
        ["cohort", "build"],
        ["plan", "scan"],
        ["simulate", "counts"],
    ],
    ids=lambda words: " ".join(words) or "multigpu",
)
def test_start__imports_nothing_heavy(options: list[str]) -> None:
    imported = modules_imported_by("-m", "multigpu", *options, "--help")
    assert "multigpu" in {name.partition(".")[0] for name in imported}
    assert {name for name in imported if name.partition(".")[0] in HEAVY} == set()

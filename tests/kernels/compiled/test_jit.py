"""Cached compiled functions: where they are kept, and for how long."""

import ast
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from numba.core import config
from support.program import run_python
from support.sources import ROOT, modules

from multigpu.kernels.compiled import caches, jit

CALLEE = (
    "from multigpu.kernels.compiled.jit import jit\n\nOFFSET = {offset}\n\n"
    "@jit\ndef step(x):\n    return x + OFFSET\n"
)
CALLER = (
    "from multigpu.kernels.compiled.jit import jit\nfrom {callee} import step\n\n"
    "@jit\ndef walk(x):\n    return step(step(x))\n"
)


def test_cache__is_the_same_folder_for_threads_that_load_modules_at_once() -> None:
    before = config.CACHE_DIR

    def folder(_: int) -> str:
        with jit._own_cache(jit.__name__):
            time.sleep(0.005)
            return str(config.CACHE_DIR)

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(folder, range(20)))
    assert found == {str(jit._folder(before, caches.digest_of(jit.__name__)))}
    assert before == config.CACHE_DIR


def walked(folder: Path, package: str) -> str:
    """Return what the caller in a package computes, and whether it was in the cache."""
    code = f"from {package}.caller import walk; print(walk(1), sum(walk.stats.cache_hits.values()))"
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = {"NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
    return run_python("-B", "-c", code, env=environment, cwd=folder).out.strip()


def write_caller(folder: Path, callee: str) -> None:
    """Write a package with a compiled function that calls another one of the module `callee`."""
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "caller.py").write_text(CALLER.format(callee=callee))


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """Return the folder `kernels` of a copy that has only what compiles functions."""
    kernels = tmp_path / "multigpu" / "kernels"
    (kernels / "numerics").mkdir(parents=True)
    (tmp_path / "multigpu" / "__init__.py").touch()
    shutil.copytree(ROOT / "kernels" / "compiled", kernels / "compiled")
    shutil.copy(ROOT / "kernels" / "bases.py", kernels)
    return kernels


@pytest.mark.process
def test_kernel__is_compiled_again_after_an_edit_of_what_it_imports(kernels: Path) -> None:
    root, scan = kernels.parents[1], "multigpu.kernels.scan"
    callee = kernels / "compiled" / "text" / "callee.py"
    callee.write_text(CALLEE.format(offset=1))
    write_caller(kernels / "scan", "multigpu.kernels.compiled.text.callee")
    (kernels / "rotation").mkdir()
    assert walked(root, scan) == "3 0"
    (kernels / "rotation" / "other.py").write_text("another = 'kernel'\n")
    assert walked(root, scan) == "3 1"
    callee.write_text(CALLEE.format(offset=20))
    assert walked(root, scan) == "41 0"
    (kernels / "scan" / "constants.py").write_text("OFFSET = 2\n")
    assert walked(root, scan) == "41 0"


def test_functions__are_compiled_in_kernels_only() -> None:
    """The cache does not know of edits elsewhere."""
    ours = [*modules("multigpu", "cluster")]
    assert len(ours) > 100
    assert [path for path in ours if "compiled.jit" in path.read_text(encoding="utf-8")] == []


KERNELS = ROOT / "kernels"
FOLDERS = sorted(path.name for path in KERNELS.iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("folder", FOLDERS)
def test_kernel_folder__imports_no_other_kernel(folder: str) -> None:
    """The cache would not know of edits in another kernel."""
    shared = {*caches.SHARED, *(path.stem for path in KERNELS.glob("*.py"))}
    allowed = shared if folder in caches.SHARED else {*shared, "device", folder}
    for path in (KERNELS / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("multigpu."):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                assert {name.split(".")[2] for name in names} <= allowed, path

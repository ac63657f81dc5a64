"""Where compiled functions are kept, and for how long."""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from numba.core import config

from multigpu.kernels.compiled import jit, version

ROOT = Path(__file__).resolve().parents[2]
CALLEE = (
    "from multigpu.kernels.compiled.jit import jit\n\nOFFSET = {offset}\n\n"
    "@jit\ndef step(x):\n    return x + OFFSET\n"
)
CALLER = (
    "from multigpu.kernels.compiled.jit import jit\nfrom pack.callee import step\n\n"
    "@jit\ndef walk(x):\n    return step(step(x))\n"
)
COMPILED = sorted(
    path for path in (ROOT / "multigpu").rglob("*.py") if version.COMPILER in path.read_bytes()
)


def test_cache__is_the_same_folder_for_threads_that_load_modules_at_once() -> None:
    before = config.CACHE_DIR

    def folder(_: int) -> str:
        with jit._own_cache("multigpu"):
            time.sleep(0.005)
            return str(config.CACHE_DIR)

    with ThreadPoolExecutor(4) as pool:
        found = set(pool.map(folder, range(20)))
    assert found == {str(jit._folder(before, "multigpu"))}
    assert before == config.CACHE_DIR


def walked(folder: Path) -> str:
    """What the package in the folder computes, and whether its caller was in the cache."""
    code = "from pack.caller import walk; print(walk(1), sum(walk.stats.cache_hits.values()))"
    paths = os.pathsep.join([str(folder), str(ROOT)])
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": paths}
    return subprocess.check_output(
        [sys.executable, "-B", "-c", code], env=environment, text=True, timeout=120
    ).strip()


def test_function__is_compiled_again_when_what_it_calls_in_another_file_changes(
    tmp_path: Path,
) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "__init__.py").touch()
    (pack / "caller.py").write_text(CALLER)
    (pack / "callee.py").write_text(CALLEE.format(offset=1))
    assert walked(tmp_path) == "3 0"
    assert walked(tmp_path) == "3 1"
    (pack / "callee.py").write_text(CALLEE.format(offset=20))
    assert walked(tmp_path) == "41 0"
    (pack / "other.py").write_text("unlike = 'what has nothing compiled'\n")
    assert walked(tmp_path) == "41 1"


def compiled_names(tree: ast.Module) -> Iterator[str]:
    """The names that occur in the functions of a module that are compiled."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(
            isinstance(mark, ast.Name) and mark.id in ("jit", "lean")
            for mark in function.decorator_list
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Name):
                    yield node.id


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.stem)
def test_names_in_compiled_functions__come_from_files_that_name_the_cache(path: Path) -> None:
    """Values of other files would be compiled into them, and stay when these change."""
    tree = ast.parse(path.read_text())
    used = set(compiled_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and {alias.name for alias in node.names} & used:
            package, _, rest = (node.module or "").partition(".")
            if package == "multigpu" and not rest.startswith("kernels."):  # all of which count
                assert ROOT / package / f"{rest.replace('.', '/')}.py" in COMPILED, node.module


def test_files_that_name_the_cache__are_found() -> None:
    assert {path.stem for path in COMPILED} == {"pdbqt", "plain", "sdf", "texts"}


# ---- what we rely on in Numba, which does not promise it ----------------------------------------


def test_numba__still_looks_for_blas_in_the_way_that_is_switched_off() -> None:
    """Where this fails, `_look_for_no_blas` does nothing any more, and each start loads SciPy."""
    assert callable(jit.linalg.ensure_blas)
    code = (
        "import sys, numba\n"
        "assert 'numba.np.arraymath' not in sys.modules, 'it is loaded with Numba'\n"
        "from numba.np import linalg\n"
        "looked = []\n"
        "linalg.ensure_blas = lambda: looked.append(1)\n"
        "import numba.np.arraymath\n"
        "assert looked, 'it does not look'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_numba__is_left_with_its_own_way_of_looking_for_blas() -> None:
    assert jit.linalg.ensure_blas.__module__ == "numba.np.linalg"
    code = "import sys, multigpu.kernels.compiled.jit; assert 'scipy.linalg' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=ROOT)

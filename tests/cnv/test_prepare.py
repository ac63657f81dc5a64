"""Preparation of a worker before its first chromosome."""

import subprocess
import sys
from pathlib import Path

from multigpu.workloads.cnv.prepare import prepare

ROOT = Path(__file__).resolve().parents[2]


def test_prepare__runs_on_a_cpu() -> None:
    prepare(None)


def test_prepare__is_named_before_anything_heavy_is_loaded() -> None:
    code = (
        "import sys, multigpu.workloads.cnv.prepare\n"
        "print({'numba', 'numpy', 'dask', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"

"""The scripts of the benchmarks load, and the one that runs the others names what they have."""

import pytest
from support.program import ROOT, run_python

BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = [path for path in sorted(BENCHMARKS.glob("*.py")) if "__main__" in path.read_text()]
PARTS_THERE = """
import all_gpu
from importlib import import_module
for name, _, script, parts in all_gpu.FIGURES:
    assert set(parts) <= set(import_module(script).PARTS), name
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script__loads(script: object) -> None:
    ended = run_python(str(script), "--help")
    assert ended.status == 0, ended.err
    assert "--json" in ended.out or "--out" in ended.out or "--plain" in ended.out


def test_all_gpu__names_parts_that_are_there() -> None:
    ended = run_python("-c", PARTS_THERE, env={"PYTHONPATH": f"{BENCHMARKS}:{ROOT}"})
    assert ended.status == 0, ended.err

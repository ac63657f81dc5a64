"""What is loaded for the files of a run."""

import importlib.util
import subprocess
import sys

import pytest

from multigpu.copynumber import output


def test_packages__that_are_loaded_are_those_that_are_asked_for() -> None:
    assert set(output.LOADED) == set(output.NEEDED)
    for wanted, modules in output.LOADED.items():
        needed = {name.partition(".")[0] for name in modules}
        assert needed <= set(output.NEEDED[wanted])


def test_packages__are_loaded_behind_our_back() -> None:
    if importlib.util.find_spec("jinja2") is None:
        pytest.skip("no jinja2")
    code = (
        "import sys\n"
        "from multigpu.copynumber import output\n"
        "assert 'jinja2' not in sys.modules\n"
        "output.LOADED[output.VCF] = ('there_is_no_such_module',)\n"
        "output.load_packages((output.VCF, output.REPORT)).join()\n"
        "assert 'jinja2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

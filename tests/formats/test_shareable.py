"""Memory that other processes of this user can read."""

import os
import subprocess
from typing import Any

import numpy as np
import pytest
from support.program import run_python

from multigpu.formats.storage import shareable


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_memory__is_open_to_processes_of_its_user_alone() -> None:
    array = shareable.empty((3,), np.uint8)
    array[:] = list(b"abc")
    command = ["cat", str(shareable.path_of(array))]
    assert subprocess.check_output(command) == b"abc"
    other: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    refused = subprocess.run(command, capture_output=True, check=False, **other)
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert b"Permission denied" in refused.stderr


@pytest.mark.process
def test_memory__beyond_the_limit_of_files_is_told_so() -> None:
    code = (
        "from multigpu.formats.storage import shareable\n"
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "shareable.empty((2000,), 'u1')\n"
    )
    said = run_python("-c", code).err.splitlines()[-1]
    assert said == "MemoryError: file too large (see `ulimit -f`): 2,000 bytes needed"

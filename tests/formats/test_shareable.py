"""Memory that other processes of this user can read."""

import os
import subprocess
from typing import Any

import numpy as np
import pytest

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

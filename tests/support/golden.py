"""The golden data: where they are, and the names of their cases."""

import os
from pathlib import Path

import pytest

from support.program import ROOT

DEVICES = [
    pytest.param(("--gpus", "none"), id="cpu"),
    pytest.param(("--gpus", "0"), id="cuda", marks=pytest.mark.gpu),
]
GOLDEN = Path(os.environ.get("MULTIGPU_GOLDEN", ROOT.parent / "shared" / "golden"))


def cases(pattern: str) -> list[str]:
    """Return the folders with such a file; one name where the data are absent, which is skipped."""
    return sorted(path.parent.name for path in GOLDEN.glob(pattern)) or ["absent"]

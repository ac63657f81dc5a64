"""The golden data: where they are, and the names of their cases."""

import os
from pathlib import Path

from support.program import ROOT

GOLDEN = Path(os.environ.get("MULTIGPU_GOLDEN", ROOT.parent / "shared" / "golden"))


def cases(pattern: str) -> list[str]:
    """Return the folders with such a file; one name where the data are absent, which is skipped."""
    return sorted(path.parent.name for path in GOLDEN.glob(pattern)) or ["absent"]

"""Packages that only some jobs need, imported when they do, and kept quiet."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_blocks: list[Any] = []  # of RDKit's logs, one for each thread that wants them quiet


@contextmanager
def quiet_rdkit() -> Iterator[Any]:
    """Yield rdkit.Chem, quiet in the whole process until the last thread leaves such a block."""
    from rdkit import Chem, rdBase

    with _lock:
        _blocks.append(rdBase.BlockLogs())
    try:
        yield Chem
    finally:
        with _lock:
            _blocks.pop()


def import_pysam() -> Any:
    """Return pysam, which prints nothing: what htslib prints arrives as an exception, too."""
    import pysam

    pysam.set_verbosity(0)
    return pysam

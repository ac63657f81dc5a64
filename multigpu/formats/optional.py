"""Packages that only some jobs need, imported when they do, and kept quiet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quiet_rdkit() -> Iterator[Any]:
    """Yield rdkit.Chem, and have RDKit print nothing meanwhile."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        yield Chem


def import_pysam() -> Any:
    """Return pysam, which prints nothing: what htslib prints arrives as an exception, too."""
    import pysam

    pysam.set_verbosity(0)
    return pysam

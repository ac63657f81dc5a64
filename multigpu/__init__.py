"""Batch processing for genomics and molecular structures that fills every GPU it is given."""

from typing import TYPE_CHECKING, Any

from multigpu.errors import Failure, InputError, UsageError

if TYPE_CHECKING:
    from multigpu.api import ScanResult, scan
    from multigpu.copynumber.api import cnv
    from multigpu.copynumber.result import CnvResult
    from multigpu.counting import count
    from multigpu.docking import DockResult, dock
    from multigpu.formats.tables.batch import Batch, PoseBatch
    from multigpu.formats.tables.counts import Counts, read_counts, write_counts

__version__ = "0.1.0"
__all__ = [
    "Batch",
    "CnvResult",
    "Counts",
    "DockResult",
    "Failure",
    "InputError",
    "PoseBatch",
    "ScanResult",
    "UsageError",
    "cnv",
    "count",
    "dock",
    "read_counts",
    "scan",
    "write_counts",
]

_LATER = {
    "Batch": "multigpu.formats.tables.batch",
    "CnvResult": "multigpu.copynumber.result",
    "Counts": "multigpu.formats.tables.counts",
    "DockResult": "multigpu.docking",
    "PoseBatch": "multigpu.formats.tables.batch",
    "ScanResult": "multigpu.api",
    "cnv": "multigpu.copynumber.api",
    "count": "multigpu.counting",
    "dock": "multigpu.docking",
    "read_counts": "multigpu.formats.tables.counts",
    "scan": "multigpu.api",
    "write_counts": "multigpu.formats.tables.counts",
}


def __dir__() -> list[str]:
    """Return the public names too that are imported on first use: TAB and help() list them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the API brings much that `--help` does not need."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)

"""Batch processing for genomics and molecular structures that fills every GPU it is given."""

from typing import TYPE_CHECKING, Any

from multigpu.errors import Failure, InputError, UsageError

if TYPE_CHECKING:
    from multigpu.api import ScanResult, scan
    from multigpu.batch import Batch, PoseBatch
    from multigpu.docking import DockResult, dock

__version__ = "0.1.0"
__all__ = [
    "Batch",
    "DockResult",
    "Failure",
    "InputError",
    "PoseBatch",
    "ScanResult",
    "UsageError",
    "dock",
    "scan",
]

_LATER = {
    "scan": "multigpu.api",
    "ScanResult": "multigpu.api",
    "dock": "multigpu.docking",
    "DockResult": "multigpu.docking",
    "Batch": "multigpu.batch",
    "PoseBatch": "multigpu.batch",
}


def __getattr__(name: str) -> Any:
    """The API is imported when it is used: it brings much that `--help` does not need."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)

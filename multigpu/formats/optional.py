"""Packages that only some jobs need, imported when they do."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from multigpu.errors import UsageError


def import_package(module: str, what: str) -> Any:
    """Return a module that `what` (in the plural) need.

    Raises UsageError with what to install where its package is missing.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise UsageError(f"{what} need the package {package}: pip install {package}") from error


@contextmanager
def quiet_rdkit(what: str) -> Iterator[Any]:
    """Yield rdkit.Chem, which `what` (in the plural) need, and have RDKit print nothing meanwhile.

    Raises UsageError where it is missing.
    """
    chem = import_package("rdkit.Chem", what)
    with import_package("rdkit.rdBase", what).BlockLogs():
        yield chem


def import_pysam(what: str) -> Any:
    """Return pysam, which `what` (in the plural) need. Raises UsageError where it is missing."""
    pysam = import_package("pysam", what)
    # What htslib prints arrives as an exception, too.
    pysam.set_verbosity(0)
    return pysam

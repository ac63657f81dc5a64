"""Exact, high-throughput analyses on one CPU, one GPU or a cluster, with identical results.

    multigpu.scan(samples, signatures)    known sequences in reads and genomes
    multigpu.Scanner(signatures)          the same for records in memory, many times
    multigpu.count(alignments)            reads that begin in each region
    multigpu.cnv(counts)                  copy-number variants, by the cn.MOPS pipeline
    multigpu.build_cohort(counts)         counts that are kept, to compare new samples with
    multigpu.dock(ligands, pocket)        the best poses of ligands in a grid of scores
    multigpu.pocket(receptor)             the maps of a receptor, which are such a grid

`help(multigpu.scan)` and its like describe them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from multigpu.errors import Failure, InputError, UsageError

if TYPE_CHECKING:
    from multigpu.formats.molecules.pockets.autogrid import write_pocket as write_pocket
    from multigpu.formats.tables.counts import Counts as Counts
    from multigpu.formats.tables.counts_files import read_counts as read_counts
    from multigpu.formats.tables.counts_files import write_counts as write_counts
    from multigpu.workloads.cnv.api import cnv as cnv
    from multigpu.workloads.cnv.results.result import CnvResult as CnvResult
    from multigpu.workloads.cohort.api import add_to_cohort as add_to_cohort
    from multigpu.workloads.cohort.api import build_cohort as build_cohort
    from multigpu.workloads.cohort.api import remove_from_cohort as remove_from_cohort
    from multigpu.workloads.count.api import count as count
    from multigpu.workloads.dock.api import DockResult as DockResult
    from multigpu.workloads.dock.api import dock as dock
    from multigpu.workloads.dock.api import pocket as pocket
    from multigpu.workloads.dock.rows import PoseBatch as PoseBatch
    from multigpu.workloads.scan.api import ScanResult as ScanResult
    from multigpu.workloads.scan.api import scan as scan
    from multigpu.workloads.scan.batch import Batch as Batch
    from multigpu.workloads.scan.scanner import Scanner as Scanner

__version__ = "0.1.0"

_HOMES = {
    "Batch": "workloads.scan.batch",
    "CnvResult": "workloads.cnv.results.result",
    "Counts": "formats.tables.counts",
    "DockResult": "workloads.dock.api",
    "PoseBatch": "workloads.dock.rows",
    "ScanResult": "workloads.scan.api",
    "Scanner": "workloads.scan.scanner",
    "add_to_cohort": "workloads.cohort.api",
    "build_cohort": "workloads.cohort.api",
    "cnv": "workloads.cnv.api",
    "count": "workloads.count.api",
    "dock": "workloads.dock.api",
    "pocket": "workloads.dock.api",
    "read_counts": "formats.tables.counts_files",
    "remove_from_cohort": "workloads.cohort.api",
    "scan": "workloads.scan.api",
    "write_counts": "formats.tables.counts_files",
    "write_pocket": "formats.molecules.pockets.autogrid",
}
__all__ = ["Failure", "InputError", "UsageError", *_HOMES]  # noqa: PLE0604 - all are strings


def __dir__() -> list[str]:
    """Return the public names too that are imported on first use: TAB and help() list them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the API brings much that `--help` does not need."""
    if name in _HOMES:
        return getattr(import_module(f"multigpu.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

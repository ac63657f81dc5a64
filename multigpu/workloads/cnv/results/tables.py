"""Columns of every table of a run, as Arrow tables: cnvs, CNV regions and segments."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from multigpu.formats.tables import arrow
from multigpu.workloads.cnv.records import Indices, RegionTable, SegmentTable
from multigpu.workloads.cnv.results.copy_numbers import class_labels, fractional_labels

if TYPE_CHECKING:
    import pyarrow as pa

    from multigpu.workloads.cnv.results.result import CnvResult


FRACTIONAL = "_fractional"  # end of the names of tables with fractional copy numbers


def cnv_table(result: "CnvResult", fractional: bool = False) -> "pa.Table":
    """Return the columns of `cnvs.tsv`: those of the segments, and regions length frequency."""
    cnvs = result.called
    table = segment_table(result, cnvs, fractional)
    more = {"regions": cnvs.rows, "length": cnvs.end - cnvs.start, "frequency": result.frequency}
    for name, values in more.items():
        table = table.append_column(name, arrow.numbers(values))
    return table


def segment_table(
    result: "CnvResult", segments: SegmentTable, fractional: bool = False
) -> "pa.Table":
    """Return the columns chrom start end sample median mean copy_number."""
    if fractional:
        labels = fractional_labels(segments.fractional, result.options)
    else:
        labels = class_labels(segments.shown, result.options.classes)
    return arrow.table(
        [
            ("chrom", names_of(segments.chrom, result.regions.names)),
            ("start", segments.start),
            ("end", segments.end),
            ("sample", names_of(segments.sample, result.samples)),
            ("median", segments.median),
            ("mean", segments.mean),
            ("copy_number", names_of(*labels)),
        ]
    )


def region_table(result: "CnvResult", regions: RegionTable, fractional: bool = False) -> "pa.Table":
    """Return the columns chrom start end, and the copy numbers of every sample."""
    if fractional:
        indices, labels = fractional_labels(regions.fractional, result.options)
    else:
        indices, labels = class_labels(regions.copy_number, result.options.classes)
    copies = (names_of(column, labels) for column in indices.T)
    return arrow.table(
        [
            ("chrom", names_of(regions.chrom, result.regions.names)),
            ("start", regions.start),
            ("end", regions.end),
            *zip(result.samples, copies, strict=True),
        ]
    )


def table_makers(result: "CnvResult") -> "dict[str, Callable[[], pa.Table]]":
    """Return a function for every table, by the name of its file: a thread can take each."""
    makers: dict[str, Callable[..., pa.Table]] = {
        "cnvs": partial(cnv_table, result),
        "cnv_regions": partial(region_table, result, result.called_regions),
        "segmentation": partial(segment_table, result, result.segments),
    }
    fractional = {}
    if result.options.fractional is not None:
        fractional = {name + FRACTIONAL: partial(m, fractional=True) for name, m in makers.items()}
    if result.robust_regions is not None:
        makers["cnv_regions_robust"] = partial(region_table, result, result.robust_regions)
    return makers | fractional


def names_of(indices: Indices, names: Sequence[str]) -> "pa.Array":
    """Return the name of every index."""
    return arrow.strings(names).take(arrow.numbers(indices))

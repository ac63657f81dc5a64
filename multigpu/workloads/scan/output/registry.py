"""All formats of rows. A new one is one line here, and a sink unless it is plain text."""

from functools import partial

from multigpu.errors import UsageError, option
from multigpu.formats.storage.suffixes import FOREIGN, PARQUET, uncompressed_suffix
from multigpu.workloads.scan.output.cas_offinder import cas_offinder, cas_offinder_titles
from multigpu.workloads.scan.output.parquet import ParquetSink
from multigpu.workloads.scan.output.row_lines import bed, separated, titles
from multigpu.workloads.scan.output.row_sink import RowFormat, TextSink
from multigpu.workloads.scan.output.sam import paf, sam_of_reads, sam_sink

_tsv, _csv = partial(separated, separator=b"\t"), partial(separated, separator=b",")
_alignment = ("mismatches", "edits", "cigar")
_text = partial(RowFormat, sink=TextSink)
_sam = partial(RowFormat, sink=sam_sink, lines=sam_of_reads, has_always=_alignment)

FORMATS: dict[str, RowFormat] = {
    each.name: each
    for each in (
        _text("tsv", (".tsv",), lines=_tsv, header=partial(titles, separator="\t")),
        _text("csv", (".csv",), lines=_csv, header=partial(titles, separator=",")),
        _text("bed", (".bed",), lines=bed),
        RowFormat("parquet", PARQUET, sink=ParquetSink, has_always=("file", "ambiguous")),
        _sam("sam", (".sam",)),
        _sam("bam", (".bam",)),
        _text(
            "cas-offinder", (), lines=cas_offinder, header=cas_offinder_titles,
            has_always=("cigar", "bases"),
        ),
        _text("paf", (".paf",), lines=paf, has_always=_alignment),
    )
}  # fmt: skip


def format_of(path: str | None, chosen: str | None) -> RowFormat:
    """Return the format asked for, or the one that the path's suffix means; tsv for any other.

    Raises UsageError for a suffix that promises what is not written.
    """
    if chosen is not None:
        return FORMATS[chosen]
    by_suffix = {suffix: each.name for each in FORMATS.values() for suffix in each.suffixes}
    suffix = uncompressed_suffix(path)
    if suffix in FOREIGN - by_suffix.keys():
        possible = ", ".join(by_suffix)
        raise UsageError(
            f"{path}: {suffix} files cannot be written: choose a name that ends in {possible},"
            f" with .gz or .zst after it to compress; or say {option('format')} tsv"
        )
    return FORMATS[by_suffix.get(suffix, "tsv")]

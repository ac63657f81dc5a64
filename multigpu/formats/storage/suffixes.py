"""What the suffix of an output promises."""

from pathlib import PurePath

from multigpu.errors import UsageError

# Each names a format that a reader would take the file for.
OTHERS = frozenset({
    ".arrow", ".avro", ".bam", ".bcf", ".bgz", ".bz2", ".cram", ".csv", ".db", ".doc", ".docx",
    ".fa", ".fasta", ".fastq", ".feather", ".fq", ".gff", ".gff3", ".gtf", ".h5", ".hdf5", ".htm",
    ".html", ".json", ".jsonl", ".md", ".npy", ".npz", ".ods", ".parquet", ".pdf", ".pkl", ".png",
    ".pq", ".rds", ".sam", ".sqlite", ".svg", ".tsv", ".vcf", ".xls", ".xlsx", ".xml", ".xz",
    ".yaml", ".yml", ".zarr", ".zip",
})  # fmt: skip
PAGES = frozenset({".htm", ".html"})
TABLES = frozenset({".tsv", ".parquet", ".pq"})


def check_table(path: str | None) -> None:
    """Raises UsageError where the name of a table of counts promises neither TSV nor Parquet."""
    suffixes = [suffix.lower() for suffix in PurePath(path or "").suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    if suffixes and suffixes[-1] in OTHERS - TABLES:
        raise UsageError(
            f"{path}: {suffixes[-1]} files cannot be written: choose a name that ends in .tsv,"
            " .tsv.gz, .tsv.zst or .parquet"
        )


def check_page(path: str | None) -> None:
    """Raises UsageError where the name of a report promises something else than HTML."""
    suffix = PurePath(path or "").suffix.lower()
    if suffix in OTHERS - PAGES:
        raise UsageError(f"{path}: reports are HTML: choose a name that ends in .html")

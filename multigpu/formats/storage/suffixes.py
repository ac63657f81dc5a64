"""Suffixes of outputs, and what they promise."""

from pathlib import PurePath
from typing import Literal

from multigpu.errors import UsageError

# Each names a format that a reader would take the file for: one of ours, or one never written.
FOREIGN = frozenset({
    ".arrow", ".avro", ".bam", ".bcf", ".bgz", ".bz2", ".cram", ".csv", ".db", ".doc", ".docx",
    ".dx", ".fa", ".fasta", ".fastq", ".feather", ".fq", ".gff", ".gff3", ".gtf", ".h5", ".h5ad",
    ".hdf5", ".htm", ".html", ".json", ".jsonl", ".md", ".mol2", ".npy", ".npz", ".ods",
    ".parquet", ".pdb", ".pdbqt", ".pdf", ".pkl", ".png", ".pq", ".rds", ".sam", ".sdf", ".smi",
    ".sqlite", ".svg", ".tsv", ".vcf", ".xls", ".xlsx", ".xml", ".xyz", ".xz", ".yaml", ".yml",
    ".zarr", ".zip",
})  # fmt: skip
COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
PARQUET = (".pq", ".parquet")
PAGES = (".htm", ".html")


def suffix_of_output(path: str | None) -> str:
    """Return the last suffix of a name in small letters; empty where there is none."""
    return PurePath(path or "").suffix.lower()


def uncompressed_suffix(path: str | None) -> str:
    """Return the last suffix of a name without that of a compression."""
    name = PurePath(path or "")
    return suffix_of_output(name.stem if suffix_of_output(path) in COMPRESSIONS else path)


def check_suffix(path: str | None, *suffixes: str) -> None:
    """Raise UsageError where the name of an output promises none of these formats."""
    if uncompressed_suffix(path) in FOREIGN.difference(suffixes):
        choices = ", ".join(suffixes)
        raise UsageError(f"{path}: the data are written as {choices}: choose such a name")


def check_table(path: str | None) -> None:
    """Raise UsageError where the name of a table of counts promises neither TSV nor Parquet."""
    suffix = uncompressed_suffix(path)
    if suffix in FOREIGN - {".tsv", *PARQUET}:
        raise UsageError(
            f"{path}: {suffix} files cannot be written: choose a name that ends in .tsv,"
            " .tsv.gz, .tsv.zst or .parquet"
        )


def check_page(path: str | None) -> None:
    """Raise UsageError where the name of a report promises something else than HTML."""
    if suffix_of_output(path) in FOREIGN - {*PAGES}:
        raise UsageError(f"{path}: reports are HTML: choose a name that ends in .html")

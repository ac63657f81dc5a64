"""Whole scans of files that are cut in several ways, against the rows that are expected."""

import gzip
from itertools import groupby
from pathlib import Path
from typing import Any

import multigpu
from multigpu.kernels.scan import Limits, Patterns
from multigpu.kernels.scan.approximate import reference
from support.scan_cases import array, chunk_of
from support.scanned import fasta, fastq, rows_of, unclear, wrapped_fasta

Row = tuple[Any, ...]
Texts = list[tuple[str, str]]

# Files, and the bytes of their chunks.
CUTS = (
    ("r.fq", 10_000), ("r.fq", 30), ("r.fq.gz", 90), ("r.fa", 1), ("r.fa", 17), ("r.fa", 64),
)  # fmt: skip
COLUMNS = ("errors", "ambiguous", "cigar")


def quality_of(bases: str) -> list[int]:
    return [(7 * at + len(bases)) % 41 for at in range(len(bases))]


def score_of(bases: str, start: int, end: int) -> float:
    """Return the mean quality of some bases, over the origin where the end is beyond."""
    values = (2 * quality_of(bases))[start:end]
    return sum(values) / len(values)


def check_rows(
    folder: Path, samples: Texts, signatures: Texts, expected: list[Row], *columns: str,
    cuts: tuple[tuple[str, int], ...] = CUTS, **options: Any,
) -> None:  # fmt: skip
    """Compare the rows of scans of FASTQ and FASTA, however they are cut.

    expected  rows of sample, signature, start, end, strand and score, which FASTA has not, and of
              the columns
    """
    reads = [(name, b, "".join(chr(33 + q) for q in quality_of(b))) for name, b in samples]
    (folder / "r.fq").write_bytes(fastq(reads))
    (folder / "r.fq.gz").write_bytes(gzip.compress(fastq(reads)))
    (folder / "r.fa").write_bytes(wrapped_fasta(samples, 7))
    (folder / "s.fa").write_bytes(fasta(signatures))
    unscored = [(*row[:5], None, *row[6:]) for row in expected]
    for name, size in cuts:
        how = {"gpus": "none", "threads": 2, "max_chunk_bytes": size}
        result = multigpu.scan(folder / name, folder / "s.fa", **how, **options)
        rows = rows_of(result, result.signature_names, *columns)
        assert rows == (unscored if name == "r.fa" else expected), (name, size)


def answer(
    samples: Texts, signatures: Texts, rules: dict[str, Any],
    windows: list[tuple[int, int]] | None = None,
) -> list[Row]:  # fmt: skip
    """Return the rows of a scan with errors or without, with `COLUMNS`, by the plain recurrences.

    windows  of the samples, which may go on after their end; None: all of each
    """
    windows = windows or [(0, len(bases)) for _, bases in samples]
    strands, edits = 1 + (rules.get("strand") == "both"), "max_edits" in rules
    patterns = Patterns.of([array(bases) for _, bases in signatures], strands == 2)
    most = rules.get("max_mismatches") or rules.get("max_edits") or 0
    turns = [2 * bases for _, bases in samples]
    hits, operations = reference.search(
        chunk_of([array(turn[a:b]) for turn, (a, b) in zip(turns, windows, strict=True)]),
        patterns,
        Limits.of(patterns, most, rules.get("exact_prefix", 0), rules.get("exact_suffix", 0)),
        edits=edits,
        strict=rules.get("sample_n") == "mismatch",
    )
    rows = []
    for at in range(len(hits)):
        record, pattern = int(hits.record[at]), int(hits.pattern[at])
        start, end = (int(each[at]) + windows[record][0] for each in (hits.start, hits.end))
        name, bases = samples[record]
        many, is_long = unclear(turns[record][start:end]), end - start > len(bases)
        if start >= len(bases) or is_long or many > rules.get("max_ambiguous", 99):
            continue
        score, strand = score_of(bases, start, end), "-" if pattern % strands else "+"
        runs = "".join(f"{len(list(run))}{kind}" for kind, run in groupby(operations[at]))
        more = (int(hits.errors[at]), many, runs if edits else "")
        rows.append((name, signatures[pattern // strands][0], start, end, strand, score, *more))
    if rules.get("hits") == "all":
        return rows

    def rank(row: Row) -> Row:
        return (row[6] if rules.get("hits") == "best" else 0, row[3 if edits else 2], row[4])

    return [min(group, key=rank) for _, group in groupby(rows, key=lambda row: row[:2])]

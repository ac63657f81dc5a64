"""Small reads for tests of the scan, and a plain search of them in Python."""

import gzip
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from multigpu.formats.sequences.signatures import Joined, Signatures
from multigpu.formats.storage.zstandard import zstd
from multigpu.workloads.scan.batch import Batch
from support.bgzf_data import bgzf

HEADER = "sample\tsignature\tstart\tend\tstrand\tscore\n"
MEANING = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT",
    "K": "GT", "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
OTHER = dict(zip("ACGTURYSWKMBDHVN", "TGCAAYRSWMKVHDBN", strict=True))  # complements

Read = tuple[str, str, str]  # header, bases, quality
Row = tuple[str, str, int, int, str, float | None, int]  # the last: ambiguous bases

READS: list[Read] = [
    ("read1 first", "TTACGTNNACGTTT", "!5I+@I~,5@+I!I"),
    ("read2", "acgt", "IIII"),
    ("empty", "", ""),
    ("read1", "GGCCAARGUACGTACGW", "@@@@@@@@@@@@@@@@@"),
    ("short", "ACG", "III"),
    ("café", "NNNNNNNN", "5555!!!!"),
    ("last", "TTTACGCATTTACGT", "!!!!!!!!!!!~~~~"),
]
SIGNATURES = [
    ("sig1 one", "ACGT"),
    ("sig2", "AAR"),
    ("sig1", "CGTNNAC"),
    ("four", "CC"),
    ("y", "YRAC"),
]
ALL = ("--strand", "both", "--hits", "all")


# ---- the answer, in plain Python --------------------------------------------------------------


def answer(
    reads: list[Read] = READS, signatures: list[tuple[str, str]] = SIGNATURES, *,
    every: bool = False, both: bool = False, strict: bool = False, scored: bool = True,
    most: float | None = None,
) -> list[Row]:  # fmt: skip
    """Return what the scan should find, by comparing letter by letter.

    most: ambiguous bases that a match may have; a float is a share of its length
    """
    rows: list[Row] = []
    for header, bases, quality in reads:
        for name, signature in signatures:
            found = starts(bases, signature, "+", strict)
            if both:
                found = sorted(found + starts(bases, other_strand(signature), "-", strict))
            if most is not None:
                limit = most if isinstance(most, int) else math.floor(most * len(signature))
                found = [
                    (start, strand) for start, strand in found
                    if unclear(bases[start : start + len(signature)]) <= limit
                ]  # fmt: skip
            for start, strand in found if every else found[:1]:
                end = start + len(signature)
                values = [ord(character) - 33 for character in quality[start:end]]
                score = sum(values) / len(values) if scored else None
                names, many = (header.split()[0], name.split()[0]), unclear(bases[start:end])
                rows.append((*names, start, end, strand, score, many))
    return rows


def other_strand(bases: str) -> str:
    """Return the reverse complement in capital letters."""
    return "".join(OTHER[base.upper()] for base in reversed(bases))


def unclear(bases: str) -> int:
    return sum(base.upper() not in "ACGTU" for base in bases)


def starts(bases: str, signature: str, strand: str, strict: bool) -> list[tuple[int, str]]:
    def agree(ours: str, theirs: str) -> bool:
        mine, wanted = set(MEANING[ours.upper()]), set(MEANING[theirs.upper()])
        return mine <= wanted if strict else bool(mine & wanted)

    size = len(signature)
    places = range(len(bases) - size + 1)
    return [(i, strand) for i in places if all(map(agree, bases[i : i + size], signature))]


def tsv(rows: list[Row]) -> bytes:
    return (HEADER + "".join(f"{line}\n" for line in map(_line, rows))).encode()


def tsv_with_ambiguous(rows: list[Row]) -> bytes:
    lines = [f"{_line(row)}\t{row[6]}\n" for row in rows]
    return (HEADER.rstrip() + "\tambiguous\n" + "".join(lines)).encode()


def _line(row: Row) -> str:
    return "\t".join([*map(str, row[:5]), "" if row[5] is None else repr(row[5])])


def bed(rows: list[Row]) -> bytes:
    lines = []
    for sample, signature, start, end, strand, score, _ in rows:
        value = 0 if score is None else min(1000, round(10 * score))
        lines.append(f"{sample}\t{start}\t{end}\t{signature}\t{value}\t{strand}\n")
    return "".join(lines).encode()


def dicts(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(zip([*HEADER.split(), "ambiguous"], row, strict=True)) for row in rows]


def rows_of(batches: Iterable[Batch], names: Sequence[str], *more: str) -> list[tuple[Any, ...]]:
    """Return rows of batches; `more` are columns in place of the number of ambiguous bases."""
    return [
        (
            batch.sample[i].decode(),
            names[batch.signature[i]],
            int(batch.start[i]),
            int(batch.end[i]),
            "-" if batch.reverse[i] else "+",
            None if math.isnan(batch.score[i]) else float(batch.score[i]),
            *(plain(getattr(batch, name)[i]) for name in more or ("ambiguous",)),
        )
        for batch in batches
        for i in range(len(batch))
    ]


def plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else int(value)


def signatures_named(names: Sequence[bytes], bases: bytes = b"ACGTTGCAACGT") -> Signatures:
    """Return signatures of these names, all of the same bases."""
    letters = np.frombuffer(bases * len(names), np.uint8)
    return Signatures(list(names), Joined(letters, len(bases) * np.arange(len(names) + 1)))


def fastq(reads: list[Read] = READS, shift: int = 0) -> bytes:
    return "".join(
        f"@{name}\n{bases}\n+\n{''.join(chr(ord(c) + shift) for c in quality)}\n"
        for name, bases, quality in reads
    ).encode()


def fasta(records: list[tuple[str, str]]) -> bytes:
    return "".join(f">{name}\n{bases}\n" for name, bases in records).encode()


def wrapped_fasta(records: list[tuple[str, str]], width: int) -> bytes:
    lines = [
        (name, "\n".join(bases[at : at + width] for at in range(0, len(bases), width)))
        for name, bases in records
    ]
    return fasta(lines).replace(b"\n\n", b"\n")


def fasta_of(reads: list[Read] = READS) -> bytes:
    return fasta([(name, bases) for name, bases, _ in reads])


def members(data: bytes) -> bytes:
    """Return gzip members of 40 bytes each."""
    return b"".join(gzip.compress(data[at : at + 40]) for at in range(0, len(data), 40))


def frames(data: bytes) -> bytes:
    return b"".join(zstd.compress(data[at : at + 40]) for at in range(0, len(data), 40))


STORED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "gzip, several members": members,
    "bgzf": partial(bgzf, block=40),
    "zstd": zstd.compress, "zstd, several frames": frames,
}  # fmt: skip
LAYOUTS = {
    "crlf": fastq().replace(b"\n", b"\r\n"),
    "no last line end": fastq().rstrip(b"\n"),
    "wrapped": "".join(
        f"@{name}\n{bases[:5]}\n{bases[5:]}\n+\n{quality[:3]}\n{quality[3:]}\n"
        if len(bases) > 5
        else f"@{name}\n{bases}\n+\n{quality}\n"
        for name, bases, quality in READS
    ).encode(),
    "blank lines": b"\n\n" + fastq().replace(b"\n@last", b"\n\n\r\n@last") + b"\n\n",
    "names repeated behind +": "".join(
        f"@{name}\n{bases}\n+{name}\n{quality}\n" for name, bases, quality in READS
    ).encode(),
}

Scan = Callable[..., bytes]


def expected_indices(reads: list[Read]) -> list[int]:
    return [n for n, read in enumerate(reads) for _ in answer([read], every=True, both=True)]


HALVES = (fastq(READS[:3]), fastq(READS[3:]))

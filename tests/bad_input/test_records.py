"""Records and signatures that are wrong: the line says which, and where."""

from pathlib import Path

import pytest
from bad_input.given import (
    BASE,
    CHUNKS,
    COMPRESS,
    LAYOUTS,
    LENGTH,
    QUALITY,
    READS,
    Refused,
    Store,
    fastq,
    many,
)
from support.program import Run


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_record__cut_off_at_any_byte_is_refused(
    main: Run, tmp_path: Path, signatures: str, layout: str, options: tuple[str, ...]
) -> None:
    """Accepted only where a record is complete, be it without its last line end."""
    whole, path, output = LAYOUTS[layout], tmp_path / "cut.fq", tmp_path / "hits.tsv"
    first, second = whole[: whole.index(b"@r2")].rstrip(), whole.rstrip()
    command = ("scan", str(path), "-s", signatures, "-o", str(output), "--gpus", "none")
    accepted = []
    for stop in range(len(whole)):
        path.write_bytes(whole[:stop])
        ended = main(*command, *options)
        if whole[:stop].rstrip(b"\r\n") in (first, second):
            assert (ended.status, ended.err) == (0, "")
            assert output.read_bytes().count(b"\n") == 2 + (stop >= len(second))
            output.unlink()
            accepted.append(stop)
        else:
            assert (stop, ended.status, ended.out) == (stop, 2, "")
            assert ended.problem.startswith(f"{path}: ")
            assert sorted(tmp_path.iterdir()) == [path, Path(signatures)]
    assert {len(first), len(second)} <= set(accepted)


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("compression", ["none", *COMPRESS])
def test_record__cut_off_is_named_with_its_byte_of_the_content_and_where_the_data_end(
    refused: Refused, store: Store, compression: str, options: tuple[str, ...]
) -> None:
    path = store("cut.fq.x", COMPRESS.get(compression, bytes)(READS[:-4]))
    begin, end = READS.index(b"@r2"), len(READS) - 4
    where = f"{path}: record 'r2' at byte {begin}"
    problem = f"{where}: the record is cut off: the data end at byte {end}"
    assert refused(path, options=options) == problem


LENGTHS = [(a, b) for a in (1, 5, 6, 8, 32) for b in (0, 1, 6, 7, 9, 31) if a != b]
LENGTHS.append((8, 3))  # before a line end at the right distance


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize(("bases", "qualities"), LENGTHS)
def test_quality_of_another_length__is_told_with_both_lengths(
    refused: Refused, store: Store, bases: int, qualities: int, options: tuple[str, ...]
) -> None:
    reads = fastq(("r1", "ACGT", "IIII"), ("bad one", "A" * bases, "I" * qualities))
    path = store("lengths.fq", reads + fastq(("abc", "ACGT", "IIII")))
    where = f"{path}: record 'bad' at byte {reads.index(b'@bad')}"
    problem = f"{where}: the sequence has {bases} bases, the quality has {qualities} characters"
    assert refused(path, options=options) == problem


ILLEGAL = [("X", "'X'"), ("-", "'-'"), (" ", "' '"), ("*", "'*'"), ("1", "'1'"), ("\0", "'\\x00'")]
NO_PLUS = "a line that begins with '+'"
NO_BASE = "is not a base (A C G T U or an IUPAC code)"
OUTSIDE = [
    ("II I", 33, "' '", 2), ("\x1fIII", 33, "'\\x1f'", 0), ("III\x7f", 33, "'\\x7f'", 3),
    ("hh?h", 64, "'?'", 2), ("h!?h", 64, "'!'", 1),
]  # fmt: skip
BROKEN = {
    "no header": (READS + b"r3\nACGT\n+\nIIII\n", 33,
                  f"byte {len(READS)}: a record should begin with '@' here"),
    "no plus": (READS.replace(b"+\n@+", b"x\n@+"), 33,
                f"record 'r2' at byte 24: the sequence is not followed by {NO_PLUS}"),
    "FASTA behind FASTQ": (READS + b">r3\nACGT\n", 33,
                           f"byte {len(READS)}: a record should begin with '@' here"),
}  # fmt: skip
for letter, shown in ILLEGAL:
    problem = f"record 'r2', position 3 (from 0): {shown} {NO_BASE}"
    bases = f"ACG{letter}T{letter}"
    reads = fastq(("r1", "ACGT", "IIII"), ("r2 two", bases, "IIIIII"))
    BROKEN[f"{shown} in FASTQ"] = (reads, 33, problem)
    wrapped = f">r1\nACGT\n>r2 two\n{bases[:2]}\n{bases[2:4]}A\n{bases[4:]}\n"
    BROKEN[f"{shown} in FASTA"] = (wrapped.encode(), 33, problem)
for quality, offset, shown, place in OUTSIDE:
    problem = f"{shown} at position {place} (from 0) is no quality from offset {offset}"
    reads = fastq(("r1", "ACGT", "hhhh"), ("r2", "ACGT", quality))
    BROKEN[f"{quality!r} from {offset}"] = (reads, offset, f"record 'r2' at byte 16: {problem}")


@pytest.mark.parametrize("options", CHUNKS)
@pytest.mark.parametrize("what", BROKEN)
def test_broken_record__is_told_with_its_place(
    refused: Refused, store: Store, what: str, options: tuple[str, ...]
) -> None:
    content, offset, problem = BROKEN[what]
    path = store("broken.f", content)
    told = refused(path, options=(*options, "--phred-offset", str(offset)))
    assert told == f"{path}: {problem}"


TOLD = {BASE: "'X' is not a", QUALITY: "' ' at position 4", LENGTH: "4 bases, the quality has 5"}
SIZES = ["7", "64", "500", "100000"]


@pytest.mark.parametrize("compression", ["none", *COMPRESS])
@pytest.mark.parametrize(
    ("early", "late"),
    [(a, b) for a in TOLD for b in TOLD if a != b],
    ids=[f"{a}, then {b}" for a in ("base", "quality", "lengths")
         for b in ("base", "quality", "lengths") if a != b],
)  # fmt: skip
def test_error__reported_is_the_first_of_the_input_whatever_the_chunks(
    refused: Refused, store: Store, early: tuple[str, str], late: tuple[str, str], compression: str,
) -> None:  # fmt: skip
    compress = COMPRESS.get(compression, bytes)
    good = store("good.fq", many(40))
    bad = store("bad.fq.x", compress(many(60, r30=early, r33=late)))
    worse = store("worse.fq", many(20, r1=late))
    for size in SIZES:
        problem = refused(good, bad, worse, options=("--max-chunk-bytes", size))
        assert problem.startswith(f"{bad}: record 'r30'")
        assert TOLD[early] in problem


def test_error__of_a_later_chunk_is_the_same_of_workers(refused: Refused, store: Store) -> None:
    good, bad = store("good.fq", many(40)), store("bad.fq", many(60, r30=LENGTH, r31=BASE))
    options = ("--max-chunk-bytes", "200")
    problem = refused(good, bad, options=options)
    assert "record 'r30'" in problem
    assert refused(good, bad, options=(*options, "--workers", "2")) == problem

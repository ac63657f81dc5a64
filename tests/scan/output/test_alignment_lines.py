"""Lines of SAM and PAF of rows that are given."""

import math

import numpy as np
import pytest
from support.scan_rows import batch, render
from support.scanned import signatures_named

from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.output import columns
from multigpu.workloads.scan.output.alignment_lines import sam_of_signatures
from multigpu.workloads.scan.output.columns import ScanRows

SIGNATURES = signatures_named([b"one", b"two"], b"ACGUNr")  # 6 bases


def aligned(*rows: tuple[bytes, int, int, int, bool, float, int, bytes]) -> Batch:
    """Rows of sample, signature, start, end, reverse, score, errors and alignment.

    Samples have 30 bases.
    """
    samples = list(dict.fromkeys(row[0] for row in rows))
    return batch(
        *(row[:6] for row in rows),
        sample_index=np.array([samples.index(row[0]) for row in rows]),
        errors=np.array([row[6] for row in rows], np.int32),
        sample_length=np.full(len(rows), 30),
        cigar=[row[7] for row in rows],
    )


ROWS = aligned(
    (b"s1", 0, 4, 11, False, 20.5, 1, b"3=1I3="),
    (b"s1", 1, 0, 5, True, 40.0, 1, b"1D5="),
    (b"s1", 0, 24, 30, True, math.nan, 3, b"1=2X2=1X"),
    (b"s2", 0, 0, 0, False, math.nan, 6, b"6D"),
    (b"s2", 1, 30, 30, True, math.nan, 6, b"6D"),
)


def of_signatures(*batches: Batch) -> bytes:
    seen = np.zeros(len(SIGNATURES), np.bool_)
    rows = [ScanRows.of(each, SIGNATURES, ()) for each in batches]
    return b"".join([sam_of_signatures(block, seen) for each in rows for block in each.blocks()])


def test_sam__of_reads() -> None:
    assert render(ROWS, "sam", signatures=SIGNATURES).decode().splitlines() == [
        "s1\t0\tone\t1\t255\t4S3=1I3=19S\t*\t0\t0\t*\t*\tNM:i:1\tAS:i:5\tqs:f:20.5",
        "s1\t272\ttwo\t1\t255\t25S5=1D\t*\t0\t0\t*\t*\tNM:i:1\tAS:i:4\tqs:f:40.0",
        "s1\t272\tone\t1\t255\t1X2=2X1=24S\t*\t0\t0\t*\t*\tNM:i:3\tAS:i:0",
        "s2\t0\tone\t1\t255\t6D30S\t*\t0\t0\t*\t*\tNM:i:6\tAS:i:-6",
        "s2\t272\ttwo\t1\t255\t6D30S\t*\t0\t0\t*\t*\tNM:i:6\tAS:i:-6",
    ]


def test_sam__of_signatures() -> None:
    lines = of_signatures(ROWS[:3]).decode().splitlines()
    assert lines == [
        "one\t0\ts1\t5\t255\t3=1D3=\t*\t0\t0\tACGTNR\t*\tNM:i:1\tAS:i:5\tqs:f:20.5",
        "two\t16\ts1\t1\t255\t1I5=\t*\t0\t0\tYNACGT\t*\tNM:i:1\tAS:i:4\tqs:f:40.0",
        "one\t272\ts1\t25\t255\t1=2X2=1X\t*\t0\t0\tYNACGT\t*\tNM:i:3\tAS:i:0",
    ]


def test_sam__of_signatures_does_not_depend_on_the_division(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = of_signatures(ROWS)
    for size in (1, 2, 3):
        assert of_signatures(*(ROWS[at : at + size] for at in range(0, 5, size))) == whole
    monkeypatch.setattr(columns, "BLOCK", 2)
    assert of_signatures(ROWS) == whole


def test_sam__of_reads_has_one_first_line_a_read_however_it_is_rendered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = render(ROWS, "sam", signatures=SIGNATURES)
    monkeypatch.setattr(columns, "BLOCK", 1)
    assert render(ROWS, "sam", signatures=SIGNATURES) == whole


def test_paf() -> None:
    assert render(ROWS, "paf", "ambiguous", signatures=SIGNATURES).decode().splitlines() == [
        "one\t6\t0\t6\t+\ts1\t30\t4\t11\t6\t7\t255\tNM:i:1\tAS:i:5\tqs:f:20.5\txa:i:0\tcg:Z:3=1D3=",
        "two\t6\t0\t6\t-\ts1\t30\t0\t5\t5\t6\t255\tNM:i:1\tAS:i:4\tqs:f:40.0\txa:i:1\tcg:Z:1I5=",
        "one\t6\t0\t6\t-\ts1\t30\t24\t30\t3\t6\t255\tNM:i:3\tAS:i:0\txa:i:2\tcg:Z:1=2X2=1X",
        "one\t6\t0\t6\t+\ts2\t30\t0\t0\t0\t6\t255\tNM:i:6\tAS:i:-6\txa:i:3\tcg:Z:6I",
        "two\t6\t0\t6\t-\ts2\t30\t30\t30\t0\t6\t255\tNM:i:6\tAS:i:-6\txa:i:4\tcg:Z:6I",
    ]

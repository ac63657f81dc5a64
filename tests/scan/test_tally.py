"""Numbers for the report: errors by position, places of matches, what a journal keeps of them."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scan_rows import batch
from support.scanned import signatures_named

from multigpu.cluster.engine.journal import Codec
from multigpu.workloads.scan.batch import Batch
from multigpu.workloads.scan.options import ScanOptions
from multigpu.workloads.scan.parts import JOURNAL_CLASSES
from multigpu.workloads.scan.sink import Findings
from multigpu.workloads.scan.tally import (
    EXTRA,
    KINDS,
    LONG,
    LONG_PLACES,
    MISMATCH,
    MISSING,
    PLACES,
    Sums,
    Tallies,
    Tally,
    tally_of,
)

SIGNATURES = signatures_named([b"a", b"b"])  # of 12 bases


def details_of(rows: Batch, options: ScanOptions) -> Tally:
    found = Findings(path="x", source=0, rows=rows, lengths=rows.sample_length, names=list)
    return tally_of(found, SIGNATURES, options, is_detailed=True)


@pytest.mark.parametrize(("cigar", "is_reverse", "expected"), [
    (b"12=", False, []),
    (b"2=1X9=", False, [(2, MISMATCH)]),
    (b"2=1X9=", True, [(9, MISMATCH)]),
    (b"1=2D9=", False, [(1, MISSING), (2, MISSING)]),
    (b"1=2D9=", True, [(9, MISSING), (10, MISSING)]),
    (b"3=1I9=", False, [(3, EXTRA)]),
    (b"3=1I9=", True, [(9, EXTRA)]),
    (b"12=1I", False, [(11, EXTRA)]),
])  # fmt: skip
def test_errors__stand_at_the_bases_of_the_signature(
    cigar: bytes, is_reverse: bool, expected: list[tuple[int, int]]
) -> None:
    rows = batch(*[(b"r", 0, 0, 12, is_reverse, 30.0)] * 3, cigar=[cigar, b"12=", cigar])
    errors = details_of(rows, ScanOptions()).sums["errors"]
    assert errors.keys.tolist() == [KINDS * position + kind for position, kind in expected]
    assert errors.numbers["matches"].tolist() == [2] * len(expected)
    overhang = ScanOptions(overhang="both", max_mismatches=1)
    hanging = details_of(rows, overhang).sums["errors"]
    seen = [KINDS * position + kind for position, kind in expected if kind != MISSING]
    assert hanging.keys.tolist() == seen


def test_places__are_parts_of_samples_and_long_ones_stand_alone() -> None:
    rows = batch(
        (b"r", 1, 0, 12, False, 12.9), (b"r", 1, 88, 100, False, np.nan),
        (b"chr", 0, LONG - 12, LONG, True, 0.0), (b"chr", 0, 0, 12, True, 93.0),
        sample_length=np.array([100, 100, LONG, LONG]), sample_index=np.array([0, 0, 4, 4]),
    )  # fmt: skip
    found = details_of(rows, ScanOptions())
    assert found.sums["places"].keys.tolist() == [PLACES + 3, PLACES + 47]
    assert found.sums["scores"].keys.tolist() == [0, 12, 93]
    ((name, length, parts),) = found.long
    assert (name, length, len(parts), parts.sum()) == (b"chr", LONG, LONG_PLACES, 2)
    assert parts[[0, -1]].tolist() == [1, 1]


def test_tallies__are_the_same_from_a_journal_and_know_the_files_of_pairs() -> None:
    rows = batch(*[(b"r", 0, 0, 12, False, 30.0), (b"r", 0, 0, 12, False, 20.0)] * 2)
    rows = replace(rows, source=np.array([0, 1, 0, 1], np.int32))
    of = {"path": "x", "source": 0, "files": 2, "is_paired": True}
    found = Findings(rows=rows, lengths=np.full(6, 20), names=list, **of)
    payload = tally_of(found, SIGNATURES, ScanOptions(), is_detailed=True)
    codec = Codec(JOURNAL_CLASSES)
    tallies = Tallies(["one", "two"], SIGNATURES)
    tallies.add(payload)
    tallies.add(codec.unpack(codec.pack(payload)))
    assert [tallies.records.tolist(), tallies.matched.tolist()] == [[6, 6], [4, 4]]
    assert [each["reads"].tolist() for each in tallies] == [[4, 0]] * 2
    assert [each["mean_score"][0] for each in tallies] == [30.0, 20.0]
    assert tallies.sums("scores").numbers["count"].tolist() == [4, 4]


KEYS = st.integers(0, 5) | st.integers(0, 2**40)
CHUNKS = st.lists(st.lists(st.tuples(KEYS, st.integers(0, 2**30)), max_size=20), max_size=8)


@given(CHUNKS)
def test_sums__are_those_of_all_chunks_in_any_order(chunks: list[list[tuple[int, int]]]) -> None:
    counts, weights = Counter[int](), Counter[int]()
    several = [Sums.of(keys, weight=values) for keys, values in
               (np.array(chunk, np.int64).reshape(-1, 2).T for chunk in chunks)]  # fmt: skip
    for key, value in itertools.chain(*chunks):
        counts[key] += 1
        weights[key] += value
    total = Sums.joined([Sums.joined(several[:2]), *several[2:]])
    assert total.keys.tolist() == sorted(counts)
    for name, expected in (("count", counts), ("weight", weights)):
        found = total.numbers.get(name, np.empty(0))
        assert found.tolist() == [expected[key] for key in sorted(expected)]


def test_dense__has_zeros_where_nothing_was_added() -> None:
    sums = Sums.of(np.array([2, 2, 0]))
    assert sums.dense("count", 4).tolist() == [1, 0, 2, 0]
    assert sums.dense("count", 2, first=2).tolist() == [2, 0]
    assert Sums.joined([]).dense("count", 2).tolist() == [0, 0]

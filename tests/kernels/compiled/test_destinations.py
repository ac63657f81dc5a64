"""The files that records go to, against a plain list of who goes where."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from multigpu.kernels.compiled.destinations import NOWHERE, Numbering, place_records

NAMES = [0, 1, 1, 2]  # of three signatures, two of which share one, and of tied ones


@st.composite
def rows_of_records(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Return mates of a read, records, and rows: record, signature and ties."""
    mates = draw(st.sampled_from([1, 2]))
    records = mates * draw(st.integers(0, 4))
    row = st.tuples(st.integers(0, max(0, records - 1)), st.integers(0, 2), st.integers(0, 2))
    return mates, records, sorted(draw(st.lists(row, max_size=12 if records else 0)))


@given(
    case=rows_of_records(), by_name=st.booleans(), by_mate=st.booleans(), both=st.booleans(),
    asked=st.sampled_from(["matched", "unmatched", "both"]),
)  # fmt: skip
def test_records_go_once_to_each_file_that_rows_name(
    case: tuple[int, int, list[tuple[int, int, int]]],
    by_name: bool,
    by_mate: bool,
    both: bool,
    asked: str,
) -> None:
    mates, records, rows = case
    both &= mates == 2
    numbers = {"name": 2 * by_name, "mate": int(by_mate)}
    matched = Numbering(0, **numbers) if asked != "unmatched" else Numbering()
    unmatched = Numbering(6, mate=1) if asked != "matched" else Numbering()
    column = np.array(rows, np.int64).reshape(-1, 3).T
    names = np.array(NAMES if by_name else [0] * len(NAMES))
    goes = place_records(
        column[0].copy(), column[1].astype(np.int32), column[2].astype(np.int32), names, records,
        mates=mates, files=1, both=both, matched=matched, unmatched=unmatched, total=8,
    )  # fmt: skip
    of_read = defaultdict[int, dict[int, set[int]]](lambda: defaultdict(set))
    name_of = [int(names[-1 if tied > 1 else signature]) for _, signature, tied in rows]
    for (record, *_), name in zip(rows, name_of, strict=True):
        of_read[record // mates][name].add(record % mates)
    expected: list[list[int]] = [[] for _ in range(8)]
    for read in range(records // mates):
        kept = [name for name, found in of_read[read].items() if len(found) == 2 or not both]
        for mate in range(mates):
            for name in kept if matched.first >= 0 else ():
                expected[name * numbers["name"] + mate * by_mate].append(read * mates + mate)
            if not kept and unmatched.first >= 0:
                expected[6 + mate].append(read * mates + mate)
    parts = np.split(goes.records, goes.ends[:-1])
    assert [part.tolist() for part in parts] == expected
    for place, (record, *_), name in zip(goes.places.tolist(), rows, name_of, strict=True):
        is_kept = len(of_read[record // mates][name]) == 2 or not both
        assert (place != NOWHERE) == (is_kept and matched.first >= 0)
        if place != NOWHERE:
            file = name * numbers["name"] + record % mates * by_mate
            assert goes.records[place] == record
            assert goes.ends[file - 1] * (file > 0) <= place < goes.ends[file]

"""The best signatures of each read, against a plain search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multigpu
from multigpu.workloads.scan.rows import TopRule

Hit = tuple[int, int, int]  # record, signature, errors


def best_of(hits: list[Hit], rule: TopRule, pairs: bool) -> list[tuple[Hit, int]]:
    """Return the rows with their ties, read by read and signature by signature."""
    found = []
    for hit in hits:
        read = hit[0] // 2 if pairs else hit[0]
        records = [2 * read, 2 * read + 1] if pairs else [read]
        sums = []
        for signature, absent in enumerate(rule.absent.tolist()):
            errors = [e for r, s, e in hits if r in records and s == signature]
            if errors:
                sums.append((signature, sum(errors) + absent * (len(records) - len(errors))))
        limit = min(total for _, total in sums) + rule.delta
        best = [signature for signature, total in sums if total < limit]
        if hit[1] in best and hit[2] <= rule.most[hit[1]]:
            found.append((hit, len(best)))
    return found


@given(data=st.data(), pairs=st.booleans(), delta=st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_the_best_of_each_read(data: st.DataObject, pairs: bool, delta: int) -> None:
    most = np.array(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=4)))
    rule = TopRule(most=most, absent=most + delta, delta=delta)
    places = st.tuples(st.integers(0, 5), st.integers(0, len(most) - 1))
    chosen = data.draw(st.lists(places, unique=True, max_size=15))
    hits = sorted((r, s, data.draw(st.integers(0, int(most[s]) + delta - 1))) for r, s in chosen)
    record, signature, errors = np.array(hits, np.int32).reshape(-1, 3).T
    mate = (record % 2 + 1 if pairs else 0 * record).astype(np.int8)
    numbers, tied = rule.choose(record, mate, signature, errors)
    rows = [(hits[i], each) for i, each in zip(numbers, tied, strict=True)]
    assert rows == best_of(hits, rule, pairs)


def planted(rng: np.random.Generator, barcodes: list[str], bases: int) -> str:
    """Return random bases, in which some barcodes with a few substitutions stand."""
    letters = rng.choice(list("ACGT"), bases)
    for barcode in rng.choice(barcodes, 2):
        at = int(rng.integers(bases - len(barcode)))
        letters[at : at + len(barcode)] = list(barcode)
        letters[rng.integers(bases, size=2)] = "A"
    return "".join(letters)


@pytest.mark.parametrize("most", [0, 1, 0.2])
@pytest.mark.parametrize("delta", [1, 2, 3])
@pytest.mark.process
def test_a_scan_for_the_best_mismatches(most: float, delta: int) -> None:
    rng = np.random.default_rng(5)
    barcodes = ["".join(rng.choice(list("ACGT"), n)) for n in (9, 9, 10, 11, 15)]
    barcodes[1] = barcodes[0][:-1] + ("A" if barcodes[0][-1] != "A" else "C")
    reads = [planted(rng, barcodes, 40) for _ in range(200)]
    expected = []
    for number, read in enumerate(reads):
        fewest = {}
        for which, barcode in enumerate(barcodes):
            limit = most if isinstance(most, int) else int(most * len(barcode))
            starts = range(len(read) - len(barcode) + 1)
            distance = [sum(map(str.__ne__, barcode, read[at:])) for at in starts]
            if min(distance) < limit + delta:
                fewest[which] = (min(distance), distance.index(min(distance)), limit)
        least = min((errors for errors, _, _ in fewest.values()), default=0)
        best = {which: each for which, each in fewest.items() if each[0] < least + delta}
        rows = [(number, which, *each) for which, each in best.items()]
        expected += [(*row[:2], row[3], len(best)) for row in rows if row[2] <= row[4]]
    table = multigpu.scan(
        [(f"r{i}", read) for i, read in enumerate(reads)],
        [(f"b{i}", barcode) for i, barcode in enumerate(barcodes)],
        hits="top", max_mismatches=most, min_delta=delta, gpus="none",
    ).to_table()  # fmt: skip
    columns = ("sample_index", "signature_index", "start", "tied")
    assert expected
    assert list(zip(*(table[name].to_pylist() for name in columns), strict=True)) == expected


@pytest.mark.process
def test_near_signatures_are_noted_and_ties_named(caplog: pytest.LogCaptureFixture) -> None:
    barcodes = [("one", "ACGTACGTAC"), ("two", "ACGTACGTTG"), ("far", "GGGTTTCCCA")]
    reads = [("tie", "TTACGTACGTTCTT"), ("clear", "TTGGGTTTCCCATT")]
    more = {"hits": "top", "max_edits": 1, "gpus": "none"}
    rows = multigpu.scan(reads, barcodes, **more).to_pandas()
    assert rows[["sample", "signature", "tied", "edits"]].to_numpy().tolist() == [
        ["tie", "one", 2, 1], ["tie", "two", 2, 1], ["clear", "far", 1, 0],
    ]  # fmt: skip
    assert "both: 1, e.g. 'one' and 'two', at a distance of 2" in caplog.text

"""Demultiplexing, against a plain comparison of every read with every sample."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.scanned import Scan, fastq

import multigpu
from multigpu import InputError, UsageError
from multigpu.kernels.scan.barcodes import Barcodes, BarcodeWindows, assign

Store = Callable[[str, bytes], str]

bases = st.text("ACGTN", max_size=7)


def errors_of(barcode: str, text: str, places: int) -> tuple[int, int]:
    """Return the fewest errors of a barcode in a text, and where they are."""
    starts = range(min(places, len(text) - len(barcode) + 1))
    found = [
        (sum(a != b and "N" not in (a, b) for a, b in zip(barcode, text[s:], strict=False)), s)
        for s in starts
    ]
    best = min(found, default=(len(barcode), 0))
    return best if best[0] < len(barcode) else (len(barcode), 0)


def rows_of(
    read: list[str], samples: list[list[str]], most: int, delta: int, places: int
) -> list[tuple[int, ...]]:
    """Return the rows of a read: sample, start and errors of each barcode, and the ties."""
    found = [
        [errors_of(barcode, text, places) for barcode, text in zip(sample, read, strict=True)]
        for sample in samples
    ]
    sums = [sum(errors for errors, _ in each) for each in found]
    best = [number for number, total in enumerate(sums) if total < min(sums) + delta]
    return [
        (number, found[number][0][1], found[number][0][0], found[number][1][1],
         found[number][1][0], len(best))
        for number in best
        if all(errors <= most for errors, _ in found[number])
    ]  # fmt: skip


@given(
    data=st.data(), most=st.integers(0, 2), delta=st.integers(1, 2), places=st.sampled_from([1, 9])
)
@settings(max_examples=150, deadline=None)
def test_reads_are_of_the_nearest(data: st.DataObject, most: int, delta: int, places: int) -> None:
    lengths = st.integers(3, 5), data.draw(st.sampled_from([st.just(0), st.integers(3, 5)]))
    barcode = [
        length.flatmap(lambda n: st.text("ACGTN", min_size=n, max_size=n)) for length in lengths
    ]
    samples = data.draw(st.lists(st.tuples(*barcode).map(list), min_size=1, max_size=5))
    reads = 2 * data.draw(st.lists(st.tuples(bases, bases).map(list), max_size=8))
    windows, barcodes = [], []
    for column in (0, 1):
        texts = [read[column].encode() for read in reads]
        borders = np.cumsum([0, *map(len, texts)])
        letters = np.frombuffer(b"".join(texts), np.uint8)
        windows.append(BarcodeWindows(letters, borders[:-1], borders[1:], places))
        limits = np.full(len(samples), most)
        given_barcodes = [sample[column].encode() for sample in samples]
        barcodes.append(Barcodes.of(given_barcodes, limits, strict=False))
    rows = assign((windows[0], windows[1]), (barcodes[0], barcodes[1]), delta, 2, 2)
    expected = [rows_of(read, samples, most, delta, places) for read in reads]
    wanted = []
    for number, its in enumerate(expected):
        for mate in (0, 1):
            for sample, *found, shared in its:
                start, errors = found[2 * mate : 2 * mate + 2]
                length, text = len(samples[sample][mate]), reads[number][mate]
                ambiguous = text[start : start + length].count("N")
                wanted.append(
                    (2 * number + mate, sample, start, start + length, errors, ambiguous, shared)
                )
    assert list(zip(*(each.tolist() for each in rows), strict=True)) == wanted


SHEET = b"sample,barcode1\na,ACGTAC\nb,TTGGCC\nc,ACGTAGG\n"
READS = ["ACGTACTT", "ACGTTCGG", "TTGGCCAA", "ACGTAG", "ACGTAGGA", "GGGGGGGG", "AC"]
TSV = b"""\
sample\tsignature\tstart\tend\tstrand\tscore\ttied\tmismatches
r0\ta\t0\t6\t+\t40.0\t1\t0
r1\ta\t0\t6\t+\t40.0\t1\t1
r2\tb\t0\t6\t+\t40.0\t1\t0
r3\ta\t0\t6\t+\t40.0\t1\t1
r4\tc\t0\t7\t+\t40.0\t1\t0
"""


@pytest.mark.process
@pytest.mark.parametrize("size", ["1", "30", "1000"])
def test_rows_are_the_samples_of_the_sheet(
    scan: Scan, store: Store, size: str, caplog: pytest.LogCaptureFixture
) -> None:
    reads, sheet = store("r.fq", records(READS)), store("sheet.csv", SHEET)
    options = ("--sample-sheet", sheet, "--max-mismatches", "1", "--max-chunk-bytes", size)
    assert scan(reads, options=options) == TSV
    assert "both: 1, e.g. 'a' and 'c', at a distance of 1" in caplog.text


DUAL = b"sample\tbarcode1\tbarcode2\na\tACGTAC\tGGC\nb\tTTGGCC\tAAT\nc\tACGTAC\tCCG\n"
# Both index reads of each pair, and where they belong with one mismatch each.
INDEXES = [
    ("ACGTACTT", "GGC"), ("ACGTAA", "CCG"), ("TTGGCA", "AAA"), ("TTGGCC", "GGC"), ("ACGTAC", "GCG"),
    ("ACG", "GGC"),
]  # fmt: skip
SAMPLES = ["a", "c", "b", None, "c", None]


def records(texts: list[str], titles: list[str] | None = None) -> bytes:
    names = titles or [f"r{i} 1:N:0" for i in range(len(texts))]
    return fastq([(name, text, "I" * len(text)) for name, text in zip(names, texts, strict=True)])


@pytest.mark.process
@pytest.mark.parametrize("size", [1, 70, 1000])
@pytest.mark.parametrize(
    ("place", "paired"),
    [("files", False), ("files", True), ("headers", False), ("headers", True), ("reads", True)],
)
def test_barcodes_stand_in_many_places(store: Store, place: str, paired: bool, size: int) -> None:
    index: Any = [store(f"I{k + 1}.fq.gz", records([each[k] for each in INDEXES])) for k in (0, 1)]
    mates = [["ACGT"] * len(INDEXES)] * 2
    titles = [[f"r{i}" for i in range(len(INDEXES))]] * 2
    if place == "headers":
        index = "headers"
        titles = [[f"r{i} {mate}:N:0:{'+'.join(each)}" for i, each in enumerate(INDEXES)]
                  for mate in (1, 2)]  # fmt: skip
    elif place == "reads":
        index, mates = (), [[each[k] + "T" for each in INDEXES] for k in (0, 1)]
    paths = [
        store(f"x_R{mate + 1}.fq", records(mates[mate], titles[mate])) for mate in range(1 + paired)
    ]
    table = multigpu.scan(
        paths, sample_sheet=store("sheet.tsv", DUAL), index_reads=index, max_mismatches=1,
        max_chunk_bytes=size, gpus="none",
    ).to_pandas()  # fmt: skip
    found = list(zip(table["sample"], table["signature"], strict=True))
    expected = [(f"r{i}", sample) for i, sample in enumerate(SAMPLES) if sample]
    assert found == [row for row in expected for _ in range(1 + paired)]


@pytest.mark.process
@pytest.mark.parametrize(("reads", "index", "problem"), [
    (["r1", "r2"], ["r1", "r3"], "I.fq: record 'r3' at byte 14: is not of 'r2' in {}:"),
    (["r1", "r2"], ["r1"], "I.fq: has no record for 'r2' of {}: it has fewer"),
    (["r1"], ["r1", "r2"], "I.fq: record 'r2' at byte 14: has no read: {} has fewer"),
    (["r1", "r2 1:N:0:8"], None, "record 'r1': there is no index in the title, as in 1:N:0:A"),
    (["r1 1:N:0:A", "r2 1:N:0:8"], None, "record 'r2': there is no index in the title"),
])  # fmt: skip
def test_reads_that_have_no_index(store: Store, reads: list[str], index: Any, problem: str) -> None:
    def path_of(name: str, titles: list[str]) -> str:
        return store(name, "".join(f"@{each}\nACG\n+\nIII\n" for each in titles).encode())

    path = path_of("r.fq", reads)
    given: Any = path_of("I.fq", index) if index else "headers"
    found = multigpu.scan(path, sample_sheet=store("s.csv", SHEET), index_reads=given, gpus="none")
    with pytest.raises(InputError) as refused:
        list(found)
    assert problem.format(path) in str(refused.value)
    with pytest.raises(UsageError, match="give signatures or sample_sheet, not both"):
        multigpu.scan(path, [("s", "ACGT")], sample_sheet=store("s.csv", SHEET))

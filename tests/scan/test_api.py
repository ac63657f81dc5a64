"""`multigpu.scan`: the answer as batches, tables and frames."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support import scanned
from support.scanned import READS, SIGNATURES, STORED

import multigpu
from multigpu import InputError, UsageError

pytestmark = pytest.mark.process  # runs whole jobs


@pytest.mark.parametrize("size", [20, 1 << 20])
def test_api__gives_batches_with_numbers_of_samples(store: Any, signatures: str, size: int) -> None:
    paths = [store("a.fq", scanned.HALVES[0]), Path(store("b.fq", scanned.HALVES[1]))]
    options: dict[str, Any] = {"hits": "all", "strand": "both", "max_chunk_bytes": size}
    found = multigpu.scan(paths, signatures, gpus="none", **options)
    batches = list(found)
    assert scanned.rows_of(batches, found.signature_names) == scanned.answer(every=True, both=True)
    assert [
        n for batch in batches for n in batch.sample_index.tolist()
    ] == scanned.expected_indices(READS)
    assert (len(batches) > 2) == (size == 20)


def test_api__computes_batches_as_they_are_taken(store: Any, signatures: str) -> None:
    """The error of a later chunk comes after the rows before it."""
    content = scanned.fastq() * 50 + b"@bad\nACXT\n+\nIIII\n"
    path = store("late.fq", content)
    batches = iter(multigpu.scan(path, signatures, gpus="none", max_chunk_bytes=200, threads=1))
    assert len(next(batches)) > 0
    with pytest.raises(InputError, match=r"record 'bad', position 2 \(from 0\): 'X' is not a base"):
        list(batches)


def test_api__table_has_the_columns_of_parquet(reads: str, signatures: str) -> None:
    table = multigpu.scan(reads, signatures, gpus="none", hits="all", strand="both").to_table()
    rows = table.drop_columns(["sample_index", "signature_index", "file"]).to_pylist()
    assert rows == scanned.dicts(scanned.answer(every=True, both=True))
    assert table.column("sample_index").to_pylist() == scanned.expected_indices(READS)


def test_api__gives_the_rows_once_as_a_frame_or_table(reads: str, signatures: str) -> None:
    found = multigpu.scan([reads], [signatures], gpus="none")
    rows = found.to_pandas().drop(columns=["sample_index", "signature_index", "file"])
    assert rows.to_dict("records") == scanned.dicts(scanned.answer())
    with pytest.raises(UsageError, match=r"read already.* call multigpu\.scan once more"):
        found.to_table()
    none = multigpu.scan([("a", "TTTTTTT")], signatures, gpus="none").to_table()
    assert (none.num_rows, len(none.column_names)) == (0, 10)


ENCODED = [tuple(text.encode() for text in read) for read in READS]
UNSCORED = [read[:2] for read in READS]


@pytest.mark.parametrize("size", [20, 1 << 20])
@pytest.mark.parametrize(
    ("records", "content"),
    [(READS, scanned.fastq()), (ENCODED, scanned.fastq()), (UNSCORED, scanned.fasta_of())],
    ids=["text", "bytes", "no quality"],
)
def test_records__give_the_rows_of_a_file_with_them(
    store: Any, signatures: str, records: list[Any], content: bytes, size: int
) -> None:
    options: dict[str, Any] = {
        "gpus": "none", "hits": "all", "strand": "both", "max_chunk_bytes": size,
    }  # fmt: skip
    expected = multigpu.scan(store("reads", content), signatures, **options).to_table()
    expected = expected.drop_columns("file")
    assert expected.num_rows > 0
    unscored = [(*signature, None) for signature in SIGNATURES]
    for wanted in (signatures, SIGNATURES, iter(SIGNATURES), unscored):
        table = multigpu.scan(iter(records), wanted, **options).to_table()
        assert table.drop_columns("file").equals(expected)


def test_records__are_taken_as_the_rows_are_by_the_same_thread(signatures: str) -> None:
    taken = []

    def records() -> Iterator[tuple[str, str]]:
        for number in range(10_000):
            taken.append(threading.current_thread())
            yield f"read{number}", "TTACGT"

    found = multigpu.scan(records(), signatures, gpus="none", threads=1, max_chunk_bytes=100)
    assert len(taken) == 1
    rows = iter(found)
    assert len(next(rows)) > 0
    assert len(taken) < 1000
    assert set(taken) == {threading.current_thread()}


@pytest.mark.parametrize(("wanted", "problem"), [
    ([("one", "ACGT"), ("", "A")], r"record 1 \(from 0\): the name is empty"),
    ([("one", "ACGT"), ("two", "")], "record 'two': the signature has no base"),
    ([("one", "AXGT")], r"record 'one', position 1 \(from 0\): 'X' is not a base.*"),
])  # fmt: skip
def test_records__that_are_wrong_signatures_are_refused_at_once(wanted: Any, problem: str) -> None:
    with pytest.raises(InputError, match=f"^signatures: {problem}$"):
        multigpu.scan(READS, wanted, gpus="none")


@pytest.mark.parametrize(("change", "problem"), [
    ({"samples": []}, "no samples given"),
    ({"samples": [3]}, "samples is 3; it must be a path"),
    ({"samples": iter([])}, "no samples given"),
    ({"samples": ["a.fq", ("r", "A")]}, r"samples is \('r', 'A'\); it must be a path"),
    ({"signatures": ()}, "no signatures given"),
    ({"signatures": None}, "signatures is None; it must be a path"),
    ({"samples": "-", "signatures": "-"}, "-: standard input can be given only once"),
    ({"min_score": "x"}, "min_score is 'x'; it must be a number"),
    ({"hits": ["all"]}, r"hits is \['all'\]; it must be first or best or sites or all or top"),
    ({"phred_offset": "33"}, "phred_offset is '33'; it must be 33 or 64"),
    ({"samples": "absent.fq"}, r"absent\.fq: cannot be read: there is no such file"),
    ({"samples": READS, "journal": "x"}, "no journal can be kept: samples in memory .* files"),
])  # fmt: skip
def test_api__refuses_other_kinds(reads: str, signatures: str, change: Any, problem: str) -> None:
    given: dict[str, Any] = {"samples": reads, "signatures": signatures, "gpus": "none", **change}
    with pytest.raises((InputError, UsageError), match=f"^{problem}$"):
        multigpu.scan(given.pop("samples"), given.pop("signatures"), **given)


def test_api__takes_the_other_options(store: Any, signatures: str) -> None:
    unscored = [read for read in READS if "~" not in read[2]]
    path = store("old.fq", scanned.fastq(unscored, shift=31))
    options: dict[str, Any] = {"sample_n": "mismatch", "min_score": 15.0, "phred_offset": 64}
    found = multigpu.scan(path, signatures, gpus="none", **options)
    expected = [row for row in scanned.answer(unscored, strict=True) if (row[5] or 0.0) >= 15]
    assert scanned.rows_of(list(found), found.signature_names) == expected != []


@pytest.fixture(scope="module")
def client(scheduler: str) -> Iterator[Any]:
    from distributed import Client

    with Client(scheduler) as connected:
        yield connected


@pytest.mark.parametrize("stored", ["plain", "gzip", ""])
def test_api__takes_an_existing_client_and_leaves_it_open(
    store: Any, signatures: str, client: Any, stored: str
) -> None:
    samples = store("reads.dat", STORED[stored](scanned.fastq())) if stored else READS
    options: dict[str, Any] = {"hits": "all", "strand": "both", "max_chunk_bytes": 50}
    found = multigpu.scan(samples, signatures, client=client, gpus="none", **options)
    assert scanned.rows_of(list(found), found.signature_names) == scanned.answer(
        every=True, both=True
    )
    assert client.status == "running"
    assert client.submit(sum, [1, 2]).result() == 3


def kept(**options: Any) -> Any:
    return multigpu.Scanner(SIGNATURES, gpus="none", **options).scan(READS)


def test_result__is_read_by_other_packages_as_an_arrow_stream() -> None:
    found = kept()
    assert pa.table(found).equals(found.to_table())
    lazy = multigpu.scan(READS, SIGNATURES, gpus="none")
    assert pa.table(lazy).num_rows == len(found) == found.to_table().num_rows > 0


def test_frames__are_those_of_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kept()
    assert found.to_pandas().to_dict("records") == found.to_table().to_pandas().to_dict("records")
    module = type(sys)("polars")
    module.DataFrame = pa.table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", module)
    assert found.to_polars().equals(found.to_table())
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match=f"^{name} is not installed: pip install {name}$"):
            getattr(found, f"to_{name}")()


def test_result__is_printed_with_its_first_kept() -> None:
    found = kept(hits="all")
    assert repr(found).splitlines()[:3] == [
        f"<{len(found)} matches of 5 signatures, the first 5>",
        "sample\tsignature\tstart\tend\tstrand\tscore",
        "read1\tsig1\t2\t6\t+\t30.25",
    ]
    assert len(repr(found).splitlines()) == 7
    page = multigpu.Scanner([("<b>", "ACGT")], gpus="none").scan(READS)._repr_html_()
    assert "<tr><td>sample<td>signature<td>" in page
    assert "&lt;b&gt;" in page
    lazy = multigpu.scan(READS, SIGNATURES, gpus="none")
    assert repr(lazy).startswith("<ScanResult: 5 signatures, 1 sample files; iterate over it")

"""Results of scans: as frames of other packages, and printed."""

import sys
from typing import Any

import pyarrow as pa
import pytest
from support.scanned import READS, SIGNATURES

import multigpu
from multigpu import UsageError

pytestmark = pytest.mark.process  # runs whole searches


def rows(**options: Any) -> Any:
    return multigpu.Scanner(SIGNATURES, gpus="none", **options).scan(READS)


def test_result__is_read_by_other_packages_as_an_arrow_stream() -> None:
    found = rows()
    assert pa.table(found).equals(found.to_table())
    lazy = multigpu.scan(READS, SIGNATURES, gpus="none")
    assert pa.table(lazy).num_rows == len(found) == found.to_table().num_rows > 0


def test_frames__are_those_of_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows()
    assert found.to_pandas().to_dict("records") == found.to_table().to_pandas().to_dict("records")
    module = type(sys)("polars")
    module.DataFrame = pa.table  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", module)
    assert found.to_polars().equals(found.to_table())
    for package in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            UsageError, match=f"^{package} is not installed: pip install {package}$"
        ):
            getattr(found, f"to_{package}")()


def test_result__is_printed_with_its_first_rows() -> None:
    found = rows(hits="all")
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

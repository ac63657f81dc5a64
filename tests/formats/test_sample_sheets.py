"""Sample sheets, and what is wrong with them in one line."""

from collections.abc import Callable

import pytest

from multigpu import InputError
from multigpu.formats.sequences.sample_sheets import read_sample_sheet

Store = Callable[[bytes], str]


@pytest.mark.parametrize("text", [
    b"sample\tbarcode1\tbarcode2\na\tACGU\tTT\nb\tcc\tGN\n",
    b'\xef\xbb\xbfbarcode2,"sample", barcode1\r\n\r\nTT,a,ACGT\r\nGN,b,CC',
])  # fmt: skip
def test_columns_have_names(store: Store, text: bytes) -> None:
    sheet = read_sample_sheet(store(text))
    assert sheet.samples == [b"a", b"b"]
    assert sheet.barcodes == ([b"ACGT", b"CC"], [b"TT", b"GN"])
    assert sheet.signatures(1).letters[1].tobytes() == b"GN"


@pytest.mark.parametrize(("text", "problem"), [
    (b"", "there is no sample"),
    (b"sample,barcode1\n", "there is no sample"),
    (b"sample;barcode1\na;ACGT\n", "line 1: the columns must be sample, barcode1 and, for"),
    (b"sample barcode1\na ACGT\n", "by tabs or commas, not sample barcode1"),
    (b"sample,barcode1,lane\na,ACGT,1\n", "not sample, barcode1, lane"),
    (b"sample,barcode1\na,ACGT,AC\n", "line 2: has 3 columns, not 2"),
    (b"sample,barcode1\na,\n", "line 2: barcode1 is empty"),
    (b"sample,barcode1\n,ACGT\n", "line 2: the sample has no name"),
    (b"sample,barcode1\na,AC\nb,AC-T\n", "line 3: barcode1 is 'AC-T': not only bases"),
    (b"sample,barcode1\na,AC\na,GG\n", "line 3: the sample 'a' is in line 2, too"),
    (b"sample,barcode1\na,AC\n\nb,ac\n", "line 4: the barcodes are those of line 2"),
    (b"sample,barcode1\ntied,AC\n", "'tied' is the name for reads that fit several samples"),
    (b"sample,barcode1\na b,AC\n", "the sample 'a b' has white space in its name: write _"),
    ("sample\tbarcode1\na\tAC\n".encode("utf-16"), "is text in UTF-16: convert it with `iconv"),
    ("sample\tbarcode1\na\tAC\n".encode("utf-16-le"), "is text in UTF-16: convert it with"),
    (b"\xff" * 1000, r"not '\udcff\udcff"),
    (b"@r\nACGT\n+\nIIII\n" * (5 << 20), "more than 67,108,864 bytes: is it a sample sheet?"),
    (b"sample,barcode1\n" + b"a," + b"A" * 256 + b"\n", "has 256 bases; at most 255"),
])  # fmt: skip
def test_what_is_wrong(store: Store, text: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]{1,600}$") as refused:
        read_sample_sheet(store(text))
    assert problem in str(refused.value)

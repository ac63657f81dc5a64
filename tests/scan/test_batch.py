"""Rows as columns of one length."""

import numpy as np
import pytest
from support.scan_rows import ROWS

from multigpu.workloads.scan.batch import Batch


def test_batch__concatenates_in_order_and_slices() -> None:
    both = Batch.concatenate([ROWS, ROWS[1:], ROWS[:0]])
    assert both.sample == [b"read1", b"read2", b"read2", b"read2", b"read2"]
    assert both.start.tolist() == [0, 3, 2**40, 3, 2**40]
    assert both.signature.dtype == np.int32
    assert len(Batch.concatenate([])) == len(Batch.empty()) == 0
    assert both[:2].numbered(7).sample_index.tolist() == [7, 8]


def test_batch__refuses_columns_of_another_length_or_type() -> None:
    columns = {name: getattr(ROWS, name) for name in Batch.__dataclass_fields__}
    with pytest.raises(ValueError, match=r"start: int64\[2\] instead of int64\[3\]"):
        Batch(**{**columns, "start": ROWS.start[1:]})
    with pytest.raises(ValueError, match=r"signature: int64\[3\] instead of int32\[3\]"):
        Batch(**{**columns, "signature": ROWS.signature.astype(np.int64)})

"""Arrow arrays made by their buffers: what pyarrow makes of the same, without pandas."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.program import run_python

from multigpu.formats.tables import arrow

NUMBERS = [
    np.array([], np.int32), np.array([3, -1, 2**31 - 1], np.int32), np.arange(11) % 3 == 0,
    np.arange(20, dtype=np.int64)[::3], np.array([1.5, -0.0, np.inf]),
    np.array([1.5, 2.5], np.float32), np.array([250, 7], np.uint8),
]  # fmt: skip


@pytest.mark.parametrize("values", NUMBERS, ids=lambda v: f"{v.dtype}-{len(v)}")
def test_numbers__as_pyarrow_makes_them(values: np.ndarray) -> None:
    found = arrow.numbers(values)
    found.validate(full=True)
    assert found.equals(pa.array(values))
    assert found.null_count == 0
    if values.dtype != np.bool_:
        np.testing.assert_array_equal(arrow.values(found), values, strict=True)


def test_numbers__nan_is_null_where_asked() -> None:
    values = np.array([np.nan, 1.0, np.nan] * 5)
    found = arrow.numbers(values, nan_is_null=True)
    found.validate(full=True)
    assert found.null_count == 10
    assert found.equals(pa.array(values, from_pandas=True))
    assert arrow.numbers(values).null_count == 0
    assert arrow.numbers(values[1:2], nan_is_null=True).buffers()[0] is None


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "Ünï", "日本", "x" * 100]])
def test_strings__as_pyarrow_makes_them(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (arrow.MOST_TEXT, 3):  # more than an array holds is in chunks
        monkeypatch.setattr(arrow, "MOST_TEXT", most)
        found = arrow.strings(texts)
        found.validate(full=True)
        assert found.equals(pa.array(texts, pa.string()))


def test_values__of_a_part_or_with_nulls() -> None:
    part = pa.array([5, 6, 7, 8], pa.int16()).slice(1, 2)
    assert arrow.values(part).tolist() == [6, 7]
    assert arrow.values(part).dtype == np.int16
    np.testing.assert_array_equal(arrow.values(pa.array([1, None, 3])), [1.0, np.nan, 3.0])


def test_table__of_numbers_and_arrays_under_any_names() -> None:
    found = arrow.table([("a", np.arange(2)), ("a", arrow.strings(["x", "y"]))])
    assert found.column_names == ["a", "a"]
    assert found.column(1).to_pylist() == ["x", "y"]


def loaded(*arguments: str) -> set[str]:
    """Which of two packages the program has imported when it ends well."""
    code = (
        "import os, sys\nend = os._exit\n"
        "def told(status):\n    print(*sys.modules, flush=True)\n    end(status)\n"
        "os._exit = told\nfrom multigpu.cli import main\nmain(sys.argv[1:])"
    )
    ran = run_python("-c", code, *arguments, cwd=Path.cwd())
    assert ran.status == 0, ran.err
    return {"pandas", "pyarrow"} & set(ran.out.split())


@pytest.mark.process
def test_commands__do_not_load_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.fa").write_text(">a\nACGT\n")
    Path("r.fq").write_text("@r\nTACGTT\n+\nIIIIII\n")
    for command in (
        "scan -q r.fq -s s.fa -o hits.parquet", "simulate counts --regions 9000 -o t.parquet",
        "cnv -q t.parquet -o out", "simulate pocket -o p.npz",
        "simulate ligands --count 3 -o l.sdf",
        "dock -q l.sdf --pocket p.npz --precision 60 -o poses.sdf --scores scores.parquet",
    ):  # fmt: skip
        assert loaded(*command.split()) == {"pyarrow"} or "parquet" not in command, command
